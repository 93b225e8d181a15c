"""Vectors and quaternions as tuples of numbers.

A number is a float for one chain, or an array (B,) for many.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

Number = Any
"""A float, or an array (B,)."""
Vector = tuple[Number, Number, Number]
Quaternion = tuple[Number, Number, Number, Number]
"""w first."""
Matrix = tuple[Vector, Vector, Vector]
"""Three rows, unless something else is said."""


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


def dot(a: Vector, b: Vector) -> Number:
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


def multiply(p: Quaternion, q: Quaternion) -> Quaternion:
    """Return the rotation q followed by p."""
    pw, px, py, pz = p
    qw, qx, qy, qz = q
    return (
        pw * qw - px * qx - py * qy - pz * qz,
        pw * qx + px * qw + py * qz - pz * qy,
        pw * qy - px * qz + py * qw + pz * qx,
        pw * qz + px * qy - py * qx + pz * qw,
    )


def inverse(q: Quaternion) -> Quaternion:
    """Return the opposite rotation."""
    return q[0], -q[1], -q[2], -q[3]


def rotate(q: Quaternion, v: Vector) -> Vector:
    """Return a vector turned by a rotation."""
    w, x, y, z = q
    vx, vy, vz = v
    hx, hy, hz = y * vz - z * vy, z * vx - x * vz, x * vy - y * vx
    return (
        vx + 2.0 * (w * hx + (y * hz - z * hy)),
        vy + 2.0 * (w * hy + (z * hx - x * hz)),
        vz + 2.0 * (w * hz + (x * hy - y * hx)),
    )


def matrix_of(q: Quaternion) -> Matrix:
    """Return the matrix of a rotation."""
    w, x, y, z = q
    u, v, t = x + x, y + y, z + z
    xx, xy, xz, wx, yy, yz, zz, wy, wz = x * u, x * v, x * t, w * u, y * v, y * t, z * t, w * v, w * t
    return (1.0 - (yy + zz), xy - wz, xz + wy), (xy + wz, 1.0 - (xx + zz), yz - wx), (xz - wy, yz + wx, 1.0 - (xx + yy))


def product_back(a: Matrix, b: Matrix) -> Matrix:
    """Return a matrix times the transpose of another, column by column."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = a
    (ux, uy, uz), (vx, vy, vz), (wx, wy, wz) = b
    return (
        (ax * ux + bx * vx + cx * wx, ay * ux + by * vx + cy * wx, az * ux + bz * vx + cz * wx),
        (ax * uy + bx * vy + cx * wy, ay * uy + by * vy + cy * wy, az * uy + bz * vy + cz * wy),
        (ax * uz + bx * vz + cx * wz, ay * uz + by * vz + cy * wz, az * uz + bz * vz + cz * wz),
    )


def turned(turn: Quaternion, vectors: Sequence[Vector]) -> list[Vector]:
    """Return several vectors turned by a rotation."""
    (a, b, c), (d, e, f), (g, h, i) = matrix_of(turn)
    return [(a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z) for x, y, z in vectors]
