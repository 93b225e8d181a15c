"""Legs whose joints each fold to their own side, within limits: a joint that reaches its limit stays there.

The limits are part of how a leg folds, see `folds`: each joint is clamped at every step of the fold. If the root joint
is then within its limits too, this is the pose; if not, the search continues from there.

Components come first and members last: vectors (3, B), quaternions (4, B).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..free.axes import Axes
from ..free.folds import Legs, place_of
from ..maths.cones import Cone, at_limit, clamp, cone_of, swing_twist, violation
from ..maths.numbers import MANY
from ..maths.products import determinants, times
from ..maths.rotations import between, identity, multiply, norm, quaternions, rotate, stacked, unit
from ..problem import Bools, Floats, Limits, Problem, Solver

WITHIN = 1e-9
"""Radians by which rounding may put a root joint outside its limits."""


class Within(NamedTuple):
    """The pose of B legs folded within their limits."""

    turns: Floats
    """(4, n, B) rotations of the bones' FK frames."""
    holds: Bools
    """(B,) whether the root joint is within its limits; if not, it is clamped, and the leg misses its direction."""
    at_limit: Bools
    """(B, n)"""


def can_fold(problem: Problem) -> Bools:
    """Return which members (B,) are chains within limits whose joints fold by shares of their own."""
    is_leg = problem.limits is not None and problem.parents is None and problem.goal.rotation is None
    is_leg = is_leg and problem.solver is not Solver.FABRIK and not problem.others and problem.goal.segment is None
    if problem.folds is None or not (is_leg and (problem.inherits is None or np.all(problem.inherits))):
        return np.zeros(len(problem.joints), dtype=bool)
    folds = np.asarray(problem.folds, dtype=np.float64)
    upright = (determinants(np.asarray(problem.frames, dtype=np.float64)) > 0.0).all(axis=1)
    return np.asarray(upright & (folds != 0.0).any(axis=(1, 2)) & np.isfinite(folds).all(axis=(1, 2)))


def folded_within(
    limits: Limits, frames: Floats, legs: Legs, distance: Floats, own: Axes, chain_turn: Floats
) -> Within:
    """Return legs folded within their limits so that their tips are at given distances from their roots.

    Args:
        limits: the limits of these members; all bones but the root inherit rotation.
        frames: (3, 3, n, B) orientation of the bones in the FK pose.
        legs: the legs in the FK pose.
        distance: (B,) wanted distances from root to tip.
        own: the legs' axes in the FK pose.
        chain_turn: (4, B) rotation that turns the legs to their targets and poles.
    """
    joints = _Limits.of(limits, frames)

    def tip_at(turns: list[Floats]) -> Floats:
        steps = (rotate(t, stacked(*j.direction)) * j.length for t, j in zip(turns, legs.joints, strict=True))
        return np.asarray(np.stack(list(steps), axis=1).sum(axis=-2))

    def gap_at(place: Floats) -> Floats:
        return np.asarray(norm(tip_at(joints.turns(legs, place))) - distance)

    turns = joints.turns(legs, place_of(MANY, gap_at))
    root = multiply(chain_turn, between(unit(tip_at(turns)), stacked(*own.line), stacked(*own.normal)))
    # The root joint is clamped only at the end: its rotation depends on those of the others.
    cone, holds = joints.cones[0], np.ones(len(distance), dtype=bool)
    if cone is not None:
        stands = multiply(_back(joints.rest[0]), multiply(root, joints.frames[0]))
        holds = np.asarray(violation(stands, cone) <= WITHIN)
        clamped = multiply(multiply(joints.rest[0], clamp(stands, cone)), _back(joints.frames[0]))
        root = np.where(holds, root, clamped)
    solved = [_unit(multiply(root, turn)) for turn in turns]
    return Within(np.stack(solved, axis=1), holds, joints.at_limit(solved))


@dataclass(frozen=True)
class _Limits:
    """Rotations and limits of the joints of legs, bone by bone."""

    frames: list[Floats]
    """(4, B) orientation in the FK pose."""
    rest: list[Floats]
    """(4, B) orientation at rest relative to the bone above; that of the root in space."""
    cones: list[Cone | None]
    """None: the joint has no limit, or is locked and stays as in the FK pose."""
    locked: Bools
    """(n,)"""

    @classmethod
    def of(cls, limits: Limits, frames: Floats) -> _Limits:
        """Read the limits of members with frames (3, 3, n, B)."""
        bones, members = frames.shape[2:]
        rest = np.array(np.broadcast_to(np.asarray(limits.rest, dtype=np.float64), (members, bones, 3, 3)))
        rest[:, 0] = times(np.asarray(limits.root, dtype=np.float64), rest[:, 0])
        ranges = np.concatenate([limits.cones, limits.twist], axis=1).astype(np.float64)
        locked = (ranges == 0.0).all(axis=1)
        cone = cone_of(ranges[:, :4], ranges[:, 4:])
        each = [
            Cone(cone.low[:, i, None], cone.high[:, i, None], cone.twist_low[i, None], cone.twist_high[i, None])
            for i in range(bones)
        ]
        limited = np.isfinite(ranges).any(axis=1) & ~locked
        fk, at_rest = quaternions(frames), quaternions(rest.transpose(2, 3, 1, 0))
        return cls(
            list(fk.swapaxes(0, 1)),
            list(at_rest.swapaxes(0, 1)),
            [own if limited[i] else None for i, own in enumerate(each)],
            locked,
        )

    def turns(self, legs: Legs, place: Floats) -> list[Floats]:
        """Return the rotations (4, B) of the bones' FK frames at places (B,), with the root bone not turned."""
        found = [identity(self.frames[0].shape[1])]
        for i, joint in enumerate(legs.joints[1:], 1):
            turn = found[-1]
            if not self.locked[i]:
                turn = multiply(turn, np.broadcast_to(stacked(*joint.turn(MANY, place)), turn.shape))
            cone = self.cones[i]
            if cone is not None:
                zero = multiply(multiply(found[-1], self.frames[i - 1]), self.rest[i])
                joint_turn = multiply(_back(zero), multiply(turn, self.frames[i]))
                turn = multiply(multiply(zero, clamp(joint_turn, cone)), _back(self.frames[i]))
            found.append(_unit(turn))
        return found

    def at_limit(self, turns: list[Floats]) -> Bools:
        """Return which bones (B, n) are at a limit in a pose."""
        found = np.zeros((self.frames[0].shape[1], len(turns)), dtype=bool)
        for i, cone in enumerate(self.cones):
            if cone is not None:
                zero = multiply(multiply(turns[i - 1], self.frames[i - 1]), self.rest[i]) if i else self.rest[0]
                stands = multiply(_back(zero), multiply(turns[i], self.frames[i]))
                found[:, i] = at_limit(*swing_twist(_unit(stands)), cone)
        return found


def _back(q: Floats) -> Floats:
    """Return the inverse rotations (4, ...)."""
    return np.concatenate([q[:1], -q[1:]])


def _unit(q: Floats) -> Floats:
    """Return quaternions (4, ...) normalized, to remove rounding."""
    w, x, y, z = q
    return np.asarray(q / np.sqrt(w * w + (x * x + y * y + z * z)))
