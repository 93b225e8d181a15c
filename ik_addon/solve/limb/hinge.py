"""A knee that is a hinge, and whose axis is not square to the upper bone, as on many rigs drawn by hand.

Such a knee also leads the lower bone to the side, always by the same angle. In a bent limb that hardly shows. In a
straight one nothing else is left of the bend, so that the direction in which the limb bends has turned by a quarter
about the upper bone, all within the last percent of the reach. If that direction kept pointing to the pole, the limb
would roll by as much. So it points to the pole up to `ROLL`, and from there on the upper bone rolls no further.
"""

from __future__ import annotations

from math import atan2, copysign, nan, radians

import numpy as np

from ..maths.vectors import Vector, cross, dot, minus, norm, reject, times, unit
from ..problem import Floats

ROLL = radians(20.0)
"""How far the limb rolls at most to compensate for the angle to the side; also how far a hinge may bend backwards."""
_STRAIGHT = 1e-4
"""Radians: a knee that is bent by less shows no side."""
_ALONG = 1e-6
"""A hinge with less than this across the upper bone does not bend the limb."""
_AXES = ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


def hinge_axis(above: Vector, ranges: tuple[tuple[float, float], tuple[float, float]]) -> Vector | None:
    """Return the axis of a knee about which a positive rotation bends the limb; None if it is no hinge.

    A knee that swings about both axes, or bends to both sides, is none.

    Args:
        above: direction of the upper bone, in the axes of the knee at rest.
        ranges: the least and greatest angle about X and about Z in radians; both zero where it is locked.
    """
    locked = [range_ == (0.0, 0.0) for range_ in ranges]
    if locked[0] == locked[1]:
        return None
    free = locked.index(False)
    straight = atan2(-above[0] if free else above[2], above[1])
    up, down = ranges[free][1] - straight, straight - ranges[free][0]
    return None if min(up, down) > ROLL else times(_AXES[free], 1.0 if up >= down else -1.0)


def unfollowed(along: Vector, side: Vector, hinge: Vector) -> float:
    """Return the angle in radians about the upper bone by which the bend leaves the side of the pole.

    Args:
        along: unit direction of the upper bone.
        side: the direction in which the lower bone leaves it, perpendicular to it; of any length but zero.
        hinge: the axis of the knee, see `hinge_axis`.
    """
    fold = cross(hinge, along)
    if dot(fold, fold) < _ALONG * _ALONG:
        return 0.0
    forward, aside = dot(side, fold), dot(side, cross(along, fold))
    # Where the knee bends backwards a little, the upper bone stays as well.
    return atan2(aside, forward) - copysign(min(atan2(abs(aside), abs(forward)), ROLL), aside)


def unfollowed_by(joints: Floats, frames: Floats, hinge: Floats) -> Floats:
    """Return that angle (B,) for limbs in a pose; NaN for those that are straight, and so show no bend.

    Args:
        joints: (B, n+1, 3), root first.
        frames: (B, n, 3, 3) orientation of the bones.
        hinge: (3,) axis of the knee in the axes of the root bone.
    """
    axes = (frames[:, 0] @ hinge).tolist()
    return np.array([_of_pose(*rows) for rows in zip(joints[:, :3].tolist(), axes, strict=True)])


def _of_pose(joints: list[Vector], hinge: Vector) -> float:
    root, knee, end = joints
    along, lower = unit(minus(knee, root)), minus(end, knee)
    side = reject(lower, along)
    return unfollowed(along, side, hinge) if norm(side) > _STRAIGHT * norm(lower) else nan
