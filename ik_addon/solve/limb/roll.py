"""Roll of a limb about the line from its root to its target, and how it moves a joint at one of its ends."""

from __future__ import annotations

from math import atan2, cos, inf, sin
from typing import NamedTuple

from ..maths.cones import Range
from .cone_arcs import (
    EDGE,
    WHOLE,
    Arc,
    Circle,
    arcs_inside,
    contains,
    half_turn_axis,
    is_half_turn,
    linear_roots,
    outside,
    wrapped,
)

_Harmonic = tuple[float, float, float]
"""Constant, cosine and sine."""


class RolledJoint(NamedTuple):
    """A joint whose bone, or its parent, turns about a line; in the axes of the joint at rest."""

    limits: Range
    along: Circle
    """The path of the bone's Y axis."""
    twist_sine: _Harmonic
    """Sine of the twist, times a factor shared with the cosine."""
    twist_cosine: _Harmonic
    twists: list[Arc]
    """Arcs in which the twist may be."""

    @classmethod
    def of(cls, limits: Range, x: Circle, y: Circle, z: Circle) -> RolledJoint:
        """Return a joint whose bone's axes move along circles."""
        twists = WHOLE if limits.twist_low == -inf else [(limits.twist_low, limits.twist_high)]
        (xa, xb, xc), (za, zb, zc) = x, z
        if is_half_turn(y.at(0.0)):
            # A bone at half a turn, which stays there if it rolls about itself, gets its twist from its X axis.
            sign = 1.0 if half_turn_axis(limits)[0] else -1.0
            sine, cosine = ((sign * xa[i], sign * xb[i], sign * xc[i]) for i in (2, 0))
        else:
            sine, cosine = (za[0] - xa[2], zb[0] - xb[2], zc[0] - xc[2]), (xa[0] + za[2], xb[0] + zb[2], xc[0] + zc[2])
        return cls(limits, y, sine, cosine, twists)

    def twist(self, roll: float) -> float:
        """Return the joint's twist at a roll."""
        c, s = cos(roll), sin(roll)
        p, q = self.twist_sine, self.twist_cosine
        return atan2(p[0] + p[1] * c + p[2] * s, q[0] + q[1] * c + q[2] * s)

    def allows(self, roll: float, slack: float = 2.0 * EDGE) -> bool:
        """Return whether the joint is within its limits, but for some slack."""
        if outside(self.along.at(roll), self.limits) > slack:
            return False
        return self.twists is WHOLE or contains(self.twists, self.twist(roll), slack)

    def bounds(self) -> list[float]:
        """Return the rolls at which the joint may reach a limit."""
        arcs = arcs_inside(self.along, self.limits)
        found = [] if arcs is WHOLE else [wrapped(end) for arc in arcs for end in arc]
        if self.twists is not WHOLE:
            for limit in {end for arc in self.twists for end in arc}:
                c, s = cos(limit), sin(limit)
                both = zip(self.twist_sine, self.twist_cosine, strict=True)
                found += linear_roots(*(p * c - q * s for p, q in both))
        return found


def nearest_roll(joints: list[RolledJoint]) -> float | None:
    """Return the roll nearest to 0 that all joints allow; None if they allow none in common."""
    if all(joint.allows(0.0) for joint in joints):
        return 0.0
    tried = [roll for joint in joints for roll in joint.bounds()]
    return min((roll for roll in tried if all(joint.allows(roll) for joint in joints)), key=abs, default=None)
