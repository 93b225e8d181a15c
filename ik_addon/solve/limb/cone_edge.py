"""The edge of a joint's cone as a curve, and what is best on it: the direction of a cone nearest to another one.

The edge is gone along in pieces, one for each quadrant. A joint that is locked about one axis has no inside: all that
it can do is one piece. Everything is in plain floats.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from math import asin, atan2, copysign, cos, pi, sin, sqrt
from operator import itemgetter
from typing import NamedTuple

from ..maths.cones import RIM
from ..maths.vectors import Vector, cross
from .cone_arcs import EDGE, Range, outside, wrapped

_SAMPLES = 9
"""Points of a piece from which the search for the best one of an edge starts, the ends of the piece included."""
_STEPS = 40
_STILL = 1e-11
"""Radians along an edge that are not worth another step."""


class EdgePoint(NamedTuple):
    """A swing on the edge."""

    x: float
    z: float
    direction: Vector
    """Where it takes the Y axis."""
    speed: Vector
    """The rotation vector at which a bone turns that goes along the edge."""
    turning: Vector
    """How the direction changes with that."""


def edge_point(x: float, z: float, dx: float, dz: float) -> EdgePoint:
    """Return a swing that changes like this on its way along the edge."""
    square = x * x + z * z
    w = sqrt(max(1.0 - square, 1e-12))
    dw = -(x * dx + z * dz) / w
    direction = (-2.0 * w * z, 1.0 - 2.0 * square, 2.0 * w * x)
    speed = (2.0 * (w * dx - dw * x), 2.0 * (z * dx - x * dz), 2.0 * (w * dz - dw * z))
    return EdgePoint(x, z, direction, speed, cross(speed, direction))


class Piece(NamedTuple):
    """A part of an edge: a swing whose coordinates are constant + cosine cos(a) + sine sin(a)."""

    x: tuple[float, float, float]
    z: tuple[float, float, float]
    start: float
    end: float

    def at(self, angle: float) -> EdgePoint:
        """Return the swing at an angle."""
        c, s = cos(angle), sin(angle)
        (a, b, e), (f, g, h) = self.x, self.z
        return edge_point(a + b * c + e * s, f + g * c + h * s, e * c - b * s, h * c - g * s)


@lru_cache(maxsize=256)
def edge_of(cone: Range) -> tuple[tuple[Piece, float, EdgePoint], ...]:
    """Return the edge of a cone, sampled: pieces, angles on them, and the swings that are there."""
    pieces = []
    if cone.low == cone.high == (0.0, 0.0):
        pieces.append(Piece((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0, 0.0))
    low, high = ([min(axis, RIM) for axis in side] for side in (cone.low, cone.high))
    if pieces:
        pass
    elif low[1] == 0.0 == high[1]:
        pieces.append(Piece((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), -asin(low[0]), asin(high[0])))
    elif low[0] == 0.0 == high[0]:
        pieces.append(Piece((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), -asin(low[1]), asin(high[1])))
    else:
        # A limit at exactly half a turn ends short of it, where the way round is still told from the other one.
        (up, left), (down, right) = ([min(a, RIM) if a <= 1.0 else a for a in side] for side in (cone.high, cone.low))
        for i, (x, z) in enumerate(((up, left), (-down, left), (-down, -right), (up, -right))):
            # An axis without limit makes a strip, whose edge goes straight on to half a turn.
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
    found = []
    for piece in pieces:
        inner = [piece.start + (piece.end - piece.start) * k / (_SAMPLES - 1) for k in range(1, _SAMPLES - 1)]
        found += [(piece, angle, piece.at(angle)) for angle in (piece.start, *inner, piece.end)]
    return tuple(found)


def _straight(end: float, across: float) -> tuple[tuple[float, float, float], float, float]:
    """Return a coordinate that goes from 0 to an end while the other one stays, as a piece has it, and its angles."""
    widest = sqrt(1.0 - across * across)
    far = min(abs(end), sqrt(max(RIM * RIM - across * across, 0.0)))
    return (0.0, 0.0, copysign(widest, end)), 0.0, asin(far / widest)


def best_on_edge(
    cone: Range, merit: Callable[[EdgePoint], tuple[float, float]], *, every: bool = False
) -> list[tuple[float, EdgePoint]]:
    """Return local maxima of something along the edge of a cone, with the points at which they are.

    Args:
        cone: the joint's limits.
        merit: returns for a point of the edge how good it is, and how that grows along the edge.
        every: also those that are not the greatest.
    """
    edge = edge_of(cone)
    values = [merit(point) for _, _, point in edge]
    best = values.index(max(values, key=itemgetter(0)))
    found = [(values[best][0], edge[best][2])]
    brackets = []
    for (one, two), ((piece, a, here), (other, b, there)) in zip(pairwise(values), pairwise(edge), strict=True):
        if piece is not other:
            continue
        if every and a == piece.start and one[1] <= 0.0:
            found.append((one[0], here))
        if every and b == piece.end and two[1] >= 0.0:
            found.append((two[0], there))
        if one[1] > 0.0 > two[1]:
            most = max(one[0] + one[1] * (b - a), two[0] - two[1] * (b - a))
            brackets.append((most, (piece, a, b, one[1], two[1])))
    for most, bracket in sorted(brackets, key=itemgetter(0), reverse=True):
        if every or most > found[0][0]:
            peak = _peak(*bracket, merit)
            found.append(peak)
            if peak[0] > found[0][0]:
                found[0] = peak
    return found


def _peak(
    piece: Piece, low: float, high: float, up: float, down: float, merit: Callable[[EdgePoint], tuple[float, float]]
) -> tuple[float, EdgePoint]:
    """Return the maximum between two angles, of which the slope is positive at the one and negative at the other.

    False position, with the weight of an end that stays halved (M. Dowell and P. Jarratt, doi 10.1007/BF01934364).
    """
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
    """Return the angle nearest to another one that a hinge with these half-axes allows."""
    least, most = -2.0 * asin(min(low, 1.0)), 2.0 * asin(min(high, 1.0))
    if least <= angle <= most:
        return angle
    return least if abs(wrapped(angle - least)) < abs(wrapped(angle - most)) else most


def peaks_towards(direction: Vector, cone: Range, *, every: bool = False) -> list[tuple[float, EdgePoint]]:
    """Return the point on a cone's edge that is nearest to a direction, with its cosine.

    On wish also all others that are nearer than those next to them.
    """
    dx, dy, dz = direction

    def merit(point: EdgePoint) -> tuple[float, float]:
        _, _, (x, y, z), _, (tx, ty, tz) = point
        return dx * x + dy * y + dz * z, dx * tx + dy * ty + dz * tz

    return best_on_edge(cone, merit, every=every)
