"""The pose from which the first descent starts: near the FK pose, it changes smoothly with the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..free.arc import arc_of
from ..free.axes import STRAIGHT
from ..maths.calculus import Calculus, Pair, Path
from ..maths.kernel_rotations import about, between, either, nearest_direction, nearest_twist, size_of, unit_of
from ..maths.kernels import MANY, ONE
from ..maths.rotations import OPPOSITE, quaternions
from ..maths.vectors import (
    Number,
    Quaternion,
    Vector,
    cross,
    dot,
    inverse,
    minus,
    multiply,
    plus,
    reject,
    rotate,
    times,
)
from ..problem import Floats
from .body import Body, inside
from .goals import Goals

_BEND = 0.5
"""Fraction of the necessary bend that a chain begins with; the descent adds the rest, at the joints that can bend."""
_AIM = 0.6
"""Fraction of its turn towards the target that a chain begins with."""
_NEAR = 0.5
"""If the target is closer to the root than this, in chain lengths, that turn is smaller: its direction says little."""
_FLIP = 1.3
"""A target past this many times the root's limit, on the side of the bend, asks for a bend to the other side."""
_WIDTH = 1.8
"""Range over which a chain changes from one bend to the other, as a multiple of the root's limit."""
_FENCED = 1.2
"""Radians; a root that can turn farther than this does not force the bend to the other side."""
_WAVE = 0.41
"""Amplitude of an S, relative to that of a bend, that shortens a chain as much."""
_IDENTITY: Quaternion = (1.0, 0.0, 0.0, 0.0)
_ORIGIN: Vector = (0.0, 0.0, 0.0)
_TURN = 2.0 * np.pi


class _Joint(NamedTuple):
    """What stays the same for a joint and its bone."""

    rest: Quaternion
    segment: Vector
    low: Pair
    high: Pair
    twist_low: Number
    twist_high: Number
    mobility: Vector


def first_guess(body: Body, turns: Floats, goals: Goals, few: int) -> tuple[Floats, Floats]:
    """Return the FK pose within the limits, and a pose that is bent and turned part of the way to the target.

    With the target at the FK tip nothing changes. Elsewhere the bend keeps to one side, whatever the direction of
    the target: a descent from the FK pose itself would bend a straight chain away from the target, to varying sides.
    A straight chain bends towards its pole, or without one to where it has most room. A body with several effectors
    stays in its FK pose.

    Args:
        body: B bodies, whose longest chains have length 1.
        turns: (4, n, B) rotations of the joints in the FK pose.
        goals: their goals.
        few: maximum number of bodies that are processed one by one.

    Returns:
        fk: (3, n, B) joint angles of the FK pose.
        start: (3, n, B) joint angles to start from.
    """
    path = body.path(0) if len(body.segments) == 1 else ()
    pole = goals.poles[0].pole if goals.poles else None
    members = turns.shape[2]
    if members > few:
        guess = guess_of(body, turns, None)
        if path:
            root = body.heads[:, path[0]]
            start = guess.bent(goals.target[:, 0] - root, None if pole is None else pole - root)
            return np.stack(guess.fk[0]), np.stack(start[0])
        return np.stack(guess.fk[0]), np.stack(guess.fk[0])
    both = np.empty((2, *body.heads.shape))
    for i in range(members):
        guess = guess_of(body, turns, i)
        start = guess.fk
        if path:
            root = body.heads[:, path[0], i]
            target = (goals.target[:, 0, i] - root).tolist()
            start = guess.bent(target, None if pole is None else (pole[:, i] - root).tolist())
        both[..., i] = np.array([guess.fk, start]).transpose(0, 2, 1)
    return both[0], both[1]


def guess_of(body: Body, turns: Floats, member: int | None) -> Guess:
    """Return the part of a guess that does not depend on goals, for all members, or cached for one."""
    known = body.kept.get(("guess", member))
    if known is not None and known[0] is turns:
        found: Guess = known[1]
        return found
    path = body.path(0) if len(body.segments) == 1 else ()
    segments, rest = np.zeros_like(body.heads), quaternions(body.rest)
    if path:
        segments[:, path] = np.concatenate([body.heads[:, path[1:]], body.ends], axis=1)
    free = tuple(i for i, bone in enumerate(path) if body.free[bone])
    way = _Way(path if len(path) < len(body.parents) else None, free) if path else None
    limits = *body.cone, body.mobility
    if member is None:
        joints = [_Joint(tuple(rest), tuple(segments), *map(_split, limits))]
        return Guess(MANY, joints, [tuple(turns)], way)
    of_all = [part[..., 0].T.tolist() for part in limits]
    parts = zip(rest[..., member].T.tolist(), segments[..., member].T.tolist(), *of_all, strict=True)
    guess = Guess(ONE, [_Joint(*each) for each in parts], turns[..., member].T.tolist(), way)
    body.kept["guess", member] = turns, guess
    return guess


def _split(limits: Floats) -> Any:
    """Return limits of shape (2, n, 1) or (3, n, 1) as a tuple of components, those of twists (n, 1) unchanged."""
    return tuple(limits) if limits.ndim == 3 else limits


class _Way(NamedTuple):
    """The joints that are bent, and which of these are free, by position among them."""

    path: Path
    free: tuple[int, ...]


class Guess:
    """The guess for one body, or for many."""

    def __init__(self, calculus: Calculus, joints: list[_Joint], turns: Sequence[Quaternion], way: _Way | None) -> None:
        """Lay out bodies in the FK pose, and the part of them that is bent; None: no part is."""
        self.do = do = calculus
        self.joints = joints
        self.fk = self.angles = self._angles_of(turns)
        """Angles of all joints, and of the joints that are bent, in the order of `joints`."""
        if way is None:
            return
        self.path, self.free = way
        self.joints, self.angles = do.on(joints, self.path), do.on(self.fk, self.path)
        self.rest_frames, self.frames = self._pose()
        sizes = [(size_of(self.do, joint.segment),) for joint in self.joints]
        self.ends = do.sums(sizes)
        """Distance along the chain at which each bone ends."""
        ((last,),) = do.apart(self.ends)[-1:]
        self.reach = do.most(last, 1e-200)
        self.lengths = [size for (size,) in sizes]
        self.directions = [
            unit_of(self.do, rotate(frame, joint.segment))
            for frame, joint in zip(self.frames, self.joints, strict=True)
        ]
        self._lay_axes()
        self.arc = arc_of(do, self.chord)
        self.places = [(end - size / 2.0) / self.reach for (end,), size in zip(self.ends, self.lengths, strict=True)]
        """Distance along the chain of each bone's middle, as a fraction of its length."""
        self.waves = [do.cos(_TURN * place) for place in self.places]
        self.room = self._room_of_root(self.normal)

    def bent(self, target: Any, pole: Any) -> list[Vector]:
        """Return the joint angles of the pose bent towards a target; target and pole are relative to the root."""
        do, line, normal = self.do, self.line, self._normal(pole)
        distance = size_of(self.do, target)
        share = distance / self.reach
        turn = do.most(arc_of(do, share) - self.arc, 0.0)
        towards = either(self.do, distance > 1e-12, unit_of(self.do, target), line)
        full = between(self.do, line, towards, normal)
        # A fraction of a rotation is that fraction of its angle about the same axis.
        size = size_of(self.do, full[1:])
        angle = 2.0 * do.arctan2(size, full[0]) * _AIM * do.least(1.0, share / _NEAR)
        (aim,) = about(self.do, [times(unit_of(self.do, full[1:]), angle)])
        bends = self._bends(normal, line, towards, _BEND * turn)
        world = [multiply(multiply(aim, bend), frame) for bend, frame in zip(bends, self.frames, strict=True)]
        return do.with_path(self.fk, self.path, self._allowed(world))

    def _pose(self) -> tuple[list[Quaternion], list[Quaternion]]:
        """Return the orientations that bones have if their joints are at rest, and their own orientations."""
        do = self.do
        turns = []
        for joint, (x, z, twist) in zip(self.joints, self.angles, strict=True):
            c, s = do.cos(twist / 2.0), do.sin(twist / 2.0)
            w = do.sqrt(do.most(1.0 - x * x - z * z, 0.0))
            turns.append(multiply(joint.rest, (w * c, x * c - z * s, w * s, x * s + z * c)))
        frames = do.products(turns, self.free)
        return self._rest_frames(frames), frames

    def _rest_frames(self, frames: list[Quaternion]) -> list[Quaternion]:
        """Return the orientations of bones if their joints are at rest, below parents turned as in `frames`."""
        above = self.do.above(frames, _IDENTITY, self.free)
        return [multiply(frame, joint.rest) for frame, joint in zip(above, self.joints, strict=True)]

    def _lay_axes(self) -> None:
        """Find the line from root to tip, the axis about which joints bend, and the distance between root and tip.

        See `axes.chain_axes` and `first_guess`; the distance is a fraction of the chain's length.
        """
        do = self.do
        sizes = [length / self.reach for length in self.lengths]
        joints = do.sums([times(*pair) for pair in zip(self.directions, sizes, strict=True)])
        before = do.above(joints, _ORIGIN)
        parts = zip(joints, before, sizes, strict=True)
        middle = do.apart(do.sums([times(plus(joint, last), size / 2.0) for joint, last, size in parts]))[-1]
        tip = do.apart(joints)[-1]
        chord = size_of(self.do, tip)
        closed = chord < STRAIGHT
        line = either(self.do, closed, _ORIGIN, unit_of(self.do, tip))
        bend = reject(middle, line)
        if do.any(closed):
            around, side = self._closed(joints, before, middle)
            line, bend = either(self.do, closed, around, line), either(self.do, closed, side, bend)
        straight = size_of(self.do, bend) < STRAIGHT
        if do.any(straight):
            bend = either(self.do, straight, cross(line, self._hinge(line)), bend)
        self.line, self.normal, self.chord = line, cross(unit_of(self.do, bend), line), chord
        self.straight = size_of(self.do, reject(middle, line)) < STRAIGHT
        if do.any(self.straight):
            self.away = self._roomiest(line, self.normal)

    def _normal(self, pole: Vector | None) -> Vector:
        """Return the axis about which joints bend; a straight chain bends towards its pole."""
        do = self.do
        if not do.any(self.straight):
            return self.normal
        away = self.away
        if pole is not None:
            side = cross(unit_of(do, reject(pole, self.line)), self.line)
            away = either(do, size_of(do, side) > 0.5, side, away)
        bends: Vector = either(do, self.straight, away, self.normal)
        return bends

    def _closed(self, joints: list[Vector], before: list[Vector], middle: Vector) -> tuple[Vector, Vector]:
        """Return the line and the bend of chains whose tip is at their root, see `axes._closed_axes`."""
        do = self.do
        places = do.apart(joints)
        away = places[-1]
        for place in reversed(places):
            away = either(self.do, size_of(self.do, place) > STRAIGHT, place, away)
        side = unit_of(self.do, either(self.do, size_of(self.do, middle) > STRAIGHT, middle, away))
        area = do.apart(do.sums([cross(*pair) for pair in zip(before, joints, strict=True)]))[-1]
        area = reject(area, side)
        normal = unit_of(self.do, either(self.do, size_of(self.do, area) > STRAIGHT, area, self._hinge(side)))
        return cross(normal, side), side

    def _hinge(self, direction: Vector) -> Vector:
        """See `rotations.hinge`."""
        root = self.do.apart(self.frames)[0]
        x, z = rotate(root, (1.0, 0.0, 0.0)), rotate(root, (0.0, 0.0, 1.0))
        across = reject(x, direction)
        return unit_of(self.do, either(self.do, size_of(self.do, across) > 1e-4, across, cross(direction, z)))

    def _roomiest(self, line: Vector, normal: Vector) -> Vector:
        """Return the axis about which the joints of a straight chain have the most room to bend.

        The candidates are the axis that it bends about without limits, and the others in steps of a quarter turn about
        its line; of equal ones the first is taken.
        """
        do = self.do
        other = cross(line, normal)
        best, room = normal, -1.0 + 0.0 * self.reach
        several = len(do.apart(self.ends)) > 1
        for axis in (normal, times(normal, -1.0), other, times(other, -1.0)):
            found = do.after_first(self._rooms(axis)) if several else room + 1.0
            more = found > room + 1e-6
            best, room = either(self.do, more, axis, best), do.where(more, found, room)
        return best

    def _rooms(self, axis: Vector) -> list[Number]:
        """Return how far joints can turn about an axis, as the sine of half the angle."""
        do = self.do
        rooms = []
        for rest_frame, joint in zip(self.rest_frames, self.joints, strict=True):
            x, _, z = rotate(inverse(rest_frame), axis)
            across = do.least(do.where(x < 0.0, joint.low[0], joint.high[0]), 1.0)
            along = do.least(do.where(z < 0.0, joint.low[1], joint.high[1]), 1.0)
            rooms.append(abs(x) * across + abs(z) * along)
        return rooms

    def _bends(self, normal: Vector, line: Vector, towards: Vector, turn: Number) -> list[Quaternion]:
        """Return the rotations that bend a chain to its side, or to the other side if the root has no room.

        A root at its limit cannot turn outwards to make room for a bend on that side: beyond its limit the bend must
        be inwards. In between, a chain takes the shape of an S, so that nothing flips over.

        Args:
            normal: axis about which the chain bends.
            line: from root to tip.
            towards: from root to target.
            turn: how much to bend.
        """
        do = self.do
        room = self.room if normal is self.normal else self._room_of_root(normal)
        side = cross(line, normal)
        across = reject(towards, line)
        size = size_of(do, across)
        # Exactly behind the root rounding would say which way the target lies.
        off = do.where(size > OPPOSITE, do.arctan2(size, dot(towards, line)) / do.most(size, OPPOSITE), 0.0)
        pole = minus(times(side, _FLIP * room), times(across, off))
        share = either(self.do, room < _FENCED, times(pole, 1.0 / do.most(_WIDTH * room, 1e-3)), side)
        share = times(share, 1.0 / do.most(size_of(self.do, share), 1.0))
        one = times(cross(share, line), turn)
        two = times(normal, turn * _WAVE * do.sqrt(do.most(1.0 - dot(share, share), 0.0)))
        shares = zip(self.places, self.waves, strict=True)
        return about(do, [plus(times(one, place - 0.5), times(two, wave)) for place, wave in shares])

    def _room_of_root(self, normal: Vector) -> Number:
        """Return how far the root joint can turn to let its chain bend about an axis, in radians."""
        do = self.do
        rooms = [(room,) for room in self._rooms(times(normal, -1.0))]
        return 2.0 * do.arcsin(do.least(do.apart(rooms)[0][0], 1.0))

    def _allowed(self, world: list[Quaternion]) -> list[Vector]:
        """Return the joint angles within the limits nearest to bones' orientations, scaled by mobility."""
        turns = [
            multiply(inverse(rest_frame), frame)
            for rest_frame, frame in zip(self._rest_frames(world), world, strict=True)
        ]
        found = []
        for joint, angle, old in zip(self.joints, self._angles_of(turns), self.angles, strict=True):
            x, z, twist = (b + (a - b) * mobility for a, b, mobility in zip(angle, old, joint.mobility, strict=True))
            found.append(inside(self.do, joint, x, z, twist))
        return found

    def _angles_of(self, turns: Sequence[Quaternion]) -> list[Vector]:
        """Return the joint angles within the limits that are nearest to joints' rotations, see `cones.swing_twist`."""
        do = self.do
        found = []
        for joint, (w, x, y, z) in zip(self.joints, turns, strict=True):
            sign = do.where(w < 0.0, -1.0, 1.0)
            size = do.sqrt(w * w + y * y)
            safe = do.most(size, 1e-200)
            c, s = do.where(size > 0.0, w * sign / safe, 1.0), y * sign / safe
            swing = (x * c + z * s) * sign, (z * c - x * s) * sign
            x, z = nearest_direction(do, swing, joint.low, joint.high)
            twist = nearest_twist(do, 2.0 * do.arctan2(s, c), joint.twist_low, joint.twist_high)
            found.append(inside(do, joint, x, z, twist))
        return found
