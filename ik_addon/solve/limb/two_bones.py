"""Two bones, and a foot attached to them: their properties that do not depend on a target, in plain floats."""

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
"""A limb whose bend is less than this fraction of its length counts as straight."""
_SKEW = 1e-5
"""Maximum radians between a bone's direction and its Y axis: more than the rounding of single precision."""


@dataclass(frozen=True)
class Limb:
    """Two bones with limits, in the space of the root."""

    zero: Frame
    """Frame of the upper bone with its joint at rest."""
    rest: Frame
    """Frame of the lower bone with its joint at rest, in the upper bone's axes."""
    upper: Vector
    """From the upper bone's head to the lower bone's, in the upper bone's axes."""
    lower: Vector
    """From the lower bone's head to the end of the limb, in the lower bone's axes."""
    hip: Range
    knee: Range
    upper_fk: Frame
    lower_fk: Frame
    bend_side: Vector | None = None
    """See `Problem.bend_side`."""

    @cached_property
    def lengths(self) -> tuple[float, float]:
        """Lengths of the two bones."""
        return norm(self.upper), norm(self.lower)

    @cached_property
    def elbow(self) -> Vector:
        """Head of the lower bone in the FK pose, relative to the root."""
        return applied(self.upper_fk, self.upper)

    @cached_property
    def chord(self) -> float:
        """Distance from the root to the end in the FK pose."""
        return norm(plus(self.elbow, applied(self.lower_fk, self.lower)))

    @cached_property
    def is_straightforward(self) -> bool:
        """Whether bones point along their Y axes, and the FK pose's end is not at the root."""
        return max(map(_skew, (self.upper, self.lower))) <= _SKEW and self.chord >= STRAIGHT

    @cached_property
    def fk_axes(self) -> Frame:
        """Line, bend and normal of the FK pose, whose end must not be at its root; see `axes.chain_axes`."""
        line = unit(plus(self.elbow, applied(self.lower_fk, self.lower)))
        # The centroid of both bones, as a curve: half as far off the line as the knee.
        bend = times(reject(self.elbow, line), sum(self.lengths) / 2.0)
        if norm(bend) < STRAIGHT:
            bend = cross(line, _roomiest(self, _hinge(self.upper_fk, line), line))
        bend = unit(bend)
        return line, bend, cross(bend, line)

    @cached_property
    def fk_knee(self) -> tuple[Frame, Vector, Vector]:
        """The knee's FK rotation from rest, and the lower bone's direction in its own axes and in the knee's."""
        turn, own = back_product(product(self.upper_fk, self.rest), self.lower_fk), unit(self.lower)
        return turn, own, unit(applied(turn, own))

    @cached_property
    def turning_points(self) -> list[Vector]:
        """Directions of the lower bone, in the knee's axes, at which the knee's bend is locally least or greatest."""
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
        """Cosine and sine of the knee's least bend, and of its greatest."""
        along = seen(self.rest, unit(self.upper))
        bends = sorted((dot(along, way), norm(cross(along, way))) for way in self.turning_points)
        return bends[-1], bends[0]


class Foot(NamedTuple):
    """A child of the lower bone that keeps its orientation."""

    rest: Frame
    """Frame of the foot with its joint at rest, in the lower bone's axes."""
    limits: Range
    frame: Frame
    """Orientation that the foot should have."""


def _skew(arm: Vector) -> float:
    """Return the sine of the angle between a bone's direction and its Y axis, or pi if it points backwards."""
    return sqrt(arm[0] * arm[0] + arm[2] * arm[2]) / norm(arm) if arm[1] > 0.0 else pi


def _hinge(frame: Frame, direction: Vector) -> Vector:
    """Return the axis across a direction about which a bone bends; see `rotations.hinge`."""
    across = reject(frame[0], direction)
    return unit(across if norm(across) > 1e-4 else cross(direction, frame[2]))


def _roomiest(limb: Limb, axis: Vector, line: Vector) -> Vector:
    """Return the axis about which the knee of a straight limb has the most room; see `guess._roomiest`."""
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
