"""Vectors and unit quaternions in bulk: components on the first axis, everything else on the axes behind it.

A vector array has shape (3, ...), a quaternion array (4, ...) with w first.
"""

import math
from collections.abc import Sequence

import numpy as np

from ..problem import Bools, Floats
from . import turns
from . import vectors as tuples
from .numbers import MANY

FEW = 16
"""Up to this many matrices are converted to quaternions one by one, in plain floats."""


def dot(a: Floats, b: Floats) -> Floats:
    """Return the dot products (...) of vectors (3, ...)."""
    return np.asarray(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


def cross(a: Floats, b: Floats) -> Floats:
    """Return the cross products (3, ...) of vectors (3, ...)."""
    return stacked(*tuples.cross((a[0], a[1], a[2]), (b[0], b[1], b[2])))


def stacked(*components: Floats) -> Floats:
    """Return components (...) as one array (len(components), ...); `np.stack` takes as long as a cross product."""
    out = np.empty((len(components), *components[0].shape))
    for i, component in enumerate(components):
        out[i] = component
    return out


def norm(a: Floats) -> Floats:
    """Return the lengths (...) of vectors (3, ...)."""
    return np.asarray(np.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]))


def unit(a: Floats) -> Floats:
    """Return vectors (3, ...) scaled to length 1; a zero vector stays zero."""
    return np.asarray(a / np.maximum(norm(a), 1e-200))


def reject(a: Floats, axis: Floats) -> Floats:
    """Return the part of vectors (3, ...) that is perpendicular to unit axes (3, ...)."""
    return a - dot(a, axis) * axis


def multiply(p: Floats, q: Floats) -> Floats:
    """Return the quaternion products (4, ...): first turn by q, then by p."""
    return stacked(*turns.multiply((p[0], p[1], p[2], p[3]), (q[0], q[1], q[2], q[3])))


def inverse(q: Floats) -> Floats:
    """Return the opposite rotations (4, ...)."""
    out = -q
    out[0] = q[0]
    return out


def vectors_of(q: Floats) -> Floats:
    """Return the rotation vectors (3, ...) of unit quaternions (4, ...), in radians, at most half a turn long."""
    return stacked(*turns.vector_of(MANY, (q[0], q[1], q[2], q[3])))


def about_vectors(vectors: Floats) -> Floats:
    """Return the quaternions (4, ...) of rotation vectors (3, ...) in radians."""
    return stacked(*turns.about(MANY, (vectors[0], vectors[1], vectors[2])))


def rotate(q: Floats, v: Floats) -> Floats:
    """Return vectors (3, ...) turned by unit quaternions (4, ...)."""
    return stacked(*turns.rotate((q[0], q[1], q[2], q[3]), (v[0], v[1], v[2])))


def between(a: Floats, b: Floats, axis: Floats) -> Floats:
    """Return the smallest rotations (4, ...) that take unit vectors a to unit vectors b, both (3, ...).

    Opposite vectors have no smallest rotation: those turn by 180 degrees about `axis` (3, ...), unit vectors
    perpendicular to a.
    """
    one, other, across = ((v[0], v[1], v[2]) for v in (a, b, axis))
    return stacked(*turns.between(MANY, one, other, across))


def matrices(q: Floats) -> Floats:
    """Return the rotation matrices (3, 3, ...) of unit quaternions (4, ...)."""
    x, y, z = turns.matrix_of((q[0], q[1], q[2], q[3]))
    return stacked(*x, *y, *z).reshape(3, 3, *q.shape[1:])


def quaternions(m: Floats) -> Floats:
    """Return the unit quaternions (4, ...) of rotation matrices (3, 3, ...)."""
    members = m.shape[2:]
    if math.prod(members) <= FEW and m.dtype == np.float64:
        return np.array([quaternion_of(nine) for nine in m.reshape(9, -1).T.tolist()]).T.reshape(4, *members)
    products = stacked(*_products(*m.reshape(9, *members)))
    best = np.argmax(products[::5], axis=0).ravel()
    q = products.reshape(4, 4, -1)[best, :, np.arange(len(best))].T.reshape(4, *members)
    return np.asarray(q / np.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]))


def quaternion_of(m: Sequence[float]) -> tuple[float, float, float, float]:
    """Return the unit quaternion of a rotation matrix, given as nine numbers row by row; see `_products`."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = m
    trace = xx + yy + zz
    if trace >= 2.0 * max(xx, yy, zz) - trace:
        w, x, y, z = 1.0 + trace, zy - yz, xz - zx, yx - xy
    elif xx >= yy and xx >= zz:
        w, x, y, z = zy - yz, 1.0 + 2.0 * xx - trace, xy + yx, xz + zx
    elif yy >= zz:
        w, x, y, z = xz - zx, xy + yx, 1.0 + 2.0 * yy - trace, yz + zy
    else:
        w, x, y, z = yx - xy, xz + zx, yz + zy, 1.0 + 2.0 * zz - trace
    size = math.sqrt(w * w + x * x + y * y + z * z)
    return w / size, x / size, y / size, z / size


def _products(*m: Floats) -> tuple[Floats, ...]:
    """Return four times each component times all others; the row of the largest is most precise (Shepperd 1978)."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = m
    trace = xx + yy + zz
    wx, wy, wz = zy - yz, xz - zx, yx - xy
    sum_xy, sum_xz, sum_yz = xy + yx, xz + zx, yz + zy
    return (
        *(1 + trace, wx, wy, wz),
        *(wx, 1 + 2 * xx - trace, sum_xy, sum_xz),
        *(wy, sum_xy, 1 + 2 * yy - trace, sum_yz),
        *(wz, sum_xz, sum_yz, 1 + 2 * zz - trace),
    )


def is_straight(joints: Floats, least: float) -> Bools:
    """Return which chains (B,) of joints (B, n+1, 3) leave the line from root to tip by less than a share of them."""
    points = joints.T  # components first, as `norm` wants it
    length = norm(points[:, 1:] - points[:, :-1]).sum(axis=-2)
    line = points[:, -1] - points[:, 0]
    size = norm(line)
    seen = points - points[:, :1]
    widest = norm(reject(seen, (line / np.maximum(size, 1e-300))[:, None])).max(axis=0)
    return np.asarray((size > least * length) & (widest < least * length))
