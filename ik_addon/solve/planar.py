"""Chains that stay in a plane: for flat characters and mechanisms.

First each bone is laid flat by the smallest rotation, and the target is projected onto the plane. The result is a
chain like any other, whose joints all bend about the plane's normal, so nothing takes it out of the plane again.
"""

from dataclasses import replace

import numpy as np

from .maths.products import applied, lengths_of, times
from .maths.rotations import between, matrices
from .problem import Floats, Problem, Solution, Status

_FLAT = 1e-9
"""A bone perpendicular to the plane, to within this fraction of its length, has no direction in the plane."""
_STRAIGHT = 1e-6
"""A chain that leaves its line by less than this fraction of its length does not show to which side it bends."""


def laid_flat(problem: Problem) -> tuple[Problem, Floats]:
    """Return a problem laid into its plane, without plane and pole, and the rotations (B, n, 3, 3) that laid it flat.

    Joints and target are relative to the root, whose position would only cost precision.

    A pole, or else the bend side, decides to which side the chain bends; a chain that lies on the other side is
    mirrored within the plane. A leg loses its folds to alternate sides.

    Args:
        problem: chains with a `plane`; members with non-finite numbers or without a normal get non-finite joints.
    """
    with np.errstate(all="ignore"):
        normal = np.asarray(problem.plane, dtype=np.float64)
        normal = normal / lengths_of(normal)[:, None]
        joints = np.asarray(problem.joints, dtype=np.float64)
        root = joints[:, :1]
        segments = np.diff(joints, axis=1)
        lengths = lengths_of(segments)[..., None]
        directions = _flat_directions(segments, lengths, normal)
        line = (lengths * directions).sum(axis=1)
        target = _projected(np.asarray(problem.goal.target, dtype=np.float64) - root[:, 0], normal)
        hinge = normal
        if problem.goal.pole is not None or problem.bend_side is not None:
            side = np.zeros(len(normal))
            if problem.bend_side is not None:
                side = np.sign(_sine(directions[:, 0], np.asarray(problem.bend_side, dtype=np.float64), normal))
            if problem.goal.pole is not None:
                pole = _projected(np.asarray(problem.goal.pole, dtype=np.float64) - root[:, 0], normal)
                towards = np.sign(_sine(target, pole, normal))
                side = np.where(towards == 0.0, side, towards)
            middle = (np.cumsum(lengths * directions, axis=1) * lengths).sum(axis=1)
            lean = _sine(line, middle, normal)
            straight = np.abs(lean) <= _STRAIGHT * lengths.sum(axis=1)[:, 0] ** 3
            mirrored = ~straight & (side * lean < 0.0)
            along = line / lengths_of(line)[:, None]
            image = 2.0 * applied(directions, along)[..., None] * along[:, None] - directions
            directions = np.where(mirrored[:, None, None], image, directions)
            hinge = np.where(side[:, None] > 0.0, -normal, normal)
        turns = _turns(segments, lengths, directions, normal)
        # Whatever the flat problem leaves out must be finite, too.
        angle, left_out = problem.goal.pole_angle, (problem.frames, normal, problem.goal.pole, problem.bend_side)
        sums = sum(np.reshape(part, (len(normal), -1)).sum(axis=1) for part in left_out if part is not None)
        is_finite = np.isfinite(sums + (0.0 if angle is None else np.asarray(angle)))
        flat_root = np.where(is_finite[:, None, None], root - root, np.nan)
        across, stiffness = np.broadcast_to(hinge[:, None], directions.shape), problem.stiffness
        if stiffness is not None:
            # About the normal alone: the mean of X and Z.
            stiffness = np.tile(np.asarray(stiffness)[:, ::2].mean(axis=1)[:, None], (1, 3))
        flat = replace(
            problem,
            joints=np.concatenate([flat_root, np.cumsum(lengths * directions, axis=1)], axis=1),
            frames=np.stack([across, directions, np.cross(across, directions)], axis=-1),
            goal=replace(problem.goal, target=target, pole=None, pole_angle=None),
            bend_side=None,
            folds=None,
            plane=None,
            stiffness=stiffness,
        )
    return flat, turns


def lifted(problem: Problem, flat: Problem, turns: Floats, solution: Solution) -> Solution:
    """Return the solution of a problem from that of its flat problem and the `turns` (B, n, 3, 3) that laid it flat.

    All bones should turn about the normal alone. Rounding, which is large where a tip at the root gives no direction,
    tilts them a little; that is taken out.
    """
    valid = solution.status != Status.INVALID
    joints, rotations = np.array(problem.joints, dtype=np.float64), np.tile(np.eye(3), (*turns.shape[:2], 1, 1))
    normal = np.asarray(problem.plane, dtype=np.float64)[valid]
    normal = normal / lengths_of(normal)[:, None]
    upright = np.broadcast_to(normal[:, None], (*normal.shape[:1], turns.shape[1], 3))
    leaning = applied(solution.rotations[valid], upright)
    # Rounding never leans a bone by half a turn, so any axis will do for that.
    back = between(*(np.moveaxis(v, -1, 0) for v in (leaning, upright, upright[..., [1, 2, 0]])))
    kept = times(matrices(back).transpose(2, 3, 0, 1), solution.rotations[valid])
    steps = applied(kept, np.diff(flat.joints[valid], axis=1)) * solution.stretch[valid, :, None]
    seen = np.cumsum(np.concatenate([solution.joints[valid, :1], steps], axis=1), axis=1)
    joints[valid] = joints[valid, :1] + seen
    rotations[valid] = times(kept, turns[valid])
    error, status = np.array(solution.error), np.array(solution.status)
    error[valid] = lengths_of(np.asarray(flat.goal.target)[valid] - seen[:, -1])
    with np.errstate(all="ignore"):
        lengths = lengths_of(np.diff(flat.joints, axis=1)).sum(axis=1)
        missed = (status == Status.REACHED) & (error > problem.tolerance * lengths)
    status[missed] = Status.NOT_CONVERGED
    return replace(solution, joints=joints, rotations=rotations, error=error, status=status)


def _projected(points: Floats, normal: Floats) -> Floats:
    """Return points (B, ..., 3) without their components along the normals (B, 3)."""
    shape = (len(normal), *(1,) * (points.ndim - 2), 3)
    across = normal.reshape(shape)
    return np.asarray(points - (points * across).sum(axis=-1, keepdims=True) * across)


def _sine(a: Floats, b: Floats, normal: Floats) -> Floats:
    """Return the areas (B,) spanned by a and b, positive where b is to the left of a seen against the normals."""
    return np.asarray((np.cross(a, b) * normal).sum(axis=1))


def _flat_directions(segments: Floats, lengths: Floats, normal: Floats) -> Floats:
    """Return the unit directions (B, n, 3) of the bones in the plane."""
    flat = _projected(segments, normal)
    sizes = lengths_of(flat)[..., None]
    # Any direction in the plane will do for a bone that has none.
    some = np.cross(normal, np.eye(3)[np.argmin(np.abs(np.nan_to_num(normal)), axis=1)])
    some = np.broadcast_to((some / lengths_of(some)[:, None])[:, None], flat.shape)
    # Project again: for a bone nearly perpendicular to the plane, rounding would be part of the result.
    flat = _projected(flat / sizes, normal)
    return np.where(sizes > _FLAT * lengths, flat / lengths_of(flat)[..., None], some)


def _turns(segments: Floats, lengths: Floats, directions: Floats, normal: Floats) -> Floats:
    """Return the smallest rotations (B, n, 3, 3) of bones onto directions; bones without length follow those before."""
    start = np.where(lengths > 0.0, segments / lengths, directions)
    axis = np.broadcast_to(normal[:, None], start.shape)
    turns = matrices(between(*(np.moveaxis(v, -1, 0) for v in (start, directions, axis)))).transpose(2, 3, 0, 1)
    usable = np.asarray(np.isfinite(turns).all(axis=(2, 3)))
    turns = np.where(usable[:, :, None, None], turns, np.eye(3))
    for i in range(turns.shape[1]):
        before = turns[:, i - 1] if i else np.eye(3)
        turns[:, i] = np.where((lengths[:, i] > 0.0)[:, :, None], turns[:, i], before)
    return np.asarray(turns)
