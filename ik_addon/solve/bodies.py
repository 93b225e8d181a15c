"""Chains and trees whose joints have limits: from a problem to its solution."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import cos, sin, sqrt
from typing import NamedTuple

import numpy as np

from .free.reach import Aim, reachable, status_of
from .limb.limb import KnownLimbs, solve_limbs
from .limited.crowd import solve_together, suits
from .limited.descent import State
from .limited.objectives import SIDE, TURN, Orientation, Place, Pole, System, masses_of
from .limited.search import Search
from .limited.skeleton import FEW, Standing, lengths_of
from .limited.starts import guess_of, led_by_tips
from .maths import products
from .maths.numbers import ONE
from .maths.products import applied, back_applied, determinants, times_back
from .maths.turns import at_limit
from .maths.vectors import ZERO, Vector, minus, norm, over, plus, times, unit
from .problem import Bools, Floats, Goal, Ints, OutOfReach, Problem, Solution, Solved, Solver, Status


@dataclass(frozen=True)
class Alone:
    """One member of a problem in FK, laid out for its goals."""

    standing: Standing
    member: int
    """Which of the members of `standing`."""
    origin: Vector
    """Place of the root."""
    scale: float
    """Length of the longest chain."""
    lengths: list[float]
    """Of the chains to its effectors."""
    steps: list[float]
    """Lengths of the segments of the first chain."""
    places: list[Place]
    """Its objectives, with targets at its root."""

    @classmethod
    def of(cls, problem: Problem, index: Ints) -> list[Alone]:
        """Lay out the valid members `index` (k,)."""
        standing, most, found = Standing.of(problem, index), max(goal.weight for goal in problem.goals), []
        factors = [sqrt(goal.weight / most) for goal in problem.goals]
        arrays = standing.origin, standing.scale, standing.lengths, standing.steps.T
        rows = zip(*(array.tolist() for array in arrays), strict=True)
        for member, (origin, scale, lengths, steps) in enumerate(rows):
            skeleton = standing.body.skeleton(member)
            places = [Place.of(skeleton, e, ZERO, factor) for e, factor in enumerate(factors)]
            found.append(cls(standing, member, tuple(origin), scale, lengths, steps, places))
        return found

    @cached_property
    def _branches(self) -> list[tuple[int, list[float]]]:
        """Where the part of each chain begins that no other chain shares, on which its pole acts, and its `masses`."""
        found, bones = [], len(self.standing.body.parents)
        for e, place in enumerate(self.places):
            shared = {bone for other in self.places if other is not place for bone in other.path}
            branch = [bone for bone in place.path if bone not in shared] or list(place.path[-1:])
            points = self.standing.points[self.member, [*branch, bones + e]]
            found.append((place.path.index(branch[0]), masses_of(points.T[..., None])[:, 0].tolist()))
        return found

    def solved(
        self, problem: Problem, aims: Sequence[Aim], *, is_first_attempt: bool, turns: Floats | None = None
    ) -> Solved:
        """Return the solution for finite goals, with the settings of a problem; `turns` see `solve_alone`."""
        targets, own, beyond, (aim, *others) = [self._seen(aim.target) for aim in aims], self, 0.0, aims
        wanted, stretch = targets, [1.0] * len(self.standing.limited)
        if not others:
            weights = problem.stretch_weights
            if weights is not None and len(weights) > len(self.steps):
                problem = replace(problem, stretch_weights=np.asarray(weights)[self.standing.path[:-1]])
            reach = reachable(ONE, self.steps, norm(targets[0]), aim, problem)
            beyond = reach.shortfall
            if aim.softness > 0.0:
                # Limits may keep a chain from pointing at a target that is too far: then it goes as near as it can.
                # How far the root is pushed is known only once the limits have taken effect.
                wanted = [times(unit(targets[0]), reach.distance)]
            if set(reach.stretch) != {1.0}:
                for bone, factor in zip(self.places[0].path, reach.stretch, strict=True):
                    stretch[bone] = factor
                standing = self.standing.lengthened(self.member, stretch)
                scale = float(standing.scale[0])
                own = replace(self, standing=standing, member=0, scale=scale, lengths=[scale])
                targets, wanted = ([times(each, self.scale / own.scale) for each in some] for some in (targets, wanted))
        state, steps = own._searched(problem, aims, wanted, is_first_attempt, turns)
        missed, push = list(map(minus, targets, state.pose.ends)), ZERO
        if problem.out_of_reach is OutOfReach.PUSH_ROOT and not others:
            push = times(missed[0], min(1.0, aim.push_limit / max(norm(missed[0]), 1e-200)))
            missed = [minus(missed[0], push)]
        errors = [norm(each) * own.scale for each in missed]
        reached = all(error <= aim.tolerance * length for error, length in zip(errors, self.lengths, strict=True))
        status = status_of(ONE, reached, beyond, aim.tolerance, Status.LIMITED)
        pose, joints = state.pose, self.standing.body.skeleton(self.member).joints
        parts = zip(self.standing.limited.tolist(), state.angles, joints, strict=True)
        held = [limited and at_limit(ONE, angles, *joint[:4]) for limited, angles, joint in parts]
        frames = [(nine[::3], nine[1::3], nine[2::3]) for nine in pose.frames]
        points = [plus(times(plus(point, push), own.scale), self.origin) for point in (*pose.points, *pose.ends)]
        return Solved(frames, points, stretch, errors if others else errors[0], status, steps, held)

    def _seen(self, point: Vector) -> Vector:
        return over(minus(point, self.origin), self.scale)

    def _searched(
        self, problem: Problem, aims: Sequence[Aim], wanted: list[Vector], is_first_attempt: bool, turns: Floats | None
    ) -> tuple[State, int]:
        """Return where a search for the wanted places ends, and the steps taken."""
        standing, member = self.standing, self.member
        skeleton = standing.body.skeleton(member)
        places = [place._replace(target=target) for place, target in zip(self.places, wanted, strict=True)]
        turned, poles = [], []
        ways = [minus(place.target, skeleton.bones[place.path[0]].head) for place in places]
        for e, (place, aim) in enumerate(zip(places, aims, strict=True)):
            if aim.rotation is not None:
                rotation = tuple(part for row in zip(*aim.rotation, strict=True) for part in row)
                turned.append(Orientation.of(skeleton, e, rotation, TURN))
            if aim.pole is not None:
                (first, masses), half = self._branches[e], aim.pole_angle / 2.0
                seen, about = self._seen(aim.pole), (cos(half), sin(half))
                poles.append(Pole(e, place.path, first, place.target, seen, about, masses, SIDE))
        system = System.of(skeleton, [*places, *turned, *poles])
        pole = minus(poles[0].pole, skeleton.bones[places[0].path[0]].head) if poles else None
        guess = guess_of(standing.body, standing.turns, member)
        if turns is not None:
            frames = products.times(turns, standing.frames[member]).reshape(-1, 9)
            guess = guess.from_frames(list(map(tuple, frames.tolist())))
        lacks = [norm(way) - length / self.scale for way, length in zip(ways, self.lengths, strict=True)]
        most, only_places = problem.iterations, system.only_places
        search = Search(standing.body, member, lambda: system, guess.fk, lacks, most, only_places=only_places)
        start, passes = None, 0
        if problem.solver is Solver.FABRIK:
            start, passes = led_by_tips(system, guess, pole, aims[0].tolerance, problem.iterations)
        near = guess.bent(ways[0], pole)
        angles, steps = search.alone(search.first(start or near) if is_first_attempt else search.best(near, start))
        return State.of(system, angles), steps + passes


def solve_alone(problem: Problem, known: Known, solution: Solution, index: Ints, turns: Floats | None = None) -> None:
    """Solve the valid members `index` (k,) one by one, and write them into the solution.

    With `turns` (B, n, 3, 3), rotations of the bones from FK, the pose that they make stands in for the FK pose.
    """
    goals = tuple((goal.segment, goal.weight) for goal in problem.goals)
    new = [i for i in index.tolist() if (i, goals) not in known.alone]
    if new:
        known.alone.update(zip([(i, goals) for i in new], Alone.of(problem, np.array(new)), strict=True))
    alike = [problem, *(replace(problem, goal=goal) for goal in problem.others)]
    aims = zip(*(Aim.each(each, index) for each in alike), strict=True)
    is_first, solved = problem.is_first_attempt, {}
    for i, own in zip(index.tolist(), aims, strict=True):
        start = None if turns is None else turns[i]
        solved[i] = known.alone[i, goals].solved(problem, own, is_first_attempt=is_first, turns=start)
    solution.write(problem, solved)


_FARTHEST = 1e50
"""Points farther away than this, in chain lengths, count as infinite: computing with their squares could overflow."""


class Known(NamedTuple):
    """What `solver.check` finds in a problem that is more than chains of free joints; it holds for any goals."""

    valid: Bools
    """(B,) whether all but the goals is valid: everything is finite, and no chain has zero length."""
    longest: Floats
    """(B,) length of the longest chain."""
    side: Floats
    """(B,) -1 if frames are left-handed."""
    limbs: KnownLimbs | None
    """Members that may be solved in closed form."""
    unsolved: Solution
    """The members in their FK pose."""
    alone: dict[Hashable, Alone]
    """Members that were searched for, by index and by the bones and weights of their goals."""


def known_of(problem: Problem) -> Known:
    """Check everything but the goals of members."""
    with np.errstate(all="ignore"):
        frames = np.asarray(problem.frames, dtype=np.float64)
        proper, lengths = determinants(frames), lengths_of(problem)
        # No number of frames or joints that is not finite passes these.
        ok = ((np.abs(np.abs(proper) - 1.0) < 0.1) & (proper * proper[:, :1] > 0.0)).all(axis=1)
        ok &= ((lengths > 1e-100) & (lengths < np.inf)).all(axis=0)
        longest = lengths.max(axis=0)
        joints = np.asarray(problem.joints, dtype=np.float64)
        ok &= np.abs(joints - joints[:, :1]).max(axis=(1, 2)) < _FARTHEST * longest
        if problem.limits is not None:
            ok &= np.isfinite(problem.limits.root).all(axis=(1, 2))
            if np.ndim(problem.limits.rest) == 4:
                ok &= np.isfinite(problem.limits.rest).all(axis=(1, 2, 3))
            sides = np.sign(determinants(np.asarray(problem.limits.root, dtype=np.float64)))
            ok &= sides == np.sign(proper[:, 0])
            # A bone that does not inherit rotation is measured from a rest frame that has no mirror image.
            ok &= (sides > 0.0) | (problem.inherits is None or bool(np.all(problem.inherits)))
    limbs = KnownLimbs.of(problem) if proper.shape[1] in (2, 3) else None
    return Known(np.asarray(ok), longest, np.sign(proper[:, 0]), limbs, Solution.unsolved(problem), {})


def valid_members(problem: Problem, known: Known) -> Bools:
    """Return which members (B,) can be solved, from their goals and the check of everything else."""
    ok, root = known.valid, np.asarray(problem.joints, dtype=np.float64)[:, 0]
    with np.errstate(all="ignore"):
        ok = ok & np.isfinite(problem.softness) & ~np.isnan(problem.push_limit) & ~np.isnan(problem.tolerance)
        farthest = _FARTHEST * known.longest
        for goal in problem.goals:
            for place in (goal.target, goal.pole):
                if place is not None:
                    ok &= np.abs(place - root).max(axis=1) < farthest
            if goal.pole_angle is not None:
                ok &= np.isfinite(goal.pole_angle)
            if goal.rotation is not None:
                ok &= np.isfinite(goal.rotation).all(axis=(1, 2))
    return np.asarray(ok)


def solve_bodies(problem: Problem, solution: Solution, index: Ints, known: Known | None = None) -> None:
    """Solve members and write them into the solution.

    Args:
        problem: the problem.
        solution: what the members are written into.
        index: (k,) the members, whose input is already checked.
        known: of this problem, or of one that differs only in its goals; None: it is checked.
    """
    known = known_of(problem) if known is None else known
    side = np.ones(len(problem.joints))
    side[index] = known.side[index]
    if (side < 0.0).any():
        mirrored = _reflected(problem, side)
        own = known._replace(side=np.ones_like(side), limbs=known.limbs and KnownLimbs.of(mirrored), alone={})
        solve_bodies(mirrored, solution, index, own)
        solution.joints[..., 0] *= side[:, None]
        solution.rotations[:] = _both_sides(solution.rotations, side)
        return
    if known.limbs is not None:
        index = solve_limbs(problem, known.limbs, solution, index)
    standing = Standing.of(problem, index) if len(index) > FEW and suits(problem) else None
    if standing is not None and standing.suits:
        solve_together(problem, solution, index, standing)
    elif len(index):
        solve_alone(problem, known, solution, index)


def _reflected(problem: Problem, side: Floats) -> Problem:
    """Return a problem with members whose `side` (B,) is -1 mirrored at X = 0, so that frames are right-handed.

    The motion of a joint relative to its bones, and so the meaning of its limits, stays the same.
    """
    across = np.stack([side, np.ones_like(side), np.ones_like(side)], axis=-1)

    def goal_of(goal: Goal) -> Goal:
        # A mirrored bone can't have right-handed axes: Y and Z are as wanted, X is opposite.
        return replace(
            goal,
            target=goal.target * across,
            pole=None if goal.pole is None else goal.pole * across,
            pole_angle=None if goal.pole_angle is None else goal.pole_angle * side,
            rotation=None if goal.rotation is None else _both_sides(goal.rotation, side),
        )

    limits = problem.limits
    return replace(
        problem,
        joints=problem.joints * across[:, None],
        frames=problem.frames * across[:, None, :, None],
        goal=goal_of(problem.goal),
        others=tuple(map(goal_of, problem.others)),
        limits=None if limits is None else replace(limits, root=limits.root * across[:, :, None]),
    )


def _both_sides(matrix: Floats, side: Floats) -> Floats:
    """Return matrices (B, ..., 3, 3), with X mirrored before and after for members whose `side` (B,) is -1."""
    across = np.ones((len(side), 3, 3))
    across[:, 0, 1:] = across[:, 1:, 0] = side[:, None]
    return np.asarray(matrix * across.reshape(len(side), *[1] * (np.ndim(matrix) - 3), 3, 3))


SHORT = 3
"""Chains of fewer bones, and chains of this many with an orientation, are solved in closed form."""


def begin_on_side(problem: Problem) -> Bools:
    """Return which members (B,) of a problem that needs a search start it on their bend side."""
    bones = np.shape(problem.frames)[1]
    is_chain = problem.parents is None and not problem.others and problem.goal.segment is None
    is_long = bones > SHORT or (bones == SHORT and problem.goal.rotation is None)
    if problem.bend_side is None or problem.solver is Solver.FABRIK or not (is_chain and is_long):
        return np.zeros(len(problem.joints), dtype=bool)
    return np.asarray((np.asarray(problem.bend_side) != 0.0).any(axis=1))


def free_pose(problem: Problem, solve: Callable[[Problem], Solution]) -> Floats:
    """Return the bone rotations (B, n, 3, 3) with which chains reach their goals if limits are ignored."""
    goal = problem.goal
    if goal.rotation is None:
        return solve(replace(problem, limits=None, plane=None)).rotations
    # The last bone takes the orientation; the others bring its head to where its end then meets the target.
    joints, frames = np.asarray(problem.joints, np.float64), np.asarray(problem.frames, np.float64)
    tip = back_applied(frames[:, -1], joints[:, -1] - joints[:, -2])
    rotation = np.asarray(goal.rotation, dtype=np.float64)
    before = replace(
        problem,
        joints=joints[:, :-1],
        frames=frames[:, :-1],
        goal=Goal(np.asarray(goal.target) - applied(rotation, tip), goal.pole, goal.pole_angle),
        inherits=None if problem.inherits is None else problem.inherits[:-1],
        stretch_weights=None if problem.stretch_weights is None else problem.stretch_weights[:-1],
        stiffness=None if problem.stiffness is None else problem.stiffness[:-1],
        folds=None if problem.folds is None else problem.folds[:, :-1],
        limits=None,
        plane=None,
    )
    last = times_back(rotation, frames[:, -1])
    return np.concatenate([solve(before).rotations, last[:, None]], axis=1)


def search_from(problem: Problem, turns: Floats, solution: Solution, index: Ints) -> None:
    """Solve the members `index` by a search from their FK pose turned by rotations (B, n, 3, 3)."""
    solve_bodies(posed_by(problem, turns), solution, index)
    solution.rotations[index] = products.times(solution.rotations[index], turns[index])


def posed_by(problem: Problem, turns: Floats) -> Problem:
    """Return a problem with its FK pose turned by rotations (B, n, 3, 3) of its bones."""
    joints, frames = (np.asarray(array, dtype=np.float64) for array in (problem.joints, problem.frames))
    bones = frames.shape[1]
    parents = list(range(-1, bones - 1)) if problem.parents is None else np.asarray(problem.parents).tolist()
    ends = [bones - 1 if goal.segment is None else goal.segment for goal in problem.goals]
    turned = joints.copy()
    for joint, parent in enumerate([*parents, *ends]):
        if parent >= 0:
            turned[:, joint] = turned[:, parent] + applied(turns[:, parent], joints[:, joint] - joints[:, parent])
    above = turns[:, [0, *range(bones - 1)]]
    return replace(
        problem,
        joints=turned,
        frames=products.times(turns, frames),
        bend_side=None if problem.bend_side is None else applied(turns[:, 0], np.asarray(problem.bend_side)),
        folds=None if problem.folds is None else applied(above, np.asarray(problem.folds)),
    )
