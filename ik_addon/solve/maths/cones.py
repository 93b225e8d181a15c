"""Joint limits: elliptical cones for the swing of a joint and an interval for its twist.

A joint rotation, measured from rest, is a twist about the bone's Y axis followed by the swing, the smallest rotation
that takes Y to its new direction. The swing's axis lies in the XZ plane; its components times the sine of half the
angle are the swing's coordinates, in which Blender's own IK also measures limits. They map all directions onto the
unit disc: rest in the middle, a rotation by 180 degrees on the rim. The four angles of a cone are the half-axes of an
ellipse per quadrant, after A. Aristidou and J. Lasenby, doi 10.1016/j.gmod.2011.05.003; in these coordinates every
angle up to 180 degrees is an ordinary point, and an axis without limit makes a strip.

Swings are (2, ...), about X and about Z; twists (...) are radians; quaternions (4, ...) have w first.
"""

from typing import NamedTuple

import numpy as np

from ..problem import Bools, Floats
from . import turns
from .numbers import MANY, Pair
from .rotations import stacked
from .turns import range_of


class Cone(NamedTuple):
    """The allowed rotations of joints, as arrays that broadcast against theirs."""

    low: Floats
    """(2, ...) half-axes for negative rotations about X and Z; 0: locked, `turns.UNLIMITED`: free."""
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
    x, z, twist = turns.swing_and_twist(MANY, (q[0], q[1], q[2], q[3]))
    return stacked(x, z), twist


def joint_rotation(swing: Floats, twist: Floats) -> Floats:
    """Return the unit quaternions (4, ...) of swings (2, ...), inside the unit disc, after twists (...)."""
    return stacked(*turns.turn_of(MANY, (swing[0], swing[1], twist)))


def nearest_swing(swing: Floats, cone: Cone) -> Floats:
    """Return the points (2, ...) of the cones that are nearest to swings (2, ...), in the plane of the swings."""
    return stacked(*MANY.nearest_swing(swing[0], swing[1], *cone.sides))


def nearest_direction(swing: Floats, cone: Cone) -> Floats:
    """Return the points (2, ...) of the cones nearest in direction to swings (2, ...)."""
    return stacked(*turns.nearest_direction(MANY, (swing[0], swing[1]), *cone.sides))


def nearest_twist(twist: Floats, cone: Cone) -> Floats:
    """Return the allowed twists (...) nearest on the circle to twists (...), from -pi to pi."""
    return np.asarray(turns.nearest_twist(MANY, twist, cone.twist_low, cone.twist_high))


def at_limit(swing: Floats, twist: Floats, cone: Cone) -> Bools:
    """Return which swings (2, ...) or twists (...) are at a limit of their joint; locked axes do not count."""
    return np.asarray(turns.at_limit(MANY, (swing[0], swing[1], twist), *cone.sides, cone.twist_low, cone.twist_high))
