"""Every difference between the supported versions of Blender (4.2 to 5.2), and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import bpy

HAS_SLOTS = bpy.app.version >= (4, 4, 0)
"""Since 4.4 an action has a slot for each animated data-block and keeps its F-curves in layers and strips."""

MUTES_GROUPS = not HAS_SLOTS
"""Before 4.4 the F-curves of a muted group are not evaluated; since then they are all the same."""

COPIES_CURVES = bpy.app.version >= (5, 0, 0)
"""Since 5.0 an F-curve can be made as a copy of another one."""

SELECTS_POSE_BONES = bpy.app.version >= (5, 0, 0)
"""Since 5.0 the selection belongs to the pose bone, before that to the bone of the armature."""

POINT_SHADER = "POINT_UNIFORM_COLOR" if bpy.app.version >= (4, 5, 0) else "UNIFORM_COLOR"
"""Since 4.5 points have shaders of their own, before that the one of faces draws them too."""


def is_selected(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone is selected in Pose Mode."""
    holder: Any = bone if SELECTS_POSE_BONES else bone.bone
    return holder.select


def select_bone(ob: bpy.types.Object, bone: bpy.types.PoseBone, *, extend: bool = False) -> None:
    """Select this bone of an armature object, and no other unless to extend, and make it the active one."""
    for other in ob.pose.bones:
        holder: Any = other if SELECTS_POSE_BONES else other.bone
        holder.select = other == bone or (extend and holder.select)
    ob.data.bones.active = bone.bone


class CurveOwner(Protocol):
    """What holds the F-curves of an object: the action itself before 4.4, the slot's channelbag since."""

    fcurves: Any
    groups: Any


def is_visible(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone can be seen in Pose Mode."""
    collections = bone.bone.collections
    shown = not collections or any(collection.is_visible_effectively for collection in collections)
    holder: Any = bone if SELECTS_POSE_BONES else bone.bone
    return shown and not holder.hide


def curve_owner(ob: bpy.types.Object) -> CurveOwner | None:
    """The owner of the F-curves that animate an object; None where nothing does."""
    return curve_owner_of(ob.animation_data)


def curve_owner_of(user: Any) -> CurveOwner | None:
    """The owner of the F-curves that animation data, or an NLA strip, takes from its action."""
    if user is None or user.action is None:
        return None
    if not HAS_SLOTS:
        return user.action
    if user.action_slot is None:
        return None
    bags = (
        strip.channelbag(user.action_slot)
        for layer in user.action.layers
        for strip in layer.strips
        if strip.type == "KEYFRAME"
    )
    return next((bag for bag in bags if bag is not None), None)


def is_layered(action: bpy.types.Action) -> bool:
    """Whether an action is more than one set of F-curves; before 4.4 none is."""
    slotted: Any = action
    layers = slotted.layers if HAS_SLOTS else ()
    return len(layers) > 1 or any(len(layer.strips) > 1 for layer in layers)


def is_muted(curve: bpy.types.FCurve) -> bool:
    """Whether an F-curve is not evaluated, for itself or with its group."""
    return curve.mute or (MUTES_GROUPS and curve.group is not None and curve.group.mute)


def strips_of(data: bpy.types.AnimData, *, muted: bool = True) -> Iterator[Any]:
    """The NLA strips of animation data, also those within meta strips; those that are `muted` only if wanted."""
    waiting: list[Any] = [track.strips for track in data.nla_tracks if muted or not track.mute]
    while waiting:
        for strip in waiting.pop():
            if muted or not strip.mute:
                yield strip
                waiting.append(strip.strips)


def animating(owner: Any) -> Iterator[bpy.types.FCurve]:
    """The F-curves of the action and NLA strips of an object, or of its data, and drivers, without what is muted."""
    data: Any = owner.animation_data
    if data is None:
        return
    for user in (data, *strips_of(data, muted=False)):
        owner = curve_owner_of(user)
        for curve in owner.fcurves if owner is not None else ():
            if not is_muted(curve):
                yield curve
    yield from (driver for driver in data.drivers if not driver.mute)


def ensure_curve_owner(ob: bpy.types.Object, undo: ExitStack) -> CurveOwner:
    """The owner of an object's F-curves, made where there is none; `undo` takes back what was made."""
    owner = curve_owner(ob)
    if owner is not None:
        return owner
    if ob.animation_data is None:
        ob.animation_data_create()
        undo.callback(ob.animation_data_clear)
    data: Any = ob.animation_data
    if data.action is None:
        data.action = bpy.data.actions.new(f"{ob.name}Action")
        undo.callback(_remove_action, data)
    if not HAS_SLOTS:
        return data.action
    action = data.action
    if data.action_slot is None:
        data.action_slot = action.slots.new(id_type="OBJECT", name=ob.name)
        undo.callback(_remove_slot, data)
    if not action.layers:
        undo.callback(action.layers.remove, action.layers.new("Layer"))
    layer = action.layers[0]
    if not layer.strips:
        undo.callback(layer.strips.remove, layer.strips.new(type="KEYFRAME"))
    strip = layer.strips[0]
    bag = strip.channelbag(data.action_slot, ensure=True)
    undo.callback(strip.channelbags.remove, bag)
    return bag


def _remove_action(data: Any) -> None:
    action, data.action = data.action, None
    bpy.data.actions.remove(action)


def _remove_slot(data: Any) -> None:
    slot, data.action_slot = data.action_slot, None
    data.action.slots.remove(slot)


def use_copy_of_action(ob: bpy.types.Object, name: str, undo: ExitStack) -> None:
    """Animate an object by a copy of its action, with the slot it had; the action must exist."""
    data: Any = ob.animation_data
    old = data.action
    handle = data.action_slot_handle if HAS_SLOTS else 0
    copy = old.copy()
    copy.name = name
    undo.callback(bpy.data.actions.remove, copy)
    undo.callback(_assign, data, old, handle)
    _assign(data, copy, handle)


def _assign(data: Any, action: bpy.types.Action, slot_handle: int) -> None:
    data.action = action
    if HAS_SLOTS:  # Blender would choose a slot by itself, not always the one that was in use
        data.action_slot = next((slot for slot in data.action.slots if slot.handle == slot_handle), None)


def other_animated(ob: bpy.types.Object) -> list[bpy.types.ID]:
    """The data-blocks besides `ob` that its F-curves animate as well."""
    data: Any = ob.animation_data
    if data is None or data.action is None:
        return []
    if HAS_SLOTS:
        users = data.action_slot.users() if data.action_slot is not None else []
    else:
        blend: Any = bpy.data  # the stubs take user_map's options for required
        users = blend.user_map(subset=[data.action])[data.action]
    return sorted((user for user in users if user != ob), key=lambda user: user.name)
