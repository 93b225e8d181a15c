"""The pull on dragged ends: a force towards their targets, of limited strength."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..maths.vectors import Vector
from ..problem import Bools, Floats

STRENGTH = 100.0
"""Maximum force on a dragged end. With a lever arm as long as the body, it turns a joint by this many radians."""


class Pull(NamedTuple):
    """How e ends are held during a pass."""

    yields: Floats
    """(e,) how far each end gives way to a unit force."""
    thrusts: dict[int, Vector]
    """Directions in which ends are pulled with full strength, however far they move along them."""


def pull_of(gaps: Floats, forces: Floats, dragged: Bools, yields: Floats, *, near: bool) -> Pull:
    """Return how ends are held, from their gaps and the forces of the last pass.

    Far from the end of a search, a dragged end gives way by its whole gap under the maximum force: it is sure to come
    nearer, but ever more slowly. Near the end of the search it either reaches its target and does not give way, or is
    pulled with full strength; the last force and the gap together decide which.

    Args:
        gaps: (3, e) from where the ends are to where they should be.
        forces: (3, e) that held the ends in the last pass.
        dragged: (e,) which ends are dragged.
        yields: (e,) how far ends give way to a unit force when they are not pulled.
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
