"""FABRIK for a body: a chain or tree whose joints have limits.

Inward, from the tips to the roots, each bone proposes where its head should be; where chains part, a bone takes the
weighted centroid of the proposals. Outward, each bone turns to what was proposed for its end, as far as its cone
allows. Only this pass clamps, since clamped proposals lock chains up. Sub-bases and cones of four angles are those of
A. Aristidou and J. Lasenby, doi 10.1016/j.gmod.2011.05.003. `search` continues from where the passes end.

A single pass outward stretches a chain towards a target that is too far away.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import atan2
from typing import NamedTuple

from ..free.fabrik import FINEST, MEET, folding
from ..maths.numbers import (
    ONE,
    Quaternion,
    Vector,
    about,
    between,
    cross,
    dot,
    inverse,
    minus,
    multiply,
    norm,
    over,
    plus,
    reject,
    rotate,
    times,
    turn_of,
    unit,
)
from ..maths.rotations import quaternion_of
from .guess import Guess
from .objectives import Orientation, Place, System
from .skeleton import Angles, Joint, inside, nearest_angles, pose_of

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

    bone: int
    """The other bone; -1 for an effector."""
    effector: int
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
                self.carried[objective.bone].append(_Point(-1, e, skeleton.ends[e], weight))
                for bone in objective.path:
                    weights[bone] += weight
            elif isinstance(objective, Orientation):
                self.fixed[objective.bone] = quaternion_of(objective.rotation)
        for bone, (parent, weight) in enumerate(zip(skeleton.parents, weights, strict=True)):
            if parent >= 0 and weight > 0.0:
                self.carried[parent].append(_Point(bone, -1, skeleton.bones[bone].head, weight))

    def error(self, angles: Angles) -> float:
        """Return the largest distance from an effector to its target."""
        return max(norm(minus(*pair)) for pair in zip(pose_of(self.skeleton, angles).ends, self.targets, strict=True))

    def stretched(self, angles: Angles) -> Angles:
        """Return joint angles with which all bones of a chain turn to its target."""
        return self.outward(angles, self.targets * len(angles))

    def towards_targets(self, angles: Angles, passes: int) -> Angles:
        """Return joint angles after passes."""
        for _ in range(passes):
            angles = self.outward(angles, self.inward(angles))
        return angles

    def inward(self, angles: Angles) -> list[Vector]:
        """Return where the bones' heads should be, from the tips to the roots; roots stay where they are."""
        pose = pose_of(self.skeleton, angles)
        wanted = list(pose.points)
        for i in range(len(wanted) - 1, -1, -1):
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

    def _goal(self, point: _Point, wanted: Sequence[Vector]) -> Vector:
        return self.targets[point.effector] if point.bone < 0 else wanted[point.bone]

    def _proposed(self, bone: int, turn: Quaternion, head: Vector, point: _Point, wanted: Sequence[Vector]) -> Vector:
        """Return where the head of a bone should be for one of the points that it carries."""
        goal = self._goal(point, wanted)
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
        goals = [minus(self._goal(point, wanted), head) for point in points]
        there = [times(rotate(back, goal), point.weight) for goal, point in zip(goals, points, strict=True)]
        return nearest_angles(ONE, joint, multiply(_aligned(own, there), twisted))


def _aligned(own: list[Vector], there: list[Vector]) -> Quaternion:
    """Return the rotation that brings vectors nearest to others: their sums, then about these."""
    start, end = reduce(plus, own), reduce(plus, there)
    if min(norm(start), norm(end)) <= MEET:
        return 1.0, 0.0, 0.0, 0.0
    start, end = unit(start), unit(end)
    turn = between(ONE, start, end, _any_across(start))
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
