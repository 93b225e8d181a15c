"""Rotations as tuples of numbers: frames, quaternions, and those of joints, a swing after a twist, see `cones`."""

from collections.abc import Callable, Sequence
from math import inf, isfinite, pi, sin, sqrt
from typing import NamedTuple

from .numbers import Number, Numbers, Pair
from .vectors import Vector, cross, dot, either, minus, norm, plus, reject, size_of, times, unit, unit_of

Frame = tuple[Vector, Vector, Vector]
"""The axes X, Y and Z of a bone, or the columns of a matrix."""
Matrix = Sequence[Sequence[Number]]
"""Three rows."""
Quaternion = tuple[Number, Number, Number, Number]
"""w first."""
STILL: Quaternion = (1.0, 0.0, 0.0, 0.0)
HALF_TURN = 5e-13
"""One plus the cosine of two directions, below which rounding would choose the rotation between them."""
OPPOSITE = 1e-6
"""Below this length of the sum of two unit vectors, rounding in the input would choose the axis between them."""
NEARLY_OPPOSITE = 1e-2
"""Below this length, the sum is not precise enough to divide by."""
TIE = 1e-9
"""Limits whose distances differ by no more than this, in radians or as cosines, are equally near: half a turn away,
where a joint may be exactly, rounding would choose between them."""
AT = 1e-6
"""A joint is at a limit if it is within about this fraction of it."""
UNLIMITED = 1e8
"""The half-axis of an ellipse for an axis without limit: the ellipse is a strip."""
RIM = 1.0 - 1e-7
"""The largest swing: just short of half a turn, where swing and twist cannot be told apart."""
_TURN = 2.0 * pi


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
    (x, y, z), (u, v, w), (p, q, r) = b  # written out: `applied` three times takes twice as long
    return (
        (ax * x + bx * y + cx * z, ay * x + by * y + cy * z, az * x + bz * y + cz * z),
        (ax * u + bx * v + cx * w, ay * u + by * v + cy * w, az * u + bz * v + cz * w),
        (ax * p + bx * q + cx * r, ay * p + by * q + cy * r, az * p + bz * q + cz * r),
    )


def back_product(a: Frame, b: Frame) -> Frame:
    """Return the frame b in the axes of a."""
    return product(transposed(a), b)


def carried(v: Vector, a: Vector, b: Vector, axis: Vector) -> Vector:
    """Return a vector turned by the smallest rotation of a to b, both unit; about `axis` if they are opposite."""
    x, y, z = plus(a, b)
    room = 0.5 * (x * x + y * y + z * z)  # 1 + cosine, without its rounding if they are nearly opposite
    if room < HALF_TURN:
        return minus(times(axis, 2.0 * dot(axis, v)), v)
    share, along = (v[0] * x + v[1] * y + v[2] * z) / room, 2.0 * dot(v, a)
    return v[0] - share * x + along * b[0], v[1] - share * y + along * b[1], v[2] - share * z + along * b[2]


def tilted(frame: Frame, tip: Vector, target: Vector, reach: tuple[float, float]) -> Frame:
    """Return the frame of a bone turned by as little as brings its head within reach of the root, or near to that.

    Args:
        frame: how the bone should be turned.
        tip: its end, in its own axes.
        target: of the end, relative to the root.
        reach: the least and the greatest distance of the head from the root.
    """
    way, size, away = applied(frame, tip), norm(tip), norm(target)
    now = norm(minus(target, way))
    wanted = min(max(now, reach[0]), reach[1])
    twice, across = 2.0 * size * away, norm(reject(way, unit(target)))
    if wanted == now or min(twice, across) <= OPPOSITE * size:  # in line with the target, it has no side to turn to
        return frame
    # By the law of cosines.
    cosine = min(max((size * size + away * away - wanted * wanted) / twice, -1.0), 1.0)
    line = unit(target)
    there = plus(times(line, cosine), times(unit(reject(way, line)), sqrt(1.0 - cosine * cosine)))
    x, y, z = (carried(axis, unit(way), there, line) for axis in frame)
    return x, y, z


def transposed(matrix: Matrix) -> Frame:
    """Return the columns of a matrix, or the rows of a frame: the frame of the inverse rotation."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = matrix
    return (ax, bx, cx), (ay, by, cy), (az, bz, cz)


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


def matrix_of(q: Quaternion) -> Frame:
    """Return the matrix of a rotation, row by row."""
    w, x, y, z = q
    u, v, t = x + x, y + y, z + z
    xx, xy, xz, wx, yy, yz, zz, wy, wz = x * u, x * v, x * t, w * u, y * v, y * t, z * t, w * v, w * t
    return (1.0 - (yy + zz), xy - wz, xz + wy), (xy + wz, 1.0 - (xx + zz), yz - wx), (xz - wy, yz + wx, 1.0 - (xx + yy))


def turned(turn: Quaternion, vectors: Sequence[Vector]) -> list[Vector]:
    """Return several vectors turned by a rotation."""
    (a, b, c), (d, e, f), (g, h, i) = matrix_of(turn)
    return [(a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z) for x, y, z in vectors]


def vector_of(do: Numbers, q: Quaternion) -> Vector:
    """Return the rotation vector of a unit quaternion, in radians, at most half a turn long."""
    w, x, y, z = q
    sine = do.most(do.sqrt(x * x + y * y + z * z), 1e-150)
    share = 2.0 * do.arctan2(sine, abs(w)) / sine
    return times((x, y, z), do.where(w < 0.0, -share, share))


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


def at_limit(do: Numbers, angles: Vector, low: Pair, high: Pair, twist_low: Number, twist_high: Number) -> Number:
    """Return whether a swing about X and about Z or a twist is at a limit of its joint; locked axes do not count."""
    x, z, twist = angles
    level, found = 0.0, (twist_high > twist_low) & ((twist <= twist_low + AT) | (twist >= twist_high - AT))
    for swing, least, most in ((x, low[0], high[0]), (z, low[1], high[1])):
        turns = least + most > 0.0
        share = swing / do.most(do.where(swing < 0.0, least, most), 1e-12)
        level = level + do.where(turns, share * share, 0.0)
        # Where rest itself is the limit, as in a knee that does not bend back, no ellipse shows it.
        found = found | (turns & (((least == 0.0) & (swing <= AT)) | ((most == 0.0) & (swing >= -AT))))
    return found | (level > 1.0 - AT)


def nearest_twist(do: Numbers, twist: Number, low: Number, high: Number) -> Number:
    """Return the allowed twist nearest on the circle to a twist from -pi to pi."""
    outside = (twist < low) | (twist > high)
    if not do.any(outside):
        return twist
    # Infinite limits are never exceeded, but would cause warnings.
    to_low, to_high = do.cos(twist - do.most(low, -_TURN)), do.cos(twist - do.least(high, _TURN))
    return do.where(outside, do.where(to_low > to_high + TIE, low, high), twist)


class Range(NamedTuple):
    """The limits of one joint in plain floats; see `cones.Cone`."""

    low: tuple[float, float]
    high: tuple[float, float]
    twist_low: float
    twist_high: float


def range_of(x_low: float, x_high: float, z_low: float, z_high: float, least: float, most: float) -> Range:
    """Return the limits of a joint, given by its angles about X and Z and its twists in radians; infinite: no limit."""
    left, right, down, up = (
        sin(min(abs(angle), pi) / 2.0) if isfinite(angle) else UNLIMITED for angle in (x_low, x_high, z_low, z_high)
    )
    least, most = least if least > -pi else -inf, most if most < pi else inf
    # An interval with one open side has only one end on the circle: close it at half a turn.
    if isfinite(least) or isfinite(most):
        least, most = max(least, -pi), min(most, pi)
    return Range((left, down), (right, up), least, most)
