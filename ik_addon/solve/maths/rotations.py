"""Vectors and unit quaternions in bulk: components on the first axis, everything else on the axes behind it.

A vector array has shape (3, ...), a quaternion array (4, ...) with w first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..problem import Floats
from .vectors import matrix_of

OPPOSITE = 1e-6
"""Below this length of the sum of two unit vectors, rounding in the input would choose the axis between them."""
NEARLY_OPPOSITE = 1e-2
"""Below this length, the sum is not precise enough to divide by."""
FEW = 16
"""Up to this many matrices are converted to quaternions one by one, in plain floats."""
_TINY = 1e-200


def dot(a: Floats, b: Floats) -> Floats:
    """Return the dot products (...) of vectors (3, ...)."""
    products = a * b
    sums = products[0] + products[1]
    sums += products[2]
    return np.asarray(sums)


def cross(a: Floats, b: Floats) -> Floats:
    """Return the cross products (3, ...) of vectors (3, ...)."""
    # In place, because allocating temporary arrays takes as long as the arithmetic.
    out = np.empty(a.shape if a.shape == b.shape else np.broadcast(a, b).shape)
    (ax, ay, az), (bx, by, bz) = a, b
    x, y, z = out[0, ...], out[1, ...], out[2, ...]
    np.multiply(ay, bz, out=x)
    x -= az * by
    np.multiply(az, bx, out=y)
    y -= ax * bz
    np.multiply(ax, by, out=z)
    z -= ay * bx
    return out


def stacked(*components: Floats) -> Floats:
    """Return components (...) as one array (len(components), ...); `np.stack` takes as long as a cross product."""
    out = np.empty((len(components), *components[0].shape))
    for i, component in enumerate(components):
        out[i] = component
    return out


def norm(a: Floats) -> Floats:
    """Return the lengths (...) of vectors (3, ...)."""
    return np.sqrt(dot(a, a))


def unit(a: Floats) -> Floats:
    """Return vectors (3, ...) scaled to length 1; a zero vector stays zero."""
    return np.asarray(a / np.maximum(norm(a), _TINY))


def reject(a: Floats, axis: Floats) -> Floats:
    """Return the part of vectors (3, ...) that is perpendicular to unit axes (3, ...)."""
    return a - dot(a, axis) * axis


def identity(count: int) -> Floats:
    """Return `count` identity quaternions, (4, count)."""
    q = np.zeros((4, count))
    q[0] = 1.0
    return q


def about(axis: Floats, angle: Floats) -> Floats:
    """Return quaternions (4, ...) that turn by angles (...) in radians about unit axes (3, ...), right-handed."""
    half = angle / 2
    return stacked(np.cos(half), *(np.sin(half) * axis))


def multiply(p: Floats, q: Floats) -> Floats:
    """Return the quaternion products (4, ...): first turn by q, then by p."""
    (a, b, c, d), (w, x, y, z) = p, q
    out = np.empty(p.shape if p.shape == q.shape else np.broadcast(p, q).shape)
    real, i, j, k = out[0, ...], out[1, ...], out[2, ...], out[3, ...]
    np.multiply(a, w, out=real)
    real -= b * x
    real -= c * y
    real -= d * z
    np.multiply(a, x, out=i)
    i += b * w
    i += c * z
    i -= d * y
    np.multiply(a, y, out=j)
    j -= b * z
    j += c * w
    j += d * x
    np.multiply(a, z, out=k)
    k += b * y
    k -= c * x
    k += d * w
    return out


def inverse(q: Floats) -> Floats:
    """Return the opposite rotations (4, ...)."""
    out = -q
    out[0] = q[0]
    return out


def vectors_of(q: Floats) -> Floats:
    """Return the rotation vectors (3, ...) of unit quaternions (4, ...), in radians, at most half a turn long."""
    sine = norm(q[1:])
    small = sine < 1e-9
    angle = 2.0 * np.arctan2(sine, np.abs(q[0]))
    share = np.where(small, 2.0, angle / np.where(small, 1.0, sine))
    return np.asarray(q[1:] * np.where(q[0] < 0.0, -share, share))


def about_vectors(vectors: Floats) -> Floats:
    """Return the quaternions (4, ...) of rotation vectors (3, ...) in radians."""
    angle = norm(vectors)
    small = angle < 1e-9
    share = np.where(small, 0.5, np.sin(0.5 * angle) / np.where(small, 1.0, angle))
    return stacked(np.cos(0.5 * angle), *(vectors * share))


def rotate(q: Floats, v: Floats) -> Floats:
    """Return vectors (3, ...) turned by unit quaternions (4, ...)."""
    half = cross(q[1:], v)
    turned = cross(q[1:], half)
    turned += q[0] * half
    turned *= 2.0
    turned += v
    return turned


def between(a: Floats, b: Floats, axis: Floats | Callable[[], Floats]) -> Floats:
    """Return the smallest rotations (4, ...) that take unit vectors a to unit vectors b, both (3, ...).

    Opposite vectors have no smallest rotation: those turn by 180 degrees about `axis` (3, ...), unit vectors
    perpendicular to a, or a function that returns them, called only if they are needed.
    """
    middle = a + b
    sum_ = norm(middle)
    nearly = sum_ < NEARLY_OPPOSITE
    if not nearly.any():
        middle /= np.maximum(sum_, _TINY)
        return stacked(dot(a, middle), *cross(a, middle))
    if callable(axis):
        axis = axis()
    # The vector halfway to b is lost in rounding: first turn a to -a, then by the small angle that remains.
    axis = unit(reject(np.where(sum_ < OPPOSITE, axis, unit(cross(a, b))), a))
    half_turn = np.concatenate([np.zeros_like(axis[:1]), axis])
    small = _between(np.where(nearly, -a, a), b)
    return np.where(nearly, multiply(small, half_turn), small)


def _between(a: Floats, b: Floats) -> Floats:
    middle = unit(a + b)
    return stacked(dot(a, middle), *cross(a, middle))


def matrices(q: Floats) -> Floats:
    """Return the rotation matrices (3, 3, ...) of unit quaternions (4, ...)."""
    return np.array(matrix_of((q[0], q[1], q[2], q[3])))


def hinge(frames: Floats, direction: Floats) -> Floats:
    """Return the unit axes (3, ...), perpendicular to `direction` (3, ...), about which a straight bone bends.

    The axis is the X axis of the frames (3, 3, ...); where X lies along the direction, it is the axis about which a
    positive rotation turns the direction to Z. That is a cross product, so a mirrored bone bends mirrored.
    """
    across = reject(frames[:, 0], direction)
    return unit(np.where(norm(across) > 1e-4, across, cross(direction, frames[:, 2])))


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


def _products(*m: Any) -> tuple[Any, ...]:
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
