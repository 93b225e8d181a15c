"""FABRIK for bodies: chains and trees whose joints have limits.

Inward, from the tips to the roots, each bone proposes where its head should be; where chains part, a bone takes the
weighted centroid of the proposals. Outward, each bone turns to what was proposed for its end, as far as its cone
allows. Only this pass clamps, since clamped proposals lock chains up. Sub-bases and cones of four angles are those of
A. Aristidou and J. Lasenby, doi 10.1016/j.gmod.2011.05.003. `search` continues from where the passes end.

Vectors are (3, B) and quaternions (4, B), one for each bone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .free.fabrik import FINEST, MEET, folding
from .limited.body import Body, allowed_angles, angles_of
from .limited.goals import Goals
from .limited.guess import first_guess
from .maths.cones import RIM, Cone, joint_rotation, nearest_direction, nearest_twist, swing_twist
from .maths.kernels import MANY
from .maths.rotations import (
    about,
    between,
    cross,
    dot,
    identity,
    multiply,
    norm,
    quaternions,
    reject,
    rotate,
    stacked,
    unit,
)
from .problem import Floats, Ints

PASSES = 20
"""Maximum number of passes; then the search takes over."""
STALL = 0.97
"""A pass makes headway if it reduces the error below this fraction of the least one."""
SHOWN = 1e-9
"""Moments smaller than this, in chain lengths, are rounding."""
PATIENCE = 3
"""Number of passes without headway after which the passes end."""


def led_by_tips(body: Body, turns: Floats, goals: Goals, tolerance: Floats, passes: int) -> tuple[Floats, Ints]:
    """Return joint angles (3, n, B) within the limits that bring the effectors as near to their targets as passes can.

    Args:
        body: B bodies.
        turns: (4, n, B) rotations of the joints in the FK pose, from which the passes start.
        goals: places, and orientations of the effectors' bones; poles are left to the search.
        tolerance: (B,) distance from effector to target that is near enough.
        passes: maximum number of passes.

    Returns:
        The joint angles, and the number of passes (B,).
    """
    fk = angles_of(body, turns)
    passing = _Passes(body, fk, goals)
    start = fk if len(body.segments) > 1 else _unfolded(passing, turns, fk)
    pose = passing.posed(start)
    best, error = start, pose.error(goals)
    least, idle = error, np.zeros(len(error), dtype=np.int64)
    used = np.zeros(len(error), dtype=np.int64)
    finest, left = np.maximum(tolerance, FINEST), np.ones(len(error), dtype=bool)
    for _ in range(min(passes, PASSES)):
        left = left & (least > finest) & (idle < PATIENCE)
        if not left.any():
            break
        pose = passing.outward(pose, passing.inward(pose))
        error = pose.error(goals)
        used += left
        idle = np.where(error < STALL * least, 0, idle + 1)
        better = left & (error < least)
        best = np.where(better, pose.angles, best)
        least = np.where(better, error, least)
    return allowed_angles(body, best), used


def _unfolded(passing: _Passes, turns: Floats, fk: Floats) -> Floats:
    """Return the FK pose of chains, bent to their free side where passes alone would only fold or deadlock."""
    body, goals = passing.body, passing.goals
    path = body.path(0)
    pose = passing.posed(fk)
    points = np.stack([*(pose.heads[bone] for bone in path), pose.ends[0]], axis=1)
    segments = points[:, 1:] - points[:, :-1]
    lengths = norm(segments)
    whole = np.maximum(np.cumsum(lengths, axis=0)[-1], 1e-200)
    line = unit(points[:, -1] - points[:, 0])
    sines = 1.0 - dot(unit(segments), line[:, None]) ** 2
    lean = np.cumsum(lengths / whole * sines, axis=0)[-1]
    way = (points[:, -1] - goals.target[:, 0]) / whole
    share = np.asarray(folding(MANY, lean, dot(way, line), norm(reject(way, line))))
    if not share.any():
        return fk
    _, bent = first_guess(body, turns, goals, few=0)
    return allowed_angles(body, fk + share * (bent - fk))


@dataclass(frozen=True)
class _Pose:
    """Bodies during the passes."""

    angles: Floats
    """(3, n, B)"""
    turns: list[Floats]
    """(4, B) orientation of each bone."""
    heads: list[Floats]
    """(3, B) head of each bone."""
    ends: list[Floats]
    """(3, B) position of each effector."""

    def error(self, goals: Goals) -> Floats:
        """Return the largest distance (B,) from an effector to its target."""
        gaps = np.stack([norm(end - goals.target[:, e]) for e, end in enumerate(self.ends)])
        return np.asarray(gaps.max(axis=0))


@dataclass(frozen=True)
class _Point:
    """A point that a bone carries: the head of another bone, or an effector."""

    bone: int
    """The other bone; -1 for an effector."""
    effector: int
    offset: Floats
    """(3, B) from the carrying bone's head, in that bone's axes."""
    weight: float


class _Passes:
    """The passes over B bodies."""

    def __init__(self, body: Body, fk: Floats, goals: Goals) -> None:
        count = len(body.parents)
        self.body, self.goals, self.count = body, goals, count
        self.parents = body.parents
        self.rest: list[Floats] = list(quaternions(body.rest).swapaxes(0, 1))
        self.offsets: list[Floats] = list(body.heads.swapaxes(0, 1))
        self.targets: list[Floats] = list(goals.target.swapaxes(0, 1))
        weights = [0.0] * count
        carried: list[list[_Point]] = [[] for _ in range(count)]
        for e, segment in enumerate(body.segments):
            carried[segment].append(_Point(-1, e, body.ends[:, e], float(goals.weight[e])))
            for bone in body.path(e):
                weights[bone] += float(goals.weight[e])
        for bone in range(count):
            if self.parents[bone] >= 0 and weights[bone] > 0.0:
                carried[self.parents[bone]].append(_Point(bone, -1, self.offsets[bone], weights[bone]))
        self.carried = carried
        self.fixed = {body.segments[turn.effector]: quaternions(turn.rotation) for turn in goals.orientations}
        cone = body.cone
        self.cones = [Cone(*(part[..., i, :] for part in cone)) for i in range(count)]
        still = np.zeros((2, fk.shape[2]))
        self.twists = [joint_rotation(still, twist) for twist in fk[2]]

    def posed(self, angles: Floats) -> _Pose:
        """Return the pose that joint angles (3, n, B) give."""
        pose = _Pose(angles.copy(), [], [], [])
        for i in range(self.count):
            pose.heads.append(self._head(pose, i))
            pose.turns.append(multiply(self._rest_frame(pose, i), _local(angles, i)))
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
        """Return the pose in which bones, from the roots to the tips, turn to the wanted points within limits."""
        turned = _Pose(pose.angles.copy(), [], [], [])
        for i in range(self.count):
            turned.heads.append(self._head(turned, i))
            rest_frame = self._rest_frame(turned, i)
            if self.carried[i]:
                self._turn(turned, i, rest_frame, wanted)
            turned.turns.append(multiply(rest_frame, _local(turned.angles, i)))
        return self._with_ends(turned)

    def _head(self, pose: _Pose, bone: int) -> Floats:
        parent = self.parents[bone]
        if parent < 0:
            return self.offsets[bone]
        return np.asarray(pose.heads[parent] + rotate(pose.turns[parent], self.offsets[bone]))

    def _rest_frame(self, pose: _Pose, bone: int) -> Floats:
        """Return the orientation (4, B) that a bone has if its joint is at rest."""
        if self.body.free[bone]:
            return self.rest[bone]
        return multiply(pose.turns[self.parents[bone]], self.rest[bone])

    def _with_ends(self, pose: _Pose) -> _Pose:
        for e, segment in enumerate(self.body.segments):
            pose.ends.append(pose.heads[segment] + rotate(pose.turns[segment], self.body.ends[:, e]))
        return pose

    def _goal(self, point: _Point, wanted: list[Floats]) -> Floats:
        return self.targets[point.effector] if point.bone < 0 else wanted[point.bone]

    def _proposed(self, pose: _Pose, bone: int, point: _Point, wanted: list[Floats]) -> Floats:
        """Return where the head (3, B) of a bone should be for one of the points that it carries."""
        goal = self._goal(point, wanted)
        if bone in self.fixed:
            return np.asarray(goal - rotate(self.fixed[bone], point.offset))
        offset = rotate(pose.turns[bone], point.offset)
        way = goal - pose.heads[bone]
        size = norm(way)
        # A goal at the head gives no direction: the bone keeps its own.
        along = np.where(size > MEET, way / np.maximum(size, MEET), unit(offset))
        return np.asarray(goal - along * norm(point.offset))

    def _turn(self, pose: _Pose, bone: int, rest_frame: Floats, wanted: list[Floats]) -> None:
        """Turn a joint, within its limits, so that the points on its bone are in the directions of their goals."""
        back = rest_frame * np.array([1.0, -1.0, -1.0, -1.0])[:, None]
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
        pose.angles[:, bone] = stacked(*swing, twist)


def _aligned(own: list[Floats], there: list[Floats]) -> Floats:
    """Return the rotations (4, B) that bring vectors (3, B) nearest to others: their sums, then about these."""
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
    # Points on the axis give no angle, and rounding must not choose one.
    angle = np.where(sine * sine + cosine * cosine > SHOWN * SHOWN, np.arctan2(sine, cosine), 0.0)
    return multiply(about(end, angle), turn)


def _any_across(direction: Floats) -> Floats:
    """Return unit vectors (3, B) perpendicular to unit vectors: along X, or along Z if X is nearly parallel."""
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
    """Return the rotations (4, B) of a joint at joint angles (3, n, B)."""
    return joint_rotation(angles[:2, bone], angles[2, bone])
