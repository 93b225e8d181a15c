"""Poses that a target out of reach leaves undetermined are settled: rounding in the input gives the same pose."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.cases import CHAINS, Rig, bow, chain, degrees, tree_y
from ik_addon.solve import Goal, Problem
from ik_addon.solve.maths.rotations import matrices
from ik_addon.solve.problem import Floats

from ..chains import for_each, random_rotations, solve_together, unit

COUNT, HAIR = 16, 1e-7
FREE = (-np.inf, np.inf)
BALL = degrees((-60, 60), (-60, 60), (-60, 60))
JOINT = degrees((-60, 60), (-30, 30), (-60, 60))
SOME = np.array([[FREE] * 3, [(-0.3, 0.2), FREE, FREE], [(-0.3, 0.2), FREE, FREE], [FREE] * 3])


def moved(problem: Problem, rng: np.random.Generator) -> Problem:
    """Return a problem whose numbers differ slightly, as if they had been sampled with different rounding."""

    def turn(frames: Floats) -> Floats:
        turns = np.stack([np.ones(frames.shape[:-2]), *(0.5 * HAIR * rng.normal(size=(3, *frames.shape[:-2])))])
        return np.asarray(frames @ np.moveaxis(matrices(unit(turns.T).T), (0, 1), (-2, -1)))

    def shift(places: Floats) -> Floats:
        return np.asarray(places + HAIR * rng.normal(size=places.shape))

    def goal_of(goal: Goal) -> Goal:
        pole, rotation = goal.pole, goal.rotation
        return replace(
            goal,
            target=shift(goal.target),
            pole=None if pole is None else shift(pole),
            rotation=None if rotation is None else turn(rotation),
        )

    goal, others = goal_of(problem.goal), tuple(map(goal_of, problem.others))
    return replace(problem, joints=shift(problem.joints), frames=turn(problem.frames), goal=goal, others=others)


RIGS: dict[str, Callable[[], Rig]] = {
    "straight, with limits": lambda: chain(5, CHAINS["limits-30"]),
    "straight, with twists": lambda: chain(5, BALL),
    "bent, with twists": lambda: bow(5, JOINT),
    "bent, some limits": lambda: bow(4, SOME),
    "hinges": lambda: chain(4, CHAINS["hinges"]),
    "tree": lambda: tree_y(BALL),
}
ALIKE = 0.05
"""Maximum share of a tree's poses that are not settled within 1e-5, because two are equally near to FK."""


@for_each(case=(*itertools.product(RIGS, ["", "pole and turn"]), ("hinges", "pole"), ("hinges", "turn")))
def test_different_rounding_gives_the_same_pose(case: tuple[str, str]) -> None:
    name, wishes = case
    rig = RIGS[name]()
    count = 3 * COUNT if len(rig.tips) > 1 else COUNT
    rng = np.random.default_rng(len(name))
    turns = rig.at_rest(count) if "straight" in name else rig.turns_inside(rng, count, 0.6)
    joints, _ = rig.pose(rig.turns_inside(rng, count))
    reach = 0.7 if len(rig.tips) > 1 else 1.0
    away = unit(rng.normal(size=(count, 1, 3))) * rng.uniform(0.6, 1.4, (count, 1, 1)) * reach
    problem = rig.problem(turns, 0.3 * joints[:, rig.bones :] + away, tolerance=1e-6)
    goal = problem.goal
    if "pole" in wishes:
        goal = replace(goal, pole=2.0 * rng.normal(size=(count, 3)), pole_angle=rng.uniform(-1.0, 1.0, count))
    if "turn" in wishes:
        goal = replace(goal, rotation=random_rotations(rng, count))
    problem = replace(problem, goal=goal)
    one, other = solve_together(problem, moved(problem, rng))
    far = ~one.reached
    assert np.count_nonzero(far) >= count // 3
    off = np.abs(one.rotations - other.rotations).max(axis=(1, 2, 3))[far]
    allowed = ALIKE if len(rig.tips) > 1 else 0.0
    assert np.count_nonzero(off > 1e-5) <= allowed * len(off), np.sort(off)
