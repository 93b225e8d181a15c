"""A knee that is a hinge, and whose axis is not square to the upper bone, as on many rigs drawn by hand.

Such a knee also leads the lower bone to the side, always by the same angle. In a bent limb that hardly shows. In a
straight one nothing else is left of the bend, so that the direction in which the limb bends has turned by a quarter
about the upper bone, most of it close to the end of the reach. If that direction kept pointing to the pole, the limb
would roll by as much. So it points to the pole up to a certain roll, and from there on the upper bone rolls no further.
"""

from __future__ import annotations

from math import atan2, copysign, nan, radians
from typing import NamedTuple

import numpy as np

from ..maths.numbers import Vector, cross, dot, minus, norm, reject, times, unit
from ..maths.products import applied as all_applied
from ..problem import Floats
from .frames import Frame, applied, seen

ROLL = radians(20.0)
"""How far a limb rolls for the angle to the side, or more if it does so at rest; also how far a hinge may bend back."""
_STRAIGHT = 1e-4
"""Radians: a knee that is bent by less shows no side."""
_ALONG = 1e-6
"""A hinge with less than this across the upper bone does not bend the limb."""
_AXES = ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


class Hinge(NamedTuple):
    """A knee that swings about a single axis, and to one side."""

    axis: Vector
    """In the axes of the upper bone; a positive rotation about it bends the limb."""
    roll: float
    """How far the limb rolls at most, in radians, to keep its bend at the side of the pole."""

    @classmethod
    def of(cls, upper: Vector, rest: Frame, ranges: tuple[tuple[float, float], tuple[float, float]]) -> Hinge | None:
        """Return the hinge of a knee; None if it is no hinge, or bends to both sides.

        Args:
            upper: direction of the upper bone, in its own axes.
            rest: frame of the lower bone at rest, in the same axes.
            ranges: the least and greatest angle about X and about Z in radians; both zero where it is locked.
        """
        locked = [range_ == (0.0, 0.0) for range_ in ranges]
        if locked[0] == locked[1]:
            return None
        free, along = locked.index(False), unit(upper)
        above = seen(rest, along)
        straight = atan2(-above[0] if free else above[2], above[1])
        up, down = ranges[free][1] - straight, straight - ranges[free][0]
        if min(up, down) > ROLL:
            return None
        axis = applied(rest, times(_AXES[free], 1.0 if up >= down else -1.0))
        side = reject(rest[1], along)
        forward, aside = _parts(along, side, axis)
        return cls(axis, max(ROLL, atan2(abs(aside), abs(forward))) if norm(side) > _STRAIGHT else ROLL)

    def unfollowed(self, along: Vector, side: Vector) -> float:
        """Return the angle in radians about the upper bone by which the bend leaves the side of the pole.

        Args:
            along: unit direction of the upper bone.
            side: the direction in which the lower bone leaves it, perpendicular to it; of any length but zero.
        """
        forward, aside = _parts(along, side, self.axis)
        if abs(forward) + abs(aside) < _ALONG * norm(side):
            return 0.0
        # Where the knee bends backwards a little, the upper bone stays as well.
        return atan2(aside, forward) - copysign(min(atan2(abs(aside), abs(forward)), self.roll), aside)


def _parts(along: Vector, side: Vector, axis: Vector) -> tuple[float, float]:
    """Return how much of a side is in the direction in which a hinge bends, and how much beside it."""
    fold = cross(axis, along)
    return dot(side, fold), dot(side, cross(along, fold))


def unfollowed_by(joints: Floats, frames: Floats, hinge: Hinge) -> Floats:
    """Return the angles (B,) of `Hinge.unfollowed` for limbs in a pose; NaN for straight ones, which show no bend.

    Args:
        joints: (B, n+1, 3), root first.
        frames: (B, n, 3, 3) orientation of the bones.
        hinge: of all of them.
    """
    axes = all_applied(frames[:, 0], np.broadcast_to(hinge.axis, (len(frames), 3))).tolist()
    found = []
    for (root, knee, end), axis in zip(joints[:, :3].tolist(), axes, strict=True):
        along, lower = unit(minus(knee, root)), minus(end, knee)
        side = reject(lower, along)
        own = hinge._replace(axis=axis)
        found.append(own.unfollowed(along, side) if norm(side) > _STRAIGHT * norm(lower) else nan)
    return np.array(found)
