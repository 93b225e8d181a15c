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
from .articulated import Body, allowed_angles, axes_of, pose_of
from .cones import Cone
from .newton import Model, newton_step, summed_products
from .problem import Floats, Ints
from .rotations import cross

_STILL = 1e-8
"""Radians: a step that is shorter shows that there is nothing left to bring."""
_ROUNDING = 1e-6
"""Radians; a shorter step that brings nothing shows that there is nothing left to bring."""
_PER_RADIAN = np.array([2.0, 2.0, 1.0])
"""The unit of a swing's coordinates is half a radian."""
_LONGEST = 0.5
"""Radians that a joint may turn in one step."""
_DAMPING, _SOFTEST, _HARDEST = 1e-1, 1e-12, 1e3
_TRIED = np.array([0.01, 0.3, 10.0])
"""Times the damping of the last step: with these the next one is tried, with all at once."""


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
        still: radians; a step that turns all joints by less is none.
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
    damping = np.full(len(angles), _DAMPING)
    for done in range(iterations):
        dampings = np.multiply.outer(_TRIED, damping)
        moves = _step(body.members(running), solved[running], aims.members(running), anchor.members(running), dampings)
        sizes = np.abs(moves).reshape(*dampings.shape, -1).max(axis=2)
        moves = moves * np.minimum(1.0, _LONGEST / np.maximum(sizes, 1e-30))[..., None, None]
        each = np.tile(running, len(moves))
        some = body.members(each)
        tried = allowed_angles(some, solved[each] + moves.reshape(-1, *angles.shape[1:]) / _PER_RADIAN)
        costs = _square(aims.members(each).missing(some, pose_of(some, tried)))
        costs = (costs + anchor.members(each).cost(tried)).reshape(len(moves), -1)
        best, rows = costs.argmin(axis=0), np.arange(len(running))
        better = costs[best, rows] < cost[running]
        solved[running[better]] = tried.reshape(*moves.shape)[best, rows][better]
        cost[running[better]] = costs[best, rows][better]
        size = np.where(better, sizes[best, rows], sizes[0])
        damping = np.where(better, dampings[best, rows], dampings[-1])
        damping = np.clip(damping, _SOFTEST, _HARDEST)
        ended = (size < still) | ~better & ((sizes[0] < _ROUNDING) | (damping >= _HARDEST))
        steps[running[ended]] = done + 1
        running, damping = running[~ended], damping[~ended]
        if not len(running):
            break
    return solved, np.sqrt(_square(aims.places().missing(body, pose_of(body, solved)))), steps


def _step(body: Body, angles: Floats, aims: Aims, anchor: Anchor, dampings: Floats) -> Floats:
    """Return Newton steps (k, B, n, 3), a radian being the unit of all joint angles, for dampings (k, B)."""
    members, bones = angles.shape[:2]
    pose = pose_of(body, angles)
    missing = aims.missing(body, pose).T
    speeds = aims.jacobian(body, pose, angles).reshape(members, -1, bones, 3).transpose(1, 3, 2, 0)
    slope = anchor.share * anchor.away(angles).transpose(2, 1, 0) - summed_products(speeds, missing[:, None, None])
    axes = axes_of(pose, angles).transpose(3, 2, 0, 1)
    bends = np.array(speeds, order="C")
    for e in range(len(body.segments)):
        # A joint turns what the joints after it do to the effector.
        rows, path = slice(3 * e, 3 * e + 3), body.path(e)
        bends[rows][:, :, path] -= cross(missing[rows, None, None], axes[:, :, path])
    cone = Cone(*(np.swapaxes(part, -1, -2) for part in body.cone))
    model = Model(bends, speeds, slope, anchor.share)
    model = Model(*(np.tile(part, len(dampings)) for part in model))
    moves = newton_step(model, cone, body.ease.T[..., None], np.tile(angles.T, len(dampings)), dampings.ravel())
    return np.ascontiguousarray(moves.reshape(3, bones, *dampings.shape).transpose(2, 3, 1, 0))


def _square(missing: Floats) -> Floats:
    return np.asarray(np.cumsum(missing**2, axis=1)[:, -1])
