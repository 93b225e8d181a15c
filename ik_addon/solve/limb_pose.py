"""The pose of a limb, two bones whose joints have limits, in closed form.

How far the knee (or elbow) bends follows from the distance of the target, by the law of cosines. What is left are two
turns that keep the end where it is: the *roll* of the whole limb about the line from root to target, and the *turn* of
the upper bone about itself, with which the lower one leaves it to another side. Each joint allows arcs of them:

- Turning the upper bone, the lower one draws a circle in the axes of the knee: the arcs inside the knee's cone.
- Rolling the limb, the upper bone draws a circle in the axes of the hip: the arcs inside the hip's cone.
- The hip's twist has as its tangent the quotient of two numbers that go round in circles as well, so that it
  reaches a limit at the roots of constant + cosine + sine, and turning the upper bone by an angle takes that from it.

The roll nearest to the one that is wanted is taken, and of the turns that go with it the one nearest to FK's.

Vectors are tuples of floats; a frame is a tuple of three columns, the X, Y and Z axes of a bone.
"""

from __future__ import annotations

from math import atan2, copysign, cos, inf, pi, sin, sqrt
from typing import NamedTuple

from .cone_arcs import EDGE, TURN, WHOLE, Arc, Circle, Range, arcs_inside, linear_roots, outside, wrapped
from .tuples import Vector, cross, dot, minus, norm, over, plus, reject, times, unit

Frame = tuple[Vector, Vector, Vector]

STRAIGHT = 1e-5
"""A limb that leaves its line by less than this fraction of its length counts as straight."""
SAME = 1e-12
"""A limb that is to be as long as it is, to within this fraction of its length, bends as it does."""
_DIRECTION = 1e-12
"""What is nearer to the root than this shows no direction."""
_STRAIGHTEST = 1e-7
"""A lower bone on the line of the upper one draws no circle; its side is that of one bent by so many radians."""
_SKEW = 1e-5
"""Radians by which a bone may point past its own Y axis: more than single precision makes of one that does not."""


class Limb(NamedTuple):
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


class Pose(NamedTuple):
    """A solved limb."""

    upper: Frame
    lower: Frame
    hip: Frame
    """Rotation of the joint, from rest."""
    knee: Frame


def applied(frame: Frame, v: Vector) -> Vector:
    """Return a vector given in the axes of a frame."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = frame
    x, y, z = v
    return ax * x + bx * y + cx * z, ay * x + by * y + cy * z, az * x + bz * y + cz * z


def seen(frame: Frame, v: Vector) -> Vector:
    """Return a vector in the axes of a frame."""
    x, y, z = v
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = frame
    return ax * x + ay * y + az * z, bx * x + by * y + bz * z, cx * x + cy * y + cz * z


def product(a: Frame, b: Frame) -> Frame:
    """Return the frame b, given in the axes of a."""
    return applied(a, b[0]), applied(a, b[1]), applied(a, b[2])


def back_product(a: Frame, b: Frame) -> Frame:
    """Return the frame b in the axes of a."""
    return seen(a, b[0]), seen(a, b[1]), seen(a, b[2])


def carried(v: Vector, a: Vector, b: Vector, axis: Vector) -> Vector:
    """Return a vector turned by the smallest rotation of a to b, both unit; about an axis where they are opposite."""
    x, y, z = plus(a, b)
    room = 1.0 + dot(a, b)
    if room < 5e-13:
        return minus(times(axis, 2.0 * dot(axis, v)), v)
    share, along = (v[0] * x + v[1] * y + v[2] * z) / room, 2.0 * dot(v, a)
    return v[0] - share * x + along * b[0], v[1] - share * y + along * b[1], v[2] - share * z + along * b[2]


def posed(limb: Limb, target: Vector, pole: Vector | None, pole_angle: float) -> Pose | None:
    """Return the pose in which a limb's end stands on its target, or None where none was found.

    Args:
        limb: its bones and limits.
        target: seen from the root, in reach.
        pole: seen from the root; None: the limb keeps the roll of its FK pose.
        pole_angle: radians about the line to the target.
    """
    work = _Work.of(limb, target)
    return None if work is None else work.solved(pole, pole_angle)


class _Triangle(NamedTuple):
    """Cosines and sines at the root, from the line to the upper bone, and at the knee, of its bend."""

    cosine: float
    sine: float
    bend_cosine: float
    bend_sine: float


def _triangle(first: float, second: float, distance: float) -> _Triangle | None:
    """See `two_bone.triangle`; None where the lengths do not close."""
    twice = 2.0 * max(distance, 1e-200)
    difference = first - second
    along = distance / 2.0 + difference * ((first + second) / twice)
    before = (distance - difference) * ((first + second - distance) / twice)
    after = (distance + difference) * ((first + second + distance) / twice)
    across = before * after
    if across < -1e-15:
        return None
    across = sqrt(max(across, 0.0))
    if distance < 1e-15:
        along, across = 0.0, first
    return _of_corner(along, across, distance)


def _of_corner(along: float, across: float, distance: float) -> _Triangle:
    """Return the triangle whose knee is so far along the line to the target and off it."""
    one = sqrt(along * along + across * across)
    rest = distance - along
    two = sqrt(rest * rest + across * across)
    c, s, x, y = along / one, across / one, rest / two, -across / two
    return _Triangle(c, s, c * x + s * y, s * x - c * y)


class _Work:
    """A limb on its way to a target."""

    def __init__(self, limb: Limb, line: Vector, triangle: _Triangle, axes: Frame) -> None:
        self.limb, self.line, self.triangle = limb, line, triangle
        self.fk_line, self.fk_bend, self.fk_normal = axes
        self.along = unit(limb.upper)
        self.normal = unit(reject(seen(limb.upper_fk, self.fk_normal), self.along))
        self.side = cross(self.normal, self.along)
        """To where the lower bone leaves the upper one, in its axes; with FK's turn until another one is chosen."""
        self.turns: list[Arc] | None = None

    @classmethod
    def of(cls, limb: Limb, target: Vector) -> _Work | None:
        """Return None for a limb that is not to be solved like this, or a target that is too far or too near."""
        first, second = norm(limb.upper), norm(limb.lower)
        if max(_skew(limb.upper, first), _skew(limb.lower, second)) > _SKEW:
            return None
        axes = _fk_axes(limb, first, second)
        if axes is None:
            return None
        distance = norm(target)
        line = over(target, distance) if distance > _DIRECTION else axes[0]
        upper = applied(limb.upper_fk, limb.upper)
        chord = plus(upper, applied(limb.lower_fk, limb.lower))
        if abs(distance - norm(chord)) <= SAME:
            # Nearly straight, rounding of the distance would show as its square root.
            along = dot(upper, axes[0])
            return cls(limb, line, _of_corner(along, norm(minus(upper, times(axes[0], along))), norm(chord)), axes)
        triangle = _triangle(first, second, distance)
        return None if triangle is None else cls(limb, line, triangle, axes)

    def solved(self, pole: Vector | None, pole_angle: float) -> Pose | None:
        circle = self._lower_circle()
        if outside(circle.at(0.0), self.limb.knee) > EDGE:
            self.turns = arcs_inside(circle, self.limb.knee)
            if not self.turns:
                return None
            self._turn_by(min((_nearest(arc) for arc in self.turns), key=abs))
        bend = self._wanted(pole, pole_angle)
        roll = _Roll(self, bend)
        angle = roll.nearest()
        if angle is None:
            return None
        c, s = cos(angle), sin(angle)
        bend = plus(times(bend, c), times(cross(self.line, bend), s))
        self._turn_by(roll.turn(angle))
        return self._pose(bend)

    def allowed_turns(self) -> list[Arc]:
        """Return the turns of the upper bone that the knee allows."""
        if self.turns is None:
            self.turns = arcs_inside(self._lower_circle(), self.limb.knee)
        return self.turns

    def _lower_circle(self) -> Circle:
        """Return the way of the lower bone in the knee's axes while the upper one turns about itself."""
        cosine, sine = self.triangle.bend_cosine, self.triangle.bend_sine
        if sine < _STRAIGHTEST:
            cosine, sine = copysign(sqrt(1.0 - _STRAIGHTEST * _STRAIGHTEST), cosine), _STRAIGHTEST
        centre, side, normal = (seen(self.limb.rest, axis) for axis in (self.along, self.side, self.normal))
        return Circle(times(centre, cosine), times(side, sine), times(normal, sine))

    def _turn_by(self, angle: float) -> None:
        """Let the lower bone leave the upper one on a side turned by an angle."""
        if angle == 0.0:
            return
        c, s = cos(angle), sin(angle)
        self.side, self.normal = (
            plus(times(self.side, c), times(self.normal, s)),
            minus(times(self.normal, c), times(self.side, s)),
        )
        if self.turns is not None and self.turns is not WHOLE:
            self.turns = [(a - angle, b - angle) for a, b in self.turns]

    def _wanted(self, pole: Vector | None, pole_angle: float) -> Vector:
        """Return the side, across the line to the target, to which the knee is to point."""
        # Turned on to a side that the knee allows, the upper bone itself keeps its FK roll.
        normal = applied(self.limb.upper_fk, self.normal)
        natural = cross(self.line, reject(carried(normal, self.fk_line, self.line, self.fk_normal), self.line))
        if norm(natural) < STRAIGHT:
            natural = carried(self.fk_bend, self.fk_line, self.line, self.fk_normal)
        bend = unit(reject(natural, self.line))
        if pole is not None:
            across = reject(pole, self.line)
            if norm(across) > 1e-6 * norm(pole) + 1e-9:
                bend = unit(across)
            if pole_angle != 0.0:
                bend = plus(times(bend, cos(pole_angle)), times(cross(self.line, bend), sin(pole_angle)))
            bend = unit(reject(bend, self.line))
        return bend

    def _pose(self, bend: Vector) -> Pose:
        """Return the pose with the knee on a side of the line to the target."""
        limb, line = self.limb, self.line
        cosine, sine, bend_cosine, bend_sine = self.triangle
        upper = _frame_of(
            (
                plus(times(line, cosine), times(bend, sine)),
                minus(times(line, sine), times(bend, cosine)),
                cross(bend, line),
            ),
            (self.along, self.side, self.normal),
        )
        way = seen(limb.rest, plus(times(self.along, bend_cosine), times(self.side, bend_sine)))
        knee = self._knee(unit(way), seen(limb.rest, self.normal))
        lower = product(product(upper, limb.rest), knee)
        return Pose(upper, lower, back_product(limb.zero, upper), knee)

    def _knee(self, way: Vector, normal: Vector) -> Frame:
        """Return the rotation of the knee that points the lower bone on its way, with FK's twist where it can."""
        limb = self.limb
        fk = back_product(product(limb.upper_fk, limb.rest), limb.lower_fk)
        was = unit(applied(fk, limb.lower))
        x, y, z = (carried(axis, was, way, normal) for axis in fk)
        twist = atan2(z[0] - x[2], x[0] + z[2])
        low, high = limb.knee.twist_low, limb.knee.twist_high
        if low <= twist <= high:
            return x, y, z
        twist = low if abs(wrapped(twist - low)) < abs(wrapped(twist - high)) else high
        c, s = cos(twist), sin(twist)
        up = (0.0, 1.0, 0.0)
        x, z = (carried(axis, up, way, normal) for axis in ((c, 0.0, -s), (s, 0.0, c)))
        # A bone that points past its Y axis is turned on to its way once more.
        points = applied((x, way, z), unit(limb.lower))
        x, y, z = (carried(axis, unit(points), way, normal) for axis in (x, way, z))
        return x, y, z


class _Roll:
    """What the hip does while its limb rolls about the line to the target, from where it is wanted."""

    def __init__(self, work: _Work, bend: Vector) -> None:
        self.work, self.hip = work, work.limb.hip
        zero = work.limb.zero
        line, one = seen(zero, work.line), seen(zero, bend)
        two = cross(line, one)
        cosine, sine = work.triangle.cosine, work.triangle.sine

        def way(axis: int) -> Circle:
            a, h, n = work.along[axis], work.side[axis], work.normal[axis]
            across = sine * a - cosine * h
            return Circle(
                times(line, cosine * a + sine * h),
                minus(times(one, across), times(two, n)),
                plus(times(two, across), times(one, n)),
            )

        x, self.upper, z = (way(axis) for axis in range(3))
        # The twist's sine and cosine, times the same number, as constant, cosine and sine of the roll.
        self.twist_sine = [b[0] - a[2] for a, b in zip(x, z, strict=True)]
        self.twist_cosine = [a[0] + b[2] for a, b in zip(x, z, strict=True)]

    def twist(self, roll: float) -> float:
        """Return the hip's twist."""
        c, s = cos(roll), sin(roll)
        p, q = self.twist_sine, self.twist_cosine
        return atan2(p[0] + p[1] * c + p[2] * s, q[0] + q[1] * c + q[2] * s)

    def nearest(self) -> float | None:
        """Return the allowed roll nearest to 0; None where none is."""
        hip = self.hip
        swings = outside(self.upper.at(0.0), hip) <= EDGE
        twist = self.twist(0.0)
        if swings and hip.twist_low <= twist <= hip.twist_high:
            return 0.0
        free = hip.twist_low == -inf
        # What the twist may be with the turn as it is: any other turn takes its angle from the twist.
        twists = WHOLE if free else [(a + hip.twist_low, b + hip.twist_high) for a, b in self.work.allowed_turns()]
        if any(b - a >= TURN for a, b in twists):
            free = True
        if swings and (free or _holds(twists, twist)):
            return 0.0
        arcs = arcs_inside(self.upper, hip)
        tried = [angle for arc in arcs if arc is not WHOLE[0] for angle in (wrapped(arc[0]), wrapped(arc[1]))]
        found = [angle for angle in tried if free or _holds(twists, self.twist(angle))]
        if not free:
            for limit in {end for arc in twists for end in arc}:
                c, s = cos(limit), sin(limit)
                roots = linear_roots(*(p * c - q * s for p, q in zip(self.twist_sine, self.twist_cosine, strict=True)))
                found += [a for a in roots if _holds(arcs, a) and abs(wrapped(self.twist(a) - limit)) < 1e-6]
        return min(found, key=abs, default=None)

    def turn(self, roll: float) -> float:
        """Return the turn of the upper bone nearest to 0 that suits the hip's twist and the knee."""
        low, high = self.hip.twist_low, self.hip.twist_high
        if low == -inf:
            return 0.0
        twist = self.twist(roll)
        if low <= twist <= high:
            return 0.0
        turns = self.work.allowed_turns()
        tried = [wrapped(end) for arc in turns if arc is not WHOLE[0] for end in arc]
        tried += [wrapped(twist - low), wrapped(twist - high)]
        return min(tried, key=lambda t: (not (_holds(turns, t) and _holds([(low, high)], twist - t)), abs(t)))


def _holds(arcs: list[Arc], angle: float) -> bool:
    """Return whether an angle lies in one of several arcs."""
    for a, b in arcs:
        past = (angle - a + 1e-9) % TURN
        if past <= b - a + 2e-9 or b - a >= TURN:
            return True
    return False


def _nearest(arc: Arc) -> float:
    """Return the angle in an arc that is nearest to 0."""
    if _holds([arc], 0.0):
        return 0.0
    return min(wrapped(arc[0]), wrapped(arc[1]), key=abs)


def _skew(arm: Vector, length: float) -> float:
    """Return by how much a bone points past its Y axis."""
    return sqrt(arm[0] * arm[0] + arm[2] * arm[2]) / length if arm[1] > 0.0 else pi


def _frame_of(space: Frame, bone: Frame) -> Frame:
    """Return the frame of a bone of which three axes, given in its own, are so many in space."""
    x, y, z = (applied(space, (bone[0][axis], bone[1][axis], bone[2][axis])) for axis in range(3))
    return x, y, z


def _fk_axes(limb: Limb, first: float, second: float) -> Frame | None:
    """Return line, bend and normal of the FK pose, see `twist.chain_axes`; None where its end stands on its root."""
    middle = applied(limb.upper_fk, limb.upper)
    tip = plus(middle, applied(limb.lower_fk, limb.lower))
    if norm(tip) < STRAIGHT:
        return None
    line = unit(tip)
    # The centroid of both bones, as a curve: the part across the line is half of the knee's.
    bend = times(reject(middle, line), (first + second) / 2.0)
    if norm(bend) < STRAIGHT:
        bend = cross(line, _roomiest(limb, _hinge(limb.upper_fk, line), line))
    bend = unit(bend)
    return line, bend, cross(bend, line)


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
