"""Legs whose joints fold to alternate sides, like stifle and hock: each to its own side, all by one number.

At 0 a leg is straight, at 1 it is in its FK pose, and beyond 1 each joint folds on by its own share. Towards straight
all bends shrink alike. A bend is measured as the tangent of half its angle, so that no joint folds past itself. A joint
that FK bends to the wrong side counts as straight; its bend off the hinge stays while it folds. A joint without a share
is rigid: it keeps the bend of its FK pose.

The distance from root to tip is then a function of that number, called the place. Of the places with the right
distance, the first on the way from the FK pose is taken: found by a scan, then by secants between a place that is too
far and one that is too near.

Written once for one chain in plain floats and for many in arrays, see `numbers`. Chains start at the origin; bones are
unit directions and lengths, in chain lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from ..maths.numbers import Number, Numbers
from ..maths.turns import STILL, Quaternion, multiply, rotate
from ..maths.vectors import Vector, cross, dot, either, over, plus, reject, size_of, times
from .axes import joints_of

TIGHTEST = 20.0
"""The tangent of half the largest angle to which a joint folds: 174 degrees."""
FARTHEST = 1.999
"""Where the scan ends: every joint with a share is folded as far as it goes."""
PLACES = 4
"""Steps of the scan in each direction."""
STEPS = 60
"""Maximum number of secants; six to ten usually suffice."""
PRECISE = 1e-13
"""The difference in distance that is not worth another step."""
JUMP = 1e-6
"""A difference in distance that remains however near two places are."""
ALONG = 1e-3
"""A hinge with less than this across its bone counts as none."""


def folded(
    do: Numbers,
    directions: Sequence[Vector],
    lengths: Sequence[Number],
    carried: Sequence[Number],
    folds: Sequence[Vector],
    distance: Number,
) -> tuple[list[Vector], Number]:
    """Return directions with the tip at a distance from the root; the first one is as in the FK pose.

    Args:
        do: for one chain or for many.
        directions: unit directions of the bones in the FK pose.
        lengths: their lengths.
        carried: whether each bone has no length and follows the bone before it.
        folds: of the bones, see `Problem.folds`.
        distance: wanted distance from root to tip; if it cannot be had, the tip comes as near to it as the scan does.

    Returns:
        The directions, and whether FK bends all joints to their sides: such a chain keeps its FK pose if that reaches.
    """
    joints = joints_in(do, directions, carried, folds)

    def posed(place: Number) -> list[Vector]:
        turn, found = STILL, []
        for joint, direction in zip(joints, directions, strict=True):
            if do.any(joint.share > 0.0):
                turn = multiply(turn, joint.turn(do, place))
            found.append(rotate(turn, direction))
        return found

    place = place_of(do, lambda place: size_of(do, joints_of(posed(place), lengths)[-1]) - distance)
    return posed(place), reduce(and_, (joint.is_right for joint in joints))


@dataclass(frozen=True)
class Joint:
    """The joint of a bone: how FK bends it, and how it folds."""

    bend: Vector
    """Rotation in the FK pose: the axis times the tangent of half the angle."""
    hinge: Vector
    """Unit axis of the fold, across the bone above."""
    share: Number
    """0 where a joint is rigid."""
    along: Number
    """How far FK bends the joint about its hinge, at least 0."""
    aside: Vector
    """The rest of the FK bend, off the hinge."""
    is_right: Number
    """Whether FK bends the joint to its side."""

    def turn(self, do: Numbers, place: Number) -> Quaternion:
        """Return the rotation from the FK pose at a place, relative to the bone above: 0 straight, 1 FK."""
        shrunk = do.least(place, 1.0)
        more = do.most(place - 1.0, 0.0) / (2.0 - do.most(place, 1.0))
        angle = do.least(shrunk * self.along + more * self.share, TIGHTEST)
        bend = plus(times(self.hinge, angle), times(self.aside, shrunk))
        w, x, y, z = multiply((1.0, *bend), (1.0, *times(self.bend, -1.0)))
        size = do.sqrt(w * w + (x * x + y * y + z * z))
        turn: Quaternion = either(do, self.share > 0.0, (w / size, x / size, y / size, z / size), STILL)
        return turn


def joints_in(
    do: Numbers, directions: Sequence[Vector], carried: Sequence[Number], folds: Sequence[Vector]
) -> list[Joint]:
    """Split the FK pose of legs into joints."""
    joints = []
    before, begun = directions[0], carried[0] != carried[0]
    for direction, skipped, fold in zip(directions, carried, folds, strict=True):
        is_joint = begun & (skipped == False)  # noqa: E712 - of an array as of a single one
        bend = over(cross(before, direction), do.most(1.0 + dot(before, direction), 1e-12))
        size = size_of(do, bend)
        bend = times(bend, do.where(is_joint, TIGHTEST / do.most(size, TIGHTEST), 0.0))
        share = size_of(do, fold)
        hinge = reject(fold, before)
        across = size_of(do, hinge)
        usable = is_joint & (across > ALONG * share)
        hinge = times(hinge, do.where(usable, 1.0, 0.0) / do.most(across, 1e-200))
        along, share = dot(bend, hinge), do.where(usable, share, 0.0)
        aside = plus(bend, times(hinge, -along))
        joints.append(Joint(bend, hinge, share, do.most(along, 0.0), aside, along >= 0.0))
        before, begun = either(do, skipped, before, direction), begun | (skipped == False)  # noqa: E712
    return joints


def place_of(do: Numbers, gap_at: Callable[[Number], Number]) -> Number:
    """Return the first place, on the way from the FK pose, at which the tip is at its distance.

    Args:
        do: for one leg or for many.
        gap_at: function of a place: by how much the tip is too far away there.
    """
    first = gap_at(1.0)
    # With this sign, gaps are positive before the solution and negative past it.
    sign = do.where(first > 0.0, 1.0, -1.0)
    way = do.where(first > 0.0, FARTHEST - 1.0, -1.0)
    high, above = 1.0 + 0.0 * way, sign * first
    low, below = high, above
    for step in range(1, PLACES + 1):
        left = above > 0.0
        if not do.any(left):
            break
        place = 1.0 + step / PLACES * way
        gap = sign * gap_at(place)
        low, below = do.where(left, high, low), do.where(left, above, below)
        high, above = do.where(left, place, high), do.where(left, gap, above)
    # Where the scan does not pass the solution, its end is the answer.
    found, left = high, (above < -PRECISE) & (below > 0.0)
    for _ in range(STEPS):
        if not do.any(left):
            break
        # The Illinois method: a secant, with the end that stays counted by half.
        span = do.where(left, above - below, 1.0)
        found = do.where(left, high - above * (high - low) / span, found)
        gap = sign * gap_at(found)
        crosses = gap * above < 0.0
        low, below = do.where(crosses, high, low), do.where(crosses, above, below / 2.0)
        high, above = do.where(left, found, high), do.where(left, gap, above)
        left = left & (abs(gap) > PRECISE) & (abs(high - low) > 1e-16)
    # Within limits a joint may jump from one to another: rounding must not choose the side of the jump.
    jumps = (abs(above) > JUMP) & (above * below < 0.0)
    return do.where(jumps, do.where(abs(low - 1.0) < abs(high - 1.0), low, high), found)
