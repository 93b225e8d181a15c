"""The edge of a joint's cone as a curve, its best points, and the direction inside a cone nearest to another one.

The edge consists of pieces, one for each quadrant. The cone of a joint that is locked about one axis has no inside: one
piece is all of it. Everything is in plain floats.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from math import asin, atan2, copysign, cos, inf, pi, sin, sqrt
from operator import itemgetter
from typing import NamedTuple

from ..maths.cones import RIM
from ..maths.numbers import Vector, cross, minus, norm
from .cone_arcs import EDGE, Range, outside, wrapped

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


def edge_point(x: float, z: float, dx: float, dz: float) -> EdgePoint:
    """Return the edge point of the swing (x, z) with the derivatives (dx, dz) along the edge."""
    square = x * x + z * z
    w = sqrt(max(1.0 - square, 1e-12))
    dw = -(x * dx + z * dz) / w
    direction = (-2.0 * w * z, 1.0 - 2.0 * square, 2.0 * w * x)
    speed = (2.0 * (w * dx - dw * x), 2.0 * (z * dx - x * dz), 2.0 * (w * dz - dw * z))
    return EdgePoint(x, z, direction, speed, cross(speed, direction))


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
        return edge_point(a + b * c + e * s, f + g * c + h * s, e * c - b * s, h * c - g * s)


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
