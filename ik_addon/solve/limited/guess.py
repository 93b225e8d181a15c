"""The pose from which the first descent starts: near the FK pose, it changes smoothly with the target."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ..free.axes import STRAIGHT, centroid, chain_axes, joints_of
from ..free.even_bend import arc_of
from ..maths.numbers import (
    MANY,
    ONE,
    OPPOSITE,
    Number,
    Numbers,
    Quaternion,
    Vector,
    about,
    between,
    cross,
    dot,
    either,
    inverse,
    minus,
    multiply,
    plus,
    reject,
    rotate,
    size_of,
    times,
    turn_of,
    unit_of,
)
from ..maths.rotations import quaternion_of, quaternions
from ..problem import Floats
from .skeleton import Angles, Body, Joint, Nine, inside, nearest_angles

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
_TURN = 2.0 * np.pi


class _Link(NamedTuple):
    """What stays the same for a joint and its bone."""

    rest: Quaternion
    segment: Vector
    joint: Joint
    is_free: bool


def guess_of(body: Body, turns: Floats, member: int | None) -> Guess:
    """Return the part of a guess that does not depend on goals, for all members in arrays, or kept for one in floats.

    Args:
        body: B bodies, whose longest chains have length 1.
        turns: (4, n, B) rotations of the joints in the FK pose.
        member: index of the member; None: all of them.
    """
    known = body.kept.get(("guess", member))
    if known is not None and known[0] is turns:
        found: Guess = known[1]
        return found
    path = body.path(0) if len(body.segments) == 1 else ()
    segments, rest = np.zeros_like(body.heads), quaternions(body.rest)
    if path:
        segments[:, path] = np.concatenate([body.heads[:, path[1:]], body.ends], axis=1)
    joints = body.skeleton(member).joints
    if member is None:
        rests, sizes, fks = (list(map(tuple, part.swapaxes(0, 1))) for part in (rest, segments, turns))
        links = list(map(_Link, rests, sizes, joints, body.free))
        return Guess(MANY, links, fks, path)
    rests, sizes, fks = (list(map(tuple, part[..., member].T.tolist())) for part in (rest, segments, turns))
    guess = Guess(ONE, list(map(_Link, rests, sizes, joints, body.free)), fks, path)
    body.kept["guess", member] = turns, guess
    return guess


class Guess:
    """The guess for one body, or for many.

    With the target at the FK tip nothing changes. Elsewhere the bend keeps to one side, whatever the direction of
    the target: a descent from the FK pose itself would bend a straight chain away from the target, to varying sides.
    A straight chain bends towards its pole, or without one to where it has most room. A body with several effectors
    stays in its FK pose.
    """

    def __init__(self, do: Numbers, links: list[_Link], turns: list[Quaternion], path: tuple[int, ...]) -> None:
        """Lay out bodies in the FK pose, and the path of joints that are bent; none if it is empty."""
        self.do = do
        self.fk: Angles = [nearest_angles(do, link.joint, turn) for link, turn in zip(links, turns, strict=True)]
        """Joint angles of the FK pose within the limits."""
        self.path, self.links = path, [links[i] for i in path]
        if not path:
            return
        own = [multiply(link.rest, turn_of(do, self.fk[i])) for i, link in zip(path, self.links, strict=True)]
        self.frames: list[Quaternion] = []
        for link, turn in zip(self.links, own, strict=True):
            self.frames.append(turn if link.is_free else multiply(self.frames[-1], turn))
        self.rest_frames = self._rest_frames(self.frames)
        self.lengths = [size_of(do, link.segment) for link in self.links]
        ends = list(accumulate(self.lengths))
        self.reach = do.most(ends[-1], 1e-200)
        self.directions = [
            unit_of(do, rotate(frame, link.segment)) for frame, link in zip(self.frames, self.links, strict=True)
        ]
        self._lay_axes()
        self.arc = arc_of(do, self.chord)
        self.places = [(end - size / 2.0) / self.reach for end, size in zip(ends, self.lengths, strict=True)]
        """Distance along the chain of each bone's middle, as a fraction of its length."""
        self.waves = [do.cos(_TURN * place) for place in self.places]
        self.room = self._room_of_root(self.normal)

    def from_frames(self, frames: list[Nine]) -> Guess:
        """Return the guess for the same chain in a pose in which its bones have other orientations."""
        turns = []
        for i, link in enumerate(self.links):
            turn = quaternion_of(frames[i])
            rest = link.rest if link.is_free else multiply(quaternion_of(frames[i - 1]), link.rest)
            turns.append(multiply(inverse(rest), turn))
        return Guess(self.do, self.links, turns, self.path)

    def bent(self, target: Any, pole: Any) -> Angles:
        """Return the joint angles of the pose bent towards a target; target and pole are relative to the root."""
        if not self.path:
            return self.fk
        do, line = self.do, self.line
        normal = self._normal(pole)
        distance = size_of(do, target)
        share = distance / self.reach
        turn = do.most(arc_of(do, share) - self.arc, 0.0)
        towards = either(do, distance > 1e-12, unit_of(do, target), line)
        full = between(do, line, towards, normal)
        # A fraction of a rotation is that fraction of its angle about the same axis.
        size = size_of(do, full[1:])
        angle = 2.0 * do.arctan2(size, full[0]) * _AIM * do.least(1.0, share / _NEAR)
        aim = about(do, times(unit_of(do, full[1:]), angle))
        bends = self._bends(normal, line, towards, _BEND * turn)
        world = [multiply(multiply(aim, bend), frame) for bend, frame in zip(bends, self.frames, strict=True)]
        angles = list(self.fk)
        for i, found in zip(self.path, self._allowed(world), strict=True):
            angles[i] = found
        return angles

    def _rest_frames(self, frames: list[Quaternion]) -> list[Quaternion]:
        """Return the orientations of bones if their joints are at rest, below parents turned as in `frames`."""
        above = zip([_IDENTITY, *frames], self.links, strict=False)
        return [link.rest if link.is_free else multiply(frame, link.rest) for frame, link in above]

    def _lay_axes(self) -> None:
        """Find the line from root to tip, the axis about which joints bend, and the distance between root and tip.

        See `axes.chain_axes` and `guess_of`; the distance is a fraction of the chain's length.
        """
        do, root = self.do, self.frames[0]
        sizes = [length / self.reach for length in self.lengths]
        across, along = rotate(root, (1.0, 0.0, 0.0)), rotate(root, (0.0, 0.0, 1.0))
        axes = chain_axes(do, self.directions, sizes, list(zip(across, across, along, strict=True)))
        joints = joints_of(self.directions, sizes)
        self.line, self.normal, self.chord = axes.line, axes.normal, size_of(do, joints[-1])
        self.straight = size_of(do, reject(centroid(joints, sizes), self.line)) < STRAIGHT
        if do.any(self.straight):
            self.away = self._roomiest(self.line, self.normal)

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

    def _roomiest(self, line: Vector, normal: Vector) -> Vector:
        """Return the axis about which the joints of a straight chain have the most room to bend.

        The candidates are the axis that it bends about without limits, and the others in steps of a quarter turn about
        its line; of equal ones the first is taken.
        """
        do = self.do
        other = cross(line, normal)
        best, room = normal, -1.0 + 0.0 * self.reach
        for axis in (normal, times(normal, -1.0), other, times(other, -1.0)):
            found = sum((self._room(i, axis) for i in range(1, len(self.links))), start=0.0)
            more = found > room + 1e-6
            best, room = either(do, more, axis, best), do.where(more, found, room)
        return best

    def _room(self, i: int, axis: Vector) -> Number:
        """Return how far a joint can turn about an axis, as the sine of half the angle."""
        do, joint = self.do, self.links[i].joint
        x, _, z = rotate(inverse(self.rest_frames[i]), axis)
        across = do.least(do.where(x < 0.0, joint.low[0], joint.high[0]), 1.0)
        along = do.least(do.where(z < 0.0, joint.low[1], joint.high[1]), 1.0)
        return abs(x) * across + abs(z) * along

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
        share = either(do, room < _FENCED, times(pole, 1.0 / do.most(_WIDTH * room, 1e-3)), side)
        share = times(share, 1.0 / do.most(size_of(do, share), 1.0))
        one = times(cross(share, line), turn)
        two = times(normal, turn * _WAVE * do.sqrt(do.most(1.0 - dot(share, share), 0.0)))
        shares = zip(self.places, self.waves, strict=True)
        return [about(do, plus(times(one, place - 0.5), times(two, wave))) for place, wave in shares]

    def _room_of_root(self, normal: Vector) -> Number:
        """Return how far the root joint can turn to let its chain bend about an axis, in radians."""
        do = self.do
        return 2.0 * do.arcsin(do.least(self._room(0, times(normal, -1.0)), 1.0))

    def _allowed(self, world: list[Quaternion]) -> Angles:
        """Return the joint angles within the limits nearest to bones' orientations, scaled by mobility."""
        do, found = self.do, []
        for i, link, rest_frame, frame in zip(self.path, self.links, self._rest_frames(world), world, strict=True):
            wanted, old = nearest_angles(do, link.joint, multiply(inverse(rest_frame), frame)), self.fk[i]
            x, z, twist = (b + (a - b) * each for a, b, each in zip(wanted, old, link.joint.mobility, strict=True))
            found.append(inside(do, link.joint, x, z, twist))
        return found
