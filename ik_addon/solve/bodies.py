"""Chains and trees whose joints have limits: from a problem to its solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import cos, sin
from typing import NamedTuple

import numpy as np

from .free.reach import goal_of, status_of
from .limb.limb import Aim, KnownLimbs, solve_limbs
from .limited.crowd import search_together
from .limited.descent import State
from .limited.fabrik import led_by_tips
from .limited.guess import guess_of
from .limited.objectives import SIDE, TURN, Objective, Orientation, Place, Pole, System, masses_of
from .limited.search import Search, Searching
from .limited.skeleton import FEW, Angles, arrays_of, posed, rows_of
from .limited.task import Standing, Task, lengths_of
from .maths import products, rotations
from .maths.cones import at_limit
from .maths.numbers import MANY, ONE, Vector, minus, norm, over, plus, times, unit
from .maths.products import applied, back_applied, determinants, times_back
from .problem import Bools, Floats, Goal, Ints, OutOfReach, Problem, Solution, Solver, Status


@dataclass(frozen=True)
class Alone:
    """One member of a problem in FK, laid out for its goals."""

    standing: Standing
    """Of this member alone."""
    iterations: int

    @classmethod
    def of(cls, problem: Problem, i: int) -> Alone:
        """Lay out the valid member i."""
        return cls(Standing.of(problem, np.array([i])), problem.iterations)

    @cached_property
    def origin(self) -> Vector:
        """Place of the root."""
        x, y, z = self.standing.origin[0].tolist()
        return x, y, z

    @cached_property
    def scale(self) -> float:
        """Length of the chain."""
        return float(self.standing.scale[0])

    @cached_property
    def _longest(self) -> float:
        return float(self.standing.steps.max())

    @cached_property
    def _place(self) -> Place:
        return Place.of(self.standing.body.skeleton(0), 0, (0.0, 0.0, 0.0), 1.0)

    @cached_property
    def _masses(self) -> list[float]:
        """Weights of its joints in the centroid that its pole sees."""
        masses: list[float] = masses_of(self.standing.points[:, self.standing.path].transpose(2, 1, 0))[:, 0].tolist()
        return masses

    def solved(self, aim: Aim, *, is_first_attempt: bool = False, turns: Floats | None = None) -> SolvedAlone:
        """Return the solution for a finite goal.

        Args:
            aim: the goal.
            is_first_attempt: see `Problem`.
            turns: (n, 3, 3) rotations from FK of the bones in a pose that stands in for the FK pose; None: FK.
        """
        body = self.standing.body
        target = over(minus(aim.target, self.origin), self.scale)
        distance = norm(target)
        reached, _, _, beyond = goal_of(ONE, distance, self._longest, aim.softness, aim.push_limit, OutOfReach.EXTEND)
        wanted = times(unit(target), reached) if aim.softness > 0.0 else target
        pole = None if aim.pole is None else over(minus(aim.pole, self.origin), self.scale)
        system = self._system(wanted, pole, aim)
        guess = guess_of(body, self.standing.turns, 0)
        if turns is not None:
            frames = products.times(turns, self.standing.frames[0]).reshape(-1, 9)
            guess = guess.from_frames(list(map(tuple, frames.tolist())))
        away = (norm(wanted),)
        search = Search(body, 0, lambda: system, guess.fk, away, self.iterations, only_places=system.only_places)
        near = guess.bent(wanted, pole)
        angles, steps = search.alone(search.first(near) if is_first_attempt else search.best(near))
        state = State.of(system, angles)
        error = norm(minus(target, state.pose.ends[0])) * self.scale
        reached = error <= aim.tolerance * self.scale
        return SolvedAlone(self, state, error, status_of(ONE, reached, beyond, aim.tolerance, Status.LIMITED), steps)

    def _system(self, target: Vector, pole: Vector | None, aim: Aim) -> System:
        skeleton, place = self.standing.body.skeleton(0), self._place._replace(target=target)
        objectives: list[Objective] = [place]
        if aim.rotation is not None:
            rotation = tuple(part for row in zip(*aim.rotation, strict=True) for part in row)
            objectives.append(Orientation.of(skeleton, 0, rotation, TURN))
        if pole is not None:
            half = cos(aim.pole_angle / 2.0), sin(aim.pole_angle / 2.0)
            objectives.append(Pole(0, place.path, 0, target, pole, half, self._masses, SIDE))
        return System.of(skeleton, objectives)


@dataclass(frozen=True)
class SolvedAlone:
    """The solution of one chain; see `Solution`."""

    chain: Alone
    state: State
    error: float
    status: Status
    iterations: int

    @property
    def rotations(self) -> Floats:
        """(n, 3, 3) how the frames turn from FK."""
        return products.times(np.array(self.state.pose.frames).reshape(-1, 3, 3), self.chain.standing.backs[0])

    @property
    def joints(self) -> list[Vector]:
        """(n + 1, 3) in the problem's space."""
        origin, scale = self.chain.origin, self.chain.scale
        points = [*self.state.pose.points, *self.state.pose.ends]
        return [plus(times(point, scale), origin) for point in points]

    @property
    def at_limit(self) -> list[bool]:
        """(n,) which joints are at a limit."""
        angles, standing = arrays_of(self.state.angles)[..., None], self.chain.standing
        found: list[bool] = (at_limit(angles[:2], angles[2], standing.body.cone)[:, 0] & standing.limited).tolist()
        return found


EachAlone = dict[tuple[int, int | None], Alone]
"""Members that were solved alone, by index and the bone of the effector."""


def suits(problem: Problem) -> bool:
    """Whether the members of a problem have one effector, whose place does not move the root or lengthen bones."""
    return not problem.others and problem.out_of_reach is OutOfReach.EXTEND


def solved_alone(
    problem: Problem, known: EachAlone, i: int, aim: Aim, *, is_first_attempt: bool, turns: Floats | None = None
) -> SolvedAlone:
    """Solve the valid member i of a problem that suits; what stays the same with other goals is kept in `known`."""
    key = i, problem.goal.segment
    if key not in known:
        known[key] = Alone.of(problem, i)
    return known[key].solved(aim, is_first_attempt=is_first_attempt, turns=turns)


def solve_alone(
    problem: Problem, known: EachAlone, solution: Solution, index: Ints, turns: Floats | None = None
) -> None:
    """Solve the valid members `index` (k,) of a problem that suits, and write them into the solution.

    With `turns` (B, n, 3, 3), rotations of the bones from FK, the pose that they make stands in for the FK pose.
    """
    is_first = problem.is_first_attempt
    for i, aim in zip(index.tolist(), Aim.each(problem, index), strict=True):
        own = None if turns is None else turns[i]
        solved = solved_alone(problem, known, i, aim, is_first_attempt=is_first, turns=own)
        solution.joints[i], solution.rotations[i], solution.stretch[i] = solved.joints, solved.rotations, 1.0
        solution.error[i], solution.status[i] = solved.error, solved.status
        solution.iterations[i], solution.at_limit[i] = solved.iterations, solved.at_limit


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
    together: dict[tuple[bytes, tuple[int | None, ...]], Standing]
    """Members that were searched for last, in FK, by their indices and the bones of their effectors."""
    alone: EachAlone


def known_of(problem: Problem) -> Known:
    """Check everything but the goals of members."""
    with np.errstate(all="ignore"):
        frames = np.asarray(problem.frames, dtype=np.float64)
        ok = np.isfinite(problem.joints).all(axis=(1, 2)) & np.isfinite(frames).all(axis=(1, 2, 3))
        proper = determinants(frames)
        ok &= (np.abs(np.abs(proper) - 1.0) < 0.1).all(axis=1) & (np.ptp(np.sign(proper), axis=1) == 0.0)
        lengths = lengths_of(problem)
        ok &= np.isfinite(lengths).all(axis=0) & (lengths > 1e-100).all(axis=0)
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
    unsolved = Solution.unsolved(problem)
    return Known(np.asarray(ok), longest, np.sign(proper[:, 0]), KnownLimbs.of(problem), unsolved, {}, {})


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
        own = known._replace(limbs=KnownLimbs.of(mirrored), together={}, alone={})
        _solve_upright(mirrored, solution, index, own)
        solution.joints[..., 0] *= side[:, None]
        solution.rotations[:] = _both_sides(solution.rotations, side)
    else:
        _solve_upright(problem, solution, index, known)


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


def _solve_upright(problem: Problem, solution: Solution, index: Ints, known: Known) -> None:
    """Solve the members `index` (k,), whose frames are right-handed, and write them into the solution."""
    index = solve_limbs(problem, known.limbs, solution, index)
    if not len(index):
        return
    if problem.solver is not Solver.FABRIK and len(index) <= FEW and suits(problem):
        solve_alone(problem, known.alone, solution, index)
        return
    key = index.tobytes(), tuple(goal.segment for goal in problem.goals)
    if key not in known.together:
        known.together.clear()
        known.together[key] = Standing.of(problem, index)
    task = Task.of(problem, index, known.together[key])
    standing, body = task.standing, task.standing.body
    angles, steps = searched_for(task, problem)
    frames, points = posed(body, angles)
    missed = task.target - points[:, len(body.parents) :]
    push = np.zeros_like(standing.origin)
    if problem.out_of_reach is OutOfReach.PUSH_ROOT and len(body.segments) == 1:
        gap = missed[:, 0]
        size = np.sqrt(gap[:, 0] ** 2 + gap[:, 1] ** 2 + gap[:, 2] ** 2)
        push = gap * np.minimum(1.0, task.push_limit / np.maximum(size, 1e-200))[:, None]
        missed = missed - push[:, None]
    error = np.sqrt(missed[..., 0] ** 2 + missed[..., 1] ** 2 + missed[..., 2] ** 2)
    solution.rotations[index] = products.times(frames, standing.backs)
    solution.stretch[index] = task.stretch
    solution.joints[index] = (points + push[:, None]) * standing.scale[:, None, None] + standing.origin[:, None]
    distances = error * standing.scale[:, None]
    solution.error[index] = distances if solution.error.ndim == 2 else distances[:, 0]
    solution.iterations[index] = steps
    solution.at_limit[index] = at_limit(angles[:2], angles[2], body.cone).T & standing.limited
    reached = (error * standing.scale[:, None] <= task.tolerance[:, None] * standing.lengths).all(axis=1)
    solution.status[index] = status_of(MANY, reached, task.beyond, task.tolerance, Status.LIMITED)


def searched_for(task: Task, problem: Problem) -> tuple[Floats, Ints]:
    """Return the joint angles (3, n, B) that meet the goals of B members best, and the steps (B,) taken."""
    body, turns, goals, count = task.standing.body, task.standing.turns, task.goals, task.standing.turns.shape[2]
    roots = np.stack([body.heads[:, body.path(e)[0]] for e in range(len(body.segments))], axis=1)
    ways = goals.target - roots
    away = rotations.norm(ways).T.tolist()

    def search_of(i: int, fk: Angles) -> Search:
        lay_out = partial(goals.system, body, i)
        return Search(body, i, lay_out, fk, away[i], problem.iterations, only_places=goals.only_places)

    def begun(search: Search, near: Angles, start: Angles | None = None) -> Searching:
        return search.first(start or near) if problem.is_first_attempt else search.best(near, start)

    found: list[tuple[Angles, int]] = []
    if count > FEW and body.is_serial and goals.only_places and problem.solver is not Solver.FABRIK:
        guess = guess_of(body, turns, None)
        fks, nears = (np.moveaxis(arrays_of(each), 2, 0) for each in (guess.fk, guess.bent(tuple(ways[:, 0]), None)))
        searches = [search_of(i, rows_of(fk)) for i, fk in enumerate(fks)]
        running = [begun(search, rows_of(near)) for search, near in zip(searches, nears, strict=True)]
        found = search_together(body, goals, searches, running)
    else:
        for i in range(count):
            guess, pole, start, passes = guess_of(body, turns, i), None, None, 0
            if goals.poles:
                pole = tuple((goals.poles[0].pole[:, i] - roots[:, 0, i]).tolist())
            search = search_of(i, guess.fk)
            if problem.solver is Solver.FABRIK:
                tolerance = float(task.tolerance[i])
                start, passes = led_by_tips(search.system, guess, pole, tolerance, problem.iterations)
            near = guess.bent(tuple(ways[:, 0, i].tolist()), pole)
            angles, used = search.alone(begun(search, near, start))
            found.append((angles, used + passes))
    steps = np.array([used for _, used in found], dtype=np.int64)
    return np.stack([arrays_of(angles) for angles, _ in found], axis=2), steps


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
