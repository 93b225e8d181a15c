"""Chains of two bones: the triangle of root, middle joint and tip."""

from __future__ import annotations

import numpy as np

from .problem import Floats
from .rotations import unit


def triangle(first: Floats, second: Floats, distance: Floats, line: Floats, bend: Floats) -> tuple[Floats, Floats]:
    """Return the directions (3, B) of the two bones, by the law of cosines.

    Args:
        first: (B,) length of the bone at the root.
        second: (B,) length of the bone at the tip.
        distance: (B,) from root to tip, between the difference and the sum of the lengths.
        line: (3, B) unit vector from root to tip.
        bend: (3, B) unit vector perpendicular to `line`, to whose side the middle joint goes.
    """
    twice = 2.0 * np.maximum(distance, 1e-200)
    difference = first - second
    # Products of differences, as Heron's formula in Kahan's form: exact also where the triangle is nearly flat.
    along = distance / 2.0 + difference * ((first + second) / twice)
    before = np.maximum(distance - difference, 0.0) * (np.maximum(first + second - distance, 0.0) / twice)
    after = np.maximum(distance + difference, 0.0) * ((first + second + distance) / twice)
    # At distance 0 two equal bones stand on the bend direction.
    folded = distance < 1e-15
    along = np.where(folded, 0.0, along)
    across = np.where(folded, first, np.sqrt(before * after))
    middle = first * unit(along * line + across * bend)
    return unit(middle), unit(distance * line - middle)
