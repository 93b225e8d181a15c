"""Limbs, chains of two bones whose joints have limits, with or without a foot: which members are limbs, solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from ..free.reach import Aim, lists_of, reachable, status_of
from ..maths.cones import Range, range_of
from ..maths.numbers import ONE
from ..maths.turns import Frame, applied, at_limit, back_product, product, seen, transposed
from ..maths.vectors import Vector, minus, norm, over, plus, times
from ..problem import Ints, OutOfReach, Problem, Solution, Solved, Solver, Status
from .directions import EDGE, allows, angles_of
from .pose import Side, best_pose, towards, towards_with_foot
from .two_bones import Foot, Limb

_NO_LENGTH = 1e-6
"""A segment shorter than this fraction of its chain counts as having no length."""
_SLACK = 10.0 * EDGE
"""Radians by which a solved joint may be outside its limits, from rounding."""
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


class Member(NamedTuple):
    """The part of a member that does not depend on its goal."""

    root: Vector
    fk: list[Frame]
    segments: list[Vector]
    """From head to head, in the axes of each bone."""
    lengths: list[float]
    rests: list[Frame]
    """The frames of bones with their joints at rest: of the first bone in space, of others relative to the parent.

    A joint without any limit, or locked altogether, is at rest in the FK pose."""
    bend_side: Vector | None
    limb: Limb | None
    """The member without stretch."""


@dataclass(frozen=True)
class KnownLimbs:
    """Members that are limbs by their joints, if their goals suit a limb."""

    ranges: list[Range]
    limited: list[bool]
    """Which bones have a limit, but are not locked altogether."""
    hangs: bool
    """Whether the root bone inherits the rotation of its parent."""
    members: dict[int, Member | None] = field(default_factory=dict)
    """Those that were read, by index; None: one of the two bones has no length."""

    @classmethod
    def of(cls, problem: Problem) -> KnownLimbs | None:
        """Read the limbs of a problem of two or three bones; None if its chains are not limbs."""
        bones = np.shape(problem.frames)[1]
        if problem.others or problem.solver is Solver.FABRIK or problem.plane is not None:
            return None
        if problem.parents is not None and list(problem.parents) != list(range(-1, bones - 1)):
            return None
        inherits = [True] * bones if problem.inherits is None else [bool(value) for value in problem.inherits]
        if not all(inherits[1:]) or (problem.stiffness is not None and np.any(problem.stiffness)):
            return None
        rows = [[-inf, inf] * 3] * bones
        if problem.limits is not None:
            rows = np.concatenate([problem.limits.cones, problem.limits.twist], axis=1).tolist()
        ranges = [range_of(*row) for row in rows]
        if ranges[0].low == ranges[0].high == (0.0, 0.0) or not all(map(any, rows[2:])):
            # A root with twist alone has no roll to choose, and a fixed foot takes no orientation.
            return None
        return cls(ranges, [any(row) and any(map(isfinite, row)) for row in rows], inherits[0])

    def read(self, problem: Problem, new: list[int]) -> None:
        """Read members that were not read yet."""
        limits, fks = problem.limits, [list(map(transposed, frames)) for frames in lists_of(problem.frames, new)]
        rests, roots = fks, [fk[0] for fk in fks]  # without limits, they don't matter
        if limits is not None:
            every = np.broadcast_to(limits.rest, np.shape(problem.frames))
            rests = [list(map(transposed, rest)) for rest in lists_of(every, new)]
            roots = list(map(transposed, lists_of(limits.root, new)))
        sides = [None] * len(new) if problem.bend_side is None else lists_of(problem.bend_side, new)
        for i, *parts in zip(new, lists_of(problem.joints, new), fks, rests, roots, sides, strict=True):
            self.members[i] = self.read_one(*parts)

    def read_one(
        self, joints: Sequence[Vector], fk: list[Frame], rest: list[Frame], root: Frame, side: Vector | None
    ) -> Member | None:
        """Return a member from its joints, its frames in FK and its bend side, and from the frames of its limits."""
        segments = [minus(b, a) for a, b in pairwise(joints)]
        lengths = list(map(norm, segments))
        if min(lengths[:2]) <= _NO_LENGTH * sum(lengths):
            return None
        rests = [fk[0], *map(back_product, fk, fk[1:])]
        for bone in [bone for bone, limited in enumerate(self.limited) if limited]:
            rests[bone] = product(root, rest[bone]) if bone == 0 and self.hangs else rest[bone]
        segments = list(map(seen, fk, segments))
        limb = Limb.of(segments, lengths, fk, rests, self.ranges, side, [1.0] * len(segments))
        return Member(joints[0], fk, segments, lengths, rests, side, limb)


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
    ankle, foot = wanted, None
    if aim.rotation is not None:
        foot = Foot(rests[2], limbs.ranges[2], aim.rotation)
        ankle = minus(wanted, applied(foot.frame, lever_arms[2]))
        if pole is not None and (bend_side is None or not any(bend_side)):
            masses = (lengths[0] + lengths[1]) / (2.0 * length), (lengths[1] + lengths[2]) / (2.0 * length)
            side = towards_with_foot(pole, aim.pole_angle, wanted, ankle, masses)
    pose = best_pose(limb, ankle, side, foot)
    if pose is None:
        return None
    frames, turns = [pose.upper, pose.lower], [pose.hip, pose.knee]
    hip, knee = limbs.ranges[:2]
    # The edges of a cone as thin as a line may be missed.
    if not (allows(hip, pose.hip, _SLACK) and allows(knee, pose.knee, _SLACK)):
        return None
    if foot is not None:
        turns.append(foot.turn(pose.lower))
        frames.append(foot.frame)
    ends = [(0.0, 0.0, 0.0)]
    for frame, lever_arm in zip(frames, lever_arms, strict=True):
        ends.append(plus(ends[-1], applied(frame, lever_arm)))
    if foot is not None and not (norm(minus(ankle, ends[2])) <= _ARRIVED and allows(limbs.ranges[2], turns[2], _SLACK)):
        return None
    missed, push = minus(target, ends[-1]), (0.0, 0.0, 0.0)
    if problem.out_of_reach is OutOfReach.PUSH_ROOT:
        push = times(missed, min(1.0, aim.push_limit * length / scale / max(norm(missed), 1e-200)))
        missed = minus(missed, push)
    error = norm(missed) * scale
    status = status_of(ONE, error <= aim.tolerance * length, beyond, aim.tolerance, Status.LIMITED)
    parts = zip(limbs.limited, turns, limbs.ranges, strict=True)
    held = [limited and at_limit(ONE, angles_of(turn, own), *own) for limited, turn, own in parts]
    joints = [plus(times(plus(end, push), scale), root) for end in ends]
    return Solved(frames, joints, stretch, error, status, 0, held)
