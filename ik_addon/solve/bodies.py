"""Chains and trees whose joints have limits: from a problem to its solution."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from .alone import Known, solve_alone, suits
from .free.reach import status_of
from .limb.limb import KnownLimbs, solve_limbs
from .limited.crowd import search_together
from .limited.fabrik import led_by_tips
from .limited.guess import guess_of
from .limited.search import Search, Searching
from .limited.skeleton import FEW, Angles, arrays_of, posed, rows_of
from .limited.task import Standing, Task, lengths_of
from .maths.cones import at_limit
from .maths.numbers import MANY
from .maths.products import determinants, times
from .maths.rotations import norm
from .problem import Bools, Floats, Goal, Ints, OutOfReach, Problem, Solution, Solver, Status

_FARTHEST = 1e50
"""Points farther away than this, in chain lengths, count as infinite: computing with their squares could overflow."""


def wants_body(problem: Problem) -> bool:
    """Return whether a problem is more than chains of free joints."""
    return (
        problem.limits is not None
        or problem.parents is not None
        or bool(problem.others)
        or problem.goal.rotation is not None
        or problem.goal.segment is not None
    )


class Searched(NamedTuple):
    """Members that were searched for last, in FK."""

    together: dict[tuple[bytes, tuple[int | None, ...]], Standing]
    """By their indices and the bones of their effectors."""
    alone: Known

    @classmethod
    def nothing(cls) -> Searched:
        """Return no members."""
        return cls({}, {})


class Checked(NamedTuple):
    """Results of checking the FK pose of members, which stay valid for other goals."""

    valid: Bools
    """(B,) whether all but the goals is valid: everything is finite, and no chain has zero length."""
    longest: Floats
    """(B,) length of the longest chain."""
    side: Floats
    """(B,) -1 if frames are left-handed."""
    limbs: KnownLimbs | None
    """Members that may be solved in closed form."""
    searched: Searched


def checked_fk(problem: Problem) -> Checked:
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
    return Checked(np.asarray(ok), longest, np.sign(proper[:, 0]), KnownLimbs.of(problem), Searched.nothing())


def valid_members(problem: Problem, known: Checked) -> Bools:
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


def _sides(problem: Problem) -> Floats:
    """Return -1 (B,) for members with left-handed frames, 1 for the others."""
    return np.asarray(np.sign(determinants(np.asarray(problem.frames, dtype=np.float64)[:, 0])))


def solve_bodies(problem: Problem, solution: Solution, index: Ints, known: Checked | None = None) -> None:
    """Solve members and write them into the solution.

    Args:
        problem: the problem.
        solution: what the members are written into.
        index: (k,) the members, whose input is already checked.
        known: the check of this problem, or of one that differs only in its goals; None: what is needed is computed.
    """
    side = np.ones(len(problem.joints))
    side[index] = (_sides(problem) if known is None else known.side)[index]
    if (side < 0.0).any():
        mirrored = _reflected(problem, side)
        _solve_upright(mirrored, solution, index, KnownLimbs.of(mirrored), Searched.nothing())
        solution.joints[..., 0] *= side[:, None]
        solution.rotations[:] = _both_sides(solution.rotations, side)
    elif known is None:
        _solve_upright(problem, solution, index, KnownLimbs.of(problem), Searched.nothing())
    else:
        _solve_upright(problem, solution, index, known.limbs, known.searched)


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


def _solve_upright(
    problem: Problem,
    solution: Solution,
    index: Ints,
    limbs: KnownLimbs | None,
    searched: Searched,
) -> None:
    """Solve the members `index` (k,), whose frames are right-handed, and write them into the solution."""
    index = solve_limbs(problem, limbs, solution, index)
    if not len(index):
        return
    if problem.solver is not Solver.FABRIK and len(index) <= FEW and suits(problem):
        solve_alone(problem, searched.alone, solution, index)
        return
    key = index.tobytes(), tuple(goal.segment for goal in problem.goals)
    if key not in searched.together:
        searched.together.clear()
        searched.together[key] = Standing.of(problem, index)
    task = Task.of(problem, index, searched.together[key])
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
    solution.rotations[index] = times(frames, standing.backs)
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
    away = norm(ways).T.tolist()

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
