"""Poses from which searches start: near the FK pose, led by the tips, and from a fixed table.

A `Guess` lies near the FK pose and changes smoothly with the target.

`Passes` are FABRIK's, for a chain or tree whose joints have limits. Inward, from the tips to the roots, each bone
proposes where its head should be; where chains part, a bone takes the weighted centroid of the proposals. Outward, each
bone turns to what was proposed for its end, as far as its cone allows. Only this pass clamps, since clamped proposals
lock chains up. Sub-bases and cones of four angles are those of A. Aristidou and J. Lasenby, doi
10.1016/j.gmod.2011.05.003. `search` continues from where the passes end. A single pass outward stretches a chain
towards a target that is too far away.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from itertools import accumulate, count, islice
from math import atan2, isqrt
from typing import NamedTuple

import numpy as np

from ..free.axes import STRAIGHT, arc_of, centroid, chain_axes, joints_of, room_about, roomiest
from ..free.fabrik import FINEST, MEET, folding
from ..maths import products
from ..maths.numbers import MANY, ONE, Number
from ..maths.rotations import quaternion_of, quaternions, stacked
from ..maths.turns import OPPOSITE, STILL, Quaternion, about, between, inverse, multiply, rotate, turn_of
from ..maths.vectors import Vector, cross, dot, either, minus, norm, over, plus, reject, size_of, times, unit, unit_of
from ..problem import Floats, path_of
from .objectives import Orientation, Place, System
from .skeleton import Angles, Body, Joint, Skeleton, Standing, allowed_angles, inside, nearest_angles, pose_of, rows_of

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
_TURN = 2.0 * np.pi


def guess_of(standing: Standing, member: int | None, turns: Floats | None = None) -> Guess:
    """Return the part of a guess that does not depend on goals, for all members in arrays, or for one in floats.

    Args:
        standing: the members.
        member: index of the member; None: all of them.
        turns: (n, 3, 3), or of all members (B, n, 3, 3), rotations of bones from FK to the pose that stands in for it;
            None: FK itself, for which the guess is kept.
    """
    body, chosen = standing.body, np.s_[:] if member is None else member
    if turns is None and ("guess", member) in body.kept:
        found: Guess = body.kept["guess", member]
        return found
    if ("rests", member) not in body.kept:
        body.kept["rests", member] = rows_of(quaternions(body.rest[..., chosen]))
    skeleton, rests = body.skeleton(member), body.kept["rests", member]
    if turns is not None:
        frames = rows_of(quaternions(products.times(turns, standing.frames[chosen]).swapaxes(-1, -2).T))
        below = zip(_rest_frames(rests, body.free, frames), frames, strict=True)
        return Guess(skeleton, rests, [multiply(inverse(rest), frame) for rest, frame in below])
    guess = body.kept["guess", member] = Guess(skeleton, rests, rows_of(standing.turns[..., chosen]))
    return guess


def _rest_frames(rests: list[Quaternion], is_free: Sequence[bool], frames: list[Quaternion]) -> list[Quaternion]:
    """Return the orientations of the bones of a chain if their joints are at rest, below parents turned as in `frames`.

    Args:
        rests: orientations at rest relative to the parents.
        is_free: bones that inherit no rotation.
        frames: orientations.
    """
    above = zip([STILL, *frames], rests, is_free, strict=False)
    return [rest if free else multiply(frame, rest) for frame, rest, free in above]


class Guess:
    """The guess for one body, or for many.

    With the target at the FK tip nothing changes. Elsewhere the bend keeps to one side, whatever the direction of
    the target: a descent from the FK pose itself would bend a straight chain away from the target, to varying sides.
    A straight chain bends towards its pole, or without one to where it has most room. A body with several effectors
    stays in its FK pose.
    """

    def __init__(self, skeleton: Skeleton, rests: list[Quaternion], turns: list[Quaternion]) -> None:
        """Lay out bodies in the FK pose, from the rotations of bones at rest and of joints in that pose."""
        self.skeleton, self.do = skeleton, skeleton.do
        do, joints = self.do, skeleton.joints
        self.fk: Angles = [nearest_angles(do, joint, turn) for joint, turn in zip(joints, turns, strict=True)]
        """Joint angles of the FK pose within the limits."""
        self.path = path = path_of(skeleton.parents, skeleton.segments[0]) if len(skeleton.segments) == 1 else ()
        """The joints that are bent."""
        if not path:
            return
        self.joints, self.rests = [joints[i] for i in path], [rests[i] for i in path]
        self.is_free = [skeleton.free[i] for i in path]
        self.frames: list[Quaternion] = []
        for i, rest, is_free in zip(path, self.rests, self.is_free, strict=True):
            turn = multiply(rest, turn_of(do, self.fk[i]))
            self.frames.append(turn if is_free else multiply(self.frames[-1], turn))
        self.rest_frames = _rest_frames(self.rests, self.is_free, self.frames)
        segments = [*(skeleton.bones[i].head for i in path[1:]), skeleton.ends[0]]
        self.lengths = [size_of(do, segment) for segment in segments]
        ends = list(accumulate(self.lengths))
        self.reach = do.most(ends[-1], 1e-200)
        self.directions = [unit_of(do, way) for way in map(rotate, self.frames, segments)]
        sizes = [length / self.reach for length in self.lengths]
        across, along = rotate(self.frames[0], (1.0, 0.0, 0.0)), rotate(self.frames[0], (0.0, 0.0, 1.0))
        axes = chain_axes(do, self.directions, sizes, list(zip(across, across, along, strict=True)))
        points = joints_of(self.directions, sizes)
        self.line, self.normal = axes.line, axes.normal
        self.arc = arc_of(do, size_of(do, points[-1]))
        self.straight = size_of(do, reject(centroid(points, sizes), self.line)) < STRAIGHT
        if do.any(self.straight):
            below = range(1, len(path))
            self.away = roomiest(do, lambda axis: sum(self._room(i, axis) for i in below), self.line, self.normal)
        self.places = [(end - size / 2.0) / self.reach for end, size in zip(ends, self.lengths, strict=True)]
        """Distance along the chain of each bone's middle, as a fraction of its length."""
        self.waves = [do.cos(_TURN * place) for place in self.places]

    def bent(self, target: Vector, pole: Vector | None) -> Angles:
        """Return the joint angles of the pose bent towards a target; target and pole are relative to the root."""
        if not self.path:
            return self.fk
        do, line, normal = self.do, self.line, self.normal
        if do.any(self.straight):
            away = self.away
            if pole is not None:
                side = cross(unit_of(do, reject(pole, line)), line)
                away = either(do, size_of(do, side) > 0.5, side, away)
            normal = either(do, self.straight, away, normal)
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
        at_rest = _rest_frames(self.rests, self.is_free, world)
        for i, joint, rest, frame in zip(self.path, self.joints, at_rest, world, strict=True):
            # The nearest within the limits, scaled by mobility.
            wanted, old = nearest_angles(do, joint, multiply(inverse(rest), frame)), self.fk[i]
            x, z, twist = (b + (a - b) * each for a, b, each in zip(wanted, old, joint.mobility, strict=True))
            angles[i] = inside(do, joint, x, z, twist)
        return angles

    def _room(self, i: int, axis: Vector) -> Number:
        """Return how far a joint can turn about an axis, as the sine of half the angle."""
        joint = self.joints[i]
        return room_about(self.do, rotate(inverse(self.rest_frames[i]), axis), joint.low, joint.high)

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
        room = 2.0 * do.arcsin(do.least(self._room(0, times(normal, -1.0)), 1.0))
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


PASSES = 20
"""Maximum number of passes; then the search takes over."""
STALL = 0.97
"""A pass makes headway if it reduces the error below this fraction of the least one."""
SHOWN = 1e-9
"""Moments smaller than this, in chain lengths, are rounding."""
PATIENCE = 3
"""Number of passes without headway after which the passes end."""


def led_by_tips(system: System, guess: Guess, pole: Vector | None, tolerance: float, most: int) -> tuple[Angles, int]:
    """Return joint angles within the limits that bring the effectors as near to their targets as passes can.

    Args:
        system: a body, with places, and orientations of the effectors' bones; poles are left to the search.
        guess: its FK pose, from which the passes start.
        pole: where a chain that would fold bends to, from its root; None: to its free side.
        tolerance: distance from effector to target that is near enough.
        most: maximum number of passes.

    Returns:
        The joint angles, and the number of passes.
    """
    passes = Passes(system)
    angles = _unfolded(system, guess, pole) if len(system.skeleton.segments) == 1 else guess.fk
    best, least = angles, passes.error(angles)
    idle = used = 0
    while used < min(most, PASSES) and least > max(tolerance, FINEST) and idle < PATIENCE:
        angles = passes.outward(angles, passes.inward(angles))
        error = passes.error(angles)
        used += 1
        idle = 0 if error < STALL * least else idle + 1
        if error < least:
            best, least = angles, error
    return best, used


def _unfolded(system: System, guess: Guess, pole: Vector | None) -> Angles:
    """Return the FK pose of a chain, bent to its free side where passes alone would only fold or deadlock."""
    place, tip = system.objectives[0], pose_of(system.skeleton, guess.fk).ends[0]
    assert isinstance(place, Place)
    root, line = system.skeleton.bones[place.path[0]].head, guess.line
    leans = [1.0 - dot(direction, line) ** 2 for direction in guess.directions]
    lean = sum(length / guess.reach * own for length, own in zip(guess.lengths, leans, strict=True))
    way = over(minus(tip, place.target), guess.reach)
    share = folding(ONE, lean, dot(way, line), norm(reject(way, line)))
    if not share:
        return guess.fk
    bent = guess.bent(minus(place.target, root), pole)
    return [
        inside(ONE, joint, *(a + share * (b - a) for a, b in zip(old, new, strict=True)))
        for joint, old, new in zip(system.skeleton.joints, guess.fk, bent, strict=True)
    ]


class _Point(NamedTuple):
    """A point that a bone carries: the head of another bone, or an effector."""

    number: int
    """Of the other bone, or of the effector, counted on from the last bone."""
    offset: Vector
    """From the carrying bone's head, in that bone's axes."""
    weight: float


class Passes:
    """The passes over a body."""

    def __init__(self, system: System) -> None:
        """Find out which points each bone carries."""
        self.skeleton = skeleton = system.skeleton
        self.rests: list[Quaternion] = [quaternion_of(bone.rest) for bone in skeleton.bones]
        self.targets: list[Vector] = []
        self.fixed: dict[int, Quaternion] = {}
        weights = [0.0] * len(self.rests)
        self.carried: list[list[_Point]] = [[] for _ in weights]
        for objective in system.objectives:
            if isinstance(objective, Place):
                weight, e = objective.factor**2, objective.effector
                self.targets.append(objective.target)
                self.carried[objective.bone].append(_Point(len(weights) + e, skeleton.ends[e], weight))
                for bone in objective.path:
                    weights[bone] += weight
            elif isinstance(objective, Orientation):
                self.fixed[objective.bone] = quaternion_of(objective.rotation)
        for bone, (parent, weight) in enumerate(zip(skeleton.parents, weights, strict=True)):
            if parent >= 0 and weight > 0.0:
                self.carried[parent].append(_Point(bone, skeleton.bones[bone].head, weight))

    def error(self, angles: Angles) -> float:
        """Return the largest distance from an effector to its target."""
        return max(norm(minus(*pair)) for pair in zip(pose_of(self.skeleton, angles).ends, self.targets, strict=True))

    def inward(self, angles: Angles) -> list[Vector]:
        """Return where heads and effectors should be, from the tips to the roots; roots stay where they are."""
        pose = pose_of(self.skeleton, angles)
        wanted = [*pose.points, *self.targets]
        for i in range(len(angles) - 1, -1, -1):
            points = self.carried[i]
            if self.skeleton.parents[i] < 0 or not points:
                continue
            turn, head = quaternion_of(pose.frames[i]), pose.points[i]
            proposed = [times(self._proposed(i, turn, head, point, wanted), point.weight) for point in points]
            wanted[i] = over(reduce(plus, proposed), sum(point.weight for point in points))
        return wanted

    def outward(self, angles: Angles, wanted: Sequence[Vector]) -> Angles:
        """Return the angles with which bones, from the roots to the tips, turn to the wanted points within limits."""
        turns: list[Quaternion] = []
        heads: list[Vector] = []
        found = list(angles)
        parts = zip(self.skeleton.joints, self.rests, self.skeleton.bones, self.skeleton.parents, strict=True)
        for i, (joint, rest, (_, head), parent) in enumerate(parts):
            if parent >= 0:
                head = plus(heads[parent], rotate(turns[parent], head))
                rest = rest if self.skeleton.free[i] else multiply(turns[parent], rest)
            if self.carried[i]:
                found[i] = self._turned(i, joint, (rest, head), angles[i][2], wanted)
            heads.append(head)
            turns.append(multiply(rest, turn_of(ONE, found[i])))
        return found

    def _proposed(self, bone: int, turn: Quaternion, head: Vector, point: _Point, wanted: Sequence[Vector]) -> Vector:
        """Return where the head of a bone should be for one of the points that it carries."""
        goal = wanted[point.number]
        if bone in self.fixed:
            return minus(goal, rotate(self.fixed[bone], point.offset))
        way = minus(goal, head)
        # A goal at the head gives no direction: the bone keeps its own.
        way = way if norm(way) > MEET else rotate(turn, point.offset)
        return minus(goal, times(unit(way), norm(point.offset)))

    def _turned(
        self, bone: int, joint: Joint, at_rest: tuple[Quaternion, Vector], twist: float, wanted: Sequence[Vector]
    ) -> Vector:
        """Turn a joint, within its limits, so that the points on its bone are in the directions of their goals."""
        (rest, head), points = at_rest, self.carried[bone]
        back = inverse(rest)
        if bone in self.fixed:
            return nearest_angles(ONE, joint, multiply(back, self.fixed[bone]))
        twisted = turn_of(ONE, (0.0, 0.0, twist))
        own = [times(rotate(twisted, point.offset), point.weight) for point in points]
        goals = [minus(wanted[point.number], head) for point in points]
        there = [times(rotate(back, goal), point.weight) for goal, point in zip(goals, points, strict=True)]
        return nearest_angles(ONE, joint, multiply(_aligned(own, there), twisted))


def _aligned(own: list[Vector], there: list[Vector]) -> Quaternion:
    """Return the rotation that brings vectors nearest to others: their sums, then about these."""
    start, end = reduce(plus, own), reduce(plus, there)
    if min(norm(start), norm(end)) <= MEET:
        return 1.0, 0.0, 0.0, 0.0
    start, end = unit(start), unit(end)
    turn = between(ONE, start, end, partial(_any_across, start))
    if len(own) == 1:
        return turn
    sine = cosine = 0.0
    for a, b in zip(own, there, strict=True):
        a = rotate(turn, a)
        sine, cosine = sine + dot(cross(a, b), end), cosine + dot(reject(a, end), reject(b, end))
    # Points on the axis give no angle, and rounding must not choose one.
    if sine * sine + cosine * cosine <= SHOWN * SHOWN:
        return turn
    return multiply(about(ONE, times(end, atan2(sine, cosine))), turn)


def _any_across(direction: Vector) -> Vector:
    """Return a unit vector perpendicular to a unit vector: along X, or along Z if X is nearly parallel."""
    x, z = reject((1.0, 0.0, 0.0), direction), reject((0.0, 0.0, 1.0), direction)
    return unit(x if norm(x) > 0.1 else z)


_CURL, _ROUND = 0.8, 1.5 * np.pi
"""Fraction of their limits that the joints of a curled chain use, and the radians that it may turn in total."""
_WIDEST = np.pi / 2.0
"""Maximum radians by which the poses of the table turn joints without limits."""
SIZE = 64
"""Number of poses among which chains choose where to start again."""


def table(body: Body, first: int, amount: int) -> list[Angles]:
    """Return `amount` poses within the limits from a fixed list, beginning with number `first`, kept with the body.

    The first four are curled up, each to a different side. The joint angles of the others are points of a Kronecker
    sequence, evenly spread over what the limits allow.
    """
    known: dict[int, Angles] = body.kept.setdefault("table", {})
    if not known.keys() >= set(range(first, first + amount)):
        poses = _table(body, first, amount)
        known.update({first + i: rows_of(poses[..., i]) for i in range(amount)})
    return [known[number] for number in range(first, first + amount)]


def nearest(body: Body, member: int, target: Vector) -> list[Angles]:
    """Return the first poses of the table for a chain, those before the others that end nearest to its target.

    Of the nearest 16 every fourth comes first: poses that end at nearly the same place often lead to the same pose.
    """
    poses = table(body, 0, SIZE)
    if ("ends", member) not in body.kept:
        every: Floats = np.array(poses).transpose(2, 1, 0)
        (end,) = pose_of(body.skeleton(member)._replace(do=MANY), rows_of(every)).ends
        body.kept["ends", member] = list(zip(*(part.tolist() for part in end), strict=True))
    # Poses that mirror each other are equally near; rounding must not choose between them.
    away = [round(norm(minus(end, target)), 6) for end in body.kept["ends", member]]
    order = sorted(range(SIZE), key=away.__getitem__)
    return [poses[i] for i in sorted(order[:16], key=lambda i: order.index(i) % 4 > 0) + order[16:]]


def _table(body: Body, first: int, amount: int) -> Floats:
    """Return poses (3, n, amount) of the table."""
    bones = len(body.parents)
    primes = (number for number in count(2) if all(number % i for i in range(2, isqrt(number) + 1)))
    steps = np.sqrt(list(islice(primes, 3 * bones))).reshape(bones, 3).T[..., None]
    number = np.arange(first, first + amount)
    points = ((number + 1) * steps) % 1.0
    cone = body.cone
    widest = np.sin(_WIDEST / 2.0)
    low, high = np.where(cone.low > 1.0, widest, cone.low), np.where(cone.high > 1.0, widest, cone.high)
    across = points[:2] * (high + low) - low
    # Odd poses spread between the limits, for hinges and coils; even ones about rest, bending to all sides alike.
    angle, radius = 2.0 * np.pi * points[0], np.sqrt(points[1])
    around = np.stack([np.cos(angle), np.sin(angle)]) * radius
    around = around * np.where(around < 0.0, low, high)
    swing = np.where(number % 2, across, around)
    side = np.stack([np.cos(number * np.pi / 2.0), np.sin(number * np.pi / 2.0)]).round()[:, None]
    curled = np.minimum(_CURL * np.where(side < 0.0, low, high), np.sin(_ROUND / bones / 2.0))
    swing = np.where(number < 4, side * curled, swing)
    low, high = np.nan_to_num(cone.twist_low, neginf=-_WIDEST), np.nan_to_num(cone.twist_high, posinf=_WIDEST)
    twist = np.where(number < 4, 0.0, low + (high - low) * points[2])
    return allowed_angles(body, stacked(*swing, twist))
