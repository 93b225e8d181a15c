"""Reflection across the X axis of an armature, as Blender's Symmetrize and X-Axis Mirror do it."""

from __future__ import annotations

import bpy
import numpy as np
from mathutils import Matrix

from ..solve.problem import Floats

ACROSS = np.array([-1.0, 1.0, 1.0])
"""Signs of the components of a vector that is mirrored."""


def across(bone: Floats, image: Floats) -> Floats:
    """Return the reflection (3, 3) from the axes of a bone to those of its mirror image, given both at rest (3, 3).

    For bones at rest that are mirror images it is diag(-1, 1, 1). A bone with a different roll also has its axes
    swapped or reversed. Negated it takes a rotation vector, which turns about X as before and the opposite way about
    the other axes.
    """
    return np.asarray((image.T * ACROSS) @ bone)


def across_bones(bone: bpy.types.Bone, image: bpy.types.Bone) -> Floats:
    """Return the same for two bones of an armature."""
    return across(*(np.array(own.matrix_local.to_3x3()) for own in (bone, image)))


def mirrored_rotation(rotation: Floats) -> Floats:
    """Mirror a rotation (..., 3, 3)."""
    return np.asarray(rotation * ACROSS * ACROSS[:, None])


def mirrored_matrix(matrix: Matrix, plane: Matrix) -> Matrix:
    """Mirror a matrix across the X axis of another one, both in world space."""
    reflection = Matrix.Diagonal((*ACROSS.tolist(), 1.0))
    return plane @ reflection @ plane.inverted_safe() @ matrix @ reflection
