"""Auto keying as Blender's own transform operators do it: by the preferences, or by the active keying set.

Blender's `anim_utils.AutoKeying` (since 5.0) keys whole transforms and ignores keying sets of absolute paths, so every
version uses this module.
"""

from collections.abc import Collection, Iterable

from bpy.types import Context, FCurve, KeyingSet

from ..core.channels import FIELDS
from ..core.goals import Holder, curves_on, group_of, keyed_indices, named
from ..core.translation.sentences import say


def auto_key(context: Context, holder: Holder, fields: Collection[str]) -> None:
    """Key changed channels on the current frame if auto keying is on, following its settings.

    Args:
        context: gives the scene and the preferences.
        holder: the object or bone that owns the channels.
        fields: the properties that were set, such as `location`. An active keying set overrides them.
    """
    settings = context.scene.tool_settings
    if not settings.use_keyframe_insert_auto or not fields:
        return
    keying: KeyingSet | None = context.scene.keying_sets_all.active
    if settings.use_keyframe_insert_keyingset and keying is not None:
        _key_set(context, keying, holder)
        return
    edit = context.preferences.edit
    group = group_of(holder)
    options = _options(context, visual=edit.use_visual_keying, needed=edit.use_auto_keyframe_insert_needed)
    for field in fields:
        # Blender's own INSERTKEY_AVAILABLE warns about every curve that does not exist.
        for index in sorted(keyed_indices(holder, field)) if edit.use_keyframe_insert_available else [-1]:
            holder.keyframe_insert(field, index=index, group=group, options=options, keytype=settings.keyframe_type)


def left_out(context: Context, holders: Iterable[Holder]) -> list[str]:
    """Return that the preferences keep auto keying from keying one of these for the first time; empty if they don't."""
    settings, edit = context.scene.tool_settings, context.preferences.edit
    by_set = settings.use_keyframe_insert_keyingset and context.scene.keying_sets_all.active is not None
    if by_set or not (settings.use_keyframe_insert_auto and edit.use_keyframe_insert_available):
        return []
    bare = [holder.name for holder in holders if not any(keyed_indices(holder, field) for field in FIELDS)]
    text = "No key for {names}: Only Insert Available is on in the preferences. Press Key Controls"
    return [say(text, names=named(bare))] if bare else []


def reverting(context: Context, written: Iterable[tuple[Holder, Collection[str]]]) -> list[str]:
    """Return that some holders, whose channels were set, revert to their keys on the next frame change; empty if none.

    One sentence tells of all of them: a body has dozens of bones.
    """
    frame = context.scene.frame_current_final
    names = [
        holder.name
        for holder, fields in written
        if any(differs(getattr(holder, field)[i], c, frame) for field in fields for i, c in curves_on(holder, field))
    ]
    if len(names) < 2:
        text = "'{bone}' is animated and reverts on the next frame change. Key it"
        return [say(text, bone=name) for name in names]
    return [say("{names} are animated and revert on the next frame change. Key them", names=named(names))]


def differs(value: float, curve: FCurve, time: float) -> bool:
    """Whether a value differs from that of an F-curve by more than rounding."""
    return abs(value - curve.evaluate(time)) > 1e-5 * max(1.0, abs(value))


def _options(context: Context, *, visual: bool, needed: bool) -> set[str]:
    settings = context.scene.tool_settings
    wanted = {
        "INSERTKEY_VISUAL": visual,
        "INSERTKEY_NEEDED": needed,
        "INSERTKEY_CYCLE_AWARE": settings.use_keyframe_cycle_aware,
        "INSERTKEY_REPLACE": settings.auto_keying_mode == "REPLACE_KEYS",
    }
    return {option for option, on in wanted.items() if on}


def _key_set(context: Context, keying: KeyingSet, holder: Holder) -> None:
    """Key the holder's paths in a keying set; a set of absolute paths is keyed as it is."""
    edit, settings = context.preferences.edit, context.scene.tool_settings
    visual, needed = edit.use_visual_keying, edit.use_auto_keyframe_insert_needed
    if keying.use_insertkey_override_visual:
        visual = keying.use_insertkey_visual
    if keying.use_insertkey_override_needed:
        needed = keying.use_insertkey_needed
    options = _options(context, visual=visual, needed=needed)
    if keying.type_info is not None:
        # `refresh` would use the selection, and the target may not be selected.
        keying.paths.clear()
        try:
            keying.type_info.generate(context, keying, holder)
        except (AttributeError, TypeError):
            return  # the set does not apply to this holder, such as a whole-character set to an empty
    for path in [path for path in keying.paths if path.id is not None]:
        groups = {"NAMED": path.group, "KEYINGSET": keying.bl_label}
        path.id.keyframe_insert(
            path.data_path,
            index=-1 if path.use_entire_array else path.array_index,
            group=groups.get(path.group_method, ""),
            options=options,
            keytype=settings.keyframe_type,
        )
