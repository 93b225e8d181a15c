"""What is dragged is pulled to its target by a force that has a greatest strength."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..maths.vectors import Vector
from ..problem import Bools, Floats

STRENGTH = 100.0
"""Greatest force of what is dragged: with a lever arm as long as the body it turns a joint by as many radians."""


class Pull(NamedTuple):
    """What holds ends in a pass."""

    yields: Floats
    """(e,) by how much they give way to a unit force."""
    thrusts: dict[int, Vector]
    """Directions of ends that are pulled with all strength, wherever they go along these."""


def pull_of(gaps: Floats, forces: Floats, dragged: Bools, yields: Floats, *, near: bool) -> Pull:
    """Return what holds ends (3, e) that are off by gaps, and were held by forces.

    Far from the end of a search, what is dragged gives way by its gap, for the greatest force: it surely comes nearer,
    but ever slower. Near the end it either reaches its target, and does not give way, or is pulled with all strength:
    which of them, the last force and the gap tell together.

    Args:
        gaps: how far they are from where they should be.
        forces: that held them in the last pass.
        dragged: (e,) which of them are dragged.
        yields: (e,) by how much they give way of themselves.
        near: whether the search is near its end.
    """
    found, thrusts = yields.copy(), {}
    for end in np.flatnonzero(dragged).tolist():
        (gx, gy, gz), (fx, fy, fz) = gaps[:, end].tolist(), forces[:, end].tolist()
        if not near:
            found[end] += sqrt(gx * gx + gy * gy + gz * gz) / STRENGTH
            continue
        x, y, z = fx + STRENGTH * gx, fy + STRENGTH * gy, fz + STRENGTH * gz
        size = sqrt(x * x + y * y + z * z)
        if size > STRENGTH:
            thrusts[end] = x / size, y / size, z / size
            found[end] += (size / STRENGTH - 1.0) / STRENGTH
    return Pull(found, thrusts)
