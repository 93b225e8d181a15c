"""Joint limits: elliptical cones for the swing of a joint and an interval for its twist.

A joint rotation, measured from rest, is a twist about the bone's Y axis followed by the swing, the smallest rotation
that takes Y to its new direction. The swing's axis lies in the XZ plane; its components times the sine of half the
angle are the swing's coordinates, in which Blender's own IK also measures limits. They map all directions onto the
unit disc: rest in the middle, a rotation by 180 degrees on the rim. The four angles of a cone are the half-axes of an
ellipse per quadrant, after A. Aristidou and J. Lasenby, doi 10.1016/j.gmod.2011.05.003; in these coordinates every
angle up to 180 degrees is an ordinary point, and an axis without limit makes a strip.

Swings are (2, ...), about X and about Z; twists (...) are radians; quaternions (4, ...) have w first.
"""

from __future__ import annotations

from math import inf, isfinite, pi, sin
from typing import NamedTuple

import numpy as np

from ..problem import Bools, Floats
from . import numbers
from .numbers import MANY, Pair, ellipse_level
from .rotations import stacked

_UNLIMITED = 1e8
"""The half-axis of an ellipse for an axis without limit: the ellipse is a strip."""
RIM = 1.0 - 1e-7
"""The largest swing: just short of half a turn, where swing and twist cannot be told apart."""
_AT = 1e-6
"""A joint is at a limit if it is within about this fraction of it."""


class Cone(NamedTuple):
    """The allowed rotations of joints, as arrays that broadcast against theirs."""

    low: Floats
    """(2, ...) half-axes for negative rotations about X and Z; 0: locked, `_UNLIMITED`: free."""
    high: Floats
    """(2, ...) half-axes for positive rotations about X and Z."""
    twist_low: Floats
    """(...) smallest twist in radians, at most 0; -inf: free."""
    twist_high: Floats
    """(...) largest twist in radians, at least 0; inf: free."""

    @property
    def sides(self) -> tuple[Pair, Pair]:
        """The half-axes for negative and for positive rotations."""
        return (self.low[0], self.low[1]), (self.high[0], self.high[1])


class Range(NamedTuple):
    """The limits of one joint in plain floats; see `Cone`."""

    low: tuple[float, float]
    high: tuple[float, float]
    twist_low: float
    twist_high: float


def range_of(x_low: float, x_high: float, z_low: float, z_high: float, least: float, most: float) -> Range:
    """Return the limits of a joint, given by its angles about X and Z and its twists in radians; infinite: no limit."""
    left, right, down, up = (
        sin(min(abs(angle), pi) / 2.0) if isfinite(angle) else _UNLIMITED for angle in (x_low, x_high, z_low, z_high)
    )
    least, most = least if least > -pi else -inf, most if most < pi else inf
    # An interval with one open side has only one end on the circle: close it at half a turn.
    if isfinite(least) or isfinite(most):
        least, most = max(least, -pi), min(most, pi)
    return Range((left, down), (right, up), least, most)


def cone_of(angles: Floats, twist: Floats) -> Cone:
    """Return the cones of joints.

    Args:
        angles: (n, 4) minimum and maximum rotation about X, then about Z, in radians; infinite: no limit.
        twist: (n, 2) minimum and maximum twist.
    """
    rows = [range_of(*row) for row in np.concatenate([angles, twist], axis=1).tolist()]
    low, high = (np.array([row[side] for row in rows]).reshape(-1, 2).T for side in (0, 1))
    return Cone(low, high, np.array([row.twist_low for row in rows]), np.array([row.twist_high for row in rows]))


def swing_twist(q: Floats) -> tuple[Floats, Floats]:
    """Return the swings (2, ...) and the twists (...), from -pi to pi, of unit quaternions (4, ...)."""
    x, z, twist = numbers.swing_and_twist(MANY, (q[0], q[1], q[2], q[3]))
    return stacked(x, z), twist


def joint_rotation(swing: Floats, twist: Floats) -> Floats:
    """Return the unit quaternions (4, ...) of swings (2, ...), inside the unit disc, after twists (...)."""
    return stacked(*numbers.turn_of(MANY, (swing[0], swing[1], twist)))


def nearest_swing(swing: Floats, cone: Cone) -> Floats:
    """Return the points (2, ...) of the cones that are nearest to swings (2, ...), in the plane of the swings."""
    return stacked(*MANY.nearest_swing(swing[0], swing[1], *cone.sides))


def nearest_direction(swing: Floats, cone: Cone) -> Floats:
    """Return the points (2, ...) of the cones nearest in direction to swings (2, ...)."""
    return stacked(*numbers.nearest_direction(MANY, (swing[0], swing[1]), *cone.sides))


def nearest_twist(twist: Floats, cone: Cone) -> Floats:
    """Return the allowed twists (...) nearest on the circle to twists (...), from -pi to pi."""
    return np.asarray(numbers.nearest_twist(MANY, twist, cone.twist_low, cone.twist_high))


def clamp(q: Floats, cone: Cone) -> Floats:
    """Return the allowed joint rotations (4, ...) nearest to unit quaternions (4, ...), swing and twist each."""
    swing, twist = swing_twist(q)
    return joint_rotation(nearest_direction(swing, cone), nearest_twist(twist, cone))


def violation(q: Floats, cone: Cone) -> Floats:
    """Return how far (...) unit quaternions (4, ...) are outside their cones, in radians of swing or of twist."""
    swing, twist = swing_twist(q)
    near = nearest_direction(swing, cone)
    ways = (numbers.direction_of(MANY, x, z) for x, z in (swing, near))
    over = 2.0 * np.arcsin(np.minimum(numbers.size_of(MANY, numbers.minus(*ways)) / 2.0, 1.0))
    arc = twist - nearest_twist(twist, cone)
    return np.asarray(np.maximum(over, np.abs(arc - 2.0 * np.pi * np.round(arc / (2.0 * np.pi)))))


def at_limit(swing: Floats, twist: Floats, cone: Cone) -> Bools:
    """Return which swings (2, ...) or twists (...) are at a limit of their joint; locked axes do not count."""
    axes = np.where(swing < 0.0, cone.low, cone.high)
    room = cone.low + cone.high > 0.0
    swung = room.any(axis=0) & (
        ellipse_level(MANY, *np.where(room, swing, 0.0), *np.where(room, axes, 1.0)) > 1.0 - _AT
    )
    # Where rest itself is the limit, as in a knee that does not bend back, no ellipse shows it.
    at_rest = ((cone.low == 0.0) & (swing <= _AT)) | ((cone.high == 0.0) & (swing >= -_AT))
    swung |= (room & at_rest).any(axis=0)
    turned = (twist <= cone.twist_low + _AT) | (twist >= cone.twist_high - _AT)
    return np.asarray(swung | (turned & (cone.twist_high > cone.twist_low)))
