"""Auto keying as Blender's own transform operators do it: by the preferences, or by the active keying set.

Blender's `anim_utils.AutoKeying` (since 5.0) keys whole transforms and knows no keying sets of absolute paths, so all
versions use the code in here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import bpy

from .. import compat

Holder = bpy.types.Object | bpy.types.PoseBone
"""What has channels: an object, or a bone."""


def auto_key(context: bpy.types.Context, holder: Holder, fields: Collection[str]) -> None:
    """Key channels that were set, on the current frame, if auto keying is on and as it is configured.

    Args:
        context: for the scene and the preferences.
        holder: whose channels these are.
        fields: their properties, such as `location`. An active keying set decides by itself what is keyed.
    """
    settings = context.scene.tool_settings
    if not settings.use_keyframe_insert_auto or not fields:
        return
    keying: bpy.types.KeyingSet | None = context.scene.keying_sets_all.active
    if settings.use_keyframe_insert_keyingset and keying is not None:
        _key_set(context, keying, holder)
        return
    edit = context.preferences.edit
    options = _options(context, visual=edit.use_visual_keying, needed=edit.use_auto_keyframe_insert_needed)
    group = holder.name if isinstance(holder, bpy.types.PoseBone) else "Object Transforms"
    for field in fields:
        # Asked to, Blender finds the available curves itself, and warns of each that is not there.
        indices = sorted(keyed_indices(holder, field)) if edit.use_keyframe_insert_available else [-1]
        for index in indices:
            holder.keyframe_insert(field, index=index, group=group, options=options, keytype=settings.keyframe_type)


def goes_back(context: bpy.types.Context, holder: Holder, fields: Collection[str]) -> bool:
    """Whether a channel that was set goes back to its keyed value when the current frame is evaluated again."""
    owner = compat.curve_owner(holder.id_data)
    frame = context.scene.frame_current_final
    for curve in () if owner is None else owner.fcurves:
        for field in fields:
            if curve.data_path == path_of(holder, field):
                value, keyed = getattr(holder, field)[curve.array_index], curve.evaluate(frame)
                if abs(value - keyed) > 1e-5 * max(1.0, abs(value)):
                    return True
    return False


def keyed_indices(holder: Holder, field: str) -> set[int]:
    """The indices of a channel that have an F-curve."""
    owner = compat.curve_owner(holder.id_data)
    path = path_of(holder, field)
    return set() if owner is None else {curve.array_index for curve in owner.fcurves if curve.data_path == path}


def path_of(holder: Holder, field: str) -> str:
    """The data path of a channel from its object."""
    return field if isinstance(holder, bpy.types.Object) else f"{holder.path_from_id()}.{field}"


def _options(context: bpy.types.Context, *, visual: bool, needed: bool) -> set[str]:
    settings = context.scene.tool_settings
    wanted = {
        "INSERTKEY_VISUAL": visual,
        "INSERTKEY_NEEDED": needed,
        "INSERTKEY_CYCLE_AWARE": settings.use_keyframe_cycle_aware,
        "INSERTKEY_REPLACE": settings.auto_keying_mode == "REPLACE_KEYS",
    }
    return {option for option, on in wanted.items() if on}


def _key_set(context: bpy.types.Context, keying: bpy.types.KeyingSet, holder: Holder) -> None:
    """Key what a keying set says of a holder; a set of absolute paths is keyed as it is."""
    edit, settings = context.preferences.edit, context.scene.tool_settings
    visual, needed = edit.use_visual_keying, edit.use_auto_keyframe_insert_needed
    if keying.use_insertkey_override_visual:
        visual = keying.use_insertkey_visual
    if keying.use_insertkey_override_needed:
        needed = keying.use_insertkey_needed
    options = _options(context, visual=visual, needed=needed)
    for path in _paths(context, keying, holder):
        groups = {"NAMED": path.group, "KEYINGSET": keying.bl_label}
        path.id.keyframe_insert(
            path.data_path,
            index=-1 if path.use_entire_array else path.array_index,
            group=groups.get(path.group_method, ""),
            options=options,
            keytype=settings.keyframe_type,
        )


def _paths(
    context: bpy.types.Context, keying: bpy.types.KeyingSet, holder: Holder
) -> Iterator[bpy.types.KeyingSetPath]:
    if keying.type_info is not None:
        # `refresh` would take what is selected, which a target need not be.
        keying.paths.clear()
        try:
            keying.type_info.generate(context, keying, holder)
        except (AttributeError, TypeError):
            return  # a set for other things, such as the whole character for an empty
    for path in keying.paths:
        if path.id is not None:
            yield path
