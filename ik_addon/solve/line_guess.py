"""The first guess of `guess.bent_towards` for chains that only have to bring their end to a place.

It is written once for both kernels, see `calculus`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import guess
from .arc import SLACK
from .articulated import RIM
from .calculus import MANY, ONE, Calculus, Pair
from .lines import Lines
from .problem import Floats
from .rotations import NEARLY_OPPOSITE, OPPOSITE, quaternions
from .tuples import Number, Quaternion, Vector, cross, dot, inverse, minus, multiply, plus, reject, rotate, times
from .twist import STRAIGHT

_IDENTITY: Quaternion = (1.0, 0.0, 0.0, 0.0)
_ORIGIN: Vector = (0.0, 0.0, 0.0)
_TURN = 2.0 * np.pi


class _Joint(NamedTuple):
    """What of a joint and its bone stays the same."""

    rest: Quaternion
    arm: Vector
    low: Pair
    high: Pair
    twist_low: Number
    twist_high: Number
    ease: Vector


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
    cone = lines.cone
    if turns.shape[2] > few:
        low, high = (cone.low[0], cone.low[1]), (cone.high[0], cone.high[1])
        joints = [_Joint(tuple(rest), tuple(lines.arms), low, high, cone.twist_low, cone.twist_high, tuple(lines.ease))]
        fk, start = _Guess(MANY, joints, [tuple(turns)]).bent(tuple(lines.target))
        return np.stack(fk[0]), np.stack(start[0])
    limits = [part[..., 0].T.tolist() for part in (*cone, lines.ease)]
    both = np.empty((2, *lines.arms.shape))
    for i in range(turns.shape[2]):
        parts = zip(rest[..., i].T.tolist(), lines.arms[..., i].T.tolist(), *limits, strict=True)
        joints = [_Joint(tuple(turn), tuple(arm), *others) for turn, arm, *others in parts]
        found = _Guess(ONE, joints, turns[..., i].T.tolist()).bent(tuple(lines.target[:, i].tolist()))
        both[..., i] = np.array(found).transpose(0, 2, 1)
    return both[0], both[1]


class _Guess:
    """See `guess.bent_towards` and what it calls."""

    def __init__(self, calculus: Calculus, joints: list[_Joint], turns: Sequence[Quaternion]) -> None:
        self.do, self.joints = calculus, joints
        self.fk = self._angles_of(turns)
        self.zeros, self.frames = self._pose()
        sizes = [(self._norm(joint.arm),) for joint in joints]
        self.ends = calculus.sums(sizes)
        """How far along the chain bones end."""
        ((last,),) = calculus.apart(self.ends)[-1:]
        self.reach = calculus.most(last, 1e-200)
        self.lengths = [size for (size,) in sizes]
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

    def _pose(self) -> tuple[list[Quaternion], list[Quaternion]]:
        """Return the orientations that bones have when their joints are at rest, and those that they have."""
        do = self.do
        halves = [twist / 2.0 for _, _, twist in self.fk]
        cosines, sines = do.each(np.cos, halves), do.each(np.sin, halves)
        turns = []
        for joint, (x, z, _), c, s in zip(self.joints, self.fk, cosines, sines, strict=True):
            w = do.sqrt(do.most(1.0 - x * x - z * z, 0.0))
            turns.append(multiply(joint.rest, (w * c, x * c - z * s, w * s, x * s + z * c)))
        frames = do.products(turns)
        return self._zeros(frames), frames

    def _zeros(self, frames: list[Quaternion]) -> list[Quaternion]:
        """Return the orientations of bones whose joints are at rest, below such that have those of `frames`."""
        above = self.do.above(frames, _IDENTITY)
        return [multiply(frame, joint.rest) for frame, joint in zip(above, self.joints, strict=True)]

    def _axes(self) -> tuple[Vector, Vector, Number]:
        """Return the line from root to tip, the axis about which joints bend, and the distance between both ends.

        See `twist.chain_axes` and `guess.bent_towards`; the distance is a part of the chain's length.
        """
        do = self.do
        sizes = [length / self.reach for length in self.lengths]
        joints = do.sums([times(*pair) for pair in zip(self.directions, sizes, strict=True)])
        before = do.above(joints, _ORIGIN)
        parts = zip(joints, before, sizes, strict=True)
        middle = do.apart(do.sums([times(plus(joint, last), size / 2.0) for joint, last, size in parts]))[-1]
        tip = do.apart(joints)[-1]
        chord = self._norm(tip)
        closed = chord < STRAIGHT
        line = self._either(closed, _ORIGIN, self._unit(tip))
        bend = reject(middle, line)
        if do.any(closed):
            around, side = self._closed(joints, before, middle)
            line, bend = self._either(closed, around, line), self._either(closed, side, bend)
        straight = self._norm(bend) < STRAIGHT
        if do.any(straight):
            bend = self._either(straight, cross(line, self._hinge(line)), bend)
        normal = cross(self._unit(bend), line)
        straight = self._norm(reject(middle, line)) < STRAIGHT
        if do.any(straight):
            normal = self._either(straight, self._roomiest(line, normal), normal)
        return line, normal, chord

    def _closed(self, joints: list[Vector], before: list[Vector], middle: Vector) -> tuple[Vector, Vector]:
        """Return the line and the bend of chains whose tip stands on their root, see `twist._closed_axes`."""
        do = self.do
        places = do.apart(joints)
        away = places[-1]
        for place in reversed(places):
            away = self._either(self._norm(place) > STRAIGHT, place, away)
        side = self._unit(self._either(self._norm(middle) > STRAIGHT, middle, away))
        area = do.apart(do.sums([cross(*pair) for pair in zip(before, joints, strict=True)]))[-1]
        area = reject(area, side)
        normal = self._unit(self._either(self._norm(area) > STRAIGHT, area, self._hinge(side)))
        return cross(normal, side), side

    def _hinge(self, direction: Vector) -> Vector:
        """See `rotations.hinge`."""
        root = self.do.apart(self.frames)[0]
        x, z = rotate(root, (1.0, 0.0, 0.0)), rotate(root, (0.0, 0.0, 1.0))
        across = reject(x, direction)
        return self._unit(self._either(self._norm(across) > 1e-4, across, cross(direction, z)))

    def _roomiest(self, line: Vector, normal: Vector) -> Vector:
        """See `guess._roomiest`."""
        do = self.do
        other = cross(line, normal)
        best, room = normal, -1.0 + 0.0 * self.reach
        several = len(do.apart(self.ends)) > 1
        for axis in (normal, times(normal, -1.0), other, times(other, -1.0)):
            found = do.after_first(self._rooms(axis)) if several else room + 1.0
            more = found > room + 1e-6
            best, room = self._either(more, axis, best), do.where(more, found, room)
        return best

    def _rooms(self, axis: Vector) -> list[Number]:
        """Return how far joints can turn about an axis, as the sine of half the angle."""
        do = self.do
        rooms = []
        for zero, joint in zip(self.zeros, self.joints, strict=True):
            x, _, z = rotate(inverse(zero), axis)
            across = do.least(do.where(x < 0.0, joint.low[0], joint.high[0]), 1.0)
            along = do.least(do.where(z < 0.0, joint.low[1], joint.high[1]), 1.0)
            rooms.append(abs(x) * across + abs(z) * along)
        return rooms

    def _arc(self, chord: Number) -> Number:
        """See `arc.arc_of`."""
        missing = self.do.least(self.do.most(1.0 - SLACK - chord, 0.0), 1.0)
        curved = 1.0 + 0.15 * missing + 0.1325 * (missing * missing * missing)
        return 2.0 * self.do.sqrt(6.0 * missing) * curved

    def _bends(self, normal: Vector, line: Vector, towards: Vector, turn: Number) -> list[Quaternion]:
        """See `guess._bend`."""
        do = self.do
        rooms = [(room,) for room in self._rooms(times(normal, -1.0))]
        room = 2.0 * do.each(np.arcsin, [do.least(do.apart(rooms)[0][0], 1.0)])[0]
        side = cross(line, normal)
        across = reject(towards, line)
        off = do.each(np.arctan2, [self._norm(across)], [dot(towards, line)])[0]
        pole = minus(times(side, guess.FLIP * room), times(self._unit(across), off))
        share = self._either(room < guess.FENCED, times(pole, 1.0 / do.most(guess.WIDTH * room, 1e-3)), side)
        share = times(share, 1.0 / do.most(self._norm(share), 1.0))
        one = times(cross(share, line), turn)
        two = times(normal, turn * guess.WAVE * do.sqrt(do.most(1.0 - dot(share, share), 0.0)))
        places = [(end - size / 2.0) / self.reach for (end,), size in zip(self.ends, self.lengths, strict=True)]
        waves = do.each(np.cos, [_TURN * place for place in places])
        return self._about(
            [plus(times(one, place - 0.5), times(two, wave)) for place, wave in zip(places, waves, strict=True)]
        )

    def _allowed(self, world: list[Quaternion]) -> list[Vector]:
        """Return the joint angles within the limits that are nearest to bones' orientations, as far as joints give."""
        turns = [multiply(inverse(zero), frame) for zero, frame in zip(self._zeros(world), world, strict=True)]
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
        x, z = do.nearest_swing(x, z, joint.low, joint.high)
        share = do.least(1.0, RIM / do.most(do.sqrt(x * x + z * z), 1e-30))
        return x * share, z * share, do.least(do.most(twist, joint.twist_low), joint.twist_high)

    def _nearest_direction(self, x: Number, z: Number, joint: _Joint) -> tuple[Number, Number]:
        """See `cones.nearest_direction`."""
        near = self.do.nearest_swing(x, z, joint.low, joint.high)
        outside = (near[0] != x) | (near[1] != z)
        if not self.do.any(outside):
            return near
        behind = self.do.nearest_swing(-x, -z, joint.low, joint.high)
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
        # What has no limits is never outside; infinite ones would only give rise to warnings.
        to_low, to_high = do.each(np.cos, [twist - do.most(low, -_TURN), twist - do.least(high, _TURN)])
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
