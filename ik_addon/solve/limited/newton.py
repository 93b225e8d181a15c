"""Newton's method for targets that cannot be reached: it comes as near as possible, the same way every time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..maths.calculus import Calculus, Row
from ..maths.cones import joint_rotation
from ..maths.crowd import Crowd
from ..maths.rotations import inverse, matrices, multiply
from ..maths.vectors import Number, dot, product
from ..problem import Floats, Ints
from .body import Body, angles_of, inside
from .descent import State
from .goals import System
from .newton_step import Anchor, Held, away_from, newton_step
from .restarts import SAME

STILL = 1e-6
"""Radians: a shorter step that improves shows that there is nothing left to gain."""
ROUNDING = 1e-6
"""Radians: so does a step that does not improve and is shorter than this."""
UPHILL = 3
"""With an anchor, number of consecutive steps that may be worse than the best one; then the method goes back to it."""
LITTLE, HARDLY = 1e-6, 1e-4
"""Without an anchor, a step that gains less than this fraction of the cost shows that there is nothing left to gain;
the second is used if it is enough to know roughly how near such a pose comes."""
SHORT, ROUNDED = 1e-3, 1e-13
"""A step shorter than the first, in radians, may raise the cost by the second, as a fraction of the cost."""
LONGEST = 0.5
"""Maximum angle, in radians, that a joint turns in one step."""
DAMPING, SOFTEST, HARDEST = 1e-1, 1e-9, 1e3
EASED, SOFTENED = 0.1, 0.3
"""Factors of the damping after a better step: without an anchor, and with one, which makes the valley narrow."""


def polish(
    system: System, angles: Row, members: int, iterations: int, still: float = STILL, anchor: Anchor | None = None
) -> tuple[Floats, Floats, Ints]:
    """Return joint angles that are a local minimum of the cost inside the limits.

    Args:
        system: B members, or one.
        angles: where to start, inside the limits.
        members: the number of members.
        iterations: maximum number of steps.
        still: radians; a shorter step shows that little is left to gain, in members that are not nearly there.
        anchor: the pose to stay near where nothing else decides.

    Returns:
        angles: (3, n, B) inside the limits.
        error: (B,) distance of the effectors from their targets: the root of the weighted sum of squares.
        steps: (B,) number of steps taken.
    """
    do = system.skeleton.do
    first = State.of(system, angles)
    # A copy, because members are later written into each of the two alone.
    now = best = Held(first, first.residual if anchor is None else [part + 0.0 for part in first.residual])
    least = _cost(do, first, anchor)
    # If places are settled already, the rest of the cost is small.
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
        # Rounding may hide the gain of a short step, so accept it.
        better = costs < least + do.where(size < SHORT, ROUNDED * least, 0.0)
        gain = least - costs
        little = better & (gain < (LITTLE if still == STILL else HARDLY) * least) & (least > SAME**2)
        least = do.where(better, costs, least)
        # An anchor makes the valley narrow and curved: the next step regains what it costs to leave it.
        # ">" between booleans: the first and not the second.
        going = ((uphill < (0.0 if anchor is None else UPHILL)) & (size < LONGEST)) > better
        now = do.choose(better | going, there, best)
        best = do.choose(going, best, now) if do.any(going) else now
        uphill = do.where(going, uphill + 1.0, 0.0)
        # Too long a step is scaled down; it mostly goes where the cost hardly changes.
        softened = do.where(size > LONGEST, 1.0, EASED if anchor is None else SOFTENED)
        if len(system.objectives) == 1:
            # A step that gains less than predicted went too far (H. Nielsen, "Damping parameter in Marquardt's
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

    Near half a turn the coordinates of a swing say least about where a bone points, and steps get short.
    """

    body: Body
    swings: Floats
    """(4, n, B) swings of the joints in the original bodies at which the joints of these are at rest."""
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
        """Convert angles (3, n, B) of the original bodies to angles of these."""
        return self._turned(self.body, inverse(self.swings), angles)

    def leave(self, angles: Floats) -> Floats:
        """Convert angles (3, n, B) of these bodies to angles of the original ones."""
        return self._turned(self.first, self.swings, angles)

    def _turned(self, body: Body, swings: Floats, angles: Floats) -> Floats:
        turns = multiply(swings, joint_rotation(angles[:2], angles[2]))
        return np.where(body.is_unlimited[:, None], angles_of(body, turns), angles)
