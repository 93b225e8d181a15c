"""Joint limits that the animation of a chain goes beyond."""

from __future__ import annotations

import math
from collections.abc import Mapping

import bpy
import numpy as np

from ..core.skeleton import orthonormal
from ..rig.plan.chain import chain_bones
from ..rig.plan.limits import ranges_of
from ..solve.maths.cones import cone_of, nearest_direction, nearest_twist, swing_twist
from ..solve.maths.rotations import quaternions
from ..solve.problem import Floats
from .bend_side import animated_bases

BEYOND = math.radians(3.0)
"""Limits are widened by at most this, as for a knee that locks. Those that an animation leaves by more don't fit it."""
ROUNDING = 1e-5
"""Rounding may turn a joint beyond its limits by this many radians; limits are widened by as much more than needed."""
FRAMES = 20_000
"""In longer animations, only so many frames are looked at."""
OUTWARD = np.array([-1.0, 1.0])


def exceeded(tip: bpy.types.PoseBone) -> dict[bpy.types.PoseBone, Floats]:
    """Return limits (3, 2) that hold the animation, as in `ranges_of`, for the bones that it turns beyond theirs.

    They are infinite for bones that it turns far beyond them.
    """
    ob, bones = tip.id_data, chain_bones(tip)
    bases = animated_bases(ob, [ob.pose.bones.find(bone.name) for bone in bones], FRAMES)
    found = {}
    for bone, basis in zip(bones, () if bases is None else bases.swapaxes(0, 1), strict=False):
        ranges = np.array(ranges_of(bone))
        grown = _lacking(ranges, quaternions(orthonormal(basis[:, :3, :3]).transpose(1, 2, 0)))
        if grown.any():
            found[bone] = ranges + OUTWARD * (grown if grown.max() < BEYOND else np.inf)
    return found


def _lacking(ranges: Floats, turns: Floats) -> Floats:
    """Return by how many radians (3, 2) limits (3, 2) are too narrow for rotations (4, F); `BEYOND` or more: by far."""
    swing, twist = swing_twist(turns)
    grown = np.zeros((3, 2))
    while grown.max() < BEYOND:
        wider = ranges + OUTWARD * grown
        cone = cone_of(wider[:2].reshape(1, 4), wider[2:])
        swung = 2.0 * (np.arcsin(swing) - np.arcsin(nearest_direction(swing, cone)))
        away = np.stack([*swung, twist - nearest_twist(twist, cone)])
        over = np.stack([-away.min(axis=1), away.max(axis=1)], axis=1)
        if over.max() <= ROUNDING:
            break
        grown += np.where(over > ROUNDING, over + ROUNDING, 0.0)
    return grown


def fit(limits: Mapping[bpy.types.PoseBone, Floats]) -> None:
    """Give joints these limits (3, 2), and none where they are infinite."""
    for bone, ranges in limits.items():
        for axis, (low, high) in zip("xzy", ranges.tolist(), strict=True):
            if low < high:
                setattr(bone, f"lock_ik_{axis}", False)
                setattr(bone, f"use_ik_limit_{axis}", math.isfinite(high - low))
            if math.isfinite(high - low):
                setattr(bone, f"ik_min_{axis}", low)
                setattr(bone, f"ik_max_{axis}", high)
