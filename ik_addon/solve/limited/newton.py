"""Newton's method for targets that cannot be reached: it comes as near as possible, the same way every time."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from ..maths.numbers import ONE, turn_of
from ..maths.vectors import Number, Quaternion, dot, inverse, multiply, rotate
from .descent import State, longest
from .goals import System
from .newton_step import Anchor, away_from, newton_step, twists_of
from .skeleton import Angles, Bone, Nine, Skeleton, inside, is_unlimited, nearest_angles

SAME = 2e-4
"""Poses that miss by no more than this, in chain lengths, beyond the best one are as good."""
STILL = 1e-6
"""Radians: a shorter step that improves shows that there is nothing left to gain."""
ROUNDING = 1e-6
"""Radians: so does a step that does not improve and is shorter than this."""
UPHILL = 3
"""With an anchor and several objectives, number of consecutive steps that may be worse than the best one; then the
method goes back to it."""
LITTLE, HARDLY = 1e-6, 1e-4
"""Without an anchor, a step that gains less than this fraction of the cost shows that there is nothing left to gain;
the second is used if it is enough to know roughly how near such a pose comes."""
HOPELESS = 0.05
"""So does one that gains less than this fraction of what is missing to a pose that is known. With 0.4 poses end farther
from targets that limits keep out of reach."""
SHORT, ROUNDED = 1e-3, 1e-13
"""A step shorter than the first, in radians, may raise the cost by the second, as a fraction of the cost."""
LONGEST = 0.5
"""Maximum angle, in radians, that a joint turns in one step."""
DAMPING, SOFTEST, HARDEST = 1e-1, 1e-9, 1e3
EASED, SOFTENED = 0.1, 0.3
"""Factors of the damping after a better step: without an anchor, and with one, which makes the valley narrow."""
HARDENED, ALONE = 4.0, 8.0
"""Factors of the damping after a worse step: with several objectives, and with one."""


def polished(
    system: System, angles: Angles, most: int, still: float = STILL, anchor: Anchor | None = None, known: float = inf
) -> tuple[State, int]:
    """Return the pose that is a local minimum of the cost inside the limits, and the number of steps to it.

    Args:
        system: one body.
        angles: where to start, inside the limits.
        most: maximum number of steps.
        still: radians; a shorter step shows that little is left to gain, in a body that is not nearly there.
        anchor: the pose to stay near where nothing else decides.
        known: the error of another pose; the run ends if it is unlikely to come as near.
    """
    chart = Chart.at(system.skeleton, angles)
    if chart is None:
        return _polished(system, angles, most, still, anchor, known)
    if anchor is not None:
        anchor = anchor._replace(angles=chart.enter(anchor.angles))
    there, steps = _polished(system._replace(skeleton=chart.skeleton), chart.enter(angles), most, still, anchor, known)
    return State.of(system, chart.leave(there.angles)), steps


def _polished(
    system: System, angles: Angles, most: int, still: float, anchor: Anchor | None, known: float
) -> tuple[State, int]:
    run, done, is_ended = begun(State.of(system, angles), anchor, known), 0, False
    while not is_ended and done < most:
        run, is_ended = advanced(system, run, still)
        done += 1
    return run.best, done


class Run(NamedTuple):
    """A run of Newton's method."""

    now: State
    kept: list[Number]
    """The residual from which the next step takes the curvature: if there is an anchor, what it would be if the last
    step had gone straight. Off the valley that the method follows, this keeps the valley from looking like a ridge."""
    best: State
    best_kept: list[Number]
    least: Number
    """The cost of the best state."""
    damping: Number
    uphill: Number
    """Number of steps since the best state."""
    anchor: Anchor | None
    known: Number
    """See `polished`."""


def begun(state: State, anchor: Anchor | None, known: Number) -> Run:
    """Return a run of one body, or of many, that begins at a state."""
    least = _cost(state, anchor)
    # If places are settled already, the rest of the cost is small.
    damping = 0.0 * least + DAMPING * (1.0 if anchor is None else anchor.share)
    return Run(state, state.residual, state, state.residual, least, damping, 0.0 * least, anchor, known)


def advanced(system: System, run: Run, still: float) -> tuple[Run, Any]:
    """Return a run after one step, and whether it has come to its end; `still` see `polished`."""
    do, (now, kept, best, best_kept, least, damping, uphill, anchor, known) = system.skeleton.do, run
    move, fall = newton_step(system, now, kept, damping, anchor)
    size = longest(do, move)
    share = do.least(1.0, LONGEST / do.most(size, 1e-30))
    half = 0.5 * share
    tried = [
        inside(do, joint, x * half + old_x, z * half + old_z, twist * share + old)
        for joint, (x, z, twist), (old_x, old_z, old) in zip(system.skeleton.joints, move, now.angles, strict=True)
    ]
    there = State.of(system, tried)
    cost, there_kept = _cost(there, anchor), there.residual
    is_alone = len(system.objectives) == 1
    if anchor is not None and not is_alone:
        gone = list(map(away_from, tried, now.angles))
        there_kept = system.left(now.pose, now.residual, twists_of(system.skeleton, now.pose, gone))
    # Rounding may hide the gain of a short step, so accept it.
    better = cost < least + do.where(size < SHORT, ROUNDED * least, 0.0)
    gain = least - cost
    little = better & (gain < (LITTLE if still == STILL else HARDLY) * least) & (least > SAME**2)
    # An anchor makes the valley narrow and curved: the next step regains what it costs to leave it.
    # ">" between booleans: the first and not the second.
    going = ((uphill < (0 if anchor is None or is_alone else UPHILL)) & (size < LONGEST)) > better
    least = do.where(better, cost, least)
    best, best_kept = do.choose(better, (there, there_kept), (best, best_kept))
    now, kept = do.choose(going, (there, there_kept), (best, best_kept))
    uphill = do.where(going, uphill + 1.0, 0.0)
    # Too long a step is scaled down; it mostly goes where the cost hardly changes.
    softened = do.where(size > LONGEST, 1.0, EASED if anchor is None else SOFTENED)
    if is_alone:
        # A step that gains less than predicted went too far (H. Nielsen, "Damping parameter in Marquardt's method",
        # IMM-REP-1999-05, Technical University of Denmark). Several objectives settle better without.
        foretold = share * (fall - half * (fall - damping * sum(map(dot, move, move))))
        off = do.most(gain / do.most(foretold, 1e-30) - 1.0, -1.0)
        softened = do.least(do.most(1.0 - off * off * off, 0.1), 1.0)
    grown = do.where(better, softened, do.where(going, 1.0, ALONE if is_alone else HARDENED))
    damping = do.least(do.most(damping * grown, SOFTEST), HARDEST)
    short = do.where(better, do.where(least > SAME**2, still, STILL), do.where(going, 0.0, ROUNDING))
    ended = (size < short) | (damping >= HARDEST)
    if anchor is None:
        ended = ended | little | (better & (gain < HOPELESS * (least - known * known)))
    return Run(now, kept, best, best_kept, least, damping, uphill, anchor, known), ended


def _cost(state: State, anchor: Anchor | None) -> Number:
    cost = state.error * state.error
    if anchor is not None:
        cost = cost + anchor.share * sum(dot(way, way) for way in map(away_from, state.angles, anchor.angles))
    return cost


@dataclass(frozen=True)
class Chart:
    """A body whose joints without limits are measured from another pose, so that they stay clear of half a turn.

    Near half a turn the coordinates of a swing say least about where a bone points, and steps get short.
    """

    skeleton: Skeleton
    swings: dict[int, Quaternion]
    """Swings of joints in the original body at which they are at rest in this one."""

    @classmethod
    def at(cls, skeleton: Skeleton, angles: Angles) -> Chart | None:
        """Measure joints without limits from where they are swung; return None if all have limits."""
        swings, bones = {}, list(skeleton.bones)
        for i, (joint, (x, z, _)) in enumerate(zip(skeleton.joints, angles, strict=True)):
            if is_unlimited(joint):
                swings[i] = turn = turn_of(ONE, (x, z, 0.0))
                bones[i] = Bone(_turned(bones[i].rest, turn), bones[i].head)
        return cls(skeleton._replace(bones=bones), swings) if swings else None

    def enter(self, angles: Angles) -> Angles:
        """Convert angles of the original body to angles of this one."""
        return self._turned({joint: inverse(swing) for joint, swing in self.swings.items()}, angles)

    def leave(self, angles: Angles) -> Angles:
        """Convert angles of this body to angles of the original one."""
        return self._turned(self.swings, angles)

    def _turned(self, swings: dict[int, Quaternion], angles: Angles) -> Angles:
        found = list(angles)
        for i, swing in swings.items():
            found[i] = nearest_angles(ONE, self.skeleton.joints[i], multiply(swing, turn_of(ONE, angles[i])))
        return found


def _turned(matrix: Nine, turn: Quaternion) -> Nine:
    columns = [rotate(turn, axis) for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    rows = matrix[:3], matrix[3:6], matrix[6:]
    return tuple(dot(row, column) for row in rows for column in columns)
