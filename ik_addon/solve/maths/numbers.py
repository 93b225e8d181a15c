"""Numbers that are floats for one member, or arrays (B,) for many: what differs between them, and what is built on it.

Code that is written once for both takes these operations as `do`. Vectors and quaternions are tuples of numbers, and
whatever belongs to a joint is an item of a list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from .cones import TIE, Cone, nearest_swing, nearest_swing_of_one
from .rotations import NEARLY_OPPOSITE, OPPOSITE, stacked
from .vectors import Number, Quaternion, Vector, cross, dot, multiply, plus, reject, times

Pair = tuple[Number, Number]
_TURN = 2.0 * math.pi
_CROWD, _FEW = 0.75, 32


class Numbers(Protocol):
    """The operations in which floats and arrays differ."""

    def sqrt(self, number: Number, /) -> Number:
        """Return the square root."""

    def sin(self, angle: Number, /) -> Number:
        """Return the sine."""

    def cos(self, angle: Number, /) -> Number:
        """Return the cosine."""

    def tan(self, angle: Number, /) -> Number:
        """Return the tangent."""

    def arcsin(self, sine: Number, /) -> Number:
        """Return the angle with a sine."""

    def arctan2(self, sine: Number, cosine: Number, /) -> Number:
        """Return the angle with a multiple of a sine and a cosine."""

    def expm1(self, number: Number, /) -> Number:
        """Return the exponential minus one."""

    def isfinite(self, number: Number, /) -> Number:
        """Return whether a number is finite."""

    def where(self, chosen: Number, one: Number, other: Number, /) -> Number:
        """Return `one` where `chosen` is true, and `other` elsewhere."""

    def any(self, number: Number, /) -> bool:
        """Return whether any member is true."""

    def least(self, one: Number, other: Number, /) -> Number:
        """Return the smaller number."""

    def most(self, one: Number, other: Number, /) -> Number:
        """Return the larger number."""

    def nearest_swing(self, x: Number, z: Number, low: Pair, high: Pair, /) -> Pair:
        """See `cones.nearest_swing`."""

    def choose(self, chosen: Number, one: Any, other: Any, /) -> Any:
        """Return `one` where chosen and `other` elsewhere, for nested lists and tuples of numbers."""

    def redone(self, function: Callable[..., Any], chosen: Number, arguments: Any, result: Any, /) -> Any:
        """Return a result as it is, and where chosen that of a function."""


class _One:
    """One member, in floats."""

    sqrt, sin, cos, tan = (staticmethod(each) for each in (math.sqrt, math.sin, math.cos, math.tan))
    arcsin, arctan2, expm1 = (staticmethod(each) for each in (math.asin, math.atan2, math.expm1))
    isfinite = staticmethod(math.isfinite)
    any = staticmethod(bool)
    least, most = staticmethod(min), staticmethod(max)
    nearest_swing = staticmethod(nearest_swing_of_one)

    @staticmethod
    def where(chosen: Number, one: Number, other: Number) -> Number:
        return one if chosen else other

    choose = where

    @staticmethod
    def redone(function: Callable[..., Any], _chosen: Number, arguments: Any, _result: Any) -> Any:
        return function(*arguments)


class _Many:
    """Many members, in arrays."""

    sqrt, sin, cos, tan = (staticmethod(each) for each in (np.sqrt, np.sin, np.cos, np.tan))
    arcsin, arctan2, expm1 = (staticmethod(each) for each in (np.arcsin, np.arctan2, np.expm1))
    where, least, most = (staticmethod(each) for each in (np.where, np.minimum, np.maximum))
    isfinite = staticmethod(np.isfinite)

    @staticmethod
    def any(number: Number) -> bool:
        return bool(np.count_nonzero(number))

    @staticmethod
    def nearest_swing(x: Number, z: Number, low: Pair, high: Pair) -> Pair:
        lows, highs = np.array(low)[:, None], np.array(high)[:, None]
        nearest = nearest_swing(stacked(x, z), Cone(lows, highs, lows, highs))
        return nearest[0], nearest[1]

    def choose(self, chosen: Number, one: Any, other: Any) -> Any:
        if chosen.all():
            return one
        return each_array(lambda a, b: np.where(chosen, a, b), one, other) if chosen.any() else other

    @staticmethod
    def redone(function: Callable[..., Any], chosen: Number, arguments: Any, result: Any) -> Any:
        if is_crowd(int(np.count_nonzero(chosen)), len(chosen)):
            return function(*arguments)
        index = np.flatnonzero(chosen)
        found = function(*members(arguments, index))

        def merged(whole: Any, part: Any) -> Any:
            whole = whole.copy()
            whole[index] = part
            return whole

        return each_array(merged, result, found)


def is_crowd(left: int, count: int) -> bool:
    """Return whether to go on with all members although only `left` of them need it.

    Picking members out takes as long as a step, and a step takes as long for a few members as for one.
    """
    return left >= _CROWD * count or count - left < _FEW


def members(value: Any, chosen: Any) -> Any:
    """Return the chosen members of all arrays (B,) in nested lists and tuples."""
    return each_array(lambda part: part[chosen], value)


def member(value: Any, index: int) -> Any:
    """Return one member of all arrays (B,) in nested lists and tuples, in floats."""
    return each_array(lambda part: part.item(index), value)


def each_array(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """Apply a function to each array in nested lists and tuples of the same form; all else is that of the first."""
    if isinstance(value, np.ndarray):
        return function(value, *others)
    if isinstance(value, tuple | list):
        parts = [each_array(function, *each) for each in zip(value, *others, strict=True)]
        return parts if isinstance(value, list) else value._make(parts) if hasattr(value, "_make") else tuple(parts)
    return value


ONE: Numbers = _One()
MANY: Numbers = _Many()


def size_of(do: Numbers, a: Sequence[Number]) -> Number:
    """Return the length of a vector."""
    x, y, z = a
    return do.sqrt(x * x + y * y + z * z)


def unit_of(do: Numbers, a: Vector) -> Vector:
    """Return a vector scaled to length 1; a zero vector stays zero."""
    x, y, z = a
    size = do.most(do.sqrt(x * x + y * y + z * z), 1e-200)
    return x / size, y / size, z / size


def either(do: Numbers, chosen: Any, one: Sequence[Number], other: Sequence[Number]) -> Any:
    """Return the vector `one` where `chosen` is true, and `other` elsewhere."""
    if do is ONE:
        return one if chosen else other
    return tuple([do.where(chosen, a, b) for a, b in zip(one, other, strict=True)])


def about(do: Numbers, vector: Vector) -> Quaternion:
    """Return the quaternion of a rotation vector, in radians."""
    size = size_of(do, vector)
    return do.cos(size / 2.0), *times(vector, do.sin(size / 2.0) / do.most(size, 1e-200))


def between(do: Numbers, a: Vector, b: Vector, axis: Vector | Callable[[], Vector]) -> Quaternion:
    """Return the smallest rotation from one unit vector to another, see `rotations.between`."""
    (ax, ay, az), (bx, by, bz) = a, b
    x, y, z = ax + bx, ay + by, az + bz
    size = do.sqrt(x * x + y * y + z * z)
    room = do.most(size, 1e-200)
    x, y, z = x / room, y / room, z / room
    turn: Quaternion = ax * x + ay * y + az * z, ay * z - az * y, az * x - ax * z, ax * y - ay * x
    nearly = size < NEARLY_OPPOSITE
    if do.any(nearly):
        across: Vector = either(do, size < OPPOSITE, axis() if callable(axis) else axis, unit_of(do, cross(a, b)))
        half, back = (0.0, *unit_of(do, reject(across, a))), times(a, -1.0)
        middle = unit_of(do, plus(back, b))
        turn = either(do, nearly, multiply((dot(back, middle), *cross(back, middle)), half), turn)
    return turn


def swing_and_twist(do: Numbers, turn: Quaternion) -> Vector:
    """Return the swing about X and about Z, and the twist, of a unit quaternion; see `cones.swing_twist`."""
    w, x, y, z = turn
    sign = do.where(w < 0.0, -1.0, 1.0)
    size = do.sqrt(w * w + y * y)
    safe = do.most(size, 1e-200)
    c, s = do.where(size > 0.0, w * sign / safe, 1.0), y * sign / safe
    return (x * c + z * s) * sign, (z * c - x * s) * sign, 2.0 * do.arctan2(s, c)


def turn_of(do: Numbers, angles: Vector) -> Quaternion:
    """Return the unit quaternion of a swing about X and about Z, after a twist; see `cones.joint_rotation`."""
    x, z, twist = angles
    c, s = do.cos(twist / 2.0), do.sin(twist / 2.0)
    w = do.sqrt(do.most(1.0 - x * x - z * z, 0.0))
    return w * c, x * c - z * s, w * s, x * s + z * c


def nearest_direction(do: Numbers, swing: Pair, low: Pair, high: Pair) -> Pair:
    """See `cones.nearest_direction`."""
    (x, z), near = swing, do.nearest_swing(*swing, low, high)
    outside = (near[0] != x) | (near[1] != z)
    if not do.any(outside):
        return near
    behind = do.nearest_swing(-x, -z, low, high)
    there, forward, back = (_direction(do, *each) for each in (swing, near, behind))
    nearest: Pair = either(do, outside & (dot(there, back) > dot(there, forward) + TIE), behind, near)
    return nearest


def _direction(do: Numbers, x: Number, z: Number) -> Vector:
    """Return where a swing takes the Y axis."""
    square = x * x + z * z
    double = 2.0 * do.sqrt(do.most(1.0 - square, 0.0))
    return -double * z, 1.0 - 2.0 * square, double * x


def nearest_twist(do: Numbers, twist: Number, low: Number, high: Number) -> Number:
    """See `cones.nearest_twist`."""
    outside = (twist < low) | (twist > high)
    if not do.any(outside):
        return twist
    # Infinite limits are never exceeded, but would cause warnings.
    to_low, to_high = do.cos(twist - do.most(low, -_TURN)), do.cos(twist - do.least(high, _TURN))
    return do.where(outside, do.where(to_low > to_high + TIE, low, high), twist)
