"""Records of converted constraints, stored on the bones themselves so that they survive saving, renaming and undo."""

from __future__ import annotations

import bpy
import numpy as np

from ..core import channels
from ..core.untyped import Returning, Value
from .ik_constraints import Source

CONVERTED = "ik_addon_converted"
"""Custom property of a bone whose IK constraint was converted: what is needed to restore it."""
FK_BEFORE = "ik_addon_fk_before"
"""Custom property of a bone whose solved pose became its FK pose: the channels it had before."""


def converted_bones(ob: bpy.types.Object) -> list[bpy.types.PoseBone]:
    """Return the bones with an IK constraint that was converted."""
    return [bone for bone in ob.pose.bones if remembered(bone, CONVERTED) is not None]


def remembered(bone: bpy.types.PoseBone, name: str) -> Value:
    """Return a custom property of a bone; None if it doesn't exist or the add-on didn't write it."""
    custom: Returning = bone.get
    found = custom(name)
    try:
        is_ours = _WRITTEN[name](found)
    except (TypeError, KeyError, ValueError):
        return None
    return found if is_ours else None


def _is_conversion(found: Value) -> bool:
    return isinstance(found["constraint"], str) and isinstance(found["was_live"], bool | int)


def _is_pose(found: Value) -> bool:
    row = np.array(found["channels"], dtype=np.float32)
    return found["mode"] in channels.MODES and row.shape == channels.REST.shape and bool(np.isfinite(row).all())


_WRITTEN = {CONVERTED: _is_conversion, FK_BEFORE: _is_pose}
"""Checks whether a custom property still has the form in which it was written."""


def replaced(owner: bpy.types.PoseBone) -> Source:
    """Return the converted constraints of a bone."""
    record, made = remembered(owner, CONVERTED), owner.constraints
    twin = made.get(record.get("twin", ""))
    return Source(owner, made[record["constraint"]], twin if isinstance(twin, bpy.types.KinematicConstraint) else None)


def put_fk_back(ob: bpy.types.Object, bone: bpy.types.PoseBone) -> bool:
    """Restore the channels that a bone had before a solved pose became its FK pose; return whether one did."""
    held = remembered(bone, FK_BEFORE)
    if held is None:
        return False
    row = np.array(held["channels"], dtype=np.float32)
    if held["mode"] != bone.rotation_mode:
        row = channels.convert_rotation(row, held["mode"], bone.rotation_mode)
    channels.write(ob, np.array([ob.pose.bones.find(bone.name)]), row[None])
    del bone[FK_BEFORE]
    return True
