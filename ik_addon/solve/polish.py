"""Newton's method for targets out of reach, where a pose is to come as near as it can, and stay the same next time.

Where something remains missing, Gauss-Newton steps crawl: what counts then is how the effectors curve, which is known
exactly for joints, and how the limits curve along which they go. A direction in which the cost curves downwards is
followed like one in which it curves upwards, away from the saddle (Y. Dauphin et al., "Identifying and attacking the
saddle point problem in high-dimensional non-convex optimization", arXiv 1406.2572).
"""

from __future__ import annotations

import numpy as np

from .aims import Aims
from .articulated import Body, allowed_angles, axes_of, pose_of, split
from .problem import Floats, Ints

_STILL = 1e-9
"""Radians; a shorter step is none."""
_ROUNDING = 1e-6
"""Radians; a shorter step that brings nothing shows that there is nothing left to bring."""
_LONGEST = 0.5
_SOFTEST, _HARDEST = 1e-9, 1e3
_RIM = 1e-9
"""A swing is on the rim of its cone when it is within about this fraction of the half-axes."""


def polish(body: Body, angles: Floats, aims: Aims, iterations: int) -> tuple[Floats, Floats, Ints]:
    """Return joint angles (B, n, 3) in whose neighbourhood none inside the limits are better.

    Args:
        body: B bodies.
        angles: (B, n, 3) to start from, inside the limits.
        aims: the places for the effectors.
        iterations: cap on the steps.

    Returns:
        angles: (B, n, 3) inside the limits.
        cost: (B,) what is missing, the root of the weighted sum of squares.
        steps: (B,) how many were taken.
    """
    solved = angles.copy()
    missing = aims.missing(body, pose_of(body, angles))
    cost = _square(missing)
    steps = np.full(len(angles), iterations)
    running = np.arange(len(angles))
    damping = np.full(len(angles), 1e-6)
    for done in range(iterations):
        now = solved[running]
        some, its = body.members(running), aims.members(running)
        move = _step(some, now, its, damping)
        size = np.abs(move).reshape(len(move), -1).max(axis=1)
        move *= np.minimum(1.0, _LONGEST / np.maximum(size, 1e-30))[:, None, None]
        tried = allowed_angles(some, now + move * [0.5, 0.5, 1.0])
        costs = _square(its.missing(some, pose_of(some, tried)))
        better = costs < cost[running]
        solved[running] = np.where(better[:, None, None], tried, now)
        cost[running] = np.where(better, costs, cost[running])
        damping = np.clip(damping * np.where(better, 0.1, 10.0), _SOFTEST, _HARDEST)
        ended = (size < _STILL) | ~better & (size < _ROUNDING) | (damping >= _HARDEST)
        steps[running[ended]] = done + 1
        running, damping = running[~ended], damping[~ended]
        if not len(running):
            break
    return solved, np.sqrt(cost), steps


def _step(body: Body, angles: Floats, aims: Aims, damping: Floats) -> Floats:
    """Return Newton steps (B, n, 3), a radian being the unit of all joint angles."""
    members, bones = angles.shape[:2]
    pose = pose_of(body, angles)
    matrix = aims.jacobian(body, pose, angles)
    missing = aims.missing(body, pose)
    slope = -(matrix.swapaxes(-1, -2) @ missing[..., None])[..., 0]
    hessian = matrix.swapaxes(-1, -2) @ matrix
    axes = axes_of(pose, angles).transpose(1, 0, 2, 3).reshape(members, -1, 3)
    later = np.tri(3 * bones, dtype=bool).T
    for e in range(len(body.segments)):
        # A joint turns what the joints after it do to the effector.
        rows = slice(3 * e, 3 * e + 3)
        on_path = np.repeat(np.isin(np.arange(bones), body.path(e)), 3)
        lever = np.cross(missing[:, None, rows], axes) * on_path[:, None]
        curve = lever @ matrix[:, rows]
        hessian -= np.where(later, curve, curve.swapaxes(-1, -2))
    basis, bent = _room(body, angles, slope.reshape(angles.shape))
    hessian = _at_joints(basis, _at_joints(basis, hessian).swapaxes(-1, -2))
    joint = np.arange(bones)
    hessian.reshape(members, bones, 3, bones, 3)[:, joint, :, joint, :] += bent.transpose(1, 0, 2, 3)
    # The other joint angles are locked; nothing but zeros belongs to them.
    kept = np.flatnonzero(body.ease > 0.0)
    # In one piece: a product takes another way through what lies apart, and rounds otherwise.
    slope = np.ascontiguousarray(_at_joints(basis, slope[..., None])[:, kept])
    values, vectors = np.linalg.eigh(np.ascontiguousarray(hessian[:, kept[:, None], kept]))
    along = (vectors.swapaxes(-1, -2) @ slope)[..., 0] / (np.abs(values) + damping[:, None])
    move = np.zeros((members, 3 * bones, 1))
    move[:, kept] = vectors @ -along[..., None]
    return np.asarray(_at_joints(basis, move).reshape(angles.shape))


def _at_joints(basis: Floats, rows: Floats) -> Floats:
    """Return symmetric matrices (B, n, 3, 3), one of each joint, times the rows (B, 3 * n, k) of its angles."""
    own = rows.reshape(*basis.shape[:3], -1)
    return np.asarray(sum(basis[..., j, None] * own[:, :, None, j] for j in range(3))).reshape(rows.shape)


def _room(body: Body, angles: Floats, slope: Floats) -> tuple[Floats, Floats]:
    """Return the directions in which joints can go, and how the limits bend the cost along them.

    Args:
        body: B bodies.
        angles: (B, n, 3)
        slope: (B, n, 3) of the cost.

    Returns:
        basis: (B, n, 3, 3) projection of each joint's angles onto what locks and limits leave of them.
        bent: (B, n, 3, 3) what is added to the curvature of the cost at each joint.
    """
    members, bones = angles.shape[:2]
    cone = body.cone
    swing, twist = split(angles)
    axes = np.where(swing < 0.0, cone.low, cone.high)
    free = np.broadcast_to(body.ease > 0.0, angles.shape)
    # At zero the slope tells which quadrant a swing would go to.
    axes = np.where((swing == 0.0) & (np.moveaxis(slope[..., :2], -1, 0) > 0.0), cone.low, axes)
    safe = np.maximum(axes, 1e-9)
    normal = np.where(np.moveaxis(free[..., :2], -1, 0), swing / safe**2, 0.0)
    level = (swing / safe * np.moveaxis(free[..., :2], -1, 0)) ** 2
    size = np.hypot(normal[0], normal[1])
    normal = normal / np.maximum(size, 1e-200)
    push = -(normal[0] * slope[..., 0] + normal[1] * slope[..., 1])
    rim = (level[0] + level[1] > 1.0 - _RIM) & (push > 0.0)
    across = np.stack([-normal[1], normal[0]])
    turn = (across[0] / safe[0]) ** 2 + (across[1] / safe[1]) ** 2
    bend = np.where(rim, push * turn / np.maximum(size, 1e-200) / 2.0, 0.0)
    # An axis with no room to the side that the slope points to holds too.
    shut = (axes <= 0.0) & (swing == 0.0)
    block = np.zeros((members, bones, 3, 3))
    for i in range(2):
        for j in range(2):
            kept = np.where(rim, across[i] * across[j], float(i == j))
            block[..., i, j] = kept * free[..., i] * free[..., j] * ~shut[i] * ~shut[j]
    at_end = ((twist <= cone.twist_low) & (slope[..., 2] > 0.0)) | ((twist >= cone.twist_high) & (slope[..., 2] < 0.0))
    block[..., 2, 2] = free[..., 2] & ~at_end
    bent = np.zeros((members, bones, 3, 3))
    bent[..., :2, :2] = (bend * across[:, None] * across).transpose(2, 3, 0, 1)
    return block, bent


def _square(missing: Floats) -> Floats:
    return np.asarray(np.cumsum(missing**2, axis=1)[:, -1])
