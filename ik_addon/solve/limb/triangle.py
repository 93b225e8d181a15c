"""The triangle of root, knee and end of a limb, in plain floats."""

from __future__ import annotations

from math import copysign, sqrt
from typing import NamedTuple

from ..maths.vectors import Vector, cross, dot, norm


class Triangle(NamedTuple):
    """Cosine and sine at the root, from the line to the upper bone, and of the bend at the knee."""

    cosine: float
    sine: float
    bend_cosine: float
    bend_sine: float


def triangle_of(first: float, second: float, distance: float) -> Triangle:
    """See `two_bone.triangle`; if the target is too far or too near, the knee is on the line to it."""
    twice = 2.0 * max(distance, 1e-200)
    difference = first - second
    along = distance / 2.0 + difference * ((first + second) / twice)
    before = (distance - difference) * ((first + second - distance) / twice)
    after = (distance + difference) * ((first + second + distance) / twice)
    if distance < 1e-15:
        along, before, after = 0.0, first, first
    if before * after < 0.0:
        return Triangle(1.0, 0.0, 1.0, 0.0) if distance > first else Triangle(copysign(1.0, difference), 0.0, -1.0, 0.0)
    return of_corner(along, sqrt(before * after), distance)


def of_knee(first: float, second: float, along: Vector, way: Vector) -> Triangle:
    """Return the triangle of a limb from the directions of its upper and its lower bone in the knee's axes."""
    cosine, sine = dot(along, way), norm(cross(along, way))
    x, y = first + second * cosine, second * sine
    size = sqrt(x * x + y * y)
    # Folded onto itself, the limb is perpendicular to its line.
    return Triangle(x / size, y / size, cosine, sine) if size > 1e-15 else Triangle(0.0, 1.0, cosine, sine)


def of_corner(along: float, across: float, distance: float) -> Triangle:
    """Return the triangle with its knee at these distances along and off the line to the target."""
    one = sqrt(along * along + across * across)
    rest = distance - along
    two = sqrt(rest * rest + across * across)
    c, s, x, y = along / one, across / one, rest / two, -across / two
    return Triangle(c, s, c * x + s * y, s * x - c * y)
