"""The orientation of targets and bones as solvers use it: in the armature's object space, right-handed."""

from __future__ import annotations

import numpy as np
from mathutils import Matrix, Quaternion

from ...core.skeleton import FLATTENED, inverse_of_one, matrix_array, orthonormal
from ...solve.maths.products import determinants, times
from ...solve.problem import Floats


def orientation(matrices: Floats) -> Floats:
    """Return orientations (..., 3, 3) of matrices (..., 4, 4); the X axis of mirrored ones is flipped."""
    frames = orthonormal(matrices[..., :3, :3])
    with np.errstate(invalid="ignore"):
        frames[..., 0] *= np.where(np.linalg.det(frames) < 0.0, -1.0, 1.0)[..., None]
    return frames


def displaced(moves: Floats, rotations: Floats) -> Floats:
    """Return orientations (..., 3, 3) after they are moved by matrices (..., 3, 3) that may scale, mirror or flatten.

    A matrix that flattens does not count as mirrored, as where orientations are read from matrices.
    """
    frames = times(moves, rotations)
    sizes = np.linalg.norm(moves, axis=-2).prod(axis=-1)
    with np.errstate(invalid="ignore"):
        frames[..., 0] *= np.where(determinants(moves) < -FLATTENED * sizes, -1.0, 1.0)[..., None]
        frames[..., 2] = np.cross(frames[..., 0], frames[..., 1])
    return orthonormal(frames)


def axes_between(world: Matrix, target: Matrix, bone: Matrix) -> Floats:
    """Return the axes (3, 3) of a bone in its pose, in those of a target; NaN if undefined. See `chain.end_axes`.

    Args:
        world: world matrix of the armature object.
        target: world matrix of the target.
        bone: pose of the bone in the armature's object space.
    """
    seen = orientation(inverse_of_one(matrix_array(world)) @ matrix_array(target))
    return seen.T.dot(orientation(matrix_array(bone)))


def target_rotations(world: Floats, bones: Floats, axes: Floats) -> Floats:
    """Return world rotations (F, 3, 3) of a target that keep a bone in its pose; inverts `axes_between`.

    Args:
        world: (F, 4, 4) world matrices of the armature object.
        bones: (F, 4, 4) poses of the bone in the armature's object space.
        axes: (..., 3, 3) axes of the bone in those of the target.
    """
    seen = times(orientation(bones), np.swapaxes(axes, -1, -2))
    linear = world[:, :3, :3]
    seen[:, :, 0] *= np.where(np.linalg.det(linear) < 0.0, -1.0, 1.0)[:, None]
    turns = orthonormal(times(linear, seen))
    return np.where(np.isfinite(turns).all(axis=(1, 2), keepdims=True), turns, np.eye(3))


def target_rotation(world: Matrix, bone: Matrix, axes: Floats) -> Quaternion:
    """Return the rotation of `target_rotations` for a single pose."""
    turn = target_rotations(matrix_array(world)[None], matrix_array(bone)[None], axes)[0]
    return Matrix(turn.tolist()).to_quaternion()
