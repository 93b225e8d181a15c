"""Vectors and rotations of one member or of many, written once on top of `Calculus`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi
from typing import Any

from .calculus import Calculus, Pair
from .rotations import NEARLY_OPPOSITE, OPPOSITE
from .vectors import Number, Quaternion, Vector, cross, dot, multiply, over, plus, reject, times

_TURN = 2.0 * pi


def size_of(do: Calculus, a: Sequence[Number]) -> Number:
    """Return the length of a vector."""
    return do.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


def unit_of(do: Calculus, a: Vector) -> Vector:
    """Return a vector scaled to length 1; a zero vector stays zero."""
    return over(a, do.most(size_of(do, a), 1e-200))


def either(do: Calculus, chosen: Any, one: Sequence[Number], other: Sequence[Number]) -> Any:
    """Return the vector `one` where `chosen` is true, and `other` elsewhere."""
    return tuple([do.where(chosen, a, b) for a, b in zip(one, other, strict=True)])


def about(do: Calculus, vectors: list[Vector]) -> list[Quaternion]:
    """Return the quaternions of rotation vectors, in radians."""
    turns: list[Quaternion] = []
    for vector in vectors:
        size = size_of(do, vector)
        turns.append((do.cos(size / 2.0), *times(vector, do.sin(size / 2.0) / do.most(size, 1e-200))))
    return turns


def between(do: Calculus, a: Vector, b: Vector, axis: Vector | Callable[[], Vector]) -> Quaternion:
    """Return the smallest rotation from one unit vector to another, see `rotations.between`."""
    size = size_of(do, plus(a, b))
    turn = _smallest(do, a, b)
    nearly = size < NEARLY_OPPOSITE
    if do.any(nearly):
        across: Vector = either(do, size < OPPOSITE, axis() if callable(axis) else axis, unit_of(do, cross(a, b)))
        half = (0.0, *unit_of(do, reject(across, a)))
        turn = either(do, nearly, multiply(_smallest(do, times(a, -1.0), b), half), turn)
    return turn


def _smallest(do: Calculus, a: Vector, b: Vector) -> Quaternion:
    middle = unit_of(do, plus(a, b))
    return dot(a, middle), *cross(a, middle)


def nearest_direction(do: Calculus, swing: Pair, low: Pair, high: Pair) -> Pair:
    """See `cones.nearest_direction`."""
    (x, z), near = swing, do.nearest_swing(*swing, low, high)
    outside = (near[0] != x) | (near[1] != z)
    if not do.any(outside):
        return near
    behind = do.nearest_swing(-x, -z, low, high)
    there, forward, back = (_direction(do, *each) for each in (swing, near, behind))
    nearest: Pair = either(do, outside & (dot(there, back) > dot(there, forward)), behind, near)
    return nearest


def _direction(do: Calculus, x: Number, z: Number) -> Vector:
    """Return where a swing takes the Y axis."""
    square = x * x + z * z
    double = 2.0 * do.sqrt(do.most(1.0 - square, 0.0))
    return -double * z, 1.0 - 2.0 * square, double * x


def nearest_twist(do: Calculus, twist: Number, low: Number, high: Number) -> Number:
    """See `cones.nearest_twist`."""
    outside = (twist < low) | (twist > high)
    if not do.any(outside):
        return twist
    # Infinite limits are never exceeded, but would cause warnings.
    to_low, to_high = do.cos(twist - do.most(low, -_TURN)), do.cos(twist - do.least(high, _TURN))
    return do.where(outside, do.where(to_low > to_high, low, high), twist)
