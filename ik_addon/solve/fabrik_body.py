"""FABRIK for bodies: chains and trees whose joints have limits.

Inward each bone proposes where its head should be, from the tips to the roots; where chains part, a bone takes the
weighted centroid of what they propose. Outward each bone turns to what was proposed for its end, as far as its cone
allows: clamped in this pass alone, since clamped proposals lock chains up. Sub-bases and cones of four angles are those
of A. Aristidou and J. Lasenby, doi 10.1016/j.gmod.2011.05.003. Where the passes end the search of `bodies` begins.

Vectors are (3, B) and quaternions (4, B), one for each bone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .aims import Aims
from .articulated import RIM, Body, allowed_angles, joined, split
from .calculus import MANY
from .cones import Cone, joint_rotation, nearest_direction, nearest_twist, swing_twist
from .fabrik import FINEST, MEET, folding
from .guess import bent_towards
from .problem import Floats, Ints
from .rotations import about, between, cross, dot, identity, multiply, norm, quaternions, reject, rotate, unit

PASSES = 20
"""Passes after which the search takes over, if it has not before."""
STALL = 0.97
"""Passes that bring less than this factor make no headway."""
SHOWN = 1e-9
"""Moments smaller than this, in chain lengths, are rounding."""
PATIENCE = 3
"""How many such passes are waited for."""


def led_by_tips(body: Body, angles: Floats, aims: Aims, tolerance: Floats, passes: int) -> tuple[Floats, Ints]:
    """Return joint angles (B, n, 3) within the limits in which the effectors are as near as passes bring them.

    Args:
        body: B bodies.
        angles: (B, n, 3) FK pose within the limits, from which the passes start.
        aims: places, and orientations of the effectors' bones; poles are left to the search.
        tolerance: (B,) distance from effector to target that is near enough.
        passes: cap on the passes.

    Returns:
        The joint angles, and the passes (B,) that were used.
    """
    start = angles if len(body.segments) > 1 else _unfolded(body, angles, aims)
    passing = _Passes(body, angles, aims)
    pose = passing.posed(start)
    best, error = start, pose.error(aims)
    least, idle = error, np.zeros(len(error), dtype=np.int64)
    used = np.zeros(len(error), dtype=np.int64)
    finest, left = np.maximum(tolerance, FINEST), np.ones(len(error), dtype=bool)
    for _ in range(min(passes, PASSES)):
        left = left & (least > finest) & (idle < PATIENCE)
        if not left.any():
            break
        pose = passing.outward(pose, passing.inward(pose))
        error = pose.error(aims)
        used += left
        idle = np.where(error < STALL * least, 0, idle + 1)
        better = left & (error < least)
        best = np.where(better[:, None, None], pose.angles, best)
        least = np.where(better, error, least)
    return allowed_angles(body, best), used


def _unfolded(body: Body, angles: Floats, aims: Aims) -> Floats:
    """Return the FK pose of chains, bent to the side that is free where passes alone would only fold or deadlock."""
    path = body.path(0)
    pose = _Passes(body, angles, aims).posed(angles)
    points = np.stack([*(pose.heads[bone] for bone in path), pose.ends[0]], axis=1)
    segments = points[:, 1:] - points[:, :-1]
    lengths = norm(segments)
    whole = np.maximum(np.cumsum(lengths, axis=0)[-1], 1e-200)
    line = unit(points[:, -1] - points[:, 0])
    sines = 1.0 - dot(unit(segments), line[:, None]) ** 2
    lean = np.cumsum(lengths / whole * sines, axis=0)[-1]
    way = (points[:, -1] - aims.target[:, 0].T) / whole
    share = np.asarray(folding(MANY, lean, dot(way, line), norm(reject(way, line))))
    if not share.any():
        return angles
    bent = bent_towards(body, angles, aims.target[:, 0], aims.bends[0].pole if aims.bends else None)
    return allowed_angles(body, angles + share[:, None, None] * (bent - angles))


@dataclass(frozen=True)
class _Pose:
    """Bodies on the way."""

    angles: Floats
    """(B, n, 3)"""
    turns: list[Floats]
    """(4, B) orientation of each bone."""
    heads: list[Floats]
    """(3, B) head of each bone."""
    ends: list[Floats]
    """(3, B) each effector."""

    def error(self, aims: Aims) -> Floats:
        """Return how far (B,) the effector is from its target that is farthest from it."""
        gaps = np.stack([norm(end - aims.target[:, e].T) for e, end in enumerate(self.ends)])
        return np.asarray(gaps.max(axis=0))


@dataclass(frozen=True)
class _Point:
    """What a bone carries: the head of another bone, or an effector."""

    bone: int
    """-1 for an effector."""
    effector: int
    offset: Floats
    """(3, B) from the bone's head, seen from the bone."""
    weight: float


class _Passes:
    """The passes over B bodies."""

    def __init__(self, body: Body, fk: Floats, aims: Aims) -> None:
        count = len(body.parents)
        self.body, self.count = body, count
        self.parents = [int(parent) for parent in body.parents]
        self.rest: list[Floats] = list(quaternions(body.rest.transpose(2, 3, 1, 0)).swapaxes(0, 1))
        self.offsets: list[Floats] = list(np.ascontiguousarray(body.heads.transpose(1, 2, 0)))
        self.targets = [np.ascontiguousarray(aims.target[:, e].T) for e in range(len(body.segments))]
        weights = [0.0] * count
        carried: list[list[_Point]] = [[] for _ in range(count)]
        for e, segment in enumerate(map(int, body.segments)):
            offset = np.ascontiguousarray(body.ends[:, e].T)
            carried[segment].append(_Point(-1, e, offset, float(aims.weight[e])))
            for bone in body.path(e):
                weights[bone] += float(aims.weight[e])
        for bone in range(count):
            if self.parents[bone] >= 0 and weights[bone] > 0.0:
                carried[self.parents[bone]].append(_Point(bone, -1, self.offsets[bone], weights[bone]))
        self.carried = carried
        self.fixed = {
            int(body.segments[turn.effector]): quaternions(turn.rotation.transpose(1, 2, 0)) for turn in aims.turns
        }
        cone = body.cone
        self.cones = [
            Cone(cone.low[..., i], cone.high[..., i], cone.twist_low[..., i], cone.twist_high[..., i])
            for i in range(count)
        ]
        _, twist = split(fk)
        self.twists = [joint_rotation(np.zeros((2, len(fk))), np.ascontiguousarray(twist[:, i])) for i in range(count)]

    def posed(self, angles: Floats) -> _Pose:
        """Return where joint angles put the bones."""
        pose = _Pose(angles.copy(), [], [], [])
        for i in range(self.count):
            pose.heads.append(self._head(pose, i))
            pose.turns.append(multiply(self._zero(pose, i), _local(angles, i)))
        return self._with_ends(pose)

    def inward(self, pose: _Pose) -> list[Floats]:
        """Return where the bones' heads (3, B) should be, from the tips to the roots; roots stay where they are."""
        wanted = list(pose.heads)
        for i in range(self.count - 1, -1, -1):
            points = self.carried[i]
            if self.parents[i] < 0 or not points:
                continue
            proposed = [self._proposed(pose, i, point, wanted) for point in points]
            if len(points) == 1:
                wanted[i] = proposed[0]
            else:
                mass = sum(point.weight for point in points)
                wanted[i] = _summed(
                    [head * (point.weight / mass) for head, point in zip(proposed, points, strict=True)]
                )
        return wanted

    def outward(self, pose: _Pose, wanted: list[Floats]) -> _Pose:
        """Return the pose in which bones, from the roots to the tips, turn to what is wanted as far as they may."""
        turned = _Pose(pose.angles.copy(), [], [], [])
        for i in range(self.count):
            turned.heads.append(self._head(turned, i))
            zero = self._zero(turned, i)
            if self.carried[i]:
                self._turn(turned, i, zero, wanted)
            turned.turns.append(multiply(zero, _local(turned.angles, i)))
        return self._with_ends(turned)

    def _head(self, pose: _Pose, bone: int) -> Floats:
        parent = self.parents[bone]
        if parent < 0:
            return self.offsets[bone]
        return np.asarray(pose.heads[parent] + rotate(pose.turns[parent], self.offsets[bone]))

    def _zero(self, pose: _Pose, bone: int) -> Floats:
        """The orientation (4, B) of a bone whose joint is at rest."""
        if self.body.free[bone]:
            return self.rest[bone]
        return multiply(pose.turns[self.parents[bone]], self.rest[bone])

    def _with_ends(self, pose: _Pose) -> _Pose:
        for e, segment in enumerate(map(int, self.body.segments)):
            offset = np.ascontiguousarray(self.body.ends[:, e].T)
            pose.ends.append(pose.heads[segment] + rotate(pose.turns[segment], offset))
        return pose

    def _goal(self, point: _Point, wanted: list[Floats]) -> Floats:
        return self.targets[point.effector] if point.bone < 0 else wanted[point.bone]

    def _proposed(self, pose: _Pose, bone: int, point: _Point, wanted: list[Floats]) -> Floats:
        """Where the head (3, B) of a bone should be for one of the points that it carries."""
        goal = self._goal(point, wanted)
        if bone in self.fixed:
            return np.asarray(goal - rotate(self.fixed[bone], point.offset))
        offset = rotate(pose.turns[bone], point.offset)
        way = goal - pose.heads[bone]
        size = norm(way)
        # A goal on the head shows no direction: the bone keeps its own.
        along = np.where(size > MEET, way / np.maximum(size, MEET), unit(offset))
        return np.asarray(goal - along * norm(point.offset))

    def _turn(self, pose: _Pose, bone: int, zero: Floats, wanted: list[Floats]) -> None:
        """Turn a joint, within its limits, so that what its bone carries points to where it should be."""
        back = zero * np.array([1.0, -1.0, -1.0, -1.0])[:, None]
        if bone in self.fixed:
            turn = multiply(back, self.fixed[bone])
        else:
            points = self.carried[bone]
            own = [rotate(self.twists[bone], point.offset) * point.weight for point in points]
            there = [rotate(back, self._goal(point, wanted) - pose.heads[bone]) * point.weight for point in points]
            turn = multiply(_aligned(own, there), self.twists[bone])
        swing, twist = swing_twist(turn)
        cone = self.cones[bone]
        swing, twist = nearest_direction(swing, cone), nearest_twist(twist, cone)
        swing = swing * np.minimum(1.0, RIM / np.maximum(np.sqrt(swing[0] * swing[0] + swing[1] * swing[1]), 1e-30))
        pose.angles[:, bone] = joined(swing, twist)


def _aligned(own: list[Floats], there: list[Floats]) -> Floats:
    """Return the rotations (4, B) that bring vectors (3, B) nearest to others: their sums first, then about these."""
    start, end = _summed(own), _summed(there)
    sizes = norm(start), norm(end)
    clear = (sizes[0] > MEET) & (sizes[1] > MEET)
    start = np.where(clear, start / np.maximum(sizes[0], MEET), [[0.0], [1.0], [0.0]])
    end = np.where(clear, end / np.maximum(sizes[1], MEET), start)
    turn = between(start, end, _any_across(start))
    turn = np.where(clear, turn, identity(turn.shape[1]))
    if len(own) == 1:
        return turn
    turned = [rotate(turn, vector) for vector in own]
    sine = _summed([dot(cross(a, b), end)[None] for a, b in zip(turned, there, strict=True)])[0]
    cosine = _summed([dot(reject(a, end), reject(b, end))[None] for a, b in zip(turned, there, strict=True)])[0]
    # Points on the line about which they turn show no angle, and rounding must not choose one.
    angle = np.where(sine * sine + cosine * cosine > SHOWN * SHOWN, np.arctan2(sine, cosine), 0.0)
    return multiply(about(end, angle), turn)


def _any_across(direction: Floats) -> Floats:
    """Return unit vectors (3, B) perpendicular to unit vectors: X as far as it is, else Z."""
    x, z = (
        reject(np.broadcast_to(np.array(axis)[:, None], direction.shape), direction)
        for axis in ((1.0, 0, 0), (0, 0, 1.0))
    )
    return unit(np.where(norm(x) > 0.1, x, z))


def _summed(vectors: list[Floats]) -> Floats:
    """Return the sum of vectors from first to last."""
    result = vectors[0]
    for vector in vectors[1:]:
        result = result + vector
    return result


def _local(angles: Floats, bone: int) -> Floats:
    """The rotations (4, B) of a joint at joint angles (B, n, 3)."""
    x, z, twist = np.ascontiguousarray(angles[:, bone].T)
    return joint_rotation(np.stack([x, z]), twist)
