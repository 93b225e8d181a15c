"""Joint limits and stiffness, which Blender stores per bone for its own IK, and knees that they make hinges."""

import math
from collections.abc import Sequence

import numpy as np
from bpy.types import PoseBone

from ...core.settings import chain_of
from ...core.skeleton import matrix_array, orthonormal
from ...core.translation.sentences import UserError, marked
from ...solve.limb.two_bones import Hinge
from ...solve.problem import Solver
from .chain import bending_bones

STIFFNESS = marked("The IK stiffness of bone '{bone}' is not a number. Set it again")
STRETCH = marked("The IK stretch of bone '{bone}' is not a number. Set it again")
Range = tuple[float, float]
FREE: Range = (-math.inf, math.inf)
SETTINGS = tuple(
    f"{name}_{axis}" for axis in "xyz" for name in ("lock_ik", "use_ik_limit", "ik_min", "ik_max", "ik_stiffness")
)
"""Names of Blender's limit, lock and stiffness settings of a bone."""


def ranges_of(bone: PoseBone) -> tuple[Range, Range, Range]:
    """Return a bone's minimum and maximum angle about X, Z and Y, in radians from rest; infinite where not limited.

    Raises:
        UserError: a limit is not a range around the rest pose.
    """
    x, z, y = (_range(bone, axis) for axis in "xzy")
    return x, z, y


def is_free(bone: PoseBone) -> bool:
    """Whether a bone has neither a limit nor a lock."""
    return not any(getattr(bone, f"{kind}_{axis}") for kind in ("lock_ik", "use_ik_limit") for axis in "xyz")


def _range(bone: PoseBone, axis: str) -> Range:
    if getattr(bone, f"lock_ik_{axis}"):
        return 0.0, 0.0
    if not getattr(bone, f"use_ik_limit_{axis}"):
        return FREE
    low, high = getattr(bone, f"ik_min_{axis}"), getattr(bone, f"ik_max_{axis}")
    if not (math.isfinite(low) and math.isfinite(high) and low <= 0.0 <= high):
        raise UserError(
            "The IK limit of bone '{bone}' about {axis} goes from {low}° to {high}°. "
            "Set the minimum to 0° or less and the maximum to 0° or more",
            bone=bone.name,
            axis=axis.upper(),
            low=f"{math.degrees(low):.4g}",
            high=f"{math.degrees(high):.4g}",
        )
    return low, high


def check_numbers(bone: PoseBone, *, limits: bool) -> None:
    """Raise `UserError` if an IK setting of a bone is not a number; limits and stiffness count only if `limits`."""
    if limits:
        ranges_of(bone)
        if not all(map(math.isfinite, stiffness_of(bone))):
            raise UserError(STIFFNESS, bone=bone.name)
    if not math.isfinite(bone.ik_stretch):
        raise UserError(STRETCH, bone=bone.name)


def stiffness_of(bone: PoseBone) -> tuple[float, float, float]:
    """Return how strongly a bone resists turning about X, Y and Z, from 0 to 0.99."""
    return bone.ik_stiffness_x, bone.ik_stiffness_y, bone.ik_stiffness_z


def has_plane(bones: Sequence[PoseBone]) -> bool:
    """Whether Planar has an effect on a chain, root first; with limits or orientation, bones leave the plane."""
    return not (chain_of(bones[-1]).use_rotation or is_limited(bones))


def is_limited(bones: Sequence[PoseBone]) -> bool:
    """Whether the bones of a chain, root first, are solved within limits."""
    return chain_of(bones[-1]).use_limits and not all(map(is_free, bones))


# ---- hinges


def hinge_of(tip: PoseBone) -> Hinge | None:
    """Return the knee of the chain on `tip` as a hinge; None if it is none, or the chain is not solved as a limb."""
    chain = chain_of(tip)
    if not chain.use_limits or chain.planar or Solver(chain.solver) is Solver.FABRIK:
        return None
    return knee_hinge(bending_bones(tip))


def knee_hinge(bones: Sequence[PoseBone]) -> Hinge | None:
    """Return the same for the bones of a new chain, root first."""
    if len(bones) != 2 or any(any(stiffness_of(bone)) for bone in bones):
        return None
    root, knee = bones
    try:
        about_x, about_z, _ = ranges_of(knee)
    except UserError:  # the chain itself reports it, see `check_numbers`
        return None
    frames = orthonormal(np.array([matrix_array(bone.bone.matrix_local)[:3, :3] for bone in (root, knee)]))
    x, y, z = (frames[0].T @ frames[1]).T.tolist()
    return Hinge.of((0.0, 1.0, 0.0), (tuple(x), tuple(y), tuple(z)), (about_x, about_z))
