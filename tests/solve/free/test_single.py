"""The kernel in plain floats for a few chains gives the solutions of the one in arrays for many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ik_addon.solve import Goal, OutOfReach, Problem, Solver, solve
from ik_addon.solve import solver as dispatch
from tests.solve.chains import POSES, aim, assert_alike, for_each, lengths_of, make_chains, member, unit

COUNT = 6


def assert_same(problem: Problem, monkeypatch: pytest.MonkeyPatch, within: float = 1e-9) -> None:
    """Solve each member alone and all as arrays, and compare everything."""
    alone = solve(problem)
    monkeypatch.setattr(dispatch, "FEW", 0)
    arrays = solve(problem)
    monkeypatch.undo()
    assert_alike(alone, arrays, np.maximum(1.0, np.abs(problem.joints).max(axis=(1, 2))), within)
    assert (alone.iterations == arrays.iterations).all()


def test_rounding_decides_nothing_without_a_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains far from the origin, one of whose bones is longer than the others together, and targets in their hole."""
    rng = np.random.default_rng(96)
    lengths = rng.uniform(0.5, 1.5, 111)
    lengths *= 0.3 / lengths.sum()
    lengths[40] = 0.77
    chains = make_chains(rng, 8, 111, "wild")
    steps = np.diff(chains.joints, axis=1)
    joints = np.cumsum(np.concatenate([np.zeros((8, 1, 3)), unit(steps) * lengths[:, None]], axis=1), axis=1)
    joints = joints + rng.normal(size=(8, 1, 3)) * 1000.0
    near = rng.uniform(0.1, 1.3, (8, 1)) * unit(rng.normal(size=(8, 3)))
    softness = rng.uniform(0.1, 0.8, 8)
    goal = Goal(joints[:, 0] + near)
    for solver in (Solver.EVEN_BEND, Solver.FABRIK):
        problem = replace(chains, joints=joints, goal=goal, tolerance=0.0, softness=softness, solver=solver)
        assert_same(problem, monkeypatch)
        moved = replace(problem, joints=joints * (1.0 + 1e-15))
        np.testing.assert_allclose(solve(moved).rotations, solve(problem).rotations, atol=1e-6)


@for_each(bones=(1, 2, 3, 4, 9, 20), pose=POSES, solver=(Solver.AUTO, Solver.EVEN_BEND, Solver.FABRIK))
def test_one_chain_is_solved_like_many(bones: int, pose: str, solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng([bones, POSES.index(pose)])
    for policy, pole in zip(OutOfReach, rng.permutation([False, True, bool(bones % 2)]), strict=True):
        problem = aim(make_chains(rng, COUNT, bones, pose, uneven=True), rng, -0.2, 1.3, pole=bool(pole))
        problem = replace(
            problem,
            solver=solver,
            out_of_reach=policy,
            softness=rng.uniform(0.0, 0.3, COUNT),
            push_limit=rng.uniform(0.0, 0.2, COUNT),
            stretch_weights=rng.uniform(0.0, 1.0, bones).round(),
            inherits=rng.uniform(size=bones) < 0.7,
            tolerance=10.0 ** rng.uniform(-12.0, -2.0, COUNT),
        )
        assert_same(problem, monkeypatch)


def test_each_member_takes_the_solver_that_suits_it() -> None:
    problem = aim(make_chains(np.random.default_rng(6), 16, 3), np.random.default_rng(6), 0.2, 0.9)
    problem.joints[0, 2] = problem.joints[0, 1]
    found = solve(problem)
    even_bend = solve(replace(problem, solver=Solver.EVEN_BEND))
    two_bone = solve(replace(member(problem, 0), solver=Solver.TWO_BONE))
    np.testing.assert_allclose(found.joints[:1], two_bone.joints, atol=1e-9)
    np.testing.assert_allclose(found.joints[1:], even_bend.joints[1:], atol=1e-9)
    assert found.iterations[0] == 0
    assert lengths_of(found.joints).shape == (16, 3)
