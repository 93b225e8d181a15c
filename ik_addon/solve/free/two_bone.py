"""Chains of two bones: the triangle of root, middle joint and tip."""

from __future__ import annotations

from ..maths.numbers import Number, Numbers, Vector, minus, plus, times, unit_of


def triangle(
    do: Numbers, first: Number, second: Number, distance: Number, line: Vector, bend: Vector
) -> tuple[Vector, Vector]:
    """Return the directions of the two bones, by the law of cosines.

    Args:
        do: kernel for one chain or for many.
        first: length of the bone at the root.
        second: length of the bone at the tip.
        distance: from root to tip, between the difference and the sum of the lengths.
        line: unit vector from root to tip.
        bend: unit vector perpendicular to `line`, towards the side of the middle joint.
    """
    twice = 2.0 * do.most(distance, 1e-200)
    difference = first - second
    # Products of differences, like Heron's formula in Kahan's form: exact even where the triangle is nearly flat.
    along = distance / 2.0 + difference * ((first + second) / twice)
    before = do.most(distance - difference, 0.0) * (do.most(first + second - distance, 0.0) / twice)
    after = do.most(distance + difference, 0.0) * ((first + second + distance) / twice)
    # At distance 0, two equal bones lie along the bend direction.
    folded = distance < 1e-15
    along = do.where(folded, 0.0, along)
    across = do.where(folded, first, do.sqrt(before * after))
    middle = times(unit_of(do, plus(times(line, along), times(bend, across))), first)
    return unit_of(do, middle), unit_of(do, minus(times(line, distance), middle))
