"""Newton's method for what cannot be reached: as near as it can be, and the same next time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..maths.calculus import Calculus, Row
from ..maths.cones import joint_rotation
from ..maths.rotations import inverse, matrices, multiply
from ..maths.vectors import Number, dot, product
from ..problem import Floats, Ints
from .body import Body, angles_of, inside
from .descent import Crowd, State
from .goals import System
from .newton_step import Anchor, Held, away_from, newton_step
from .restarts import SAME

STILL = 1e-6
"""Radians: a step that brings something and is shorter shows that there is nothing left to bring."""
ROUNDING = 1e-6
"""Radians: so does a step that brings nothing and is shorter than this."""
UPHILL = 3
"""Steps that may be worse than the best one before there is a way back to it."""
LITTLE, HARDLY = 1e-6, 1e-4
"""A step that brings less than this part of the cost shows that there is nothing left, where nothing holds a pose; the
second where it is enough to know about how near such a pose comes."""
SHORT, ROUNDED = 1e-3, 1e-13
"""Radians below which a step may raise the cost by such a part of it."""
LONGEST = 0.5
"""Radians that a joint may turn in one step."""
DAMPING, SOFTEST, HARDEST = 1e-1, 1e-9, 1e3


def polish(
    system: System, angles: Row, members: int, iterations: int, still: float = STILL, anchor: Anchor | None = None
) -> tuple[Floats, Floats, Ints]:
    """Return joint angles in whose neighbourhood none inside the limits are better.

    Args:
        system: B members, or one.
        angles: to start from, inside the limits.
        members: how many they are.
        iterations: cap on the steps.
        still: radians, how short a step shows that there is little left to bring, in members that are not nearly there.
        anchor: where to stay where nothing else decides.

    Returns:
        angles: (3, n, B) inside the limits.
        error: (B,) the distance of the effectors from their targets: the root of the weighted sum of squares.
        steps: (B,) how many were taken.
    """
    do = system.skeleton.do
    first = State.of(system, angles)
    # A copy: members are put into the arrays of either alone.
    now = best = Held(first, first.residual if anchor is None else [part + 0.0 for part in first.residual])
    least = _cost(do, first, anchor)
    # From where places are as they are to be, what else counts is little.
    damping = 0.0 * least + DAMPING * (1.0 if anchor is None else anchor.share)
    ended, uphill = least < 0.0, 0.0 * least
    crowd = Crowd(do, len(system.skeleton.parents), members)
    for done in range(iterations + 1):
        ended = ended | (done == iterations)
        if do.any(ended):
            chosen = crowd.leave(ended, done, best.state.angles, system.distance(best.state.residual))
            if not crowd.left:
                break
            if chosen is not None:
                system = system.members(chosen)
                parts = now, best, damping, least, uphill, anchor
                now, best, damping, least, uphill, anchor = do.members(parts, chosen)
        move, jacobian, fall = newton_step(system, now, damping, anchor)
        size = do.largest([do.most(do.most(abs(x), abs(z)), abs(twist)) for x, z, twist in move])
        share = do.least(1.0, LONGEST / do.most(size, 1e-30))
        half = 0.5 * share
        tried = [
            inside(do, joint, x * half + old_x, z * half + old_z, twist * share + old)
            for joint, (x, z, twist), (old_x, old_z, old) in zip(
                system.skeleton.joints, move, now.state.angles, strict=True
            )
        ]
        state = State.of(system, tried)
        costs, kept = _cost(do, state, anchor), state.residual
        if anchor is not None:
            gone = [away_from(*pair) for pair in zip(tried, now.state.angles, strict=True)]
            kept = system.after(now.state.pose, now.state.residual, jacobian, gone)
        there = Held(state, kept)
        # Where the cost is rounded, a short step is believed.
        better = costs < least + do.where(size < SHORT, ROUNDED * least, 0.0)
        gain = least - costs
        little = better & (gain < (LITTLE if still == STILL else HARDLY) * least) & (least > SAME**2)
        least = do.where(better, costs, least)
        # Where a pose is held the valley is narrow and curved: what it costs to leave it, the next step brings back.
        # "Greater": the one and not the other.
        going = ((uphill < (0.0 if anchor is None else UPHILL)) & (size < LONGEST)) > better
        now = do.choose(better | going, there, best)
        best = do.choose(going, best, now) if do.any(going) else now
        uphill = do.where(going, uphill + 1.0, 0.0)
        # Scaled down, a step that is too long goes mostly where the cost hardly changes.
        softened = do.where(size > LONGEST, 1.0, 0.1)
        if len(system.objectives) == 1:
            # A step that brings less than was foretold went too far (H. Nielsen, "Damping parameter in Marquardt's
            # method", IMM-REP-1999-05, Technical University of Denmark). Several objectives settle better without.
            (square,) = do.totals([[dot(turn, turn)] for turn in move])
            foretold = share * (fall - half * (fall - damping * square))
            off = do.most(gain / do.most(foretold, 1e-30) - 1.0, -1.0)
            softened = do.least(do.most(1.0 - off * off * off, 0.1), 1.0)
        grown = do.where(better, softened, do.where(going, 1.0, 4.0))
        damping = do.least(do.most(damping * grown, SOFTEST), HARDEST)
        short = do.where(better, do.where(least > SAME**2, still, STILL), do.where(going, 0.0, ROUNDING))
        ended = (size < short) | (damping >= HARDEST)
        if anchor is None:
            ended = ended | little
    return crowd.found


def _cost(do: Calculus, state: State, anchor: Anchor | None) -> Number:
    square = state.error * state.error
    if anchor is None:
        return square
    away = [away_from(*pair) for pair in zip(state.angles, anchor.angles, strict=True)]
    (far,) = do.totals([[dot(way, way)] for way in away])
    return square + anchor.share * far


@dataclass(frozen=True)
class Chart:
    """Bodies whose joints without limits are measured from another pose, so that they stay clear of half a turn.

    There the coordinates of a swing say least about where a bone points, and steps get short.
    """

    body: Body
    swings: Floats
    """(4, n, B) swings of the joints in the first bodies at which these are at rest."""
    first: Body

    @classmethod
    def at(cls, body: Body, angles: Floats) -> Chart:
        """Measure joints without limits from where angles (3, n, B) swing them."""
        swings = joint_rotation(angles[:2], np.zeros_like(angles[2]))
        swings = np.where(body.is_unlimited[:, None], swings, np.array([1.0, 0.0, 0.0, 0.0])[:, None, None])
        rest: Any = body.rest
        turn: Any = matrices(swings)
        return cls(replace(body, rest=np.array(product(rest, turn))), swings, body)

    def enter(self, angles: Floats) -> Floats:
        """Return angles (3, n, B) of the first bodies as angles of these."""
        return self._turned(self.body, inverse(self.swings), angles)

    def leave(self, angles: Floats) -> Floats:
        """Return angles (3, n, B) of these bodies as angles of the first ones."""
        return self._turned(self.first, self.swings, angles)

    def _turned(self, body: Body, swings: Floats, angles: Floats) -> Floats:
        turns = multiply(swings, joint_rotation(angles[:2], angles[2]))
        return np.where(body.is_unlimited[:, None], angles_of(body, turns), angles)
