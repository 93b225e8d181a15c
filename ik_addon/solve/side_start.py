"""Chains of three bones and more that are searched for, within limits or to an orientation, and have a bend side.

A search stays near where it begins. So it begins where the chain would be without limits, which is on its side however
its FK pose is bent: that pose takes the place of the one of FK, and keeps it where the target is at the FK tip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .limited.bodies import solve_bodies
from .maths.products import applied, back_applied, times, times_back
from .problem import Bools, Floats, Goal, Ints, Problem, Solution, Solver

SHORT = 3
"""Chains of fewer bones, and of as many with an orientation, are solved in closed form."""


def begin_on_side(problem: Problem) -> Bools:
    """Return which members (B,) of a problem that is searched for begin on their bend side."""
    bones = np.shape(problem.frames)[1]
    is_chain = problem.parents is None and not problem.others and problem.goal.segment is None
    is_long = bones > SHORT or (bones == SHORT and problem.goal.rotation is None)
    if problem.bend_side is None or problem.solver is Solver.FABRIK or not (is_chain and is_long):
        return np.zeros(len(problem.joints), dtype=bool)
    return np.asarray((np.asarray(problem.bend_side) != 0.0).any(axis=1))


def free_pose(problem: Problem, solve: Callable[[Problem], Solution]) -> Floats:
    """Return the rotations (B, n, 3, 3) of the bones of chains that reach their goals without limits."""
    goal = problem.goal
    if goal.rotation is None:
        return solve(replace(problem, limits=None, plane=None)).rotations
    # The last bone takes the orientation, and the others bring its head to where its end arrives.
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
    """Search for the members `index` from their FK pose turned by rotations (B, n, 3, 3)."""
    solve_bodies(_posed(problem, turns), solution, index)
    solution.rotations[index] = times(solution.rotations[index], turns[index])


def _posed(problem: Problem, turns: Floats) -> Problem:
    """Return a problem whose FK pose is turned by rotations (B, n, 3, 3) of its bones."""
    joints = np.array(problem.joints, dtype=np.float64)
    steps = np.cumsum(applied(turns, np.diff(joints, axis=1)), axis=1)
    joints = np.concatenate([joints[:, :1], joints[:, :1] + steps], axis=1)
    return replace(problem, joints=joints, frames=times(turns, np.asarray(problem.frames, dtype=np.float64)))
