"""The pose of a limb, two bones whose joints have limits, in closed form.

The bend of the knee (or elbow) follows from the distance of the target, by the law of cosines. Two rotations are left
that keep the end where it is: the *roll* of the whole limb about the line from root to target, and the *turn* of the
upper bone about itself, which changes the side to which the lower bone leaves it. Each joint allows arcs of them:

- As the upper bone turns, the lower one draws a circle in the axes of the knee: its arcs inside the knee's cone.
- As the limb rolls, the upper bone draws a circle in the axes of the hip: its arcs inside the hip's cone.
- The tangent of the hip's twist is the quotient of two numbers that go round in circles as well, so that the twist
  reaches a limit at the roots of constant + cosine + sine; turning the upper bone by an angle subtracts that angle.

The roll nearest to the wanted one is taken, and of the turns that go with it the one nearest to FK.

Vectors and frames are tuples of floats.
"""

from __future__ import annotations

from collections.abc import Callable
from math import atan2, copysign, cos, inf, sin, sqrt
from typing import NamedTuple

from ..free.bend_side import side_bend
from ..maths.numbers import ONE, Vector, cross, dot, minus, norm, over, plus, reject, times, unit
from .cone_arcs import (
    EDGE,
    TURN,
    WHOLE,
    Arc,
    Circle,
    allows,
    arcs_inside,
    nearest_of,
    outside,
    swing_axis,
    twist_of,
    wrapped,
)
from .frames import Frame, applied, back_product, carried, frame_of, product, seen
from .roll import RolledJoint, nearest_roll
from .two_bones import STRAIGHT, Foot, Limb, Triangle, of_corner, of_knee, triangle_of

SAME = 1e-12
"""A limb keeps its bend if its length should stay the same to within this fraction."""
_DIRECTION = 1e-12
"""A target nearer to the root than this gives no direction."""
_STRAIGHTEST = 1e-7
"""A lower bone in line with the upper one draws no circle; its side is that of one bent by this many radians."""
_ROUNDED = 1.5e-7
"""Radians outside its limits at which a straight knee counts as allowed: rounding of its rest pose to single precision
moves it there."""
_CLEARLY_BENT = 1e-2
"""Then its side is that of a knee bent by this many radians: of one bent less, that rounding would decide the side."""
_CLEARLY = 1e-6
"""A knee whose cosine is farther than this from those it allows has no turn that suits it."""
_SINGLE = 1e-6
"""Radians outside its limits at which a joint is left alone: rounding to single precision may move it there."""


Side = Callable[["Work", Vector], Vector]
"""Returns the direction of a limb's knee, perpendicular to the line to its target, given the natural direction."""


class Pose(NamedTuple):
    """A solved limb."""

    upper: Frame
    lower: Frame
    hip: Frame
    """Rotation of the joint from rest."""
    knee: Frame


def pose_of(limb: Limb, upper: Frame, way: Vector, normal: Vector) -> Pose:
    """Return the pose with the lower bone in direction `way`, and its FK twist if that is allowed.

    Args:
        limb: the bones and limits.
        upper: frame of the upper bone.
        way: unit vector in the axes of the knee at rest, inside its cone.
        normal: an axis perpendicular to it.
    """
    fk, own, was = limb.fk_knee
    x, y, z = carried(fk[0], was, way, normal), carried(fk[1], was, way, normal), carried(fk[2], was, way, normal)
    twist = twist_of((x, y, z), limb.knee)
    low, high = limb.knee.twist_low, limb.knee.twist_high
    if not low <= twist <= high:
        twist = low if abs(wrapped(twist - low)) < abs(wrapped(twist - high)) else high
        c, s = cos(twist), sin(twist)
        swing = swing_axis(way, limb.knee) if way[1] < 0.0 else normal
        x, z = (carried(axis, (0.0, 1.0, 0.0), way, swing) for axis in ((c, 0.0, -s), (s, 0.0, c)))
        # A bone that points past its Y axis is turned once more, to `way`.
        points = unit(applied((x, way, z), own))
        x, y, z = (carried(axis, points, way, normal) for axis in (x, way, z))
    # Carried almost all the way round, the axes are perpendicular only to within the rounding of `way`.
    x = unit(reject(x, y))
    knee = x, y, cross(x, y)
    return Pose(upper, product(product(upper, limb.rest), knee), back_product(limb.zero, upper), knee)


class Work:
    """A limb being solved for a target, or for the nearest point to it on the same line that the knee allows."""

    def __init__(self, limb: Limb, line: Vector, triangle: Triangle, axes: Frame, foot: Foot | None) -> None:
        """Begin with the FK turn of the upper bone; `axes` are the line, bend and normal of the FK pose."""
        self.limb, self.line, self.triangle = limb, line, triangle
        self.fk_line, self.fk_bend, self.fk_normal = axes
        self.foot = foot
        # In the upper bone's axes: its direction, the side to which the lower bone leaves it, and their normal.
        self.along, self.side, self.normal = limb.bend_axes if axes is limb.fk_axes else limb.bend_axes_about(axes[2])
        self.turns: list[Arc] | None = None
        self.knee_allows = False
        """Whether the knee allows the bend that the target needs."""

    @classmethod
    def of(cls, limb: Limb, target: Vector, foot: Foot | None = None) -> Work:
        """Lay out a limb that `is_straightforward`, for a target relative to its root."""
        axes, upper, chord, distance = limb.fk_axes, limb.elbow, limb.chord, norm(target)
        line = over(target, distance) if distance > _DIRECTION else axes[0]
        if limb.bend_side is not None:
            bend, _, _ = side_bend(ONE, axes[0], axes[1], limb.bend_side, unit(upper), chord, distance)
            axes = axes[0], bend, cross(bend, axes[0])
        if abs(distance - chord) <= SAME:
            # In a nearly straight limb, rounding of the distance would show as its square root.
            along = dot(upper, axes[0])
            return cls(limb, line, of_corner(along, norm(minus(upper, times(axes[0], along))), chord), axes, foot)
        return cls(limb, line, triangle_of(*limb.lengths, distance), axes, foot)

    def solved(self, side: Side | None) -> Pose | None:
        """Return the pose in which the limb reaches its target; None if the limits of knee or hip allow none.

        Args:
            side: the wanted direction of the knee; None: the limb keeps the roll of its FK pose.
        """
        self.knee_allows = self._is_bent_to_allowed_side()
        if not self.knee_allows:
            return None
        bend, hip = self._wanted(side), self.limb.hip
        pose = self._pose(bend)
        if allows(hip, pose.hip, _SINGLE) and (
            self.foot is None or allows(self.foot.limits, self.foot.turn(pose.lower), _SINGLE)
        ):
            return pose
        joints = [self._rolled_hip(bend)]
        if self.foot is not None:
            joints.append(self._rolled_foot(self.foot, pose))
        if hip.twist_low != -inf:
            # Another turn of the upper bone reduces the twist by as much.
            twists = [(a + hip.twist_low, b + hip.twist_high) for a, b in self._allowed_turns()]
            free = any(b - a >= TURN for a, b in twists)
            joints[0] = joints[0]._replace(twists=WHOLE if free else twists)
        roll = nearest_roll(joints)
        if roll is None:
            return None
        if hip.twist_low != -inf:
            turn = nearest_of(self._allowed_turns(), joints[0].twist(roll), hip.twist_low, hip.twist_high)
            if turn is None:
                return None
            self._turn_by(turn)
        return self._pose(self._rolled(bend, roll))

    def solved_at(self, way: Vector, side: Side | None) -> Pose | None:
        """Return the same with the lower bone in a direction given in the knee's axes, wherever the end gets to."""
        along = seen(self.limb.rest, self.along)
        self.triangle = of_knee(*self.limb.lengths, along, way)
        if not self._is_bent_to_allowed_side():
            angle = atan2(dot(way, seen(self.limb.rest, self.normal)), dot(way, seen(self.limb.rest, self.side)))
            self.turns = [(angle, angle)]
            self._turn_by(angle)
        return self.solved(side)

    def _is_bent_to_allowed_side(self) -> bool:
        """Turn the upper bone by as little as the knee requires; return False if no turn suits it."""
        if self.turns is not None:
            return bool(self.turns)
        circle = self._lower_circle()
        if outside(plus(circle.center, circle.cosine), self.limb.knee) <= EDGE:
            return True
        (least, _), (greatest, _) = self.limb.bends
        if not greatest - _CLEARLY <= self.triangle.bend_cosine <= least + _CLEARLY:
            return False
        self.turns = arcs_inside(circle, self.limb.knee)
        turn = nearest_of(self.turns)
        if turn is None:
            return False
        self._turn_by(turn)
        return True

    def _rolled_hip(self, bend: Vector) -> RolledJoint:
        """Return the hip as the limb rolls, starting with the knee on a side of the line."""
        line, one = seen(self.limb.zero, self.line), seen(self.limb.zero, bend)
        two = cross(line, one)
        cosine, sine = self.triangle.cosine, self.triangle.sine

        def way(axis: int) -> Circle:
            a, h, n = self.along[axis], self.side[axis], self.normal[axis]
            across = sine * a - cosine * h
            return Circle(
                times(line, cosine * a + sine * h),
                minus(times(one, across), times(two, n)),
                plus(times(two, across), times(one, n)),
            )

        return RolledJoint.of(self.limb.hip, way(0), way(1), way(2))

    def _rolled_foot(self, foot: Foot, pose: Pose) -> RolledJoint:
        """Return the foot, which keeps its orientation, as the limb rolls, starting with a pose."""
        zero = product(pose.lower, foot.rest)

        def way(axis: int) -> Circle:
            y = foot.frame[axis]
            center = times(self.line, dot(self.line, y))
            parts = (center, minus(y, center), cross(y, self.line))
            return Circle(*(seen(zero, part) for part in parts))

        return RolledJoint.of(foot.limits, way(0), way(1), way(2))

    def _allowed_turns(self) -> list[Arc]:
        """Return the turns of the upper bone that the knee allows."""
        if self.turns is None:
            self.turns = arcs_inside(self._lower_circle(), self.limb.knee)
        return self.turns

    def _lower_circle(self) -> Circle:
        """Return the path of the lower bone in the knee's axes as the upper one turns about itself."""
        cosine, sine = self.triangle.bend_cosine, self.triangle.bend_sine
        axes = back_product(self.limb.rest, (self.along, self.side, self.normal))
        if sine >= _STRAIGHTEST:
            return _circle(axes, cosine, sine)
        if cosine > 0.0 and outside(axes[0], self.limb.knee) <= _ROUNDED:
            wide = _circle(axes, sqrt(1.0 - _CLEARLY_BENT * _CLEARLY_BENT), _CLEARLY_BENT)
            if arcs_inside(wide, self.limb.knee):
                return wide
        return _circle(axes, copysign(sqrt(1.0 - _STRAIGHTEST * _STRAIGHTEST), cosine), _STRAIGHTEST)

    def _turn_by(self, angle: float) -> None:
        """Turn the side to which the lower bone leaves the upper one by an angle."""
        if angle == 0.0:
            return
        c, s = cos(angle), sin(angle)
        self.side, self.normal = (
            plus(times(self.side, c), times(self.normal, s)),
            minus(times(self.normal, c), times(self.side, s)),
        )
        if self.turns is not None and self.turns is not WHOLE:
            self.turns = [(a - angle, b - angle) for a, b in self.turns]

    def _wanted(self, side: Side | None) -> Vector:
        """Return the wanted direction of the knee, perpendicular to the line to the target."""
        # Even if the knee needs another turn, the upper bone itself keeps its FK roll.
        normal = applied(self.limb.upper_fk, self.normal)
        natural = cross(self.line, reject(carried(normal, self.fk_line, self.line, self.fk_normal), self.line))
        if norm(natural) < STRAIGHT:
            natural = carried(self.fk_bend, self.fk_line, self.line, self.fk_normal)
        bend = unit(reject(natural, self.line))
        if side is None:
            return bend
        bend, hinge = side(self, bend), self.limb.hinge
        roll = 0.0 if hinge is None else hinge.unfollowed(self.along, self.side)
        return bend if roll == 0.0 else self._rolled(bend, roll)

    def _rolled(self, bend: Vector, roll: float) -> Vector:
        """Return a direction across the line to the target, turned about it by an angle."""
        return plus(times(bend, cos(roll)), times(cross(self.line, bend), sin(roll)))

    def _pose(self, bend: Vector) -> Pose:
        """Return the pose with the knee on a side of the line to the target."""
        limb, line = self.limb, self.line
        cosine, sine, bend_cosine, bend_sine = self.triangle
        upper = frame_of(
            (
                plus(times(line, cosine), times(bend, sine)),
                minus(times(line, sine), times(bend, cosine)),
                cross(bend, line),
            ),
            (self.along, self.side, self.normal),
        )
        way = seen(limb.rest, plus(times(self.along, bend_cosine), times(self.side, bend_sine)))
        return pose_of(limb, upper, unit(way), seen(limb.rest, self.normal))


def _circle(axes: Frame, cosine: float, sine: float) -> Circle:
    """Return the path of a direction about the first of three axes, bent away from it by an angle."""
    center, side, normal = axes
    return Circle(times(center, cosine), times(side, sine), times(normal, sine))
