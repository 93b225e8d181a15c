"""Edits of what animates the bones: keys, actions and their slots, NLA strips."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy

from . import rigs
from .case import Case
from .known import FIELDS, channels
from .rigs import armatures, choose, numbers


def key_bone(case: Case) -> None:
    """Key a bone as it stands, where no solution is in it."""
    ob, bone = case.some_bone()
    if bone is not None and bone.name not in case.solved(ob):
        bone.keyframe_insert("location")
        # Of a new action above NLA strips Blender's function tells nobody, other than its operator.
        ob.update_tag()


def move_keyed_bone(case: Case) -> None:
    """Pose a keyed bone by hand and do not key it: the next frame takes that back, and nothing else."""
    ob, bone = case.some_bone()
    if bone is None or not any(case.is_keyed(ob, bone, field) for field in FIELDS):
        return
    field = rigs.set_rotation(bone, numbers(case.rng)) if case.rng.random() < 0.5 else "location"
    if field == "location":
        bone.location = numbers(case.rng, 0.3)
    case.known.put(ob.name, bone.name, field, channels(bone)[field])


def some_data(case: Case) -> Any:
    """The animation data of an armature, to be changed.

    Blender may evaluate it again then, or not, which decides what becomes of a pose that is not keyed: so it goes to
    another frame before. After undo, the extension knows what F-curves alone say; the FK pose of NLA strips and drivers
    with the next frame.
    """
    ob = choose(case.rng, armatures())
    data = ob.animation_data
    if data is not None and (len(data.nla_tracks) or len(data.drivers) or not case.is_as_animated()):
        case.go(4, 0.0)
    return ob.animation_data


def some_curves(case: Case) -> tuple[Any, list[bpy.types.FCurve]]:
    """The F-curves of one channel, or of one number, and what holds them."""
    owner = case.compat.curve_owner_of(some_data(case))
    if owner is None or not len(owner.fcurves):
        return None, []
    chosen = choose(case.rng, owner.fcurves)
    if case.rng.random() < 0.2 and not chosen.data_path.endswith("quaternion"):  # NLA sets all four numbers of those
        return owner, [chosen]
    return owner, [curve for curve in owner.fcurves if curve.data_path == chosen.data_path]


def remove_curves(case: Case) -> None:
    """Delete the keys of a channel, which stays as it was last."""
    owner, curves = some_curves(case)
    for curve in curves:
        owner.fcurves.remove(curve)


def mute_curves(case: Case) -> None:
    """Mute the keys of a channel, which stays as it was last, or let them be heard again."""
    _owner, curves = some_curves(case)
    for curve in curves:
        curve.mute = not curve.mute


def change_action(case: Case) -> None:
    """Unlink an armature's action, or give it another one, of another armature perhaps."""
    data = some_data(case)
    if data is not None and not data.use_tweak_mode:
        data.action = choose(case.rng, [None, *bpy.data.actions])


def change_slot(case: Case) -> None:
    """Give an armature another slot of its action, a new one, or none; there are slots since 4.4."""
    data = some_data(case)
    if not case.compat.HAS_SLOTS or data is None or data.action is None:
        return
    kind = case.rng.random()
    if kind < 0.3:
        data.action_slot = data.action.slots.new(id_type="OBJECT", name="Slot")
    else:
        data.action_slot = choose(case.rng, [None, *data.action_suitable_slots])


def push_down(case: Case) -> None:
    """Make the action of an armature an NLA strip."""
    data = some_data(case)
    if data is None or data.action is None or case.compat.curve_owner_of(data) is None or len(data.nla_tracks):
        return
    action, slot = data.action, data.action_slot if case.compat.HAS_SLOTS else None
    start, end = action.frame_range
    if start != int(start) or start >= end:
        return
    strip = data.nla_tracks.new().strips.new(action.name, int(start), action)
    if slot is not None:
        # Made with another slot, it would be as long as what that one holds.
        strip.action_slot, strip.action_frame_start, strip.action_frame_end = slot, start, end
    data.action = None


def mute_track(case: Case) -> None:
    """Mute an NLA track, or let it be heard again."""
    data = some_data(case)
    if data is not None and len(data.nla_tracks):
        track = choose(case.rng, data.nla_tracks)
        track.mute = not track.mute
        # Blender forgets to look what the track animates, and evaluates that sometimes before the animation.
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
