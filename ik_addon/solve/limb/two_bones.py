"""Two bones, and a foot that hangs on them: what is known of them whatever their target is, in plain floats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import pi, sqrt
from typing import NamedTuple

from ..maths.vectors import Vector, cross, dot, norm, plus, reject, times, unit
from .cone_arcs import EDGE, Range, outside
from .cone_edge import peaks_towards
from .frames import Frame, applied, back_product, product, seen

STRAIGHT = 1e-5
"""A limb that leaves its line by less than this fraction of its length counts as straight."""
_SKEW = 1e-5
"""Radians by which a bone may point past its own Y axis: more than single precision makes of one that does not."""


@dataclass(frozen=True)
class Limb:
    """Two bones, seen from the root."""

    zero: Frame
    """Frame of the upper bone when its joint is at rest."""
    rest: Frame
    """The same of the lower bone, seen from the upper one."""
    upper: Vector
    """From head to head, in the upper bone's own axes."""
    lower: Vector
    hip: Range
    knee: Range
    upper_fk: Frame
    lower_fk: Frame
    bend_side: Vector | None = None
    """See `Problem.bend_side`."""

    @cached_property
    def lengths(self) -> tuple[float, float]:
        """Of the two bones."""
        return norm(self.upper), norm(self.lower)

    @cached_property
    def elbow(self) -> Vector:
        """Where the lower bone begins in the FK pose."""
        return applied(self.upper_fk, self.upper)

    @cached_property
    def chord(self) -> float:
        """How far the end is from the root in the FK pose."""
        return norm(plus(self.elbow, applied(self.lower_fk, self.lower)))

    @cached_property
    def is_straightforward(self) -> bool:
        """Whether bones point along their Y axes, and the FK pose leads somewhere."""
        return max(map(_skew, (self.upper, self.lower))) <= _SKEW and self.chord >= STRAIGHT

    @cached_property
    def fk_axes(self) -> Frame:
        """Line, bend and normal of the FK pose, whose end is off its root; see `axes.chain_axes`."""
        line = unit(plus(self.elbow, applied(self.lower_fk, self.lower)))
        # The centroid of both bones, as a curve: the part across the line is half of the knee's.
        bend = times(reject(self.elbow, line), sum(self.lengths) / 2.0)
        if norm(bend) < STRAIGHT:
            bend = cross(line, _roomiest(self, _hinge(self.upper_fk, line), line))
        bend = unit(bend)
        return line, bend, cross(bend, line)

    @cached_property
    def fk_knee(self) -> tuple[Frame, Vector, Vector]:
        """The knee's rotation from rest in the FK pose, the lower bone's direction in its axes, and in the knee's."""
        turn, own = back_product(product(self.upper_fk, self.rest), self.lower_fk), unit(self.lower)
        return turn, own, unit(applied(turn, own))

    @cached_property
    def turning_points(self) -> list[Vector]:
        """Where the lower bone points, in the knee's axes, with a bend that no neighbour of it exceeds."""
        along = seen(self.rest, unit(self.upper))
        found = []
        for sign in (1.0, -1.0):
            direction = times(along, sign)
            if outside(direction, self.knee) <= EDGE:
                found.append(direction)
            else:
                found += [point.direction for _, point in peaks_towards(direction, self.knee, every=True)]
        return list(dict.fromkeys(found))

    @cached_property
    def bends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Cosine and sine of the least and of the greatest bend of the knee."""
        along = seen(self.rest, unit(self.upper))
        bends = sorted((dot(along, way), norm(cross(along, way))) for way in self.turning_points)
        return bends[-1], bends[0]


class Foot(NamedTuple):
    """A child of the lower bone that keeps its orientation."""

    rest: Frame
    """Its frame when its joint is at rest, seen from the lower bone."""
    limits: Range
    frame: Frame


def _skew(arm: Vector) -> float:
    """Return by how much a bone points past its Y axis."""
    return sqrt(arm[0] * arm[0] + arm[2] * arm[2]) / norm(arm) if arm[1] > 0.0 else pi


def _hinge(frame: Frame, direction: Vector) -> Vector:
    """See `rotations.hinge`."""
    across = reject(frame[0], direction)
    return unit(across if norm(across) > 1e-4 else cross(direction, frame[2]))


def _roomiest(limb: Limb, axis: Vector, line: Vector) -> Vector:
    """Return the axis about which the knee of a straight limb has the most room, see `guess._roomiest`."""
    other = cross(line, axis)
    zero = product(limb.upper_fk, limb.rest)
    best, room = axis, -1.0
    for one in (axis, times(axis, -1.0), other, times(other, -1.0)):
        x, _, z = seen(zero, one)
        low, high = limb.knee.low, limb.knee.high
        sides = min(low[0] if x < 0.0 else high[0], 1.0), min(low[1] if z < 0.0 else high[1], 1.0)
        found = abs(x) * sides[0] + abs(z) * sides[1]
        if found > room + 1e-6:
            best, room = one, found
    return best
