"""Chains that stay in a plane."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ik_addon.solve import Goal, Problem, solve
from ik_addon.solve.problem import Floats
from tests.solve.chains import for_each, inner_radius, lengths_of, make_chains, unit

MEMBERS = 300


def random_problem(seed: int, bones: int, pole: bool = False, flat: bool = False) -> Problem:
    """Return chains in random poses, with random planes and targets whose projections are within reach."""
    rng = np.random.default_rng(seed)
    problem = make_chains(rng, MEMBERS, bones, "wild", uneven=True)
    normal = unit(rng.normal(size=(MEMBERS, 3)))
    root, joints = problem.joints[:, :1], problem.joints
    if flat:
        joints = joints - ((joints - root) @ normal[:, :, None]) * normal[:, None]
    problem = replace(problem, joints=joints, plane=normal, tolerance=1e-9)
    inner, outer = inner_radius(problem), lengths_of(joints).sum(axis=1)
    distance = inner + rng.uniform(0.05, 0.95, size=MEMBERS) * (outer - inner)
    direction = unit(np.cross(normal, rng.normal(size=(MEMBERS, 3))))
    target = root[:, 0] + distance[:, None] * direction + rng.normal(size=(MEMBERS, 1)) * normal
    poles = root[:, 0] + 2.0 * rng.normal(size=(MEMBERS, 3)) if pole else None
    return replace(problem, goal=Goal(target, poles))


def off_plane(problem: Problem, joints: Floats) -> Floats:
    """Return the distance (B, n+1) of joints from the plane through the root."""
    assert problem.plane is not None
    return np.abs(((joints - problem.joints[:, :1]) * problem.plane[:, None]).sum(axis=2))


@for_each(pole=(False, True), bones=(1, 2, 3, 7))
def test_a_planar_chain_stays_in_its_plane_and_reaches_the_projected_target(bones: int, pole: bool) -> None:
    problem = random_problem(bones, bones, pole)
    if bones == 1:
        problem = replace(problem, tolerance=10.0)
    solution = solve(problem)
    assert solution.reached.all()
    assert off_plane(problem, solution.joints).max() < 1e-9
    segments = np.diff(problem.joints, axis=1)
    turned = (solution.rotations @ segments[..., None])[..., 0]
    assert np.abs(turned - np.diff(solution.joints, axis=1)).max() < 1e-9
    if bones > 1:
        missed = problem.goal.target - solution.joints[:, -1]
        assert np.abs(np.cross(missed, problem.plane)).max() < 1e-7


@for_each(bones=(2, 5))
def test_a_flat_chain_turns_only_about_the_normal(bones: int) -> None:
    problem = random_problem(20 + bones, bones, pole=True, flat=True)
    assert problem.plane is not None
    solution = solve(problem)
    kept = (solution.rotations @ problem.plane[:, None, :, None])[..., 0]
    assert np.abs(kept - problem.plane[:, None]).max() < 1e-9


def test_a_pole_decides_the_side_of_straight_and_bent_chains() -> None:
    for flat in (True, False):
        problem = random_problem(31, 2, pole=True, flat=flat)
        if flat:
            line = problem.joints[:, 1:2] - problem.joints[:, :1]
            joints = problem.joints[:, :1] + line * np.arange(3)[None, :, None]
            problem = replace(problem, joints=joints, frames=problem.frames[:, [0, 0]])
            reach = np.linalg.norm(line[:, 0], axis=1, keepdims=True)
            aside = np.cross(problem.plane, line[:, 0])
            problem = replace(problem, goal=replace(problem.goal, target=joints[:, 0] + line[:, 0] + 0.7 * aside / 1.0))
            assert (np.linalg.norm(problem.goal.target - joints[:, 0], axis=1) < 2.0 * reach[:, 0]).all()
        solution = solve(problem)
        root, elbow = solution.joints[:, 0], solution.joints[:, 1]
        line = solution.joints[:, 2] - root
        assert problem.goal.pole is not None
        assert problem.plane is not None
        sides = [(np.cross(line, point - root) * problem.plane).sum(axis=1) for point in (elbow, problem.goal.pole)]
        assert solution.reached.all()
        assert (np.sign(sides[0]) == np.sign(sides[1])).all()
