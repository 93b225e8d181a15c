"""Directions and a joint's cone: where a circle of them is inside, the edge as a curve, and what is nearest on it.

A bone that turns about a line takes its Y axis along a circle on the unit sphere, y(a) = center + cosine * cos(a) +
sine * sin(a), with three vectors in the axes of the joint at rest. The edge of a cone is where
(x / half-axis)^2 + (z / half-axis)^2 = 1 in swing coordinates (see `cones`), which for a unit vector y reads
y_z^2 / half_x^2 + y_x^2 / half_z^2 = 2 (1 + y_y): on the circle a trigonometric polynomial of degree two with at most
four roots.

As a curve, the edge consists of pieces, one for each quadrant. The cone of a joint that is locked about one axis has no
inside: one piece is all of it.

Everything is in plain floats, in radians.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from math import acos, asin, atan2, cbrt, copysign, cos, hypot, inf, pi, sin, sqrt
from operator import itemgetter
from typing import NamedTuple

from ..maths.turns import RIM, Frame, Range, carried
from ..maths.vectors import Vector, cross, dot, minus, norm

Arc = tuple[float, float]
"""From one angle to another that is not less; a length of a whole turn means the whole circle."""
TURN = 2.0 * pi
WHOLE: list[Arc] = [(-pi, pi)]
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
    inside, roots = [], []
    for axis, component in ((0, 2), (1, 0)):
        if low[axis] == 0.0 or high[axis] == 0.0:
            crossings = linear_roots(*(part[component] for part in circle))
            found = [a for a in crossings if outside(circle.at(a), cone) <= EDGE]
            if low[axis] == high[axis]:
                return [(a, a) for a in found]
            inside += found
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


def twist_of(turn: Frame, cone: Range) -> float:
    """Return the twist of a joint's rotation, given by its columns."""
    x, y, z = turn
    if y[1] > _UPRIGHT:
        return atan2(z[0] - x[2], x[0] + z[2])
    # Towards half a turn both arguments above vanish.
    axis = swing_axis(y, cone)
    swung_x, swung_z = carried((1.0, 0.0, 0.0), _UP, y, axis), carried((0.0, 0.0, 1.0), _UP, y, axis)
    return atan2(-dot(x, swung_z), dot(x, swung_x))


def allows(cone: Range, turn: Frame, slack: float) -> bool:
    """Return whether a joint may have a rotation, given by its columns, but for some slack in radians."""
    if outside(turn[1], cone) > slack:
        return False
    return cone.twist_low == -inf or contains([(cone.twist_low, cone.twist_high)], twist_of(turn, cone), slack)


def angles_of(turn: Frame, cone: Range) -> Vector:
    """Return the swing about X and about Z, and the twist, of a joint's rotation, given by its columns."""
    x, y, z = turn[1]
    double = 2.0 * sqrt(max((1.0 + y) / 2.0, 1e-30))
    return z / double, -x / double, twist_of(turn, cone)


_SAMPLES = 9
"""Number of points of a piece, its ends included, from which the search for the best point of an edge starts."""
_CHORDS = 4
"""Number of chords that measure the length of a span."""
_ROOM = 1.02
"""Upper bound on the ratio of a span's length to that of its chords."""
_STEPS = 40
"""Maximum number of false-position steps."""
_STILL = 1e-11
"""Radians along an edge below which another step is not worthwhile."""


class EdgePoint(NamedTuple):
    """A swing on the edge, with derivatives along the edge."""

    x: float
    z: float
    direction: Vector
    """Where the swing takes the Y axis."""
    speed: Vector
    """Angular velocity of a bone that moves along the edge."""
    turning: Vector
    """Derivative of the direction along the edge."""


class Piece(NamedTuple):
    """A part of an edge: swings whose coordinates are constant + cosine cos(a) + sine sin(a), for angles a."""

    x: tuple[float, float, float]
    z: tuple[float, float, float]
    start: float
    end: float

    def at(self, angle: float) -> EdgePoint:
        """Return the swing at an angle."""
        c, s = cos(angle), sin(angle)
        (a, b, e), (f, g, h) = self.x, self.z
        x, z, dx, dz = a + b * c + e * s, f + g * c + h * s, e * c - b * s, h * c - g * s
        square = x * x + z * z
        w = sqrt(max(1.0 - square, 1e-12))
        dw = -(x * dx + z * dz) / w
        direction = (-2.0 * w * z, 1.0 - 2.0 * square, 2.0 * w * x)
        speed = (2.0 * (w * dx - dw * x), 2.0 * (z * dx - x * dz), 2.0 * (w * dz - dw * z))
        return EdgePoint(x, z, direction, speed, cross(speed, direction))


class Span(NamedTuple):
    """The part of a piece between two neighboring samples."""

    piece: Piece
    start: float
    end: float
    first: int
    """Index of the sample at its start; the next one is at its end."""
    way: float
    """Upper bound in radians on how far the direction moves along the span."""


@lru_cache(maxsize=256)
def edge_of(cone: Range) -> tuple[list[EdgePoint], list[Span]]:
    """Return the edge of a cone: samples along it, piece by piece, and the spans between them."""
    pieces = []
    low, high = ([min(axis, RIM) for axis in side] for side in (cone.low, cone.high))
    if cone.low == cone.high == (0.0, 0.0):
        pieces.append(Piece((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0, 0.0))
    elif low[1] == 0.0 == high[1]:
        pieces.append(Piece((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), -asin(low[0]), asin(high[0])))
    elif low[0] == 0.0 == high[0]:
        pieces.append(Piece((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), -asin(low[1]), asin(high[1])))
    else:
        # A limit of exactly half a turn ends just short of it: at half a turn both ways round look the same.
        (up, left), (down, right) = ([min(a, RIM) if a <= 1.0 else a for a in side] for side in (cone.high, cone.low))
        for i, (x, z) in enumerate(((up, left), (-down, left), (-down, -right), (up, -right))):
            # An axis without limit makes a strip, whose edge is straight up to half a turn.
            if abs(x) > 1.0 and abs(z) > 1.0:
                continue
            if x == 0.0 or abs(z) > 1.0:
                pieces.append(Piece((x, 0.0, 0.0), *_straight(z, x)))
            elif z == 0.0 or abs(x) > 1.0:
                along, start, end = _straight(x, z)
                pieces.append(Piece(along, (z, 0.0, 0.0), start, end))
            else:
                start = i * pi / 2.0
                pieces.append(Piece((0.0, abs(x), 0.0), (0.0, 0.0, abs(z)), start, start + pi / 2.0))
    points: list[EdgePoint] = []
    spans: list[Span] = []
    for piece in pieces:
        inner = [piece.start + (piece.end - piece.start) * k / (_SAMPLES - 1) for k in range(1, _SAMPLES - 1)]
        angles = [piece.start, *inner, piece.end]
        spans += [Span(piece, a, b, len(points) + i, _way(piece, a, b)) for i, (a, b) in enumerate(pairwise(angles))]
        points += map(piece.at, angles)
    return points, spans


def _way(piece: Piece, start: float, end: float) -> float:
    """Return an upper bound on the length of a part of a piece: that of its chords, with room for what they cut off."""
    ways = [piece.at(start + (end - start) * k / _CHORDS).direction for k in range(_CHORDS + 1)]
    return _ROOM * sum(norm(minus(b, a)) for a, b in pairwise(ways))


def _straight(end: float, across: float) -> tuple[tuple[float, float, float], float, float]:
    """Return the terms of a coordinate that goes from 0 to `end` while the other stays at `across`, and its angles."""
    widest = sqrt(1.0 - across * across)
    far = min(abs(end), sqrt(max(RIM * RIM - across * across, 0.0)))
    return (0.0, 0.0, copysign(widest, end)), 0.0, asin(far / widest)


def best_on_edge(
    cone: Range,
    merit: Callable[[EdgePoint], tuple[float, float]],
    *,
    least: Callable[[EdgePoint], float] | None = None,
    every: bool = False,
) -> list[tuple[float, EdgePoint]]:
    """Return maxima of a merit along the edge of a cone with their points, the greatest first.

    Args:
        cone: the joint's limits.
        merit: returns the merit of an edge point and its derivative along the edge.
        least: returns for an edge point a number d such that its merit is at most -d^2 / 2, and that shrinks along the
            edge by no more than the distance gone. Parts of the edge that this rules out are skipped.
        every: whether to return all local maxima; otherwise only the first of those returned counts.
    """
    points, spans = edge_of(cone)
    if least is None:
        values = dict(enumerate(map(merit, points)))
    else:
        values, spans = _open(points, spans, merit, least)
    best = max(sorted(values), key=lambda i: values[i][0])
    found = [(values[best][0], points[best])]
    brackets = []
    for span in spans:
        one, two = values[span.first], values[span.first + 1]
        if every and span.start == span.piece.start and one[1] <= 0.0:
            found.append((one[0], points[span.first]))
        if every and span.end == span.piece.end and two[1] >= 0.0:
            found.append((two[0], points[span.first + 1]))
        if one[1] > 0.0 > two[1]:
            length = span.end - span.start
            brackets.append((max(one[0] + one[1] * length, two[0] - two[1] * length), span, one[1], two[1]))
    for most, span, up, down in sorted(brackets, key=itemgetter(0), reverse=True):
        if every or most > found[0][0]:
            peak = _peak(span, up, down, merit)
            found.append(peak)
            if peak[0] > found[0][0]:
                found[0] = peak
    return found


def _open(
    points: list[EdgePoint],
    spans: list[Span],
    merit: Callable[[EdgePoint], tuple[float, float]],
    least: Callable[[EdgePoint], float],
) -> tuple[dict[int, tuple[float, float]], list[Span]]:
    """Return the merits at the ends of the spans on which the best point of an edge may lie, and these spans."""
    misses = list(map(least, points))
    # Half of this is a lower bound on the miss of any point between two samples.
    both = [misses[span.first] + misses[span.first + 1] - span.way for span in spans]
    values: dict[int, tuple[float, float]] = {}
    kept, best = [], inf
    for lower, span in sorted(zip(both, spans, strict=True), key=itemgetter(0)):
        if lower > 2.0 * best:
            break
        kept.append(span)
        for i in (span.first, span.first + 1):
            if i not in values:
                values[i] = merit(points[i])
                best = min(best, sqrt(max(-2.0 * values[i][0], 0.0)))
    return values, kept


def _peak(
    span: Span, up: float, down: float, merit: Callable[[EdgePoint], tuple[float, float]]
) -> tuple[float, EdgePoint]:
    """Return the maximum on a span whose slope is positive at the start (`up`) and negative at the end (`down`).

    False position that halves the weight of an end that stays (M. Dowell and P. Jarratt, doi 10.1007/BF01934364).
    """
    piece, low, high = span[:3]
    side = 0
    angle = low
    for _ in range(_STEPS):
        before, angle = angle, (low * down - high * up) / (down - up)
        point = piece.at(angle)
        value, slope = merit(point)
        if slope == 0.0 or abs(angle - before) < _STILL or high - low < _STILL:
            break
        if slope > 0.0:
            low, up = angle, slope
            if side > 0:
                down *= 0.5
            side = 1
        else:
            high, down = angle, slope
            if side < 0:
                up *= 0.5
            side = -1
    return value, point


def nearest_direction(direction: Vector, cone: Range) -> Vector:
    """Return the direction inside a cone that is nearest to another one, on the sphere."""
    if outside(direction, cone) <= EDGE:
        return direction
    x, y, z = direction
    if cone.low[1] == 0.0 == cone.high[1]:
        angle = _on_hinge(atan2(z, y), cone.low[0], cone.high[0])
        return 0.0, cos(angle), sin(angle)
    if cone.low[0] == 0.0 == cone.high[0]:
        angle = _on_hinge(atan2(-x, y), cone.low[1], cone.high[1])
        return -sin(angle), cos(angle), 0.0
    return peaks_towards(direction, cone)[0][1].direction


def _on_hinge(angle: float, low: float, high: float) -> float:
    """Return the angle, of those that a hinge with these half-axes allows, that is nearest to a given one."""
    least, most = -2.0 * asin(min(low, 1.0)), 2.0 * asin(min(high, 1.0))
    if least <= angle <= most:
        return angle
    return least if abs(wrapped(angle - least)) < abs(wrapped(angle - most)) else most


def peaks_towards(direction: Vector, cone: Range, *, every: bool = False) -> list[tuple[float, EdgePoint]]:
    """Return the point of a cone's edge that is nearest to a direction, with the cosine of their angle.

    With `every`, the other locally nearest points follow.
    """
    dx, dy, dz = direction

    def merit(point: EdgePoint) -> tuple[float, float]:
        _, _, (x, y, z), _, (tx, ty, tz) = point
        return dx * x + dy * y + dz * z, dx * tx + dy * ty + dz * tz

    return best_on_edge(cone, merit, every=every)
