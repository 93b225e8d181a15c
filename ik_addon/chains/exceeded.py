"""Joint limits that the animation of a chain goes beyond."""

from __future__ import annotations

import math
from collections.abc import Iterable

import bpy
import numpy as np

from ..core.skeleton import orthonormal
from ..rig.plan.chain import chain_bones
from ..rig.plan.limits import ranges_of
from ..solve.maths.cones import cone_of, violation
from ..solve.maths.rotations import quaternions
from .bend_side import animated_bases

BEYOND = math.radians(3.0)
"""An animation that turns a joint beyond its limits by more than this exceeds them."""


def exceeded(tip: bpy.types.PoseBone) -> list[bpy.types.PoseBone]:
    """Return the bones of a chain that their F-curves turn beyond their limits."""
    ob, bones = tip.id_data, chain_bones(tip)
    bases = animated_bases(ob, [ob.pose.bones.find(bone.name) for bone in bones])
    found = []
    for bone, basis in zip(bones, () if bases is None else bases.swapaxes(0, 1), strict=False):
        ranges = np.tile(np.array(ranges_of(bone)).reshape(1, 6), (len(basis), 1))
        turns = quaternions(orthonormal(basis[:, :3, :3]).transpose(1, 2, 0))
        if violation(turns, cone_of(ranges[:, :4], ranges[:, 4:])).max() > BEYOND:
            found.append(bone)
    return found


def free(bones: Iterable[bpy.types.PoseBone]) -> None:
    """Remove the limits and locks of joints."""
    for bone in bones:
        for axis in "xyz":
            setattr(bone, f"use_ik_limit_{axis}", False)
            setattr(bone, f"lock_ik_{axis}", False)
