"""The rotation of bones from their rest pose, measured as the solver measures it."""

from __future__ import annotations

import math

import bpy
import numpy as np

from ..pose.skeleton import matrix_array, orthonormal
from ..solve.maths.cones import swing_twist
from ..solve.maths.rotations import quaternions
from ..solve.problem import Floats


def frame_of(bone: bpy.types.PoseBone) -> Floats:
    """The orthonormal frame (3, 3) of an evaluated pose bone, in armature space; a mirrored bone keeps its rotation."""
    linear = matrix_array(bone.matrix)[:3, :3]
    return orthonormal(linear * np.where(np.array(bone.scale) < 0.0, -1.0, 1.0))


def rest_of(bone: bpy.types.PoseBone) -> Floats:
    """The frame (3, 3) in which an evaluated pose bone is at rest in its parent, in armature space."""
    rest = matrix_array(bone.bone.matrix_local)[:3, :3]
    if bone.parent is None or not bone.bone.use_inherit_rotation:
        return orthonormal(rest)
    return frame_of(bone.parent) @ orthonormal(
        np.linalg.inv(matrix_array(bone.parent.bone.matrix_local)[:3, :3]) @ rest
    )


def angles_of(bone: bpy.types.PoseBone) -> tuple[float, float, float]:
    """The rotation of an evaluated pose bone from rest about its X, Y and Z axis, in radians.

    Each is the angle of a limit about that axis alone at which the bone would be.
    """
    swing, twist = swing_twist(quaternions(rest_of(bone).T @ frame_of(bone)))
    x, z = (2.0 * math.asin(min(1.0, max(-1.0, float(part)))) for part in swing)
    return x, float(twist), z
