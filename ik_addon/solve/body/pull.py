"""The pull on ends that are dragged, or pinned with limited strength: a force towards their places."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..maths.numbers import Vector
from ..problem import Floats


class Pull(NamedTuple):
    """How e ends are held during a pass."""

    yields: Floats
    """(e,) how far each end gives way to a unit force."""
    thrusts: dict[int, tuple[Vector, float]]
    """Directions in which ends are pulled with full strength, however far they move along them, and that strength."""


def pull_of(gaps: Floats, forces: Floats, strengths: Floats, yields: Floats, *, near: bool) -> Pull:
    """Return how ends are held, from their gaps and the forces of the last pass.

    Far from the end of a search, an end of limited strength gives way by its whole gap under the maximum force: it is
    sure to come nearer, but ever more slowly. Near the end of the search it either reaches its target and does not give
    way, or is pulled with full strength; the last force and the gap together decide which.

    Args:
        gaps: (3, e) from where the ends are to where they should be.
        forces: (3, e) that held the ends in the last pass.
        strengths: (e,) the largest force on each end; infinite for those that are held whatever it takes.
        yields: (e,) how far ends give way to a unit force when they are not pulled.
        near: whether the search is near its end.
    """
    found, thrusts = yields.copy(), {}
    for end in np.flatnonzero(np.isfinite(strengths)).tolist():
        strength = float(strengths[end])
        (gx, gy, gz), (fx, fy, fz) = gaps[:, end].tolist(), forces[:, end].tolist()
        if not near:
            found[end] += sqrt(gx * gx + gy * gy + gz * gz) / strength
            continue
        x, y, z = fx + strength * gx, fy + strength * gy, fz + strength * gz
        size = sqrt(x * x + y * y + z * z)
        if size > strength:
            thrusts[end] = (x / size, y / size, z / size), strength
            found[end] += (size / strength - 1.0) / strength
    return Pull(found, thrusts)
