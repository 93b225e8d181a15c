"""Limbs, chains of two bones whose joints have limits, with or without a foot: which members are limbs, solved."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..free.reach import reachable
from ..maths.cones import cone_of
from ..maths.vectors import Matrix, Vector, minus, norm, over, plus, times
from ..problem import Ints, OutOfReach, Problem, Solution, Solver, Status
from .cone_arcs import EDGE, Range, outside, stands_at_limit, twist_of
from .frames import Frame, applied, back_product, product, seen
from .nearest import best_pose
from .pose import Side
from .side import towards, towards_with_foot
from .two_bones import Foot, Limb

_NO_LENGTH = 1e-6
"""A segment shorter than this fraction of its chain counts as having no length."""
_ARRIVED = 1e-9
"""Maximum miss of the ankle, in lengths of the limb, for the foot to have both its place and its orientation."""


def solve_limbs(problem: Problem, limbs: KnownLimbs | None, solution: Solution, index: Ints) -> Ints:
    """Solve the limbs among the members `index` (k,), write them into the solution and return the other members.

    Frames are right-handed, and all input is finite. A limb may have a foot, a third bone that takes an orientation:
    the limb brings the foot's head to where that orientation puts it. Left out are stiff joints, bones that do
    not inherit rotation or that point past their Y axes, and feet that cannot have both place and orientation.

    Args:
        problem: the problem.
        limbs: the limbs of this problem, or of one with the same FK pose; None: there are none.
        solution: what the limbs are written into.
        index: indices of members.
    """
    bones = 2 if problem.goal.rotation is None else 3
    if limbs is None or len(limbs.ranges) != bones or problem.goal.segment not in (None, bones - 1):
        return index
    return np.array([i for i in index.tolist() if not _write(problem, limbs, solution, i)], dtype=np.int64)


@dataclass(frozen=True)
class _Member:
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
    ranges: list[Range]

    @cached_property
    def length(self) -> float:
        """Length of all segments."""
        return sum(self.lengths)

    @cached_property
    def shares(self) -> list[float]:
        """Lengths of the segments, as fractions of that length."""
        return [part / self.length for part in self.lengths]

    @cached_property
    def unstretched(self) -> _Scaled:
        """The member without stretch."""
        return self.stretched([1.0] * len(self.lengths))

    def stretched(self, stretch: list[float]) -> _Scaled:
        """Return the member with its segments lengthened by factors."""
        scale = self.lengths[0] * stretch[0] + self.lengths[1] * stretch[1]
        lever_arms = [times(segment, factor / scale) for segment, factor in zip(self.segments, stretch, strict=True)]
        (zero, rest), (upper, lower), (hip, knee) = self.rests[:2], lever_arms[:2], self.ranges[:2]
        limb = Limb(zero, rest, upper, lower, hip, knee, self.fk[0], self.fk[1], self.bend_side)
        return _Scaled(scale, lever_arms, limb)


class _Scaled(NamedTuple):
    """A member in units of the length of its two bones, without the foot."""

    scale: float
    """That length."""
    lever_arms: list[Vector]
    limb: Limb


@dataclass(frozen=True)
class KnownLimbs:
    """Members that are limbs by their joints, if their goals suit a limb."""

    ranges: list[Range]
    limited: list[bool]
    """Which bones have a limit, but are not locked altogether."""
    hangs: bool
    """Whether the root bone inherits the rotation of its parent."""
    _members: dict[int, _Member] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem) -> KnownLimbs | None:
        """Read the limbs of a problem; None if its chains are not limbs."""
        bones = np.shape(problem.frames)[1]
        if bones not in (2, 3) or problem.others:
            return None
        if problem.solver is Solver.FABRIK or problem.plane is not None:
            return None
        if problem.parents is not None and list(problem.parents) != list(range(-1, bones - 1)):
            return None
        inherits = [True] * bones if problem.inherits is None else [bool(value) for value in problem.inherits]
        if not all(inherits[1:]) or (problem.stiffness is not None and np.any(problem.stiffness)):
            return None
        every = np.tile([-np.inf, np.inf], (bones, 3))
        if problem.limits is not None:
            every = np.concatenate([problem.limits.cones, problem.limits.twist], axis=1).astype(np.float64)
        cone = cone_of(every[:, :4], every[:, 4:])
        parts = (cone.low.T.tolist(), cone.high.T.tolist(), cone.twist_low.tolist(), cone.twist_high.tolist())
        ranges = [Range(tuple(low), tuple(high), least, most) for low, high, least, most in zip(*parts, strict=True)]
        locked = (every == 0.0).all(axis=1)
        if ranges[0].low == ranges[0].high == (0.0, 0.0) or locked[2:].any():
            # A root with twist alone has no roll to choose, and a fixed foot takes no orientation.
            return None
        return cls(ranges, (np.isfinite(every).any(axis=1) & ~locked).tolist(), inherits[0])

    def member(self, problem: Problem, i: int) -> _Member:
        """Return member i, which is read only once."""
        if i not in self._members:
            points: list[Vector] = [tuple(point) for point in _member(problem.joints, i)]
            fk = [_frame(rows) for rows in _member(problem.frames, i)]
            segments = [minus(b, a) for a, b in pairwise(points)]
            self._members[i] = _Member(
                points[0],
                fk,
                [seen(frame, segment) for frame, segment in zip(fk, segments, strict=True)],
                [norm(segment) for segment in segments],
                self._rest_frames(problem, fk, i),
                None if problem.bend_side is None else tuple(_member(problem.bend_side, i)),
                self.ranges,
            )
        return self._members[i]

    def _rest_frames(self, problem: Problem, fk: list[Frame], i: int) -> list[Frame]:
        found = [fk[0], *(back_product(above, frame) for above, frame in pairwise(fk))]
        if problem.limits is None:
            return found
        rests = problem.limits.rest
        at_rest = _member(rests, i) if np.ndim(rests) == 4 else np.asarray(rests, dtype=np.float64).tolist()
        for bone, limited in enumerate(self.limited):
            if limited:
                found[bone] = _frame(at_rest[bone])
                if bone == 0 and self.hangs:
                    found[0] = product(_frame(_member(problem.limits.root, i)), found[0])
        return found


class Aim(NamedTuple):
    """The goal of one limb; see `Goal` and `Problem`."""

    target: Vector
    pole: Vector | None
    pole_angle: float
    rotation: Frame | None
    softness: float
    push_limit: float
    tolerance: float

    @classmethod
    def of(cls, problem: Problem, i: int) -> Aim:
        """Read the goal of member i."""
        goal = problem.goal
        return cls(
            _member(goal.target, i),
            None if goal.pole is None else _member(goal.pole, i),
            0.0 if goal.pole_angle is None else _number(goal.pole_angle, i),
            None if goal.rotation is None else _frame(_member(goal.rotation, i)),
            _number(problem.softness, i),
            _number(problem.push_limit, i),
            _number(problem.tolerance, i),
        )


class Solved(NamedTuple):
    """The solution of one limb; see `Solution`."""

    rotations: list[Matrix]
    joints: list[Vector]
    stretch: list[float] | None
    error: float
    status: Status
    at_limit: list[bool]
    iterations: int = 0


def _write(problem: Problem, limbs: KnownLimbs, solution: Solution, i: int) -> bool:
    """Solve member i and write it into the solution; False: it is left to the search, unwritten."""
    found = solved_limb(problem, limbs, i, Aim.of(problem, i))
    if found is None:
        return False
    solution.joints[i] = found.joints
    solution.rotations[i] = found.rotations
    solution.stretch[i] = 1.0 if found.stretch is None else found.stretch
    solution.error[i] = found.error
    solution.iterations[i] = found.iterations
    solution.at_limit[i] = found.at_limit
    solution.status[i] = found.status
    return True


def solved_limb(problem: Problem, limbs: KnownLimbs, i: int, aim: Aim) -> Solved | None:
    """Solve member i for a finite goal; None: it is left to the search."""
    member = limbs.member(problem, i)
    root, lengths, length, bend_side = member.root, member.lengths, member.length, member.bend_side
    if min(lengths[:2]) <= _NO_LENGTH * length:
        return None
    offset = minus(aim.target, root)
    distance, stretch, beyond = _reach(problem, aim, member.shares, norm(offset) / length)
    scale, lever_arms, limb = member.unstretched if stretch is None else member.stretched(stretch)
    if not limb.is_straightforward:
        return None
    target = wanted = over(offset, scale)
    if distance is not None:
        wanted = times(target, distance * length / max(scale * norm(target), 1e-200))
    pole = None if aim.pole is None else over(minus(aim.pole, root), scale)
    side: Side | None = None if pole is None else towards(pole, aim.pole_angle)
    ankle, foot = wanted, None
    if aim.rotation is not None:
        foot = Foot(member.rests[2], limbs.ranges[2], aim.rotation)
        ankle = minus(wanted, applied(foot.frame, lever_arms[2]))
        if pole is not None and (bend_side is None or not any(bend_side)):
            masses = (lengths[0] + lengths[1]) / (2.0 * length), (lengths[1] + lengths[2]) / (2.0 * length)
            side = towards_with_foot(pole, aim.pole_angle, wanted, ankle, masses)
    pose = best_pose(limb, ankle, side, foot)
    if pose is None:
        return None
    frames, turns = [pose.upper, pose.lower], [pose.hip, pose.knee]
    if not all(map(_allows, limbs.ranges[:2], turns)):  # the edges of a cone as thin as a line may be missed
        return None
    if foot is not None:
        turns.append(back_product(product(pose.lower, foot.rest), foot.frame))
        frames.append(foot.frame)
    ends = [(0.0, 0.0, 0.0)]
    for frame, lever_arm in zip(frames, lever_arms, strict=True):
        ends.append(plus(ends[-1], applied(frame, lever_arm)))
    if foot is not None and not (norm(minus(ankle, ends[2])) <= _ARRIVED and _allows(limbs.ranges[2], turns[2])):
        return None
    missed, push = minus(target, ends[-1]), (0.0, 0.0, 0.0)
    if problem.out_of_reach is OutOfReach.PUSH_ROOT:
        push = times(missed, min(1.0, aim.push_limit * length / scale / max(norm(missed), 1e-200)))
        missed = minus(missed, push)
    error = norm(missed) * scale
    if error <= aim.tolerance * length:
        status = Status.REACHED
    elif beyond > aim.tolerance:
        status = Status.TOO_FAR
    else:
        status = Status.TOO_NEAR if beyond < -aim.tolerance else Status.LIMITED
    return Solved(
        [_turned(frame, was) for frame, was in zip(frames, member.fk, strict=True)],
        [plus(times(plus(end, push), scale), root) for end in ends],
        stretch,
        error,
        status,
        [
            limited and stands_at_limit(turn, range_)
            for turn, range_, limited in zip(turns, limbs.ranges, limbs.limited, strict=True)
        ],
    )


def _allows(limits: Range, turn: Frame) -> bool:
    """Return whether a joint may have a rotation, but for rounding."""
    slack = 10.0 * EDGE
    return (
        outside(turn[1], limits) <= slack
        and limits.twist_low - slack <= twist_of(turn, limits) <= limits.twist_high + slack
    )


def _reach(
    problem: Problem, aim: Aim, lengths: list[float], distance: float
) -> tuple[float | None, list[float] | None, float]:
    """Return the reach of a chain whose target may be out of reach, see `reach.reachable`.

    The distance at which to bring the end, None: that of the target; the stretch of the bones, None: there is none;
    and by how much the target is out of reach.
    """
    softness = aim.softness
    if problem.out_of_reach is OutOfReach.EXTEND and softness == 0.0:
        inner = max(2.0 * max(lengths) - 1.0, 0.0)
        return None, None, max(distance - 1.0, 0.0) + min(distance - inner, 0.0)
    weights = np.ones(len(lengths))
    if problem.stretch_weights is not None:
        weights = np.asarray(problem.stretch_weights, dtype=np.float64)
    away, soft, push = (np.array([value]) for value in (distance, softness, aim.push_limit))
    reach = reachable(np.array(lengths)[:, None], away, soft, push, weights, problem.out_of_reach)
    eased = float(reach.distance[0]) if softness > 0.0 else None
    stretch = reach.stretch[:, 0].tolist()
    return eased, None if all(factor == 1.0 for factor in stretch) else stretch, float(reach.shortfall[0])


def _member(array: Any, i: int) -> Any:
    return np.asarray(array[i]).tolist()


def _number(value: Any, i: int) -> float:
    return float(value[i]) if getattr(value, "ndim", 0) else float(value)


def _frame(rows: list[list[float]]) -> Frame:
    x, y, z = zip(*rows, strict=True)
    return x, y, z


def _turned(frame: Frame, fk: Frame) -> Matrix:
    """Return the rotation from the second frame to the first."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = frame
    (ux, uy, uz), (vx, vy, vz), (wx, wy, wz) = fk
    return (
        (ax * ux + bx * vx + cx * wx, ax * uy + bx * vy + cx * wy, ax * uz + bx * vz + cx * wz),
        (ay * ux + by * vx + cy * wx, ay * uy + by * vy + cy * wy, ay * uz + by * vz + cy * wz),
        (az * ux + bz * vx + cz * wx, az * uy + bz * vy + cz * wy, az * uz + bz * vz + cz * wz),
    )
