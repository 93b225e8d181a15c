"""Edits of the bones' animation: keys, actions and their slots, NLA strips."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy

from . import rigs
from .case import Case
from .known import FIELDS, channels
from .rigs import armatures, choose, numbers


def key_bone(case: Case) -> None:
    """Key a bone in its current pose, unless its channels hold a solution."""
    ob, bone = case.some_bone()
    if bone is not None and bone.name not in case.solved(ob):
        bone.keyframe_insert("location")
        # Unlike its operator, this function tags nothing when it adds an action above NLA strips.
        ob.update_tag()


def move_keyed_bone(case: Case) -> None:
    """Pose a keyed bone by hand without keying it; only the next frame change reverts that."""
    ob, bone = case.some_bone()
    if bone is None or not any(case.is_keyed(ob, bone, field) for field in FIELDS):
        return
    field = rigs.set_rotation(bone, numbers(case.rng)) if case.rng.random() < 0.5 else "location"
    if field == "location":
        bone.location = numbers(case.rng, 0.3)
    case.known.put(ob.name, bone.name, field, channels(bone)[field])


def some_data(case: Case) -> Any:
    """Return the animation data of an armature, to be changed.

    After the change Blender may or may not evaluate the animation again, which would decide whether an unkeyed pose
    survives; so go to another frame first. After undo, the extension knows the FK pose of F-curves at once, that of NLA
    strips and drivers only with the next frame.
    """
    ob = choose(case.rng, armatures())
    data = ob.animation_data
    if data is not None and (len(data.nla_tracks) or len(data.drivers) or not case.is_as_animated()):
        case.go(4, 0.0)
    return ob.animation_data


def some_curves(case: Case) -> tuple[Any, list[bpy.types.FCurve]]:
    """The owner of some F-curves, and those of one channel or of one number in it."""
    owner = case.compat.curve_owner_of(some_data(case))
    if owner is None or not len(owner.fcurves):
        return None, []
    chosen = choose(case.rng, owner.fcurves)
    if case.rng.random() < 0.2 and not chosen.data_path.endswith("quaternion"):  # the NLA sets all four numbers
        return owner, [chosen]
    return owner, [curve for curve in owner.fcurves if curve.data_path == chosen.data_path]


def remove_curves(case: Case) -> None:
    """Delete the keys of a channel, which keeps its last value."""
    owner, curves = some_curves(case)
    for curve in curves:
        owner.fcurves.remove(curve)


def mute_curves(case: Case) -> None:
    """Mute the keys of a channel, which keeps its last value, or unmute them."""
    _owner, curves = some_curves(case)
    for curve in curves:
        curve.mute = not curve.mute


def change_action(case: Case) -> None:
    """Unlink an armature's action, or assign another, perhaps that of another armature."""
    data = some_data(case)
    if data is not None and not data.use_tweak_mode:
        data.action = choose(case.rng, [None, *bpy.data.actions])


def change_slot(case: Case) -> None:
    """Assign an armature another slot of its action, a new slot, or none; slots exist since 4.4."""
    data = some_data(case)
    if not case.compat.HAS_SLOTS or data is None or data.action is None:
        return
    kind = case.rng.random()
    if kind < 0.3:
        data.action_slot = data.action.slots.new(id_type="OBJECT", name="Slot")
    else:
        data.action_slot = choose(case.rng, [None, *data.action_suitable_slots])


def push_down(case: Case) -> None:
    """Push down the action of an armature to an NLA strip."""
    data = some_data(case)
    if data is None or data.action is None or case.compat.curve_owner_of(data) is None or len(data.nla_tracks):
        return
    action, slot = data.action, data.action_slot if case.compat.HAS_SLOTS else None
    start, end = action.frame_range
    if start != int(start) or start >= end:
        return
    strip = data.nla_tracks.new().strips.new(action.name, int(start), action)
    if slot is not None:
        # The strip may have been made with another slot, and be as long as that slot's keys.
        strip.action_slot, strip.action_frame_start, strip.action_frame_end = slot, start, end
    data.action = None


def mute_track(case: Case) -> None:
    """Mute or unmute an NLA track."""
    data = some_data(case)
    if data is not None and len(data.nla_tracks):
        track = choose(case.rng, data.nla_tracks)
        track.mute = not track.mute
        # Blender does not update its relations to what the track animates, and may evaluate it before the animation.
        data.id_data.parent = data.id_data.parent


EDITS: list[Callable[[Case], None]] = [
    key_bone,
    *[move_keyed_bone] * 2,
    remove_curves,
    mute_curves,
    change_action,
    change_slot,
    *[push_down] * 2,
    mute_track,
]
