"""Every difference between the supported versions of Blender (4.2 to 5.2), and what animates a data-block."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Protocol

import bpy
from bpy.types import ID, Action, ActionGroup, AnimData, Depsgraph, FCurve, NlaTrack, Object, PoseBone

from .untyped import Struct, Versioned, users_of

HAS_SLOTS = bpy.app.version >= (4, 4, 0)
"""Since 4.4, an action has a slot for each animated data-block, and keeps F-curves in layers and strips."""

MUTES_GROUPS = not HAS_SLOTS
"""Before 4.4, F-curves of a muted group are not evaluated; since then they are, except beside NLA strips."""

COPIES_CURVES = bpy.app.version >= (5, 0, 0)
"""Since 5.0, an F-curve can be created as a copy of another one."""

SELECTS_POSE_BONES = bpy.app.version >= (5, 0, 0)
"""Since 5.0, selection is stored on the pose bone; before, on the armature's bone."""

POINT_SHADER = "POINT_UNIFORM_COLOR" if bpy.app.version >= (4, 5, 0) else "UNIFORM_COLOR"
"""Since 4.5, points have shaders of their own; before, the shader of faces draws them."""

WHEEL_ICON = "MOUSE_MMB_SCROLL" if bpy.app.version >= (4, 3, 0) else "MOUSE_MMB"
"""Since 4.3, the mouse wheel has an icon of its own."""


def is_visible(bone: PoseBone) -> bool:
    """Whether a bone is visible in Pose Mode."""
    collections = bone.bone.collections
    shown = not collections or any(collection.is_visible_effectively for collection in collections)
    return shown and not _selected(bone).hide


def is_selected(bone: PoseBone) -> bool:
    """Whether a bone is selected in Pose Mode."""
    return _selected(bone).select


def set_selected(bone: PoseBone, *, to: bool) -> None:
    """Select or deselect a bone in Pose Mode."""
    _selected(bone).select = to


def _selected(bone: PoseBone) -> Struct:
    """Return what holds the selection of a bone, and whether it is hidden."""
    return bone if SELECTS_POSE_BONES else bone.bone


def select_bone(bone: PoseBone, *, extend: bool = False) -> None:
    """Select a bone and make it active; deselect all others of its armature object unless `extend` is set."""
    for other in bone.id_data.pose.bones:
        set_selected(other, to=other == bone or (extend and is_selected(other)))
    bone.id_data.data.bones.active = bone.bone


class CurveOwner(Protocol):
    """The holder of an object's F-curves: the action before 4.4, the slot's channelbag since."""

    fcurves: Struct
    groups: Struct


def curve_owner(ob: Object) -> CurveOwner | None:
    """Return the owner of the F-curves that animate an object, or None if there is none."""
    return curve_owner_of(ob.animation_data)


def curves_of(ob: Object) -> Struct:
    """Return the F-curves that animate an object: Blender's collection of them, or an empty tuple."""
    owner = curve_owner(ob)
    return () if owner is None else owner.fcurves


def find_curve(ob: Object, path: str, index: int = 0) -> FCurve | None:
    """Return the F-curve that animates a property of an object, or None."""
    owner = curve_owner(ob)
    return None if owner is None else owner.fcurves.find(path, index=index)


def curve_owner_of(user: Versioned) -> CurveOwner | None:
    """Return the owner of the F-curves that animation data or an NLA strip uses from its action, or None."""
    if user is None or user.action is None:
        return None
    if not HAS_SLOTS:
        return user.action
    if user.action_slot is None:
        return None
    strips = (strip for layer in user.action.layers for strip in layer.strips if strip.type == "KEYFRAME")
    bags = (strip.channelbag(user.action_slot) for strip in strips)
    return next((bag for bag in bags if bag is not None), None)


def is_layered(action: Action) -> bool:
    """Whether an action has several layers or strips, which it can't before 4.4."""
    slotted: Versioned = action
    layers = slotted.layers if HAS_SLOTS else ()
    return len(layers) > 1 or any(len(layer.strips) > 1 for layer in layers)


def is_muted(data: AnimData, curve: FCurve | None, group: ActionGroup | None) -> bool:
    """Whether an F-curve in a group, either of which may not exist yet, is not evaluated because of a mute."""
    return (curve is not None and curve.mute) or (group is not None and group.mute and _are_groups_muted(data))


def _are_groups_muted(data: AnimData) -> bool:
    return MUTES_GROUPS or bool(evaluated_tracks(data))


def unmuted(data: AnimData, owner: CurveOwner) -> Iterator[Struct]:
    """Yield the F-curves of an owner that are evaluated despite mutes."""
    are_groups_muted = _are_groups_muted(data)
    for curve in owner.fcurves:
        if not (curve.mute or (are_groups_muted and curve.group is not None and curve.group.mute)):
            yield curve


def strips_of(tracks: Iterable[NlaTrack]) -> Iterator[Struct]:
    """Yield the NLA strips in tracks, including those in meta strips."""
    waiting: list[Struct] = [track.strips for track in tracks]
    while waiting:
        for strip in waiting.pop():
            yield strip
            waiting.append(strip.strips)


def action_of(owner: Struct) -> Action | None:
    """Return the action of a data-block, or None."""
    return None if owner.animation_data is None else owner.animation_data.action


def drivers_of(owner: Struct) -> Struct:
    """Return the drivers of a data-block: Blender's collection of them, or an empty tuple."""
    return () if owner.animation_data is None else owner.animation_data.drivers


def evaluated_tracks(data: AnimData | None) -> list[NlaTrack]:
    """Return the NLA tracks that Blender evaluates; if there are none, the action plays as without NLA.

    A muted strip in such a track, and the action beside a soloed one, still set their channels, to their defaults.
    """
    tracks: list[NlaTrack] = [*data.nla_tracks] if data is not None and data.use_nla else []
    solo = [track for track in tracks if track.is_solo]
    return solo or [track for track in tracks if track.strips and not track.mute]


def animating(owner: Struct) -> Iterator[FCurve]:
    """Yield the F-curves that Blender evaluates of an object or its data, then its drivers."""
    data: Versioned = owner.animation_data
    if data is None:
        return
    for user in (data, *strips_of(evaluated_tracks(data))):
        curves = curve_owner_of(user)
        if curves is not None:
            yield from unmuted(data, curves)
    yield from (driver for driver in data.drivers if not driver.mute)


def ensure_curve_owner(ob: Object, undo: ExitStack) -> CurveOwner:
    """Return the owner of an object's F-curves, created if there is none; `undo` removes what was created."""
    owner = curve_owner(ob)
    if owner is not None:
        return owner
    if ob.animation_data is None:
        ob.animation_data_create()
        undo.callback(ob.animation_data_clear)
    data: Versioned = ob.animation_data
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


def _remove_action(data: Versioned) -> None:
    action, data.action = data.action, None
    bpy.data.actions.remove(action)


def _remove_slot(data: Versioned) -> None:
    slot, data.action_slot = data.action_slot, None
    data.action.slots.remove(slot)


def use_copy_of_action(ob: Object, name: str, undo: ExitStack) -> None:
    """Replace an object's action by a copy of it and keep the slot; the object must have an action.

    `undo` brings the old action back.
    """
    data: Versioned = ob.animation_data
    old = data.action
    handle = data.action_slot_handle if HAS_SLOTS else 0
    copy = old.copy()
    copy.name = name
    undo.callback(bpy.data.actions.remove, copy)
    undo.callback(_assign, data, old, handle)
    _assign(data, copy, handle)


def use_action(ob: Object, action: Action) -> None:
    """Animate an object that has no action with one that was made for it."""
    data: Versioned = ob.animation_data or ob.animation_data_create()
    slotted: Versioned = action
    data.action = action
    if HAS_SLOTS and data.action_slot is None and len(slotted.slots) == 1:
        data.action_slot = slotted.slots[0]


def _assign(data: Versioned, action: Action, slot_handle: int) -> None:
    data.action = action
    if HAS_SLOTS:  # Blender assigns a slot itself, but not always the one that was in use
        data.action_slot = next((slot for slot in data.action.slots if slot.handle == slot_handle), None)


def other_animated(ob: Object) -> list[ID]:
    """Return the data-blocks, other than `ob`, that its F-curves animate too."""
    data: Versioned = ob.animation_data
    if data is None or data.action is None or (HAS_SLOTS and data.action_slot is None):
        return []
    users = data.action_slot.users() if HAS_SLOTS else users_of(data.action)
    return sorted((user for user in users if user != ob), key=lambda user: user.name)


def tag(ob: Object) -> None:
    """Have Blender evaluate an object again, with its data."""
    # Nothing more: `update_tag()` also concerns its place in the scene's list of objects, which Blender before 5.0
    # loses where another add-on's handler evaluates a changed scene after a frame change.
    ob.update_tag(refresh={"OBJECT", "DATA"})


def update_in_handler(depsgraph: Depsgraph) -> None:
    """Evaluate what is tagged while a handler runs, which calls the handlers of `depsgraph_update_post` in turn."""
    # Where the scene is concerned, this makes Blender before 5.0 lose its list of objects, and crash on the next
    # update; tagging the scene rebuilds the list.
    depsgraph.scene.update_tag()
    if depsgraph.mode == "RENDER":
        depsgraph.update()
    else:
        depsgraph.view_layer.update()
