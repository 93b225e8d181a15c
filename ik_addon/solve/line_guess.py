"""The first guess of `guess.bent_towards` for chains that only have to bring their end to a place.

It is written once for both kernels: a number is a float of one chain, or an array (B,) with one for each of many.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import guess
from .arc import SLACK
from .articulated import RIM
from .cones import Cone, nearest_swing
from .line_single import nearest_swing_of_one
from .lines import Lines
from .problem import Floats
from .rotations import NEARLY_OPPOSITE, OPPOSITE, quaternions, stacked
from .tuples import Number, Quaternion, Vector, added, cross, dot, inverse, minus, multiply, plus, reject, rotate, times
from .twist import STRAIGHT


class _Joint(NamedTuple):
    """What of a joint and its bone stays the same."""

    rest: Quaternion
    arm: Vector
    low: tuple[float, float]
    high: tuple[float, float]
    twist_low: float
    twist_high: float
    ease: Vector


class _Calculus(NamedTuple):
    """What floats and arrays do not have in common."""

    sqrt: Callable[[Number], Number]
    where: Callable[[Number, Number, Number], Number]
    any: Callable[[Number], bool]
    least: Callable[[Number, Number], Number]
    most: Callable[[Number, Number], Number]
    each: Callable[..., list[Number]]
    """A function of numpy of each of some numbers: sines of the standard library are not to the bit the same."""
    nearest_swing: Callable[[Number, Number, _Joint], tuple[Number, Number]]


def _nearest_of_many(x: Floats, z: Floats, joint: _Joint) -> tuple[Floats, Floats]:
    low, high = np.array(joint.low)[:, None], np.array(joint.high)[:, None]
    nearest = nearest_swing(stacked(x, z), Cone(low, high, low, high))
    return nearest[0], nearest[1]


_ONE = _Calculus(
    math.sqrt,
    lambda chosen, one, other: one if chosen else other,
    bool,
    min,
    max,
    lambda function, *values: function(*map(np.array, values)).tolist(),
    lambda x, z, joint: nearest_swing_of_one(x, z, joint.low, joint.high),
)
_MANY = _Calculus(
    np.sqrt,
    np.where,
    np.any,
    np.minimum,
    np.maximum,
    lambda function, *values: [function(*each) for each in zip(*values, strict=True)],
    _nearest_of_many,
)


def bent_towards(lines: Lines, turns: Floats, few: int) -> tuple[Floats, Floats]:
    """Return the FK pose within the limits, and one that is bent and turned a part of the way to the target.

    Args:
        lines: B chains.
        turns: (4, n, B) rotations of the joints in the FK pose.
        few: up to so many chains are done one by one.

    Returns:
        fk: (3, n, B) joint angles.
        start: (3, n, B) joint angles.
    """
    rest = quaternions(lines.rest)
    if turns.shape[2] > few:
        joints = _joints_of(lines, rest.transpose(1, 0, 2), lines.arms.transpose(1, 0, 2))
        fk, start = _Guess(_MANY, joints, list(turns.transpose(1, 0, 2))).bent(tuple(lines.target))
        return np.stack([np.stack(angle) for angle in fk], axis=1), np.stack(
            [np.stack(angle) for angle in start], axis=1
        )
    both = np.empty((2, *lines.arms.shape))
    for i in range(turns.shape[2]):
        joints = _joints_of(lines, rest[..., i].T.tolist(), lines.arms[..., i].T.tolist())
        found = _Guess(_ONE, joints, turns[..., i].T.tolist()).bent(tuple(lines.target[:, i].tolist()))
        both[..., i] = np.array(found).transpose(0, 2, 1)
    return both[0], both[1]


def _joints_of(lines: Lines, rest: Any, arms: Any) -> list[_Joint]:
    shared = [part[..., 0].T.tolist() for part in (*lines.cone, lines.ease)]
    return [_Joint(tuple(rest[i]), tuple(arms[i]), *(part[i] for part in shared)) for i in range(len(shared[0]))]


class _Guess:
    """See `guess.bent_towards` and what it calls."""

    def __init__(self, calculus: _Calculus, joints: list[_Joint], turns: Sequence[Quaternion]) -> None:
        self.do, self.joints = calculus, joints
        self.fk = self._angles_of(turns)
        self.zeros: list[Quaternion] = []
        self.frames: list[Quaternion] = []
        self._pose()
        self.lengths = [self._norm(joint.arm) for joint in joints]
        self.reach = calculus.most(added(self.lengths), 1e-200)
        self.directions = [
            self._unit(rotate(frame, joint.arm)) for frame, joint in zip(self.frames, joints, strict=True)
        ]

    def bent(self, target: Vector) -> tuple[list[Vector], list[Vector]]:
        """Return the joint angles of the FK pose, and of the one that is bent towards a target."""
        do = self.do
        line, normal, chord = self._axes()
        distance = self._norm(target)
        share = distance / self.reach
        turn = do.most(self._arc(share) - self._arc(chord), 0.0)
        towards = self._either(distance > 1e-12, self._unit(target), line)
        full = self._between(line, towards, normal)
        size = self._norm(full[1:])
        angle = 2.0 * do.each(np.arctan2, [size], [full[0]])[0] * guess.AIM * do.least(1.0, share / guess.NEAR)
        (aim,) = self._about([times(self._unit(full[1:]), angle)])
        bends = self._bends(normal, line, towards, guess.BEND * turn)
        world = [multiply(multiply(aim, bend), frame) for bend, frame in zip(bends, self.frames, strict=True)]
        return self.fk, self._allowed(world)

    def _pose(self) -> None:
        """Find the orientations of the bones, and those that they have when their joints are at rest."""
        do = self.do
        halves = [twist / 2.0 for _, _, twist in self.fk]
        cosines, sines = do.each(np.cos, halves), do.each(np.sin, halves)
        frame = None
        for joint, (x, z, _), c, s in zip(self.joints, self.fk, cosines, sines, strict=True):
            w = do.sqrt(do.most(1.0 - x * x - z * z, 0.0))
            zero = joint.rest if frame is None else multiply(frame, joint.rest)
            frame = multiply(zero, (w * c, x * c - z * s, w * s, x * s + z * c))
            self.zeros.append(zero)
            self.frames.append(frame)

    def _axes(self) -> tuple[Vector, Vector, Number]:
        """Return the line from root to tip, the axis about which joints bend, and the distance between both ends.

        See `twist.chain_axes` and `guess.bent_towards`; the distance is a part of the chain's length.
        """
        do = self.do
        zero = 0.0 * self.reach
        joint = middle = (zero, zero, zero)
        joints = [joint]
        for direction, length in zip(self.directions, self.lengths, strict=True):
            size = length / self.reach
            before, joint = joint, plus(joint, times(direction, size))
            middle = plus(middle, times(plus(joint, before), size / 2.0))
            joints.append(joint)
        chord = self._norm(joint)
        closed = chord < STRAIGHT
        line = self._either(closed, (zero, zero, zero), self._unit(joint))
        bend = reject(middle, line)
        if do.any(closed):
            around, side = self._closed(joints, middle)
            line, bend = self._either(closed, around, line), self._either(closed, side, bend)
        straight = self._norm(bend) < STRAIGHT
        if do.any(straight):
            bend = self._either(straight, cross(line, self._hinge(line)), bend)
        normal = cross(self._unit(bend), line)
        straight = self._norm(reject(middle, line)) < STRAIGHT
        if do.any(straight):
            normal = self._either(straight, self._roomiest(line, normal), normal)
        return line, normal, chord

    def _closed(self, joints: list[Vector], middle: Vector) -> tuple[Vector, Vector]:
        """Return the line and the bend of chains whose tip stands on their root, see `twist._closed_axes`."""
        away = joints[-1]
        for joint in reversed(joints):
            away = self._either(self._norm(joint) > STRAIGHT, joint, away)
        side = self._unit(self._either(self._norm(middle) > STRAIGHT, middle, away))
        area = (0.0, 0.0, 0.0)
        for one, other in itertools.pairwise(joints):
            area = plus(area, cross(one, other))
        area = reject(area, side)
        normal = self._unit(self._either(self._norm(area) > STRAIGHT, area, self._hinge(side)))
        return cross(normal, side), side

    def _hinge(self, direction: Vector) -> Vector:
        """See `rotations.hinge`."""
        x, z = rotate(self.frames[0], (1.0, 0.0, 0.0)), rotate(self.frames[0], (0.0, 0.0, 1.0))
        across = reject(x, direction)
        return self._unit(self._either(self._norm(across) > 1e-4, across, cross(direction, z)))

    def _roomiest(self, line: Vector, normal: Vector) -> Vector:
        """See `guess._roomiest`."""
        do = self.do
        other = cross(line, normal)
        best, room = normal, -1.0 + 0.0 * self.reach
        for axis in (normal, times(normal, -1.0), other, times(other, -1.0)):
            found = 0.0 * self.reach if len(self.joints) > 1 else room + 1.0
            for zero, joint in zip(self.zeros[1:], self.joints[1:], strict=True):
                found = found + self._room(zero, axis, joint)
            more = found > room + 1e-6
            best, room = self._either(more, axis, best), do.where(more, found, room)
        return best

    def _room(self, zero: Quaternion, axis: Vector, joint: _Joint) -> Number:
        """Return how far a joint can turn about an axis, as the sine of half the angle."""
        do = self.do
        x, _, z = rotate(inverse(zero), axis)
        across = do.where(x < 0.0, min(joint.low[0], 1.0), min(joint.high[0], 1.0))
        along = do.where(z < 0.0, min(joint.low[1], 1.0), min(joint.high[1], 1.0))
        return abs(x) * across + abs(z) * along

    def _arc(self, chord: Number) -> Number:
        """See `arc.arc_of`."""
        missing = self.do.least(self.do.most(1.0 - SLACK - chord, 0.0), 1.0)
        curved = 1.0 + 0.15 * missing + 0.1325 * (missing * missing * missing)
        return 2.0 * self.do.sqrt(6.0 * missing) * curved

    def _bends(self, normal: Vector, line: Vector, towards: Vector, turn: Number) -> list[Quaternion]:
        """See `guess._bend`."""
        do = self.do
        sine = do.least(self._room(self.zeros[0], times(normal, -1.0), self.joints[0]), 1.0)
        room = 2.0 * do.each(np.arcsin, [sine])[0]
        side = cross(line, normal)
        across = reject(towards, line)
        off = do.each(np.arctan2, [self._norm(across)], [dot(towards, line)])[0]
        pole = minus(times(side, guess.FLIP * room), times(self._unit(across), off))
        share = self._either(room < guess.FENCED, times(pole, 1.0 / do.most(guess.WIDTH * room, 1e-3)), side)
        share = times(share, 1.0 / do.most(self._norm(share), 1.0))
        one = times(cross(share, line), turn)
        two = times(normal, turn * guess.WAVE * do.sqrt(do.most(1.0 - dot(share, share), 0.0)))
        places, end = [], 0.0 * self.reach
        for length in self.lengths:
            end = end + length
            places.append((end - length / 2.0) / self.reach)
        waves = do.each(np.cos, [2.0 * np.pi * place for place in places])
        return self._about(
            [plus(times(one, place - 0.5), times(two, wave)) for place, wave in zip(places, waves, strict=True)]
        )

    def _allowed(self, world: list[Quaternion]) -> list[Vector]:
        """Return the joint angles within the limits that are nearest to bones' orientations, as far as joints give."""
        turns, above = [], None
        for joint, frame in zip(self.joints, world, strict=True):
            zero = joint.rest if above is None else multiply(above, joint.rest)
            turns.append(multiply(inverse(zero), frame))
            above = frame
        found = []
        for joint, angle, old in zip(self.joints, self._angles_of(turns), self.fk, strict=True):
            x, z, twist = (b + (a - b) * ease for a, b, ease in zip(angle, old, joint.ease, strict=True))
            found.append(self._inside(x, z, twist, joint))
        return found

    def _angles_of(self, turns: Sequence[Quaternion]) -> list[Vector]:
        """Return the joint angles within the limits that are nearest to joints' rotations, see `cones.swing_twist`."""
        do = self.do
        swings, sines, cosines = [], [], []
        for w, x, y, z in turns:
            sign = do.where(w < 0.0, -1.0, 1.0)
            size = do.sqrt(w * w + y * y)
            safe = do.most(size, 1e-200)
            c, s = do.where(size > 0.0, w * sign / safe, 1.0), y * sign / safe
            swings.append(((x * c + z * s) * sign, (z * c - x * s) * sign))
            sines.append(s)
            cosines.append(c)
        found = []
        for joint, swing, twist in zip(self.joints, swings, do.each(np.arctan2, sines, cosines), strict=True):
            x, z = self._nearest_direction(*swing, joint)
            found.append(self._inside(x, z, self._nearest_twist(2.0 * twist, joint), joint))
        return found

    def _inside(self, x: Number, z: Number, twist: Number, joint: _Joint) -> Vector:
        """See `lines.allowed_angles`."""
        do = self.do
        x, z = do.nearest_swing(x, z, joint)
        share = do.least(1.0, RIM / do.most(do.sqrt(x * x + z * z), 1e-30))
        return x * share, z * share, do.least(do.most(twist, joint.twist_low), joint.twist_high)

    def _nearest_direction(self, x: Number, z: Number, joint: _Joint) -> tuple[Number, Number]:
        """See `cones.nearest_direction`."""
        near = self.do.nearest_swing(x, z, joint)
        outside = (near[0] != x) | (near[1] != z)
        if not self.do.any(outside):
            return near
        behind = self.do.nearest_swing(-x, -z, joint)
        there, ahead, back = self._direction(x, z), self._direction(*near), self._direction(*behind)
        nearest: tuple[Number, Number] = self._either(outside & (dot(there, back) > dot(there, ahead)), behind, near)
        return nearest

    def _direction(self, x: Number, z: Number) -> Vector:
        """Return where a swing takes the Y axis."""
        square = x * x + z * z
        double = 2.0 * self.do.sqrt(self.do.most(1.0 - square, 0.0))
        return -double * z, 1.0 - 2.0 * square, double * x

    def _nearest_twist(self, twist: Number, joint: _Joint) -> Number:
        """See `cones.nearest_twist`."""
        do, low, high = self.do, joint.twist_low, joint.twist_high
        outside = (twist < low) | (twist > high)
        if not do.any(outside):
            return twist
        to_low, to_high = do.each(np.cos, [twist - low, twist - high])
        return do.where(outside, do.where(to_low > to_high, low, high), twist)

    # ---- vectors

    def _norm(self, a: Sequence[Number]) -> Number:
        return self.do.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])

    def _unit(self, a: Sequence[Number]) -> Vector:
        size = self.do.most(self._norm(a), 1e-200)
        return a[0] / size, a[1] / size, a[2] / size

    def _either(self, chosen: Number, one: Sequence[Number], other: Sequence[Number]) -> Any:
        return tuple(self.do.where(chosen, a, b) for a, b in zip(one, other, strict=True))

    def _about(self, vectors: list[Vector]) -> list[Quaternion]:
        """Return the rotations about vectors, by as many radians as they are long."""
        do = self.do
        sizes = [self._norm(vector) for vector in vectors]
        halves = [size / 2.0 for size in sizes]
        turns = []
        for vector, size, c, s in zip(vectors, sizes, do.each(np.cos, halves), do.each(np.sin, halves), strict=True):
            turns.append((c, *times(vector, s / do.most(size, 1e-200))))
        return turns

    def _between(self, a: Vector, b: Vector, axis: Vector) -> Quaternion:
        """See `rotations.between`."""
        size = self._norm(plus(a, b))
        turn = self._smallest(a, b)
        nearly = size < NEARLY_OPPOSITE
        if self.do.any(nearly):
            axis = self._either(size < OPPOSITE, axis, self._unit(cross(a, b)))
            half = (0.0, *self._unit(reject(axis, a)))
            turn = self._either(nearly, multiply(self._smallest(times(a, -1.0), b), half), turn)
        return turn

    def _smallest(self, a: Vector, b: Vector) -> Quaternion:
        middle = self._unit(plus(a, b))
        return dot(a, middle), *cross(a, middle)
