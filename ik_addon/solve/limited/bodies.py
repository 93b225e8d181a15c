"""Chains and trees whose joints have limits: from a problem to its solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..limb.limb import KnownLimbs, solve_limbs
from ..maths.cones import at_limit
from ..maths.products import determinants, times_back
from ..problem import Bools, Floats, Goal, Ints, OutOfReach, Problem, Solution, Status
from .body import Body, posed
from .goals import Goals
from .search import search
from .task import Standing, Task, lengths_of

_FARTHEST = 1e50
"""What is further away than this, in chain lengths, is as good as infinite: its square could not be computed with."""


def wants_body(problem: Problem) -> bool:
    """Return whether a problem is more than chains of free joints."""
    return (
        problem.limits is not None
        or problem.parents is not None
        or bool(problem.others)
        or problem.goal.rotation is not None
        or problem.goal.segment is not None
    )


Searched = dict[tuple[bytes, tuple[int | None, ...]], Standing]
"""How the members stand, by their index and the bones of their effectors, that were searched for last."""


class Checked(NamedTuple):
    """What was found of the FK pose of members, which need not be looked at again for other goals."""

    valid: Bools
    """(B,) all they have is finite, and their chains have a length."""
    longest: Floats
    """(B,) length of their longest chain."""
    side: Floats
    """(B,) -1 where frames are left-handed."""
    limbs: KnownLimbs | None
    """Those that may be solved in closed form."""
    searched: Searched


def checked_fk(problem: Problem) -> Checked:
    """Look at all but the goals of members."""
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
            # What a bone that does not inherit rotation is measured from has no mirror image.
            ok &= (sides > 0.0) | (problem.inherits is None or bool(np.all(problem.inherits)))
    return Checked(np.asarray(ok), longest, np.sign(proper[:, 0]), KnownLimbs.of(problem), {})


def valid_members(problem: Problem, known: Checked) -> Bools:
    """Return which members (B,) can be solved, by their goals and what is known of all else."""
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
    """Return which members (B,) have left-handed frames (-1), and which do not (1)."""
    return np.asarray(np.sign(determinants(np.asarray(problem.frames, dtype=np.float64)[:, 0])))


Begin = Callable[[Body, Floats, Goals, Floats, int], tuple[Floats, Ints]]
"""Makes the pose (3, n, B) that the search starts from, and says how many passes (B,) it took: of bodies, rotations
(4, n, B) of the joints in the FK pose, goals, tolerance (B,) and a cap on the passes; see `fabrik.led_by_tips`."""


def solve_bodies(
    problem: Problem, solution: Solution, index: Ints, begin: Begin | None = None, known: Checked | None = None
) -> None:
    """Solve members and write them into the solution.

    Args:
        problem: the problem.
        solution: what they are written into.
        index: (k,) which members; their input was looked at.
        begin: where the search begins; None: near the FK pose.
        known: of this problem, or of one that is the same but for its goals; None: it is looked at.
    """
    side = np.ones(len(problem.joints))
    side[index] = (_sides(problem) if known is None else known.side)[index]
    if (side < 0.0).any():
        mirrored = _reflected(problem, side)
        _solve_upright(mirrored, solution, index, begin, KnownLimbs.of(mirrored), {})
        solution.joints[..., 0] *= side[:, None]
        solution.rotations[:] = _both_sides(solution.rotations, side)
    elif known is None:
        _solve_upright(problem, solution, index, begin, KnownLimbs.of(problem), {})
    else:
        _solve_upright(problem, solution, index, begin, known.limbs, known.searched)


def _reflected(problem: Problem, side: Floats) -> Problem:
    """Return a problem with the members whose `side` (B,) is -1 mirrored at X = 0, and so their frames upright.

    What a joint does seen from its bones, and so what its limits mean, stays the same.
    """
    across = np.stack([side, np.ones_like(side), np.ones_like(side)], axis=-1)

    def goal_of(goal: Goal) -> Goal:
        # A mirrored bone cannot have the axes of an upright one: Y and Z are as wanted, X is opposite.
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
    """Return matrices (B, ..., 3, 3), those whose `side` (B,) is -1 with X mirrored before and after."""
    across = np.ones((len(side), 3, 3))
    across[:, 0, 1:] = across[:, 1:, 0] = side[:, None]
    return np.asarray(matrix * across.reshape(len(side), *[1] * (np.ndim(matrix) - 3), 3, 3))


def _solve_upright(
    problem: Problem,
    solution: Solution,
    index: Ints,
    begin: Begin | None,
    limbs: KnownLimbs | None,
    searched: Searched,
) -> None:
    """Solve the members `index` (k,), whose frames are right-handed, and write them into the solution."""
    index = solve_limbs(problem, limbs, solution, index)
    if not len(index):
        return
    key = index.tobytes(), tuple(goal.segment for goal in problem.goals)
    if key not in searched:
        searched.clear()
        searched[key] = Standing.of(problem, index)
    task = Task.of(problem, index, searched[key])
    standing, body = task.standing, task.standing.body
    start, passes = None, np.zeros(len(index), dtype=np.int64)
    if begin is not None:
        start, passes = begin(body, standing.turns, task.goals, task.tolerance, problem.iterations)
    first = problem.is_first_attempt
    angles, steps = search(body, standing.turns, task.goals, problem.iterations, start, is_first_attempt=first)
    frames, points = posed(body, angles)
    missed = task.target - points[:, len(body.parents) :]
    push = np.zeros_like(standing.origin)
    if problem.out_of_reach is OutOfReach.PUSH_ROOT and len(body.segments) == 1:
        gap = missed[:, 0]
        size = np.sqrt(gap[:, 0] ** 2 + gap[:, 1] ** 2 + gap[:, 2] ** 2)
        push = gap * np.minimum(1.0, task.push_limit / np.maximum(size, 1e-200))[:, None]
        missed = missed - push[:, None]
    error = np.sqrt(missed[..., 0] ** 2 + missed[..., 1] ** 2 + missed[..., 2] ** 2)
    solution.rotations[index] = times_back(frames, standing.frames)
    solution.stretch[index] = task.stretch
    solution.joints[index] = (points + push[:, None]) * standing.scale[:, None, None] + standing.origin[:, None]
    distances = error * standing.scale[:, None]
    solution.error[index] = distances if solution.error.ndim == 2 else distances[:, 0]
    solution.iterations[index] = steps + passes
    solution.at_limit[index] = at_limit(angles[:2], angles[2], body.cone).T & standing.limited
    reached = (error * standing.scale[:, None] <= task.tolerance[:, None] * standing.lengths).all(axis=1)
    far, near = task.beyond > task.tolerance, task.beyond < -task.tolerance
    unreached = np.where(far, Status.TOO_FAR, np.where(near, Status.TOO_NEAR, Status.LIMITED))
    solution.status[index] = np.where(reached, Status.REACHED, unreached)
