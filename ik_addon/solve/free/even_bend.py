"""Bend chains of any number of bones like a bow: turn them to the target as a whole, then bend them by one number.

A chain whose tip is at the right distance from its root only needs to be turned to the target. The first guess is an
arc pulled along its line, which already solves most chains; Newton's method on the distance finishes the others. Where
its first pass does not, one pass of FABRIK loosens the shape, see `fabrik`.

Written once for one chain in plain floats and for many in arrays, see `numbers`. Chains start at the origin; bones
are unit directions, one vector for each, and lengths, in chain lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..maths.numbers import ONE, Numbers, between, either, member, size_of, unit_of
from ..maths.vectors import Number, Vector, cross, dot, plus, reject, times, turned
from ..problem import Floats
from .arc import SLACK, bent, bent_one
from .axes import Axes, tip_of
from .fabrik import FINEST, pass_once
from .two_bone import triangle

REACHING = 1
"""The pass that is done by FABRIK; the one before it and those after it are Newton's."""
PATIENCE = 24
"""Passes after which a chain is laid out by construction: bones folded flat hardly move each other."""
FEW = 8
"""Up to this many of many chains make their passes one by one."""
NO_CHORD = 1e-7
"""A tip nearer to the root than this fraction of the chain is not turned to its line: rounding would say from where."""


def first_guess(
    do: Numbers,
    directions: Sequence[Vector],
    lengths: Sequence[Number],
    own: Axes,
    axes: Axes,
    distance: Number,
    *,
    bow: bool = True,
) -> list[Vector]:
    """Return directions that bring the tip to about the wanted distance and keep the character of the pose.

    A chain that must get shorter is bent about its normal like an arc; one that must get longer is pulled straight. At
    the current distance nothing changes.

    Args:
        do: for one chain or for many.
        directions: unit directions of the bones.
        lengths: their lengths.
        own: the axes that the chain has.
        axes: the axes that it should have.
        distance: wanted distance from root to tip.
        bow: False: a chain that must get shorter is pushed along its line, which bends most where it is bent.
    """
    if do is ONE:
        guess = bent_one(directions, lengths, own, axes, distance, bow=bow)
    else:
        sizes: Floats = np.array(lengths)
        guess = apart(bent(together(directions), sizes, np.array(own), np.array(axes), distance, bow=bow))
    return flattened(do, guess, lengths, axes.line, distance)


def flattened(
    do: Numbers, directions: Sequence[Vector], lengths: Sequence[Number], line: Vector, distance: Number
) -> list[Vector]:
    """Return the directions, with chains at the ends of their reach laid along the line.

    Those need no search. Folded flat, the longest bone points towards the target and all others point back.

    Args:
        do: for one chain or for many.
        directions: unit directions of the bones.
        lengths: their lengths.
        line: from root to target.
        distance: between them.
    """
    whole, longest = sum(lengths), reduce(do.most, lengths)
    straight = distance / whole >= 1.0 - SLACK
    flat = straight | ((2.0 * longest > whole) & (2.0 * longest - whole >= distance - SLACK))
    if not do.any(flat):
        return list(directions)
    ways = (times(line, do.where(straight | (length == longest), 1.0, -1.0)) for length in lengths)
    return [either(do, flat, way, direction) for way, direction in zip(ways, directions, strict=True)]


def apart(directions: Floats) -> list[Vector]:
    """Return directions (3, n, B) as a list of vectors, one for each bone."""
    return [(x, y, z) for x, y, z in directions.transpose(1, 0, 2)]


def together(directions: Sequence[Sequence[Any]]) -> Floats:
    """Return a list of vectors, one for each bone, as directions (3, n, B): the inverse of `apart`."""
    return np.ascontiguousarray(np.array(directions).swapaxes(0, 1))


def solve_directions(
    do: Numbers,
    start: Sequence[Vector],
    lengths: Sequence[Number],
    axes: Axes,
    distance: Number,
    tolerance: Number,
    iterations: int,
    begun: int = 0,
) -> tuple[list[Vector], Number]:
    """Return bone directions of a chain that ends at a distance along its line, and the passes used.

    The FABRIK pass starts from a chain turned to the target, so that doing it or stopping before it makes no more
    difference than the tolerance: the result moves smoothly with the target.

    Args:
        do: for one chain or for many.
        start: unit directions to start from.
        lengths: bone lengths.
        axes: axes that the chain should have; `line` points at the target.
        distance: from root to target, within reach.
        tolerance: distance from tip to target that is near enough.
        iterations: maximum number of passes.
        begun: passes already spent.
    """
    tolerance = do.most(tolerance, FINEST * sum(lengths))
    found, used = list(start), begun + 0 * distance
    left = abs(distance - size_of(do, tip_of(found, lengths))) > tolerance
    if do.any(left) and begun < iterations:
        given = found, list(lengths), axes, distance, tolerance, iterations, begun
        if np.count_nonzero(left) > FEW:
            found, used = do.redone(_passes, left, (do, *given), (found, used))
        elif do is ONE:
            found, used = _passes(do, *given)
        else:
            every = together(found)
            for i in np.flatnonzero(left).tolist():
                own, used[i] = _passes(ONE, *member(given, i))
                every[..., i] = np.array(own).T
            found = apart(every)
    return _turned_to_line(do, found, lengths, axes), used


def _passes(
    do: Numbers,
    directions: list[Vector],
    lengths: list[Number],
    axes: Axes,
    distance: Number,
    tolerance: Number,
    iterations: int,
    begun: int,
) -> tuple[list[Vector], Number]:
    """Return the directions after the passes of `solve_directions`, and their number."""
    used, step, tip = begun + 0 * distance, 1.0 + 0 * distance, tip_of(directions, lengths)
    for done in range(begun, iterations):
        left = abs(distance - size_of(do, tip)) > tolerance
        if not do.any(left):
            break
        if done == REACHING:
            start = _turned_to_line(do, directions, lengths, axes)
            found, end = pass_once(do, start, lengths, times(axes.line, distance))
        elif done < PATIENCE:
            found, end, step = _pulled(do, directions, lengths, tip, distance, step)
        else:
            found = _constructed(do, lengths, axes, distance)
            end = tip_of(found, lengths)
        directions, tip = do.choose(left, (found, end), (directions, tip))
        used = used + left
    return directions, used


def _turned_to_line(do: Numbers, directions: Sequence[Vector], lengths: Sequence[Number], axes: Axes) -> list[Vector]:
    """Return the directions of a chain turned as a whole to have its tip on its line."""
    end = tip_of(directions, lengths)
    tip = unit_of(do, end)
    turn = between(do, tip, axes.line, unit_of(do, reject(axes.normal, tip)))
    clear = size_of(do, end) > NO_CHORD
    found: list[Vector] = do.choose(clear, turned(turn, directions), list(directions))
    return found


def _pulled(
    do: Numbers, directions: list[Vector], lengths: Sequence[Number], tip: Vector, distance: Number, step: Number
) -> tuple[list[Vector], Vector, Number]:
    """Pull all bones alike along the line from root to tip: Newton's method on the distance between them.

    A bone counts by its length, so that it moves as its two halves would, and this is the least turning that
    changes the distance. The tip also moves sideways, which matters near the root: the pull is chosen so that the
    tip, moving straight, meets the sphere of the target.

    Returns:
        The directions, the tip, and the share of the next step to take.
    """
    line = unit_of(do, tip)
    give = [reject(line, direction) for direction in directions]
    speed = tip_of(give, lengths)
    along, square, shortfall = dot(tip, speed), dot(speed, speed), distance * distance - dot(tip, tip)
    pull = shortfall / do.most(along + do.sqrt(do.most(along * along + square * shortfall, 0.0)), 1e-30)
    size = step * do.least(do.most(pull, -1.0), 1.0)
    tried = [unit_of(do, plus(direction, times(way, size))) for direction, way in zip(directions, give, strict=True)]
    end = tip_of(tried, lengths)
    better = abs(distance - size_of(do, end)) < abs(distance - size_of(do, tip))
    tried, end = do.choose(better, (tried, end), (directions, tip))
    return tried, end, do.where(better, do.least(2.0 * step, 1.0), step / 2.0)


def _constructed(do: Numbers, lengths: Sequence[Number], axes: Axes, distance: Number) -> list[Vector]:
    """Lay a chain out in its plane as at most three straight pieces, exactly.

    The middle piece is the bone at the middle of the chain. With the line to the target the pieces make a
    quadrilateral; of its possible diagonals, the mean of the shortest and the longest is taken.
    """
    whole = sum(lengths)
    end = before = own = 0.0 * whole
    places = []
    for length in lengths:
        begin, end = end, end + length
        place = 1 * (2.0 * begin >= whole) - (2.0 * end < whole)
        before, own = do.where(place == 0, begin, before), do.where(place == 0, length, own)
        places.append(place)
    after = whole - before - own
    shortest = do.most(abs(own - after), abs(before - distance))
    diagonal = (shortest + do.least(own + after, before + distance)) / 2.0
    first, rest = triangle(do, before, diagonal, distance, axes.line, axes.bend)
    second, third = triangle(do, own, after, diagonal, rest, cross(rest, cross(axes.line, axes.bend)))
    return [either(do, place < 0, first, either(do, place == 0, second, third)) for place in places]
