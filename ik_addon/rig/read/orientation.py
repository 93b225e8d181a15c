"""The orientation of targets and bones as solvers take it: seen from the armature object, right-handed."""

from __future__ import annotations

import numpy as np
from mathutils import Matrix, Quaternion

from ...pose.skeleton import inverse_of_one, matrix_array, orthonormal
from ...solve.problem import Floats


def orientation(matrices: Floats) -> Floats:
    """Orientations (..., 3, 3) of matrices (..., 4, 4); of mirrored ones the X axis is turned round."""
    frames = orthonormal(matrices[..., :3, :3])
    with np.errstate(invalid="ignore"):
        frames[..., 0] *= np.where(np.linalg.det(frames) < 0.0, -1.0, 1.0)[..., None]
    return frames


def offset_between(world: Matrix, target: Matrix, bone: Matrix) -> Quaternion | None:
    """The rotation from a target's axes to those of a bone, which keeps the bone as it is; None: it has none.

    Args:
        world: of the armature object.
        target: in world space.
        bone: its pose in the armature's object space.
    """
    seen = orientation(inverse_of_one(matrix_array(world)) @ matrix_array(target))
    turn = seen.T.dot(orientation(matrix_array(bone)))
    return Matrix(turn.tolist()).to_quaternion() if np.isfinite(turn).all() else None


def target_rotation(world: Matrix, bone: Matrix, offset: Quaternion) -> Quaternion:
    """The rotation of a target in world space that keeps a bone as it is: the inverse of `offset_between`.

    Args:
        world: of the armature object.
        bone: its pose in the armature's object space.
        offset: from the target's axes to the bone's.
    """
    seen = orientation(matrix_array(bone)).dot(np.array(offset.to_matrix()).T)
    linear = matrix_array(world)[:3, :3]
    if np.linalg.det(linear) < 0.0:
        seen[:, 0] *= -1.0
    turn = orthonormal(linear.dot(seen))
    return Matrix(turn.tolist()).to_quaternion() if np.isfinite(turn).all() else Quaternion()
