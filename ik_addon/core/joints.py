"""Measure the rotation of bones from their rest pose the way the solver does."""

from __future__ import annotations

import math

import bpy
import numpy as np

from ..solve.maths.cones import swing_twist
from ..solve.maths.rotations import quaternions
from ..solve.problem import Floats
from .skeleton import matrix_array, orthonormal


def frame_of(bone: bpy.types.PoseBone) -> Floats:
    """Return the orthonormal frame (3, 3) of an evaluated pose bone in armature space, ignoring negative scale."""
    linear = matrix_array(bone.matrix)[:3, :3]
    return orthonormal(linear * np.where(np.array(bone.scale) < 0.0, -1.0, 1.0))


def rest_of(bone: bpy.types.PoseBone) -> Floats:
    """Return the frame (3, 3) of an evaluated pose bone at rest relative to its parent, in armature space."""
    rest = matrix_array(bone.bone.matrix_local)[:3, :3]
    if bone.parent is None or not bone.bone.use_inherit_rotation:
        return orthonormal(rest)
    return frame_of(bone.parent) @ orthonormal(
        np.linalg.inv(matrix_array(bone.parent.bone.matrix_local)[:3, :3]) @ rest
    )


def angles_of(bone: bpy.types.PoseBone) -> tuple[float, float, float]:
    """Return the rotation of an evaluated pose bone from rest about its X, Y and Z axes, in radians.

    Each angle is the limit about that axis alone that the bone would just meet.
    """
    swing, twist = swing_twist(quaternions(rest_of(bone).T @ frame_of(bone)))
    x, z = (2.0 * math.asin(min(1.0, max(-1.0, float(part)))) for part in swing)
    return x, float(twist), z
