"""Start the search for chains of three or more bones with a bend side, within limits or to an orientation.

A search stays near where it starts. So it starts from the pose that the chain would take without limits, which is on
its bend side however the FK pose is bent. That pose stands in for the FK pose, and equals it where the target is at
the FK tip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .bodies import solve_bodies
from .maths.products import applied, back_applied, times, times_back
from .problem import Bools, Floats, Goal, Ints, Problem, Solution, Solver

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
    solve_bodies(posed(problem, turns), solution, index)
    solution.rotations[index] = times(solution.rotations[index], turns[index])


def posed(problem: Problem, rotations: Floats) -> Problem:
    """Return a problem with its FK pose rotated by rotations (B, n, 3, 3) of its bones."""
    joints, frames = (np.asarray(array, dtype=np.float64) for array in (problem.joints, problem.frames))
    bones = frames.shape[1]
    parents = list(range(-1, bones - 1)) if problem.parents is None else np.asarray(problem.parents).tolist()
    ends = [bones - 1 if goal.segment is None else goal.segment for goal in problem.goals]
    turned = joints.copy()
    for joint, parent in enumerate([*parents, *ends]):
        if parent >= 0:
            turned[:, joint] = turned[:, parent] + applied(rotations[:, parent], joints[:, joint] - joints[:, parent])
    above = rotations[:, [0, *range(bones - 1)]]
    return replace(
        problem,
        joints=turned,
        frames=times(rotations, frames),
        bend_side=None if problem.bend_side is None else applied(rotations[:, 0], np.asarray(problem.bend_side)),
        folds=None if problem.folds is None else applied(above, np.asarray(problem.folds)),
    )
