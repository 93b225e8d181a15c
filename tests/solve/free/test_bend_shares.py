"""Even bends that are shared by stiffness, or led from the root or from the tip."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ik_addon.solve import Problem, Solver, Status, solve
from tests.solve.chains import POSES, aim, bends, check_consistent, for_each, make_chains

SETTINGS = {
    "lead 1": {"bend_lead": 1.0},
    "lead -1": {"bend_lead": -1.0},
    "stiff root": {"stiffness": np.repeat([[0.99], [0.9], [0.5], [0.0], [0.0], [0.0]], 3, axis=1)},
    "both": {"bend_lead": 0.4, "stiffness": np.repeat([[0.0], [0.9], [0.0], [0.9], [0.0], [0.3]], 3, axis=1)},
}


def problems(pose: str, count: int = 100, low: float = 0.05, high: float = 0.98, *, pole: bool = False) -> Problem:
    rng = np.random.default_rng([len(pose), pole])
    problem = aim(make_chains(rng, count, 6, pose), rng, low, high, pole=pole)
    return replace(problem, solver=Solver.EVEN_BEND, tolerance=1e-6)


@for_each(name=SETTINGS, pose=POSES, pole=(False, True))
def test_targets_are_reached(name: str, pose: str, pole: bool) -> None:
    problem = replace(problems(pose, 100, 0.0, 0.9999, pole=pole), **SETTINGS[name])
    solution = solve(problem)
    assert (solution.status == Status.REACHED).all()
    assert solution.iterations.max() <= 30
    check_consistent(problem, solution)


@for_each(pose=POSES)
def test_the_pose_changes_continuously_from_equal_shares(pose: str) -> None:
    problem = problems(pose)
    even = solve(problem).joints
    np.testing.assert_allclose(solve(replace(problem, stiffness=np.full((6, 3), 0.5))).joints, even, atol=1e-5)
    for setting in ({"bend_lead": 1e-6}, {"stiffness": 1e-6 * np.arange(18).reshape(6, 3) / 18.0}):
        np.testing.assert_allclose(solve(replace(problem, **setting)).joints, even, atol=1e-4)
    few = problems(pose, 12)
    some = [solve(replace(few, bend_lead=lead)).joints for lead in np.linspace(0.0, 1.0, 41)]
    assert np.median(np.abs(np.diff(some, axis=0)).max(axis=(2, 3))) < 0.02


def test_stiff_joints_of_a_straight_chain_take_their_shares() -> None:
    """This holds unless the target is near the chain's root."""
    problem = problems("straight", 200, 0.5, 0.98)
    stiffness = np.repeat([[0.0], [0.75], [0.5], [0.0], [0.5], [0.0]], 3, axis=1)
    stiff, even = (bends(solve(one).joints) for one in (replace(problem, stiffness=stiffness), problem))
    share = stiff / even
    expected = (1.0 - stiffness[1:, 0]) * np.ones_like(share)
    np.testing.assert_allclose(share / share[:, :1], expected / expected[:, :1], rtol=0.1)


@for_each(axis=(0, 2))
def test_only_stiffness_about_the_bend_axis_counts(axis: int) -> None:
    """Straight chains bend about their X axes: stiffness about other axes has no effect."""
    problem = problems("straight", low=0.5)
    stiffness = np.zeros((6, 3))
    stiffness[:3, axis] = 0.9
    stiff, even = (bends(solve(one).joints) for one in (replace(problem, stiffness=stiffness), problem))
    if axis == 0:
        assert (stiff[:, :2].sum(axis=1) < 0.5 * even[:, :2].sum(axis=1)).all()
    else:
        np.testing.assert_allclose(stiff, even, atol=1e-6)


def test_the_bend_can_be_led_from_either_end() -> None:
    problem = problems("straight", low=0.5)
    to_tip, to_root = (bends(solve(replace(problem, bend_lead=lead)).joints) for lead in (1.0, -1.0))
    assert (to_tip[:, 0] < 0.2 * to_tip.sum(axis=1) / 5).all()
    assert (to_root[:, -1] < 0.2 * to_root.sum(axis=1) / 5).all()
    assert (np.diff(to_tip[:, :4], axis=1) > 0.0).mean() > 0.95
    assert (np.diff(to_root[:, 1:], axis=1) < 0.0).mean() > 0.95


@for_each(name=SETTINGS, solver=(Solver.FABRIK, Solver.TWO_BONE))
def test_other_solvers_ignore_shares(name: str, solver: Solver) -> None:
    bones = 2 if solver is Solver.TWO_BONE else 6
    rng = np.random.default_rng(3)
    problem = replace(aim(make_chains(rng, 50, bones), rng, 0.1, 0.9), solver=solver)
    settings = {key: value[:bones] if np.ndim(value) else value for key, value in SETTINGS[name].items()}
    np.testing.assert_allclose(solve(replace(problem, **settings)).joints, solve(problem).joints, atol=1e-9)


@for_each(name=SETTINGS)
def test_bones_of_zero_length_have_no_share(name: str) -> None:
    problem = problems("bent", 50)
    at = [0, 1, 1, 2, 3, 4, 5, 6]  # a bone of zero length after the first
    joints, frames = problem.joints[:, at], problem.frames[:, [0, 0, 1, 2, 3, 4, 5]]
    settings = {
        key: value[[0, 0, 1, 2, 3, 4, 5]] if isinstance(value, np.ndarray) else value
        for key, value in SETTINGS[name].items()
    }
    one = solve(replace(problem, **SETTINGS[name]))
    other = solve(replace(problem, joints=joints, frames=frames, **settings))
    np.testing.assert_allclose(other.joints[:, [0, 1, 3, 4, 5, 6, 7]], one.joints, atol=1e-6)
