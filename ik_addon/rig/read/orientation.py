"""The orientation of targets and bones as solvers take it: seen from the armature object, right-handed."""

from __future__ import annotations

import numpy as np
from mathutils import Matrix, Quaternion

from ...pose.skeleton import inverse_of_one, matrix_array, orthonormal
from ...solve.maths.products import determinants, times
from ...solve.problem import Floats

_FLAT = 1e-6
"""A matrix whose determinant is a smaller part of what its columns allow flattens what it moves, but for rounding."""


def orientation(matrices: Floats) -> Floats:
    """Orientations (..., 3, 3) of matrices (..., 4, 4); of mirrored ones the X axis is turned round."""
    frames = orthonormal(matrices[..., :3, :3])
    with np.errstate(invalid="ignore"):
        frames[..., 0] *= np.where(np.linalg.det(frames) < 0.0, -1.0, 1.0)[..., None]
    return frames


def displaced(moves: Floats, rotations: Floats) -> Floats:
    """Orientations (..., 3, 3) of what is moved by matrices (..., 3, 3), which may scale, mirror or flatten it.

    A flat one has no side of its own: it gets the same as where its matrix is read.
    """
    frames = times(moves, rotations)
    sizes = np.linalg.norm(moves, axis=-2).prod(axis=-1)
    with np.errstate(invalid="ignore"):
        frames[..., 0] *= np.where(determinants(moves) < -_FLAT * sizes, -1.0, 1.0)[..., None]
        frames[..., 2] = np.cross(frames[..., 0], frames[..., 1])
    return orthonormal(frames)


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


def target_rotations(world: Floats, bones: Floats, offset: Quaternion) -> Floats:
    """How (F, 3, 3) a target is turned in world space that keeps a bone as it is: the inverse of `offset_between`.

    Args:
        world: (F, 4, 4) of the armature object.
        bones: (F, 4, 4) poses of the bone in the armature's object space.
        offset: from the target's axes to the bone's.
    """
    seen = times(orientation(bones), np.array(offset.to_matrix(), dtype=np.float64).T[None])
    linear = world[:, :3, :3]
    seen[:, :, 0] *= np.where(np.linalg.det(linear) < 0.0, -1.0, 1.0)[:, None]
    turns = orthonormal(times(linear, seen))
    return np.where(np.isfinite(turns).all(axis=(1, 2), keepdims=True), turns, np.eye(3))


def target_rotation(world: Matrix, bone: Matrix, offset: Quaternion) -> Quaternion:
    """The same for one pose."""
    turn = target_rotations(matrix_array(world)[None], matrix_array(bone)[None], offset)[0]
    return Matrix(turn.tolist()).to_quaternion()
