"""Distribute an even bend unevenly: by the bones' stiffness, and led from the root or from the tip.

An even bend turns each joint by some angle. Here each joint takes a share of it: its turn about each of its bone's axes
is multiplied by the joint's mobility about that axis, then all turns by the factor that restores their sum. The one
number left to find is the distance at which to evaluate the even bend. Equal shares give the even bend itself, and
nearly equal shares nearly that.

Towards the ends of the reach the shares become equal: no chain is straight while its stiff joints are bent, and none
gets to its root by its loose joints alone.

Written once for one chain in plain floats and for many in arrays, see `numbers`. Chains start at the origin; bones are
unit directions, one vector for each, and lengths, in chain lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from math import pi

import numpy as np

from ..maths.numbers import Number, Numbers
from ..maths.turns import Matrix, about, rotate
from ..maths.vectors import Vector, cross, dot, either, minus, plus, size_of, times
from ..problem import Floats
from .axes import Axes, chain_axes, joints_of
from .even_bend import first_guess

STEPS = 12
"""Maximum number of steps of the search for that distance."""
PRECISE = 1e-13
"""The difference in distance that is not worth another step."""
LATE = 8
"""The power with which shares become equal on the way to the root: hardly at all halfway."""
FARTHEST = 0.9
"""Where the secant fails, the fraction of the way to the end of the interval that a step goes instead."""
FLATTEST = 1e-3
"""The smallest slope of the tip's distance that the secant assumes."""
MISSED = 1e-9
"""The difference in distance above which the shares alone are not enough."""
ALL: Vector = (1.0, 1.0, 1.0)
"""The mobility of joints that turn as readily as others."""


def mobility_of(
    do: Numbers, lengths: Sequence[Number], carried: Sequence[Number], stiffness: Floats | None, lead: float
) -> list[Vector]:
    """Return the mobility of each joint about its bone's axes.

    Args:
        do: for one chain or for many.
        lengths: of the bones.
        carried: whether they count as bones without length.
        stiffness: (n, 3) from 0 to less than 1 about X, Y and Z; None: 0.
        lead: from -1 (the joints next to the root turn most) to 1 (those next to the tip do).
    """
    stiff = np.zeros((len(lengths), 3)) if stiffness is None else np.asarray(stiffness, dtype=np.float64)
    head, heads = 0.0 * lengths[0], []
    begin = end = head - 1.0
    for length, skipped in zip(lengths, carried, strict=True):
        heads.append(head)
        begin, end = do.where((begin < 0.0) > skipped, head + length, begin), do.where(skipped, end, head)
        head = head + length
    # From 0 at the first joint that bends to 1 at the last; a single one has none to share with.
    way, found = end - begin, []
    for head, held in zip(heads, stiff.tolist(), strict=True):
        place = do.least(do.most((head - begin) / do.where(way > 0.0, way, 1.0), 0.0), 1.0)
        share = 1.0 + lead * (2.0 * do.where(way > 0.0, place, 0.5) - 1.0)
        found.append(times(minus(ALL, held), share))
    return found


def shared(vector: Vector, frame: Matrix, mobility: Vector) -> Vector:
    """Return a rotation vector scaled by the mobility about the axes of a bone."""
    (a, b, c), (d, e, f), (g, h, i) = frame
    (x, y, z), (p, q, r) = vector, mobility
    x, y, z = p * (a * x + d * y + g * z), q * (b * x + e * y + h * z), r * (c * x + f * y + i * z)
    return a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z


def shared_guess(
    do: Numbers,
    directions: Sequence[Vector],
    lengths: Sequence[Number],
    carried: Sequence[Number],
    own: Axes,
    distance: Number,
    frames: Sequence[Matrix],
    mobility: Sequence[Vector],
) -> list[Vector]:
    """Return directions with the tip at a distance from the root, the turns shared out by mobility.

    Args:
        do: for one chain or for many.
        directions: unit directions of the bones in the FK pose.
        lengths: their lengths.
        carried: whether they count as bones without length, which follow the bone before them.
        own: the chain's axes.
        distance: wanted distance from root to tip.
        frames: FK orientation of the bones.
        mobility: see `mobility_of`.
    """
    whole = sum(lengths)
    parts, wanted = [length / whole for length in lengths], distance / whole

    def even(asked: Number) -> list[Vector]:
        return first_guess(do, directions, parts, own, own, asked)

    def reach_of(found: Sequence[Vector]) -> Number:
        return size_of(do, joints_of(found, parts)[-1])

    # Where no even bend is at the distance, later passes go on from the shares of the nearest one.
    bendable = abs(reach_of(even(wanted)) - wanted) <= MISSED
    chord, inner = reach_of(directions), do.most(2.0 * reduce(do.most, parts) - 1.0, 0.0)

    def posed(asked: Number) -> tuple[list[Vector], Number]:
        """Return the directions for an even bend at distance `asked`, and by how much their tip is too far away."""
        turns = _led(do, _turns(do, directions, even(asked), own.normal), carried)
        longer = do.least(do.most((asked - chord) / do.most(1.0 - chord, 1e-12), 0.0), 1.0)
        nearer = do.least(do.most((chord - asked) / do.most(chord - inner, 1e-12), 0.0), 1.0)
        equal = longer * longer + nearer**LATE
        found = _shared(do, directions, turns, frames, mobility, equal)
        return found, reach_of(found) - wanted

    low, high = inner, 1.0 + 0.0 * wanted
    asked = do.least(do.most(wanted, low), high)
    found, off = posed(asked)
    slope = 1.0 + 0.0 * off
    for _ in range(STEPS):
        left = bendable & (abs(off) > PRECISE)
        if not do.any(left):
            break
        low, high = do.where(off < 0.0, asked, low), do.where(off < 0.0, high, asked)
        # The secant; where it leaves the interval with the solution, most of the way to that end.
        guessed = asked - off / slope
        end = do.where(off < 0.0, high, low)
        guessed = do.where((guessed > low) & (guessed < high), guessed, asked + FARTHEST * (end - asked))
        pose, gap = posed(guessed)
        step = guessed - asked
        rise = do.where(step == 0.0, slope, (gap - off) / do.where(step == 0.0, 1.0, step))
        slope = do.where(left, do.most(rise, FLATTEST), slope)
        found, asked, off = do.choose(left, (pose, guessed, gap), (found, asked, off))
    missed = bendable & (abs(off) > MISSED)
    if do.any(missed):
        now = chain_axes(do, found, parts, frames[0])
        found = do.choose(missed, first_guess(do, found, parts, now, now, wanted), found)
    return found


def _turns(do: Numbers, some: Sequence[Vector], others: Sequence[Vector], normal: Vector) -> list[Vector]:
    """Return the rotation vectors of the smallest rotations from unit directions to others."""
    found = []
    for one, other in zip(some, others, strict=True):
        axis, cosine = cross(one, other), dot(one, other)
        sine = size_of(do, axis)
        # For opposite directions any axis will do, as long as rounding does not change it.
        clear = sine > 1e-12
        turn = times(axis, do.where(clear, do.arctan2(sine, cosine) / do.where(clear, sine, 1.0), 1.0))
        found.append(either(do, (cosine < 0.0) > clear, times(normal, pi), turn))
    return found


def _led(do: Numbers, turns: list[Vector], carried: Sequence[Number]) -> list[Vector]:
    """Return the turns with those of bones without length replaced by that of the bone before them, or of the first."""
    last = turns[-1]
    for turn, skipped in zip(turns[::-1], carried[::-1], strict=True):
        last = either(do, skipped, last, turn)
    found = []
    for turn, skipped in zip(turns, carried, strict=True):
        last = either(do, skipped, last, turn)
        found.append(last)
    return found


def _shared(
    do: Numbers,
    rest: Sequence[Vector],
    turns: Sequence[Vector],
    frames: Sequence[Matrix],
    mobility: Sequence[Vector],
    equal: Number,
) -> list[Vector]:
    """Return the rest turned by each joint's share of the rotation vectors `turns`; where `equal` is 1, shares are."""
    steps = list(map(minus, turns[1:], turns))
    gives = [plus(give, times(minus(ALL, give), equal)) for give in mobility[1:]]
    shares = list(map(shared, steps, frames[1:], gives))
    before, after = (sum((size_of(do, each) for each in some), start=0.0 * equal) for some in (steps, shares))
    factor = do.where(after > 0.0, before / do.where(after > 0.0, after, 1.0), 1.0)
    vectors = accumulate([turns[0], *(times(share, factor) for share in shares)], plus)
    return [rotate(about(do, vector), direction) for vector, direction in zip(vectors, rest, strict=True)]
