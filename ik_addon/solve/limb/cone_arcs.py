"""Where a circle of directions is inside a joint's cone, and which angles on it are allowed and nearest.

A bone that turns about a line takes its Y axis along a circle on the unit sphere, y(a) = center + cosine * cos(a) +
sine * sin(a), with three vectors in the axes of the joint at rest. The edge of a cone is where
(x / half-axis)^2 + (z / half-axis)^2 = 1 in swing coordinates (see `cones`), which for a unit vector y reads
y_z^2 / half_x^2 + y_x^2 / half_z^2 = 2 (1 + y_y): on the circle a trigonometric polynomial of degree two with at most
four roots.

Everything is in plain floats, in radians.
"""

from __future__ import annotations

from itertools import pairwise
from math import acos, atan2, cbrt, copysign, cos, hypot, inf, pi, sin, sqrt
from typing import NamedTuple

from ..maths.numbers import Vector, dot
from .frames import carried

Arc = tuple[float, float]
"""From one angle to another that is not less; a length of a whole turn means the whole circle."""
TURN = 2.0 * pi
WHOLE: list[Arc] = [(-pi, pi)]
AT = 1e-6
"""A joint is at a limit if it is within about this fraction of it."""
EDGE = 1e-9
"""A direction no farther than about this outside a cone is on its edge."""
SLACK = 1e-9
"""Radians by which an angle may be outside an arc and still count as in it."""
_WIDE = 1e7
"""A half-axis larger than this belongs to an axis without limit."""
_HALF_TURN = 1e-6
"""A direction within this many radians of half a turn counts as one, about either axis: rounding hides which."""
_UP = (0.0, 1.0, 0.0)
_UPRIGHT = -0.5
"""Cosine of the swing above which four entries of a rotation give its twist to the last bits."""
_ROUND = 1e-9
"""A second harmonic smaller than this fraction of the first counts as none."""


class Range(NamedTuple):
    """The limits of a joint in plain floats; see `cones.Cone`."""

    low: tuple[float, float]
    high: tuple[float, float]
    twist_low: float
    twist_high: float


class Circle(NamedTuple):
    """The path of a direction that turns about a line."""

    center: Vector
    cosine: Vector
    sine: Vector

    def at(self, angle: float) -> Vector:
        """Return the direction at an angle."""
        c, s = cos(angle), sin(angle)
        (ax, ay, az), (bx, by, bz), (cx, cy, cz) = self
        return ax + c * bx + s * cx, ay + c * by + s * cy, az + c * bz + s * cz


def outside(y: Vector, cone: Range) -> float:
    """Return how far a direction is outside a cone, in about radians: 0 on the edge, negative inside."""
    x, z = y[2], -y[0]
    low, high = cone.low, cone.high
    a = low[0] if x < 0.0 else high[0]
    b = low[1] if z < 0.0 else high[1]
    if a > _WIDE and b > _WIDE:
        return -1.0
    if is_half_turn(y):
        return 1.0 - max(*low, *high)
    # About a locked axis, the coordinate itself is the excess.
    locked = max(0.0 if a else abs(x), 0.0 if b else abs(z))
    p, q = x / a if a else 0.0, z / b if b else 0.0
    size, edge = sqrt(p * p + q * q), sqrt(2.0 * max(1.0 + y[1], 0.0))
    if size > edge:
        return max((1.0 - edge / size) * sqrt(2.0 * max(1.0 - y[1], 0.0)), locked)
    return locked or (size - edge) * min(a or b, b or a, 1.0)


def is_half_turn(y: Vector) -> bool:
    """Return whether a direction is half a turn away from rest."""
    return y[1] < 0.0 and hypot(y[0], y[2]) < _HALF_TURN


def half_turn_axis(cone: Range) -> Vector:
    """Return the axis, X or Z, about which a cone allows the largest swing."""
    return (1.0, 0.0, 0.0) if max(cone.low[0], cone.high[0]) >= max(cone.low[1], cone.high[1]) else (0.0, 0.0, 1.0)


def swing_axis(y: Vector, cone: Range) -> Vector:
    """Return the axis of the swing to a direction; at half a turn, the axis about which the cone allows most."""
    size = hypot(y[0], y[2])
    if size == 0.0 or is_half_turn(y):
        return half_turn_axis(cone)
    return y[2] / size, 0.0, -y[0] / size


def arcs_inside(circle: Circle, cone: Range) -> list[Arc]:
    """Return the arcs of a circle that are inside a cone, beginning between -pi and pi.

    If the joint is locked about an axis, the circle crosses the plane that is left in points, arcs of zero length.
    """
    low, high = cone.low, cone.high
    if min(*low, *high) > _WIDE:
        return WHOLE
    for axis, component in ((0, 2), (1, 0)):
        if low[axis] == 0.0 == high[axis]:
            return [(a, a) for a in _crossings(circle, component) if outside(circle.at(a), cone) <= EDGE]
    inside = []
    for axis, component in ((0, 2), (1, 0)):
        if low[axis] == 0.0 or high[axis] == 0.0:
            inside += [a for a in _crossings(circle, component) if outside(circle.at(a), cone) <= EDGE]
    roots = []
    seen: set[tuple[float, float]] = set()
    for a in (low[0], high[0]):
        for b in (low[1], high[1]):
            if a and b and (a, b) not in seen:
                seen.add((a, b))
                roots += _edge_crossings(circle, a, b)
    inside += [a for a in roots if abs(outside(circle.at(a), cone)) <= EDGE]
    if not inside:
        return WHOLE if outside(circle.at(0.0), cone) <= EDGE else []
    inside.sort()
    inside.append(inside[0] + TURN)
    arcs: list[Arc] = []
    for a, b in pairwise(inside):
        if outside(circle.at((a + b) / 2.0), cone) <= EDGE:
            if arcs and arcs[-1][1] == a:
                arcs[-1] = (arcs[-1][0], b)
            else:
                arcs.append((a, b))
        elif not arcs or arcs[-1][1] != a:
            arcs.append((a, a))
    return arcs


def linear_roots(constant: float, cosine: float, sine: float) -> list[float]:
    """Return the angles, from -pi to pi, at which constant + cosine cos(a) + sine sin(a) = 0."""
    size = hypot(cosine, sine)
    if abs(constant) > size * (1.0 + EDGE) or size == 0.0:
        return []
    middle, half = atan2(sine, cosine), acos(min(max(-constant / size, -1.0), 1.0))
    return [wrapped(middle - half), wrapped(middle + half)]


def wrapped(angle: float) -> float:
    """Return an angle between -pi and pi."""
    return angle - TURN * round(angle / TURN)


def contains(arcs: list[Arc], angle: float, slack: float = SLACK) -> bool:
    """Return whether an angle is in one of several arcs, or outside by some slack."""
    for a, b in arcs:
        past = (angle - a + slack) % TURN
        if past <= b - a + 2.0 * slack or b - a >= TURN:
            return True
    return False


def nearest_of(arcs: list[Arc], whole: float = 0.0, low: float = -inf, high: float = inf) -> float | None:
    """Return the angle nearest to 0 that is in one of several arcs and for which `whole` - angle is within limits.

    Args:
        arcs: where the angle may be.
        whole: what the angle is subtracted from.
        low: minimum of the difference; -inf: no limits.
        high: maximum of the difference.
    """
    tried = [0.0, *(wrapped(end) for arc in arcs if arc[1] - arc[0] < TURN for end in arc)]
    if low != -inf:
        tried += [wrapped(whole - low), wrapped(whole - high)]
        tried = [angle for angle in tried if contains([(low, high)], whole - angle)]
    return min((angle for angle in tried if contains(arcs, angle)), key=abs, default=None)


def _crossings(circle: Circle, component: int) -> list[float]:
    return linear_roots(circle.center[component], circle.cosine[component], circle.sine[component])


def _edge_crossings(circle: Circle, half_x: float, half_z: float) -> list[float]:
    """Return where a circle crosses the whole ellipse with these half-axes."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = circle
    p, q = 1.0 / (half_x * half_x), 1.0 / (half_z * half_z)
    return _roots(
        p * (az * az + (bz * bz + cz * cz) / 2.0) + q * (ax * ax + (bx * bx + cx * cx) / 2.0) - 2.0 * (1.0 + ay),
        2.0 * (p * az * bz + q * ax * bx - by),
        2.0 * (p * az * cz + q * ax * cx - cy),
        (p * (bz * bz - cz * cz) + q * (bx * bx - cx * cx)) / 2.0,
        p * bz * cz + q * bx * cx,
    )


def _roots(c0: float, c1: float, s1: float, c2: float, s2: float) -> list[float]:
    """Return the angles at which c0 + c1 cos(a) + s1 sin(a) + c2 cos(2a) + s2 sin(2a) = 0.

    With x = cos(a) and y = sin(a) this is a conic. Some sum of the conic and the unit circle is a pair of lines, which
    meet the circle in the roots. In coordinates where only cos(2a) is left, the weight of the circle is between the
    values that remove x^2 and y^2: there the determinant has opposite signs.
    """
    second = hypot(c2, s2)
    if second <= _ROUND * (abs(c1) + abs(s1)):
        found = linear_roots(c0, c1, s1)
    else:
        origin = 0.5 * atan2(s2, c2)
        c, s = cos(origin), sin(origin)
        # In units of twice the second harmonic: (1 - w) x^2 - w y^2 + e x + f y + g = 0.
        e, f, g = (c1 * c + s1 * s) / (2.0 * second), (s1 * c - c1 * s) / (2.0 * second), c0 / (2.0 * second) - 0.5
        w = _weight(e, f, g)
        a, b = sqrt(1.0 - w), sqrt(w)
        # At one end one of the two is 0 / 0; its square follows from the other.
        if w < 0.5:
            k = e / (2.0 * a)
            m = sqrt(max(k * k - g - w, 0.0))
            m = -m if f < 0.0 else m
        else:
            m = f / (2.0 * b)
            k = sqrt(max(m * m + g + w, 0.0))
            k = -k if e < 0.0 else k
        tilt = atan2(b, a)
        found = []
        for middle, cosine in ((-tilt, -k - m), (tilt, m - k)):
            if abs(cosine) <= 1.0 + 1e-9:
                half = acos(min(max(cosine, -1.0), 1.0))
                found += [origin + middle - half, origin + middle + half]
    roots = []
    for angle in found:
        for _ in range(3):
            c, s = cos(angle), sin(angle)
            cc, ss = c * c - s * s, 2.0 * c * s
            slope = s1 * c - c1 * s + 2.0 * (s2 * cc - c2 * ss)
            value = c0 + c1 * c + s1 * s + c2 * cc + s2 * ss
            if abs(value) >= 0.1 * abs(slope):
                break
            angle -= value / slope
        roots.append(wrapped(angle))
    return roots


def _weight(e: float, f: float, g: float) -> float:
    """Return a w from 0 to 1 at which (1 - w) x^2 - w y^2 + e x + f y + g + w = 0 is a pair of lines.

    It is a root of w^3 + (g - 1) w^2 + (e^2 / 4 + f^2 / 4 - g) w - f^2 / 4; of several, the one farthest from 0 and 1.
    """
    ff = f * f / 4.0
    middle = (1.0 - g) / 3.0
    square = e * e / 4.0 + ff - g
    p, q = middle * middle - square / 3.0, middle * (middle * middle - square / 2.0) + ff / 2.0
    # With v = w - middle this is v^3 - 3 p v - 2 q.
    over = q * q - p * p * p
    if over > 0.0:
        size = cbrt(abs(q) + sqrt(over))
        roots = [copysign(size + p / size, q)] if size else [0.0]
    else:
        angle, size = atan2(sqrt(-over), q) / 3.0, 2.0 * sqrt(p)
        roots = [size * cos(angle + turn) for turn in (0.0, TURN / 3.0, -TURN / 3.0)]
    w = min((middle + v for v in roots), key=lambda w: abs(w - 0.5))
    return min(max(w, 0.0), 1.0)


def twist_of(turn: tuple[Vector, Vector, Vector], cone: Range) -> float:
    """Return the twist of a joint's rotation, given by its columns."""
    x, y, z = turn
    if y[1] > _UPRIGHT:
        return atan2(z[0] - x[2], x[0] + z[2])
    # Towards half a turn both arguments above vanish.
    axis = swing_axis(y, cone)
    swung_x, swung_z = carried((1.0, 0.0, 0.0), _UP, y, axis), carried((0.0, 0.0, 1.0), _UP, y, axis)
    return atan2(-dot(x, swung_z), dot(x, swung_x))


def allows(cone: Range, turn: tuple[Vector, Vector, Vector], slack: float) -> bool:
    """Return whether a joint may have a rotation, given by its columns, but for some slack in radians."""
    if outside(turn[1], cone) > slack:
        return False
    return cone.twist_low == -inf or contains([(cone.twist_low, cone.twist_high)], twist_of(turn, cone), slack)


def stands_at_limit(turn: tuple[Vector, Vector, Vector], cone: Range) -> bool:
    """Return whether a joint with this rotation, given by its columns, is at a limit; see `cones.at_limit`."""
    y, twist = turn[1], twist_of(turn, cone)
    if cone.twist_high > cone.twist_low and not cone.twist_low + AT < twist < cone.twist_high - AT:
        return True
    double = 2.0 * sqrt(max((1.0 + y[1]) / 2.0, 1e-30))
    level = 0.0
    (low_x, low_z), (high_x, high_z) = cone.low, cone.high
    for swing, low, high in ((y[2] / double, low_x, high_x), (-y[0] / double, low_z, high_z)):
        if low + high > 0.0:
            # No ellipse shows a limit at rest itself, like that of a knee that can't bend back.
            if (low == 0.0 and swing <= AT) or (high == 0.0 and swing >= -AT):
                return True
            share = swing / max(low if swing < 0.0 else high, 1e-12)
            level += share * share
    return level > 1.0 - AT
