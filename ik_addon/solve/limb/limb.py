"""Limbs, two bones whose joints have limits, with or without a foot, in closed form.

The bend of the knee (or elbow) follows from the distance of the target, by the law of cosines. Two rotations are left
that keep the end where it is: the *roll* of the whole limb about the line from root to target, and the *turn* of the
upper bone about itself, which changes the side to which the lower bone leaves it. Each joint allows arcs of them:

- As the upper bone turns, the lower one draws a circle in the axes of the knee: its arcs inside the knee's cone.
- As the limb rolls, the upper bone draws a circle in the axes of the hip: its arcs inside the hip's cone.
- The tangent of the hip's twist is the quotient of two numbers that go round in circles as well, so that the twist
  reaches a limit at the roots of constant + cosine + sine; turning the upper bone by an angle subtracts that angle.

The roll nearest to the wanted one is taken, and of the turns that go with it the one nearest to FK. A pole wants the
chain on its side, measured as for any other chain: by the centroid of its curve, seen from the line between its root
and its target. For two bones this is the side of the knee; with a foot, the centroid is that of all three bones.

If the hip cannot point at the target, the upper bone is on the edge of the hip's cone, and its place on that edge is
the one unknown. For each place the lower bone comes as near to the target as the hip's twist and the knee allow: in
closed form, except for the nearest point of the knee's own edge. The derivative along the edge is known too, so only
its zeros have to be found.
"""

from __future__ import annotations

from collections.abc import Callable
from math import atan2, copysign, cos, inf, sin, sqrt
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from ..free.axes import corner_of, pole_bend, side_bend
from ..maths.numbers import ONE
from ..maths.turns import Frame, Range, applied, at_limit, back_product, carried, product, seen, tilted, transposed
from ..maths.vectors import Vector, cross, dot, minus, norm, over, plus, reject, times, unit
from ..problem import Aim, Ints, OutOfReach, Problem, Solution, Solved, reachable, status_of
from .directions import (
    EDGE,
    SLACK,
    TURN,
    WHOLE,
    Arc,
    Circle,
    EdgePoint,
    allows,
    angles_of,
    arcs_inside,
    best_on_edge,
    contains,
    half_turn_axis,
    is_half_turn,
    linear_roots,
    nearest_direction,
    nearest_of,
    outside,
    peaks_towards,
    swing_axis,
    twist_of,
    wrapped,
)
from .two_bones import STRAIGHT, Foot, KnownLimbs, Limb, Member, of_corner, of_knee

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
        if is_half_turn(plus(y.center, y.cosine)):
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

    def allows(self, roll: float) -> bool:
        """Return whether the joint is within its limits, but for rounding."""
        if outside(self.along.at(roll), self.limits) > 2.0 * EDGE:
            return False
        return self.twists is WHOLE or contains(self.twists, self.twist(roll), 2.0 * EDGE)

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


SAME = 1e-12
"""A limb keeps its bend if its length should stay the same to within this fraction."""
_DIRECTION = 1e-12
"""A target nearer to the root than this gives no direction."""
_STRAIGHTEST = 1e-7
"""A lower bone in line with the upper one draws no circle; its side is that of one bent by this many radians."""
_CLEARLY_BENT, _HINGE_BENT = 1e-2, 0.1
"""The side of a straight knee, and of a hinge bent by less, is that of one bent by this many radians: rounding of rest
matrices would decide its own, and turn a limb whose hinge is bent by less than the second by more than 1e-5 radians."""
_CLEARLY = 1e-6
"""A knee whose cosine is farther than this from those it allows has no turn that suits it."""
_SINGLE = 1e-6
"""Radians by which a joint may be outside its limits: rounding of rest matrices to single precision puts a bone's end
beside its axis by up to a tenth of this, and then a hinge's end or its axis is off."""


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

    def __init__(self, limb: Limb, target: Vector, foot: Foot | None = None) -> None:
        """Lay out a limb for a target relative to its root, with its FK turn."""
        axes, upper, chord, distance = limb.fk_axes, limb.elbow, limb.chord, norm(target)
        self.limb, self.foot = limb, foot
        self.line = over(target, distance) if distance > _DIRECTION else axes[0]
        self.triangle = of_corner(*corner_of(ONE, *limb.lengths, distance), distance)
        if abs(distance - chord) <= SAME:
            # In a nearly straight limb, rounding of the distance would show as its square root.
            along = dot(upper, axes[0])
            self.triangle = of_corner(along, norm(minus(upper, times(axes[0], along))), chord)
        # In the upper bone's axes: its direction, the side to which the lower bone leaves it, and their normal.
        self.along, self.side, self.normal = limb.bend_axes
        if limb.bend_side is not None:
            bend, _, _ = side_bend(ONE, axes[0], axes[1], limb.bend_side, unit(upper), chord, distance)
            axes = axes[0], bend, cross(bend, axes[0])
            self.along, self.side, self.normal = limb.bend_axes_about(axes[2])
        self.fk_line, self.fk_bend, self.fk_normal = axes
        self.turns: list[Arc] | None = None
        self.knee_allows = False
        """Whether the knee allows the bend that the target needs."""

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
            # It keeps its orientation.
            zero, ways = product(pose.lower, self.foot.rest), []
            for y in self.foot.frame:
                center = times(self.line, dot(self.line, y))
                ways.append(Circle(*(seen(zero, part) for part in (center, minus(y, center), cross(y, self.line)))))
            joints.append(RolledJoint.of(self.foot.limits, *ways))
        if hip.twist_low != -inf:
            # Another turn of the upper bone reduces the twist by as much.
            twists = [(a + hip.twist_low, b + hip.twist_high) for a, b in self._allowed_turns()]
            free = any(b - a >= TURN for a, b in twists)
            joints[0] = joints[0]._replace(twists=WHOLE if free else twists)
        roll: float | None = 0.0
        if not all(joint.allows(0.0) for joint in joints):
            tried = sorted((roll for joint in joints for roll in joint.bounds()), key=abs)
            roll = next((roll for roll in tried if all(joint.allows(roll) for joint in joints)), None)
        if roll is None:
            return None
        if hip.twist_low != -inf:
            turn = nearest_of(self._allowed_turns(), joints[0].twist(roll), hip.twist_low, hip.twist_high)
            if turn is None:
                return None
            self._turn_by(turn)
        return self._pose(_rolled(self.line, bend, roll))

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
        if outside(plus(circle.center, circle.cosine), self.limb.knee) <= 0.5 * _SINGLE:
            return True
        _, (least, _), (greatest, _) = self.limb.bending
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
        ways = []
        for a, h, n in zip(self.along, self.side, self.normal, strict=True):
            across = sine * a - cosine * h
            start, quarter = minus(times(one, across), times(two, n)), plus(times(two, across), times(one, n))
            ways.append(Circle(times(line, cosine * a + sine * h), start, quarter))
        return RolledJoint.of(self.limb.hip, *ways)

    def _allowed_turns(self) -> list[Arc]:
        """Return the turns of the upper bone that the knee allows."""
        if self.turns is None:
            self.turns = arcs_inside(self._lower_circle(), self.limb.knee)
        return self.turns

    def _lower_circle(self) -> Circle:
        """Return the path of the lower bone in the knee's axes as the upper one turns about itself."""
        cosine, sine = self.triangle.bend_cosine, self.triangle.bend_sine
        along, side, normal = back_product(self.limb.rest, (self.along, self.side, self.normal))
        is_hinge = (0.0, 0.0) in zip(self.limb.knee.low, self.limb.knee.high, strict=True)
        if sine < (_HINGE_BENT if is_hinge else _STRAIGHTEST):
            if cosine > 0.0 and outside(along, self.limb.knee) <= 10.0 * _SINGLE:
                bent = _HINGE_BENT if is_hinge else _CLEARLY_BENT
                wide = Circle(times(along, sqrt(1.0 - bent * bent)), times(side, bent), times(normal, bent))
                if arcs_inside(wide, self.limb.knee):
                    return wide
            if sine < _STRAIGHTEST:
                cosine, sine = copysign(sqrt(1.0 - _STRAIGHTEST * _STRAIGHTEST), cosine), _STRAIGHTEST
        return Circle(times(along, cosine), times(side, sine), times(normal, sine))

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
        return _rolled(self.line, bend, roll)

    def _pose(self, bend: Vector) -> Pose:
        """Return the pose with the knee on a side of the line to the target."""
        limb, line = self.limb, self.line
        cosine, sine, bend_cosine, bend_sine = self.triangle
        along, side = plus(times(line, cosine), times(bend, sine)), minus(times(line, sine), times(bend, cosine))
        upper = product((along, side, cross(bend, line)), transposed((self.along, self.side, self.normal)))
        way = seen(limb.rest, plus(times(self.along, bend_cosine), times(self.side, bend_sine)))
        return pose_of(limb, upper, unit(way), seen(limb.rest, self.normal))


def towards(pole: Vector, angle: float) -> Side:
    """Return the side of a pole, given relative to the root, turned by an angle about the line to the target."""
    return lambda work, natural: _side_of(pole, angle, work.line, natural)


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
    return unit(reject(_rolled(line, pole_bend(ONE, pole, line, natural), angle), line))


def _rolled(line: Vector, bend: Vector, angle: float) -> Vector:
    """Return a direction across a line, turned about it by an angle."""
    return bend if angle == 0.0 else plus(times(bend, cos(angle)), times(cross(line, bend), sin(angle)))


EQUAL = 1e-12
"""Cosines and merits that differ by less are the same: then the order decides, and not rounding."""
_BOUND = 1e-7
"""A lower bound on a distance is this much less, in lengths of the limb, as the bends of its knee are rounded."""
_UP: Vector = (0.0, 1.0, 0.0)


def best_pose(limb: Limb, target: Vector, side: Side | None, foot: Foot | None) -> Pose | None:
    """Return the pose whose end is at the target, or as near as limits allow.

    Args:
        limb: its bones and limits.
        target: position relative to the root.
        side: where the knee should point; None: the limb keeps the roll of its FK pose.
        foot: the child of the lower bone. With a foot, only a pose that reaches the target counts; None if there is
            none.
    """
    work = Work(limb, target, foot)
    pose = work.solved(side)
    if pose is not None or foot is not None:
        return pose
    # If the hip can point at the target, the end misses it only along the line to it, by what the knee can't make up.
    along, (first, second) = seen(limb.rest, unit(limb.upper)), limb.lengths

    def lack(way: Vector) -> float:
        return abs(norm(plus(times(along, first), times(way, second))) - norm(target))

    ways = sorted(limb.bending.turning_points, key=lack)
    for way in ways:
        pose = Work(limb, target).solved_at(way, side)
        if pose is not None:
            break
    if pose is not None and way == ways[0] and not work.knee_allows:
        return pose
    on_edge = _pose_on_edge(limb, target)
    if pose is None or _missed(limb, on_edge, target) < _missed(limb, pose, target) - SLACK:
        return on_edge
    return pose


def _missed(limb: Limb, pose: Pose, target: Vector) -> float:
    return norm(minus(target, plus(applied(pose.upper, limb.upper), applied(pose.lower, limb.lower))))


def _pose_on_edge(limb: Limb, target: Vector) -> Pose:
    """Return the pose nearest to a target among those with the hip on the edge of its cone."""
    search = EdgeSearch(limb, target)
    merit, point = best_on_edge(limb.hip, search.merit, least=search.least)[0]
    swing, twist, way = search.lower_bone(point)
    # If the lower bone can point straight at the target, only the distance from the knee to the target counts.
    size = norm(search.target)
    for sign in (1.0, -1.0) if size > 0.0 else ():
        for _, other in peaks_towards(times(search.target, sign / size), limb.hip, every=True):
            merit, swing, twist, way = search.straight(other, merit) or (merit, swing, twist, way)
    upper = product(limb.zero, product(swing, _twisted(twist)))
    return pose_of(limb, upper, way, cross(way, (way[1], way[2], way[0])))


class EdgeSearch:
    """The search along the edge of a limb's hip cone for the pose nearest to a target."""

    def __init__(self, limb: Limb, target: Vector) -> None:
        """Prepare the search for a target relative to the root."""
        self.limb, self.target = limb, seen(limb.zero, target)
        self.first, self.second = limb.lengths
        self.rest = tuple(seen(limb.rest, axis) for axis in ((1.0, 0.0, 0.0), _UP, (0.0, 0.0, 1.0)))
        fk = seen(limb.upper_fk, applied(limb.lower_fk, limb.lower))
        self.side = atan2(fk[0], fk[2])
        self.bends = (*limb.bending.least, 1.0), (*limb.bending.greatest, -1.0)

    def merit(self, point: EdgePoint) -> tuple[float, float]:
        """Return the merit of an edge point, minus half the squared distance, and its derivative along the edge."""
        swing, twist, way = self.lower_bone(point)
        lower = times(applied(_twisted(twist), applied(self.limb.rest, way)), self.second)
        end = applied(swing, plus((0.0, self.first, 0.0), lower))
        missed = minus(self.target, end)
        return -0.5 * dot(missed, missed), dot(missed, cross(point.speed, end))

    def least(self, point: EdgePoint) -> float:
        """Return a lower bound on the distance from the end to the target: that of a hip which may twist freely.

        Target, upper and lower bone are then in one plane, in which the knee bends between its least and greatest bend.
        """
        along, across = dot(point.direction, self.target) - self.first, norm(cross(point.direction, self.target))
        for cosine, sine, sign in self.bends:
            if sign * (along * sine - across * cosine) > 0.0:
                along, across = along - self.second * cosine, across - self.second * sine
                return sqrt(along * along + across * across) - _BOUND
        return abs(sqrt(along * along + across * across) - self.second)

    def lower_bone(self, point: EdgePoint) -> tuple[Frame, float, Vector]:
        """Return the hip's swing, its twist, and the direction of the lower bone in the axes of the knee at rest."""
        swing, wanted, _ = self._wanted(point)
        return swing, *self._pointed(wanted)

    def straight(self, point: EdgePoint, least: float) -> tuple[float, Frame, float, Vector] | None:
        """Return the merit and the result of `lower_bone` for a lower bone that points straight at the target.

        Return None if the lower bone can't point there, or the merit is not clearly greater than `least`.
        """
        swing, wanted, distance = self._wanted(point)
        merit = -0.5 * (distance - self.second) ** 2
        if merit <= least + EQUAL:
            return None
        hip = self.limb.hip
        across, azimuth = sqrt(wanted[0] * wanted[0] + wanted[2] * wanted[2]), atan2(wanted[0], wanted[2])
        x, y, z = self.rest
        circle = Circle(times(y, wanted[1]), times(z, across), times(x, across))
        arcs = [(a - self.side, b - self.side) for a, b in arcs_inside(circle, self.limb.knee)]
        turn = nearest_of(arcs, azimuth - self.side, hip.twist_low, hip.twist_high)
        if turn is None:
            return None
        twist = min(max(wrapped(azimuth - turn - self.side), hip.twist_low), hip.twist_high)
        return merit, swing, twist, circle.at(turn + self.side)

    def _wanted(self, point: EdgePoint) -> tuple[Frame, Vector, float]:
        """Return the hip's swing, and in its axes the direction and distance from the knee to the target."""
        x, z = point.x, point.z
        w = sqrt(max(1.0 - x * x - z * z, 0.0))
        xx, zz, xz, wx, wz = 2.0 * x * x, 2.0 * z * z, 2.0 * x * z, 2.0 * w * x, 2.0 * w * z
        swing = (1.0 - zz, wz, xz), (-wz, 1.0 - xx - zz, wx), (xz, -wx, 1.0 - xx)
        offset = minus(seen(swing, self.target), (0.0, self.first, 0.0))
        size = norm(offset)
        return swing, over(offset, size) if size > 1e-12 else _UP, size

    def _pointed(self, wanted: Vector) -> tuple[float, Vector]:
        """Return the hip's twist and the lower bone's direction, in the knee's axes, nearest to a wanted direction."""
        limb = self.limb
        low, high = limb.hip.twist_low, limb.hip.twist_high
        if low == high:
            return low, self._nearest_way(low, wanted)
        found: list[tuple[float, float, Vector]] = []
        azimuth = atan2(wanted[0], wanted[2])
        for way in limb.bending.turning_points:
            lower = applied(limb.rest, way)
            twist = wrapped(azimuth - atan2(lower[0], lower[2]))
            if low <= twist <= high:
                found.append((dot(applied(_twisted(twist), lower), wanted), twist, way))
        # Also try both ends of the twist's range; a hip that twists freely has none.
        for twist in (low, high) if low != -inf else ():
            way = self._nearest_way(twist, wanted)
            found.append((dot(applied(_twisted(twist), applied(limb.rest, way)), wanted), twist, way))
        best = max(found, key=itemgetter(0))[0]
        return next(known[1:] for known in found if known[0] > best - EQUAL)

    def _nearest_way(self, twist: float, wanted: Vector) -> Vector:
        """Return the direction of the lower bone that is nearest to `wanted` for a given twist of the hip."""
        return nearest_direction(seen(self.limb.rest, seen(_twisted(twist), wanted)), self.limb.knee)


def _twisted(twist: float) -> Frame:
    c, s = cos(twist), sin(twist)
    return (c, 0.0, -s), _UP, (s, 0.0, c)


_ARRIVED = 1e-9
"""Maximum miss of the ankle, in lengths of the limb, for the foot to have both its place and its orientation."""


def solve_limbs(problem: Problem, limbs: KnownLimbs, solution: Solution, index: Ints) -> Ints:
    """Solve the limbs among the members `index` (k,), write them into the solution and return the other members.

    Frames are right-handed, and all input is finite. A limb may have a foot, a third bone that takes an orientation:
    the limb brings the foot's head to where that orientation puts it. Left out are stiff joints, bones that do
    not inherit rotation or that point past their Y axes, and feet that cannot have both place and orientation.

    Args:
        problem: the problem.
        limbs: the limbs of this problem, or of one with the same FK pose.
        solution: what the limbs are written into.
        index: indices of members.
    """
    bones = 2 if problem.goal.rotation is None else 3
    if len(limbs.ranges) != bones or problem.goal.segment not in (None, bones - 1):
        return index
    new = [i for i in index.tolist() if i not in limbs.members]
    if new:
        limbs.read(problem, new)
    solved = {}
    for i, aim in zip(index.tolist(), Aim.each(problem, index), strict=True):
        member = limbs.members[i]
        found = None if member is None else solved_limb(problem, limbs, member, aim)
        if found is not None:
            solved[i] = found
    if not solved:
        return index
    solution.write(problem, solved)
    return np.array([i for i in index.tolist() if i not in solved], dtype=np.int64)


def solved_limb(problem: Problem, limbs: KnownLimbs, member: Member, aim: Aim) -> Solved | None:
    """Solve a member for a finite goal, with the settings of a problem; None: it is left to the search."""
    root, fk, segments, lengths, rests, bend_side, limb = member
    length = sum(lengths)
    offset = minus(aim.target, root)
    away = norm(offset) / length
    distance, _, stretch, beyond = reachable(ONE, [part / length for part in lengths], away, aim, problem)
    if set(stretch) != {1.0}:
        limb = Limb.of(segments, lengths, fk, rests, limbs.ranges, bend_side, stretch)
    if limb is None:
        return None
    scale, lever_arms = limb.scale, limb.lever_arms
    target = wanted = over(offset, scale)
    if aim.softness > 0.0:
        wanted = times(target, distance * length / max(scale * norm(target), 1e-200))
    pole = None if aim.pole is None else over(minus(aim.pole, root), scale)
    side: Side | None = None if pole is None else towards(pole, aim.pole_angle)
    ankle, foot, lack = wanted, None, 0.0
    if aim.rotation is not None:
        reach = limb.bending.reach(*limb.lengths)
        foot = Foot(rests[2], limbs.ranges[2], tilted(aim.rotation, lever_arms[2], wanted, reach))
        ankle = minus(wanted, applied(foot.frame, lever_arms[2]))
        lack = max(reach[0] - norm(ankle), norm(ankle) - reach[1], 0.0)
        if pole is not None and (bend_side is None or not any(bend_side)):
            masses = (lengths[0] + lengths[1]) / (2.0 * length), (lengths[1] + lengths[2]) / (2.0 * length)
            side = towards_with_foot(pole, aim.pole_angle, wanted, ankle, masses)
    pose = best_pose(limb, ankle, side, foot)
    if pose is None:
        return None
    frames, turns = [pose.upper, pose.lower], [pose.hip, pose.knee]
    hip, knee = limbs.ranges[:2]
    # The edges of a cone as thin as a line may be missed.
    if not (allows(hip, pose.hip, _SINGLE) and allows(knee, pose.knee, _SINGLE)):
        return None
    if foot is not None:
        turns.append(foot.turn(pose.lower))
        frames.append(foot.frame)
    ends = [(0.0, 0.0, 0.0)]
    for frame, lever_arm in zip(frames, lever_arms, strict=True):
        ends.append(plus(ends[-1], applied(frame, lever_arm)))
    if foot is not None and not (
        norm(minus(ankle, ends[2])) <= lack + _ARRIVED and allows(limbs.ranges[2], turns[2], _SINGLE)
    ):
        return None
    missed, push = minus(target, ends[-1]), (0.0, 0.0, 0.0)
    if problem.out_of_reach is OutOfReach.PUSH_ROOT:
        push = times(missed, min(1.0, aim.push_limit * length / scale / max(norm(missed), 1e-200)))
        missed = minus(missed, push)
    error = norm(missed) * scale
    status = status_of(ONE, error <= aim.tolerance * length, beyond, aim.tolerance)
    parts = zip(limbs.limited, turns, limbs.ranges, strict=True)
    held = [limited and at_limit(ONE, angles_of(turn, own), *own) for limited, turn, own in parts]
    joints = [plus(times(plus(end, push), scale), root) for end in ends]
    return Solved(frames, joints, stretch, error, status, 0, held)
