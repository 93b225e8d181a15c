"""Joint limits during a drag: where they hold a joint, and how."""

from __future__ import annotations

from math import copysign, sqrt
from typing import NamedTuple

from ..maths.cones import RIM
from ..maths.numbers import ONE, Pair, Vector, nearest_twist

HELD = 1e-9
"""A limit holds an angle back if it moves it by more than this."""
AT = 1e-2
"""A swing is at the rim of its cone if it is within about this fraction of the half-axes."""
NEAR = 0.1
"""A limit that is farther away than this holds a joint no longer."""


class Bound(NamedTuple):
    """The limits that fix part of a joint's step, in its angles: the coordinates of its swing and its twist."""

    normal: Pair | None = None
    """Unit, out of the cone; None: the swing may go anywhere."""
    depth: float = 0.0
    """How far the swing goes along it."""
    curvature: float = 0.0
    """Of the cone, by which a step along its rim is the more expensive the more the joint is pushed against it."""
    sign: float = 0.0
    """To which side the twist is at its end; 0: it may go anywhere."""
    way: float = 0.0
    """How far the twist goes."""


FREE = Bound()


class Limit(NamedTuple):
    """The limits of a joint. One that is outside at the start of a drag may stay as far outside."""

    locked: tuple[bool, bool, bool]
    """Angles that stay as they are."""
    origin: Vector
    """Where angles are measured from: locked ones from where they are, the others from 0."""
    excess: Pair
    """How far outside swing and twist may be."""
    low: Pair
    high: Pair
    twist_low: float
    twist_high: float

    @classmethod
    def of(cls, locked: tuple[bool, bool, bool], angle: Vector, low: Pair, high: Pair, *twist: float) -> Limit:
        """Return limits that allow a joint to keep its angles."""
        x, z, turned = (0.0 if is_locked else part for is_locked, part in zip(locked, angle, strict=True))
        u, v = ONE.nearest_swing(x, z, low, high)
        u, v = x - u, z - v
        excess = sqrt(u * u + v * v), abs(turned - nearest_twist(ONE, turned, *twist))
        return cls(locked, (angle[0] - x, angle[1] - z, angle[2] - turned), excess, low, high, *twist)

    def allowed(self, x: float, z: float, twist: float) -> Vector:
        """Return the allowed angles nearest to given ones."""
        (no_x, no_z, no_twist), (from_x, from_z, from_twist), (outside, turned), low, high, *ends = self
        x, z, twist = x - from_x, z - from_z, twist - from_twist
        x, z, twist = 0.0 if no_x else x, 0.0 if no_z else z, 0.0 if no_twist else twist
        u, v = ONE.nearest_swing(x, z, low, high)
        u, v = x - u, z - v
        if u or v:
            share = max(0.0, 1.0 - outside / max(sqrt(u * u + v * v), 1e-30))
            x, z = x - u * share, z - v * share
        beyond = twist - nearest_twist(ONE, twist, *ends)
        if beyond:
            twist -= beyond * max(0.0, 1.0 - turned / max(abs(beyond), 1e-30))
        x, z, twist = x + from_x, z + from_z, twist + from_twist
        share = min(1.0, RIM / max(sqrt(x * x + z * z), 1e-30))
        return x * share, z * share, twist

    def kept(self, bound: Bound, now: Vector) -> Bound:
        """Return the bound with which a step begins where another one has led, that began with `bound`."""
        found = FREE
        if bound.normal is not None:
            (p, q), curvature = self._rim(now) or (bound.normal, bound.curvature)
            x, z, _ = self.allowed(now[0] + NEAR * p, now[1] + NEAR * q, now[2])
            depth = p * (x - now[0]) + q * (z - now[1])
            if depth < 0.5 * NEAR:
                found = Bound((p, q), depth, curvature)
        if bound.sign:
            way = self.allowed(now[0], now[1], now[2] + NEAR * bound.sign)[2] - now[2]
            if bound.sign * way < 0.5 * NEAR:
                found = found._replace(sign=bound.sign, way=way)
        return found

    def crossed(self, bound: Bound, now: Vector, wanted: Vector, allowed: Vector) -> Bound:
        """Return a bound with the limits added that a joint would cross on the way from `now` to `wanted`.

        Args:
            bound: to add to; returned as it is if there is nothing to add.
            now: the angles of the joint.
            wanted: the angles that a step would give it.
            allowed: the allowed angles nearest to these.
        """
        x, z, turned = (
            0.0 if is_locked else part - there
            for is_locked, part, there in zip(self.locked, wanted, allowed, strict=True)
        )
        size = sqrt(x * x + z * z)
        if size > HELD and bound.normal is None:
            (p, q), curvature = self._rim(now) or ((x / size, z / size), 0.0)
            depth = p * (allowed[0] - now[0]) + q * (allowed[1] - now[1])
            bound = bound._replace(normal=(p, q), depth=depth, curvature=curvature)
        if abs(turned) > HELD and not bound.sign:
            bound = bound._replace(sign=copysign(1.0, turned), way=allowed[2] - now[2])
        return bound

    def _rim(self, angle: Vector) -> tuple[Pair, float] | None:
        """Return the normal of the cone where a joint is at its rim, and the curvature there; None: it is not."""
        x, z = angle[0] - self.origin[0], angle[1] - self.origin[1]
        (u, v), (half_x, half_z) = ONE.nearest_swing(x, z, self.low, self.high), self._halves(x, z)
        off = sqrt((x - u) ** 2 + (z - v) ** 2)
        if off < self.excess[0] - AT:
            return None
        p, q = u / half_x, v / half_z
        if p * p + q * q < 1.0 - AT:
            return None
        p, q = p / half_x, q / half_z
        size = sqrt(p * p + q * q)
        p, q = p / size, q / size
        across, along = q / half_x, p / half_z
        return (p, q), (across * across + along * along) / size

    def _halves(self, x: float, z: float) -> Pair:
        (low_x, low_z), (high_x, high_z) = self.low, self.high
        return max(low_x if x < 0.0 else high_x, 1e-9), max(low_z if z < 0.0 else high_z, 1e-9)
