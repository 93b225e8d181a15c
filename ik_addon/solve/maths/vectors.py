"""Vectors as tuples of numbers: floats or arrays (B,), see `numbers`."""

from collections.abc import Sequence
from math import sqrt

from .numbers import ONE, Nested, Number, Numbers

Vector = tuple[Number, Number, Number]
ZERO: Vector = (0.0, 0.0, 0.0)


def plus(a: Vector, b: Vector) -> Vector:
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def minus(a: Sequence[Number], b: Sequence[Number]) -> Vector:
    """Return a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def times(a: Vector, factor: Number) -> Vector:
    """Return a vector times a number."""
    return a[0] * factor, a[1] * factor, a[2] * factor


def over(a: Vector, divisor: Number) -> Vector:
    """Return a vector divided by a number."""
    return a[0] / divisor, a[1] / divisor, a[2] / divisor


def dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    """Return the scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """Return the vector product."""
    ax, ay, az = a
    bx, by, bz = b
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


def reject(a: Vector, axis: Vector) -> Vector:
    """Return the part of a vector that is perpendicular to a unit axis."""
    x, y, z = axis
    along = a[0] * x + a[1] * y + a[2] * z
    return a[0] - along * x, a[1] - along * y, a[2] - along * z


def norm(a: Vector) -> float:
    """Return the length of a vector of floats."""
    x, y, z = a
    return sqrt(x * x + y * y + z * z)


def unit(a: Vector) -> Vector:
    """Return a vector of floats scaled to length 1; a zero vector stays zero."""
    x, y, z = a
    size = sqrt(x * x + y * y + z * z)
    if size < 1e-200:
        size = 1e-200
    return x / size, y / size, z / size


def size_of(do: Numbers, a: Sequence[Number]) -> Number:
    """Return the length of a vector."""
    x, y, z = a
    return do.sqrt(x * x + y * y + z * z)


def unit_of(do: Numbers, a: Vector) -> Vector:
    """Return a vector scaled to length 1; a zero vector stays zero."""
    x, y, z = a
    size = do.most(do.sqrt(x * x + y * y + z * z), 1e-200)
    return x / size, y / size, z / size


def either(do: Numbers, chosen: Number, one: Sequence[Number], other: Sequence[Number]) -> Nested:
    """Return the vector `one` where `chosen` is true, and `other` elsewhere."""
    if do is ONE:
        return one if chosen else other
    return tuple([do.where(chosen, a, b) for a, b in zip(one, other, strict=True)])
