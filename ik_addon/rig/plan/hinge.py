"""The axis of a limb's knee or elbow, if that is a hinge; what follows from it is in `solve.limb.hinge`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import bpy
import numpy as np

from ...data.settings import chain_of
from ...data.versions import solver_of
from ...pose.skeleton import matrix_array, orthonormal
from ...solve.limb.hinge import Hinge
from ...solve.problem import Solver
from .chain import bending_bones
from .limits import stiffness_of


def hinge_of(tip: bpy.types.PoseBone) -> Hinge | None:
    """Return the knee of the chain on `tip` as a hinge; None if it is none, or the chain is not solved as a limb."""
    chain = chain_of(tip)
    if not chain.use_limits or chain.planar or solver_of(chain) is Solver.FABRIK:
        return None
    return knee_hinge(bending_bones(tip))


def knee_hinge(bones: Sequence[bpy.types.PoseBone]) -> Hinge | None:
    """Return the same for the bones of a new chain, root first."""
    if len(bones) != 2 or any(any(stiffness_of(bone)) for bone in bones):
        return None
    root, knee = bones
    frames = orthonormal(np.array([matrix_array(bone.bone.matrix_local)[:3, :3] for bone in (root, knee)]))
    x, y, z = (frames[0].T @ frames[1]).T.tolist()
    return Hinge.of((0.0, 1.0, 0.0), (tuple(x), tuple(y), tuple(z)), (_range(knee, "x"), _range(knee, "z")))


def _range(bone: bpy.types.PoseBone, axis: str) -> tuple[float, float]:
    if getattr(bone, f"lock_ik_{axis}"):
        return 0.0, 0.0
    if not getattr(bone, f"use_ik_limit_{axis}"):
        return -math.pi, math.pi
    return getattr(bone, f"ik_min_{axis}"), getattr(bone, f"ik_max_{axis}")
