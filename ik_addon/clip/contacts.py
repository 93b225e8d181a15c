"""Where a point of a foot or hand rests: found from its path, by speed and height with hysteresis.

A contact begins and ends at a fraction of the point's own top speed, so a clip that plays too slowly, as recordings of
120 frames a second often do, has the same contacts. Heights are compared with that of the rest itself: floors of
recordings tilt, and stairs have many heights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..solve.maths.products import lengths_of
from ..solve.problem import Bools, Floats
from .filling import runs, smoothed, window

CALM = 0.5
"""Noise makes a point at rest no faster than this fraction of what is slow; otherwise its path is smoothed."""
WIDEST = 0.05
"""It is smoothed over no more than so many seconds before and after a frame."""
BEND_OF_NOISE, STEP_OF_NOISE = 2.7, 1.54
"""Of noise whose deviation along each axis is 1: the lower quartile of its second differences, and how long a
difference is in the median for each unit of its deviation."""
SPIKE = 2
"""So many neighbours on each side decide the top speed, so that a single jump of a recording doesn't."""


@dataclass(frozen=True)
class Criteria:
    """What counts as a contact. Heights and speeds are in lengths of the limb."""

    slow: float = 0.13
    """A contact begins where the point is slower than this fraction of its top speed,"""
    fast: float = 0.24
    """and ends where it is faster than this."""
    still: float = 0.03
    """Slower than this, per second, counts as slow however little the point moves in the clip."""
    high: float = 0.015
    """A contact also ends where the point is this much higher than it rests."""
    low: float = 0.015
    """It begins where the point is no higher than this above where it rests."""
    lift: float = 0.01
    """A point that rests higher than before or afterwards came from above and leaves upwards, by at least this."""
    shortest: float = 0.06
    """Seconds."""


HEEL = Criteria()
"""A heel hits the ground, then rests, and rises slowly."""
TOE = Criteria(slow=0.045, high=0.03, low=0.0055)
"""The ball of a foot comes down slowly, and rises a little while the heel does, before it leaves the ground."""


@dataclass(frozen=True)
class Path:
    """How a point of a limb moves."""

    points: Floats
    """(F, 3), one for each frame."""
    up: Floats
    """(3,) unit vector."""
    length: float
    """Of the limb."""
    rate: float
    """Frames per second."""

    @property
    def heights(self) -> Floats:
        """(F,) in lengths of the limb."""
        return np.asarray((self.points * self.up).sum(axis=1) / self.length)

    @property
    def speeds(self) -> Floats:
        """(F,) in lengths of the limb per second: from the frame before or to the next one, whichever is slower."""
        if len(self.points) < 2:
            return np.zeros(len(self.points))
        steps = _medians(lengths_of(np.diff(self.points, axis=0)) * (self.rate / self.length), 1, "edge")
        return np.asarray(np.minimum(np.append(steps[0], steps), np.append(steps, steps[-1])))


def find_contacts(path: Path, criteria: Criteria = HEEL) -> Bools:
    """On which (F,) frames a point rests."""
    top = _top(path)
    path = _calmed(path, CALM * max(criteria.slow * top, criteria.still))
    speeds, heights = path.speeds, path.heights
    slow, fast = (speeds <= max(part * top, criteria.still) for part in (criteria.slow, criteria.fast))
    found = []
    for start, end in runs(fast):
        rests = slow[start:end]
        if not rests.any():
            continue
        stillest = speeds[start:end] <= np.median(speeds[start:end])
        level = float(np.median(heights[start:end][stillest]))
        for first, last in runs(heights[start:end] <= level + criteria.high):
            down = rests & (heights[start:end] <= level + criteria.low)
            begun = np.flatnonzero((down if down[first:last].any() else rests)[first:last])
            if len(begun):
                found.append((start + first + int(begun[0]), start + last))
    contacts = np.zeros(len(speeds), dtype=bool)
    least = criteria.shortest * path.rate
    for start, end in _standing(found, heights, criteria, least):
        contacts[start:end] = end - start >= least
    return contacts


def _standing(
    found: list[tuple[int, int]], heights: Floats, criteria: Criteria, least: float
) -> Iterator[tuple[int, int]]:
    """Those of the rests that are on something: a foot that is held up rests as well, at the top of its way.

    What is shorter than `least` frames tells of no way: a clip may begin with a frame in the rest pose.
    """
    levels = [float(np.median(heights[start:end])) for start, end in found]
    for i, (start, end) in enumerate(found):
        before = found[i - 1][1] if i else 0
        after = found[i + 1][0] if i + 1 < len(found) else len(heights)
        ways = [way for way in (heights[before:start], heights[end:after]) if len(way) >= least]
        neighbours = levels[max(i - 1, 0) : i] + levels[i + 1 : i + 2]
        lowest = min([*neighbours, *(float(way.min()) for way in ways)], default=levels[i])
        is_raised = levels[i] > lowest + criteria.high
        if not is_raised or all(way.max() >= levels[i] + criteria.lift for way in ways):
            yield start, end


def _top(path: Path) -> float:
    """The top speed, in lengths of the limb per second."""
    return float(_medians(path.speeds, SPIKE, "reflect").max(initial=0.0))


def _calmed(path: Path, fastest: float) -> Path:
    """The path, smoothed just enough that noise makes a point at rest no faster than this.

    How noisy it is shows where it bends least: a quarter of its frames bend less by movement than by noise.
    """
    if len(path.points) < 5:
        return path
    bends = lengths_of(np.diff(path.points, 2, axis=0))
    noise = float(np.quantile(bends, 0.25)) / BEND_OF_NOISE * path.rate / path.length
    for reach in range(round(WIDEST * path.rate) + 1):
        weights = window(reach)
        if (
            noise * STEP_OF_NOISE * float(np.sqrt(np.square(np.diff(weights, prepend=0.0, append=0.0)).sum()))
            <= fastest
        ):
            break
    points = np.stack([smoothed(own, reach) for own in path.points.T], axis=1)
    return replace(path, points=points)


def _medians(values: Floats, reach: int, beyond: Literal["edge", "reflect"]) -> Floats:
    """Each value (F,) replaced with the median of those up to `reach` places away, and of what goes on beyond."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(values, reach, mode=beyond), 2 * reach + 1)
    return np.asarray(np.median(around, axis=1))
