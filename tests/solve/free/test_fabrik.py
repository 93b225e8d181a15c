"""FABRIK of free chains, compared with a textbook implementation: the tip leads, and always arrives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ik_addon.solve import Goal, OutOfReach, Problem, Solution, Solver, Status, solve
from ik_addon.solve.problem import Floats
from tests.solve.chains import aim, check_consistent, for_each, led_by_tip, lengths_of, make_chains, on_path, unit


def fabrik(problem: Problem, tolerance: float = 1e-4, iterations: int = 200) -> Solution:
    return solve(replace(problem, solver=Solver.FABRIK, tolerance=tolerance, iterations=iterations))


def textbook(joints: Floats, target: Floats, tolerance: float, passes: int = 1000) -> Floats:
    """Run FABRIK as published, for one chain (n+1, 3) whose target is within reach."""
    points = joints.copy()
    lengths = lengths_of(joints[None])[0]
    for _ in range(passes):
        if np.linalg.norm(points[-1] - target) <= tolerance:
            break
        points[-1] = target
        for i in reversed(range(len(lengths))):
            points[i] = points[i + 1] + lengths[i] * unit(points[i] - points[i + 1])
        points[0] = joints[0]
        for i, length in enumerate(lengths):
            points[i + 1] = points[i] + length * unit(points[i + 1] - points[i])
    return points


def straight(bones: int, count: int = 1) -> Problem:
    """Return chains of length 1 along Y."""
    joints = np.zeros((count, bones + 1, 3))
    joints[:, :, 1] = np.linspace(0.0, 1.0, bones + 1)
    return Problem(joints, np.tile(np.eye(3), (count, bones, 1, 1)), Goal(joints[:, -1].copy()))


@for_each(
    back=(0.001, 0.005, 0.01, 0.02, 0.025, 0.03), side=((1.0, 0.0), (0.0, 1.0), (-0.6, 0.8)), tolerance=(1e-3, 1e-6)
)
def test_a_small_move_turns_the_joints_next_to_the_tip(
    back: float, side: tuple[float, float], tolerance: float
) -> None:
    problem = straight(10)
    target = np.array([0.02 * side[0], 1.0 - back, 0.02 * side[1]])
    solution = fabrik(replace(problem, goal=Goal(target[None])), tolerance)
    forward = np.array([0.0, 1.0, 0.0])
    assert led_by_tip(solution.joints[0], forward) > 0.9
    expected = textbook(problem.joints[0], target, tolerance)
    assert np.abs(solution.joints[0] - expected).max() < 0.005
    bow = solve(replace(problem, goal=Goal(target[None]), solver=Solver.EVEN_BEND)).joints[0]
    assert led_by_tip(bow, forward) < 0.25


@for_each(bones=(3, 5, 10, 24), pose=("curled", "wavy", "wild"))
def test_the_pose_matches_the_textbook_if_that_converges_fast(bones: int, pose: str) -> None:
    rng = np.random.default_rng([bones, len(pose)])
    chains = make_chains(rng, 200, bones, pose, uneven=True)
    target = chains.joints[:, -1] + 0.1 * unit(rng.normal(size=(200, 3))) * rng.uniform(size=(200, 1))
    inside = np.linalg.norm(target - chains.joints[:, 0], axis=1) < 0.95
    solution = fabrik(replace(chains, goal=Goal(target)), 1e-6)
    soon = inside & (solution.iterations < 12) & (solution.iterations > 0)
    assert soon.sum() > 10
    for i in np.flatnonzero(soon):
        expected = textbook(chains.joints[i], target[i], 1e-6)
        np.testing.assert_allclose(solution.joints[i], expected, atol=2e-6)


@for_each(bones=(2, 3, 7, 12), folded=(False, True))
def test_collinear_chains_always_bend_the_same_way(bones: int, folded: bool) -> None:
    """They bend about the root's X axis, for targets in front and behind, without a deadlock."""
    problem = straight(bones, 5)
    if folded:
        problem.joints[:, :, 1] = np.arange(bones + 1) % 2 / bones
    target = np.zeros((5, 3))
    target[:, 1] = 0.8, 0.4, 1e-4, -0.3, -0.7
    solution = fabrik(replace(problem, goal=Goal(target)), 1e-8)
    assert solution.reached.all()
    assert solution.iterations.max() <= 30
    np.testing.assert_allclose(solution.joints[..., 0], 0.0, atol=1e-12)
    if not folded:
        segments = np.diff(solution.joints[:3], axis=1)
        turned = np.cross(segments[:, :-1], segments[:, 1:])[..., 0]
        assert (turned > 1e-9).all()


def test_a_straight_chain_bends_to_the_pole() -> None:
    pole = np.array([[3.0, 0.5, 0.0], [0.0, 0.5, -3.0], [-2.0, 0.5, 2.0]])
    problem = straight(6, 3)
    solution = fabrik(replace(problem, goal=Goal(np.tile([0.0, 0.6, 0.0], (3, 1)), pole=pole)), 1e-8)
    assert solution.reached.all()
    middle = solution.joints[:, 3] * [1.0, 0.0, 1.0]
    np.testing.assert_allclose(unit(middle), unit(pole * [1.0, 0.0, 1.0]), atol=1e-6)


def test_passes_are_counted_and_capped() -> None:
    rng = np.random.default_rng(4)
    problem = aim(make_chains(rng, 200, 6, "wild"), rng, 0.3, 0.99)
    for passes in (0, 1, 5):
        solution = fabrik(problem, 1e-12, passes)
        assert solution.iterations.max() == passes
        late = solution.error > 1e-12
        assert (solution.status[late] == Status.NOT_CONVERGED).all()
        check_consistent(problem, solution)
        for i in range(0, 200, 20):
            expected = textbook(problem.joints[i], problem.goal.target[i], 1e-12, passes)
            np.testing.assert_allclose(solution.joints[i], expected, atol=1e-9)


@for_each(policy=OutOfReach)
def test_a_chain_out_of_reach_is_straight_at_once(policy: OutOfReach) -> None:
    rng = np.random.default_rng(9)
    problem = aim(make_chains(rng, 100, 7, "wavy"), rng, 1.01, 1.5)
    solution = fabrik(replace(problem, out_of_reach=policy, push_limit=10.0))
    assert (solution.iterations == 0).all()
    assert solution.reached.all() == (policy is not OutOfReach.EXTEND)
    line = unit(problem.goal.target - solution.joints[:, 0])
    np.testing.assert_allclose(unit(np.diff(solution.joints, axis=1)), np.tile(line[:, None], (1, 7, 1)), atol=1e-7)


@for_each(pose=("straight", "bent", "wavy"), bones=(3, 5, 9))
def test_motion_is_continuous_on_a_smooth_path(bones: int, pose: str) -> None:
    """Less smooth than an even bend: where a joint folds far, a small step of the target is a large turn."""
    time = np.linspace(0.0, 2.0 * np.pi, 4001)
    path = np.stack([0.25 * np.sin(time), 0.7 + 0.15 * np.cos(2.0 * time), 0.25 * np.cos(time)], axis=-1)
    problem = on_path(make_chains(np.random.default_rng(7), 1, bones, pose), path)
    solution = fabrik(problem, 1e-6)
    assert solution.reached.all()
    moved = np.linalg.norm(np.diff(solution.joints, axis=0), axis=-1).max(axis=1)
    speed = np.linalg.norm(np.diff(problem.goal.target, axis=0), axis=-1)
    assert (moved / speed).max() < 20.0
