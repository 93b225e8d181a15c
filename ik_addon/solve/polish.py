"""Newton's method for targets out of reach, where a pose is to come as near as it can, and stay the same next time.

Where something remains missing, Gauss-Newton steps crawl: what counts then is how the effectors curve, which is known
exactly for joints, and how the limits curve along which they go. A direction in which the cost curves downwards is
followed like one in which it curves upwards, away from the saddle (Y. Dauphin et al., "Identifying and attacking the
saddle point problem in high-dimensional non-convex optimization", arXiv 1406.2572).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .aims import Aims
from .articulated import STEEPEST, Body, allowed_angles, axes_of, pose_of, split, swing_curvature
from .descent import OUTSIDE, ROUNDS
from .problem import Floats, Ints

_STILL = 1e-8
"""Radians: a step that is shorter shows that there is nothing left to bring."""
_ROUNDING = 1e-6
"""Radians; a shorter step that brings nothing shows that there is nothing left to bring."""
_PER_RADIAN = np.array([2.0, 2.0, 1.0])
"""The unit of a swing's coordinates is half a radian."""
_LONGEST = 1.0
"""Radians, the root of the sum of squares over all joints."""
_SHORTER = np.array([1.0, 0.25, 0.0625])
"""Parts of the longest step that are tried at once."""
_SOFTEST = 1e-9
_EVEN = 1e-12
"""Curvatures that are smaller than this, in parts of the greatest, are rounding."""
_DAMPED = 8
"""Steps at most to the damping that makes a step as short as wanted."""
_RIM = 1e-9
"""A swing is on the rim of its cone when it is within about this fraction of the half-axes."""


@dataclass(frozen=True)
class Anchor:
    """A pose that is kept to where nothing else decides: of all that do best one is nearest to it."""

    angles: Floats
    """(B, n, 3)"""
    share: Floats
    """(B,) what the squared distance from it, in radians, counts beside what is missing."""

    def members(self, chosen: Ints) -> Anchor:
        """Return the anchors of the chosen members alone, or each as often as it is named."""
        return Anchor(self.angles[chosen], self.share[chosen])

    def away(self, angles: Floats) -> Floats:
        """Return the way (B, n, 3) from there, a radian being the unit of all joint angles."""
        return np.asarray((angles - self.angles) * _PER_RADIAN)

    def cost(self, angles: Floats) -> Floats:
        """Return what (B,) poses cost for being away from it."""
        return self.share * _square(self.away(angles).reshape(len(angles), -1))


def polish(
    body: Body,
    angles: Floats,
    aims: Aims,
    iterations: int,
    still: float = _STILL,
    anchor: Anchor | None = None,
) -> tuple[Floats, Floats, Ints]:
    """Return joint angles (B, n, 3) in whose neighbourhood none inside the limits are better.

    Args:
        body: B bodies.
        angles: (B, n, 3) to start from, inside the limits.
        aims: what the effectors are to do, above all where they are to be.
        iterations: cap on the steps.
        still: radians, the root of the sum of squares over all joints; a shorter step is none.
        anchor: where to stay where nothing else decides.

    Returns:
        angles: (B, n, 3) inside the limits.
        cost: (B,) what is missing, the root of the weighted sum of squares.
        steps: (B,) how many were taken.
    """
    if anchor is None:
        anchor = Anchor(angles, np.zeros(len(angles)))
    solved = angles.copy()
    cost = _square(aims.missing(body, pose_of(body, angles))) + anchor.cost(angles)
    steps = np.full(len(angles), iterations)
    running = np.arange(len(angles))
    if not (body.ease > 0.0).any():
        iterations, steps = 0, np.zeros_like(steps)
    radius = np.full(len(angles), _LONGEST)
    for done in range(iterations):
        move = _step(body.members(running), solved[running], aims.members(running), anchor.members(running), radius)
        moves = _SHORTER[:, None, None, None] * move
        each = np.tile(running, len(moves))
        some = body.members(each)
        tried = allowed_angles(some, solved[each] + moves.reshape(-1, *angles.shape[1:]) / _PER_RADIAN)
        costs = _square(aims.members(each).missing(some, pose_of(some, tried)))
        costs = (costs + anchor.members(each).cost(tried)).reshape(len(moves), -1)
        best, rows = costs.argmin(axis=0), np.arange(len(running))
        better = costs[best, rows] < cost[running]
        solved[running[better]] = tried.reshape(*moves.shape)[best, rows][better]
        cost[running[better]] = costs[best, rows][better]
        sizes = np.sqrt(_square(moves.reshape(-1, moves[0, 0].size))).reshape(costs.shape)
        size = sizes[best, rows]
        radius = np.where(better, np.where(best == 0, np.maximum(radius, 2.0 * size), 2.0 * size), sizes[-1])
        radius = np.minimum(radius, _LONGEST)
        ended = (sizes[0] < still) | ~better & (sizes[0] < _ROUNDING)
        steps[running[ended]] = done + 1
        running, radius = running[~ended], radius[~ended]
        if not len(running):
            break
    return solved, np.sqrt(_square(aims.places().missing(body, pose_of(body, solved)))), steps


def _step(body: Body, angles: Floats, aims: Aims, anchor: Anchor, radius: Floats) -> Floats:
    """Return Newton steps (B, n, 3) of at most a length (B,), a radian being the unit of all joint angles."""
    members, bones = angles.shape[:2]
    pose = pose_of(body, angles)
    matrix = aims.jacobian(body, pose, angles)
    missing = aims.missing(body, pose)
    slope = -(matrix.swapaxes(-1, -2) @ missing[..., None])[..., 0]
    hessian = matrix.swapaxes(-1, -2) @ matrix
    axes = axes_of(pose, angles).transpose(1, 0, 2, 3).reshape(members, -1, 3)
    later = np.tri(3 * bones, dtype=bool).T
    # Two coordinates of one swing do not come one after the other.
    first = 3 * np.arange(bones)
    for e in range(len(body.segments)):
        # A joint turns what the joints after it do to the effector.
        rows = slice(3 * e, 3 * e + 3)
        on_path = np.repeat(np.isin(np.arange(bones), body.path(e)), 3)
        lever = np.cross(missing[:, None, rows], axes) * on_path[:, None]
        curve = lever @ matrix[:, rows]
        curve[:, first, first + 1] = (curve[:, first, first + 1] + curve[:, first + 1, first]) / 2.0
        hessian -= np.where(later, curve, curve.swapaxes(-1, -2))
    joint = np.arange(bones)
    own = hessian.reshape(members, bones, 3, bones, 3)
    own[:, joint, :, joint, :] += _swing_curvature(angles, slope.reshape(angles.shape)).transpose(1, 0, 2, 3)
    slope += anchor.share[:, None] * anchor.away(angles).reshape(slope.shape)
    diagonal = np.arange(3 * bones)
    hessian[:, diagonal, diagonal] += anchor.share[:, None]
    basis, bent = _room(body, angles, slope.reshape(angles.shape))
    hessian = _at_joints(basis, _at_joints(basis, hessian).swapaxes(-1, -2))
    hessian.reshape(members, bones, 3, bones, 3)[:, joint, :, joint, :] += bent.transpose(1, 0, 2, 3)
    # The other joint angles are locked; nothing but zeros belongs to them.
    kept = np.flatnonzero(body.ease > 0.0)
    # In one piece: a product takes another way through what lies apart, and rounds otherwise.
    slope = np.ascontiguousarray(_at_joints(basis, slope[..., None])[:, kept])
    values, vectors = np.linalg.eigh(np.ascontiguousarray(hessian[:, kept[:, None], kept]))
    slopes = (vectors.swapaxes(-1, -2) @ slope)[..., 0]
    curvature = np.abs(values)
    curvature += _damping(slopes, curvature, radius)[:, None]
    move = np.zeros((members, 3 * bones))
    move[:, kept] = (vectors @ -(slopes / curvature)[..., None])[..., 0]
    _find_again(body, angles, basis, kept, (vectors, curvature), slope[..., 0], move)
    return np.asarray(_at_joints(basis, move[..., None]).reshape(angles.shape))


def _find_again(
    body: Body, angles: Floats, basis: Floats, kept: Ints, model: tuple[Floats, Floats], slope: Floats, move: Floats
) -> None:
    """Find steps (B, 3 n) again for the other joints where some leave their limits, which are put to these.

    The model of the cost has eigenvectors (B, m, m) and curvatures (B, m) along them.
    """
    matrix: Floats | None = None
    held = np.zeros(move.shape, dtype=bool)
    diagonal = np.arange(len(kept))
    for _ in range(ROUNDS):
        wanted = angles + _at_joints(basis, move[..., None]).reshape(angles.shape) / _PER_RADIAN
        inside = allowed_angles(body, wanted)
        off = np.abs(inside - wanted) > OUTSIDE
        off[..., :2] = off[..., :2].any(axis=-1, keepdims=True)
        leaving = off.reshape(move.shape) & ~held
        again = np.flatnonzero(leaving.any(axis=1))
        if not len(again):
            break
        if matrix is None:
            vectors, curvature = model
            matrix = (vectors * curvature[:, None]) @ vectors.swapaxes(-1, -2)
        place = ((inside - angles) * _PER_RADIAN).reshape(move.shape)
        move[leaving] = place[leaving]
        held |= leaving
        out = held[again][:, kept]
        fixed = np.where(out, move[again][:, kept], 0.0)
        own = np.where(out[:, :, None] | out[:, None], 0.0, matrix[again])
        own[:, diagonal, diagonal] = np.where(out, 1.0, own[:, diagonal, diagonal])
        right = np.where(out, fixed, -slope[again] - (matrix[again] @ fixed[..., None])[..., 0])
        move[again[:, None], kept] = np.linalg.solve(own, right[..., None])[..., 0]


def _swing_curvature(angles: Floats, slope: Floats) -> Floats:
    """Return what the change of a swing's axes with it adds (B, n, 3, 3) to the curvature of the cost."""
    x, z = angles[..., 0], angles[..., 1]
    rest = np.maximum(1.0 - x * x - z * z, STEEPEST**2)
    first, second, both = swing_curvature(x, z, rest, np.moveaxis(slope, -1, 0))
    added = np.zeros((*angles.shape, 3))
    added[..., 0, 0], added[..., 1, 1] = first, second
    added[..., 0, 1] = added[..., 1, 0] = both
    return added


def _damping(slopes: Floats, curvature: Floats, radius: Floats) -> Floats:
    """Return what to add (B,) to curvatures (B, m) so that a step is no longer than a radius (B,).

    A step is slopes (B, m) divided by them. Found by Newton's method on the inverse of its length, which is nearly
    straight (J. Moré and D. Sorensen, "Computing a trust region step", doi 10.1137/0904038).
    """
    damping: Floats = np.maximum(_SOFTEST, _EVEN * curvature.max(axis=1))
    for _ in range(_DAMPED):
        below = curvature + damping[:, None]
        along = slopes / below
        square = along * along
        size = np.cumsum(square, axis=1)[:, -1]
        over = np.maximum(np.sqrt(size) / radius - 1.0, 0.0)
        if not over.any():
            break
        damping = damping + over * size / np.maximum(np.cumsum(square / below, axis=1)[:, -1], 1e-300)
    return damping


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
