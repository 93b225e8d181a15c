"""Numbers: floats for one member or arrays (B,) for many; vectors, quaternions, frames and joint rotations of them.

Code that is written once for both takes the operations in which they differ as `do`. Vectors and quaternions are tuples
of numbers, and whatever belongs to a joint is an item of a list. A frame is three vectors: the axes X, Y and Z of a
bone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any, Protocol

import numpy as np

Number = Any
"""A float, or an array (B,)."""
Pair = tuple[Number, Number]
Vector = tuple[Number, Number, Number]
Quaternion = tuple[Number, Number, Number, Number]
"""w first."""
Matrix = tuple[Vector, Vector, Vector]
"""Three rows, unless something else is said."""
OPPOSITE = 1e-6
"""Below this length of the sum of two unit vectors, rounding in the input would choose the axis between them."""
NEARLY_OPPOSITE = 1e-2
"""Below this length, the sum is not precise enough to divide by."""
TIE = 1e-9
"""Limits whose distances differ by no more than this, in radians or as cosines, are equally near: half a turn away,
where a joint may be exactly, rounding would choose between them."""
STEPS = 6
"""Maximum number of Newton steps to the nearest point of an ellipse."""
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
        """Return the point of a cone, an ellipse per quadrant with these half-axes, that is nearest to a swing."""

    def choose(self, chosen: Number, one: Any, other: Any, /) -> Any:
        """Return `one` where chosen and `other` elsewhere, for nested lists and tuples of numbers."""

    def redone(self, function: Callable[..., Any], chosen: Number, arguments: Any, result: Any, /) -> Any:
        """Return a result as it is, and where chosen that of a function."""


def _nearest_swing_of_one(x: float, z: float, low: Pair, high: Pair) -> Pair:
    a = low[0] if x < 0.0 else high[0]
    b = low[1] if z < 0.0 else high[1]
    # Not `max`, which takes longer than all the rest.
    p, q = x / (a if a > 1e-12 else 1e-12), z / (b if b > 1e-12 else 1e-12)
    return _nearest_of_ellipse(ONE, x, z, a, b) if p * p + q * q > 1.0 else (x, z)


def _nearest_swings(x: Number, z: Number, low: Pair, high: Pair) -> Pair:
    swing = np.array((x, z))
    axes = np.array((np.where(x < 0.0, low[0], high[0]), np.where(z < 0.0, low[1], high[1])))
    outside = ellipse_level(MANY, *swing, *axes) > 1.0
    if outside.any():
        swing[:, outside] = _nearest_of_ellipse(MANY, *swing[:, outside], *axes[:, outside])
    return swing[0], swing[1]


def ellipse_level(do: Numbers, x: Number, z: Number, a: Number, b: Number) -> Number:
    """Return the square of the factor by which an ellipse with two half-axes must grow to pass through a point."""
    p, q = x / do.most(a, 1e-12), z / do.most(b, 1e-12)
    return p * p + q * q


def _nearest_of_ellipse(do: Numbers, x: Number, z: Number, a: Number, b: Number) -> Pair:
    """Return the point nearest to one outside an ellipse with two half-axes, one of which may be 0.

    The nearest point is axes^2 * point / (t + axes^2) for the t that puts it on the ellipse. Newton's method gets there
    from the left without ever passing it, and sooner when it looks for the zero of one minus the inverse of the level's
    root, which is nearly a straight line (J. Moré and D. Sorensen, "Computing a trust region step", doi
    10.1137/0904038). It starts from the t for which both half-axes are as long as the longer one: for circles, the
    solution.
    """
    most, sqrt = do.most, do.sqrt
    aa, bb, p, q = a * a, b * b, a * abs(x), b * abs(z)
    t = most(most(p - aa, q - bb), most(sqrt(p * p + q * q) - most(aa, bb), 1e-100))
    for _ in range(STEPS):
        along, across = p / (t + aa), q / (t + bb)
        level = along * along + across * across
        over = most(sqrt(level) - 1.0, 0.0)
        if not do.any(over):
            break
        t = t + level * over / most(along * along / (t + aa) + across * across / (t + bb), 1e-200)
    x, z = x * (aa / (t + aa)), z * (bb / (t + bb))
    size = sqrt(most(ellipse_level(do, x, z, a, b), 1.0))
    return x / size, z / size


class _One:
    """One member, in floats."""

    sqrt, sin, cos, tan = (staticmethod(each) for each in (math.sqrt, math.sin, math.cos, math.tan))
    arcsin, arctan2, expm1 = (staticmethod(each) for each in (math.asin, math.atan2, math.expm1))
    isfinite = staticmethod(math.isfinite)
    any = staticmethod(bool)
    least, most = staticmethod(min), staticmethod(max)
    nearest_swing = staticmethod(_nearest_swing_of_one)

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
    isfinite, nearest_swing = staticmethod(np.isfinite), staticmethod(_nearest_swings)

    @staticmethod
    def any(number: Number) -> bool:
        return bool(np.count_nonzero(number))

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
    """Return the smallest rotation from one unit vector to another.

    Opposite vectors have no smallest rotation: those turn by half a turn about `axis`, a unit vector perpendicular
    to a, or a function that returns it, called only if it is needed.
    """
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
    """Return the swing about X and about Z, and the twist from -pi to pi, of a unit quaternion; see `cones`."""
    w, x, y, z = turn
    sign = do.where(w < 0.0, -1.0, 1.0)
    size = do.sqrt(w * w + y * y)
    safe = do.most(size, 1e-200)
    c, s = do.where(size > 0.0, w * sign / safe, 1.0), y * sign / safe
    return (x * c + z * s) * sign, (z * c - x * s) * sign, 2.0 * do.arctan2(s, c)


def turn_of(do: Numbers, angles: Vector) -> Quaternion:
    """Return the unit quaternion of a swing about X and about Z, after a twist; see `cones`."""
    x, z, twist = angles
    c, s = do.cos(twist / 2.0), do.sin(twist / 2.0)
    w = do.sqrt(do.most(1.0 - x * x - z * z, 0.0))
    return w * c, x * c - z * s, w * s, x * s + z * c


def nearest_direction(do: Numbers, swing: Pair, low: Pair, high: Pair) -> Pair:
    """Return the point of a cone nearest in direction to a swing, also the other way round.

    Beyond half a turn the opposite side of the cone may be nearer than the side that the swing left.
    """
    (x, z), near = swing, do.nearest_swing(*swing, low, high)
    outside = (near[0] != x) | (near[1] != z)
    if not do.any(outside):
        return near
    behind = do.nearest_swing(-x, -z, low, high)
    there, forward, back = (direction_of(do, *each) for each in (swing, near, behind))
    nearest: Pair = either(do, outside & (dot(there, back) > dot(there, forward) + TIE), behind, near)
    return nearest


def direction_of(do: Numbers, x: Number, z: Number) -> Vector:
    """Return where a swing takes the Y axis."""
    square = x * x + z * z
    double = 2.0 * do.sqrt(do.most(1.0 - square, 0.0))
    return -double * z, 1.0 - 2.0 * square, double * x


def nearest_twist(do: Numbers, twist: Number, low: Number, high: Number) -> Number:
    """Return the allowed twist nearest on the circle to a twist from -pi to pi."""
    outside = (twist < low) | (twist > high)
    if not do.any(outside):
        return twist
    # Infinite limits are never exceeded, but would cause warnings.
    to_low, to_high = do.cos(twist - do.most(low, -_TURN)), do.cos(twist - do.least(high, _TURN))
    return do.where(outside, do.where(to_low > to_high + TIE, low, high), twist)


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
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = a
    (ux, uy, uz), (vx, vy, vz), (wx, wy, wz) = b
    return (
        (ax * ux + bx * uy + cx * uz, ay * ux + by * uy + cy * uz, az * ux + bz * uy + cz * uz),
        (ax * vx + bx * vy + cx * vz, ay * vx + by * vy + cy * vz, az * vx + bz * vy + cz * vz),
        (ax * wx + bx * wy + cx * wz, ay * wx + by * wy + cy * wz, az * wx + bz * wy + cz * wz),
    )


def back_product(a: Frame, b: Frame) -> Frame:
    """Return the frame b in the axes of a."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = a
    (ux, uy, uz), (vx, vy, vz), (wx, wy, wz) = b
    return (
        (ax * ux + ay * uy + az * uz, bx * ux + by * uy + bz * uz, cx * ux + cy * uy + cz * uz),
        (ax * vx + ay * vy + az * vz, bx * vx + by * vy + bz * vz, cx * vx + cy * vy + cz * vz),
        (ax * wx + ay * wy + az * wz, bx * wx + by * wy + bz * wz, cx * wx + cy * wy + cz * wz),
    )


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
