"""The side to which a limb bends: where a pole wants its knee, measured as for any other chain.

A chain lies on the side of the centroid of its curve, seen from the line between its root and its target. For two bones
this is the side of the knee; with a foot, the centroid is that of all three bones.
"""

from __future__ import annotations

from math import atan2, cos, sin

from ..free.axes import pole_bend
from ..maths.numbers import ONE, Vector, cross, dot, norm, plus, reject, times, unit
from .cone_arcs import linear_roots, wrapped
from .pose import Side, Work


def towards(pole: Vector, angle: float) -> Side:
    """Return the side of a pole, given relative to the root, turned by an angle about the line to the target."""

    def side(work: Work, natural: Vector) -> Vector:
        return _side_of(pole, angle, work.line, natural)

    return side


def towards_with_foot(
    pole: Vector, angle: float, target: Vector, ankle: Vector, masses: tuple[float, float]
) -> Side | None:
    """Return the side for a limb that brings the centroid of the whole chain, with its foot, to the side of a pole.

    Args:
        pole: relative to the root.
        angle: radians about the line from root to target.
        target: the target of the foot's end.
        ankle: where the foot begins.
        masses: weights of knee and ankle in the centroid; root and end are on the line and do not count.
    """
    size = norm(target)
    if size < 1e-12:
        return None
    line = times(target, 1.0 / size)

    def side(work: Work, natural: Vector) -> Vector:
        wanted = _side_of(pole, angle, line, (0.0, 0.0, 0.0))
        if wanted == (0.0, 0.0, 0.0):
            return natural
        across, other = cross(line, wanted), cross(work.line, natural)
        reach = masses[0] * norm(work.limb.upper)
        middle = plus(times(work.line, reach * work.triangle.cosine), times(ankle, masses[1]))
        constant, size = dot(across, middle), reach * work.triangle.sine
        c, s = size * dot(across, natural), size * dot(across, other)
        # If the centroid cannot get to the side, it comes as near as it can.
        roots = linear_roots(constant, c, s) or [atan2(-s * constant, -c * constant)]

        def centroid(roll: float) -> float:
            knee = dot(wanted, natural) * cos(roll) + dot(wanted, other) * sin(roll)
            return float(dot(wanted, middle) + size * knee)

        # At one of the roots the centroid may be on the far side; if not, the limb rolls as little as possible.
        there = [roll for roll in roots if centroid(roll) > 0.0] or [max(roots, key=centroid)]
        roll = min(there, key=lambda roll: abs(wrapped(roll)))
        return plus(times(natural, cos(roll)), times(other, sin(roll)))

    return side


def _side_of(pole: Vector, angle: float, line: Vector, natural: Vector) -> Vector:
    """Return the unit vector perpendicular to a line towards a pole, turned by an angle; see `axes.pole_bend`."""
    bend = pole_bend(ONE, pole, line, natural)
    if angle != 0.0:
        bend = plus(times(bend, cos(angle)), times(cross(line, bend), sin(angle)))
    return unit(reject(bend, line))
