"""Frames and matrices as tuples of three vectors; a frame is the axes X, Y and Z of a bone."""

from __future__ import annotations

from .vectors import Vector, dot, minus, plus, times

Matrix = tuple[Vector, Vector, Vector]
"""Three rows, unless something else is said."""


def product_back(a: Matrix, b: Matrix) -> Matrix:
    """Return a matrix times the transpose of another, column by column."""
    (ux, uy, uz), (vx, vy, vz), (wx, wy, wz) = b
    return applied(a, (ux, vx, wx)), applied(a, (uy, vy, wy)), applied(a, (uz, vz, wz))


Frame = tuple[Vector, Vector, Vector]
HALF_TURN = 5e-13
"""One plus the cosine of two directions, below which rounding would choose the rotation between them."""


def applied(frame: Frame, v: Vector) -> Vector:
    """Return a vector in space, given in the axes of a frame."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = frame
    x, y, z = v
    return ax * x + bx * y + cx * z, ay * x + by * y + cy * z, az * x + bz * y + cz * z


def seen(frame: Frame, v: Vector) -> Vector:
    """Return a vector in the axes of a frame."""
    x, y, z = v
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = frame
    return ax * x + ay * y + az * z, bx * x + by * y + bz * z, cx * x + cy * y + cz * z


def product(a: Frame, b: Frame) -> Frame:
    """Return the frame b in space, given in the axes of a."""
    return applied(a, b[0]), applied(a, b[1]), applied(a, b[2])


def back_product(a: Frame, b: Frame) -> Frame:
    """Return the frame b in the axes of a."""
    return seen(a, b[0]), seen(a, b[1]), seen(a, b[2])


def carried(v: Vector, a: Vector, b: Vector, axis: Vector) -> Vector:
    """Return a vector turned by the smallest rotation of a to b, both unit; about `axis` if they are opposite."""
    x, y, z = plus(a, b)
    room = 0.5 * (x * x + y * y + z * z)  # 1 + cosine, without its rounding if they are nearly opposite
    if room < HALF_TURN:
        return minus(times(axis, 2.0 * dot(axis, v)), v)
    share, along = (v[0] * x + v[1] * y + v[2] * z) / room, 2.0 * dot(v, a)
    return v[0] - share * x + along * b[0], v[1] - share * y + along * b[1], v[2] - share * z + along * b[2]


def frame_of(space: Frame, bone: Frame) -> Frame:
    """Return the frame of a bone from three vectors, given both in its own axes and in space."""
    x, y, z = zip(*bone, strict=True)
    return applied(space, x), applied(space, y), applied(space, z)
