from dataclasses import replace

import numpy as np
import pytest

from benchmarks.cases import CHAINS, chain
from ik_addon.solve import Goal, Problem, Solver, Status, solve
from tests.fuzz.verdict import assert_valid
from tests.solve.chains import POSES, aim, for_each, make_chains


def arm(target: list[float], joints: list[list[float]] | None = None, pole: list[float] | None = None) -> Problem:
    """Return one arm of two bones along Y, with bone axes parallel to the world's."""
    points = np.array([joints or [[0, 0, 0], [0, 1, 0], [0, 2, 0]]], dtype=float)
    goal = Goal(np.array([target], dtype=float), None if pole is None else np.array([pole], dtype=float))
    return Problem(points, np.tile(np.eye(3), (1, 2, 1, 1)), goal)


@for_each(pose=POSES, uneven=(False, True), pole=(False, True))
def test_every_target_in_reach_is_reached_exactly(pose: str, uneven: bool, pole: bool) -> None:
    rng = np.random.default_rng(1)
    for low, high in ((0.0, 1.0), (0.0, 1e-6), (0.999999, 1.0), (1.0, 1.0)):
        problem = aim(make_chains(rng, 1000, 2, pose, uneven=uneven), rng, low, high, pole=pole)
        solution = solve(problem)
        assert solution.error.max() < 1e-12
        assert (solution.iterations == 0).all()
        assert_valid(problem, solution)


def test_a_straight_arm_bends_about_x() -> None:
    solution = solve(arm([0, 1, 0]))
    np.testing.assert_allclose(solution.joints[0, 1], [0, 0.5, -np.sqrt(0.75)], atol=1e-12)
    behind = solve(arm([0, -1, 0]))
    np.testing.assert_allclose(behind.joints[0, 1], [0, -0.5, np.sqrt(0.75)], atol=1e-12)
    nearly = solve(arm([1e-9, -1, -1e-9]))
    np.testing.assert_allclose(nearly.joints, behind.joints, atol=1e-8)


def test_a_bone_whose_x_axis_is_along_the_arm_bends_too() -> None:
    problem = arm([0, 1, 0])
    frame = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    solution = solve(replace(problem, frames=np.tile(frame, (1, 2, 1, 1))))
    np.testing.assert_allclose(solution.joints[0, 1], [0, 0.5, -np.sqrt(0.75)], atol=1e-12)


@for_each(target=([0.0, 0.0, 0.0], [0.4, 0.3, -0.2], [0.0, 1.5, 0.0], [0.0, -1.5, 0.0]))
def test_a_folded_arm_opens(target: list[float]) -> None:
    problem = arm(target, [[0, 0, 0], [0, 1, 0], [0, 0, 0]])
    solution = solve(problem)
    assert solution.error[0] < 1e-12
    assert_valid(problem, solution)
    if target == [0.0, 0.0, 0.0]:
        np.testing.assert_allclose(solution.rotations, problem.frames, atol=1e-9)


def test_frames_roll_with_the_pole() -> None:
    """A bent chain whose pole is on the opposite side turns over as a whole."""
    bent = [[0, 0, 0], [0, 1, -0.5], [0, 2, 0]]
    solution = solve(arm([0, 2, 0], bent, pole=[0, 1, 5]))
    np.testing.assert_allclose(solution.rotations[0], np.tile(np.diag([-1.0, 1.0, -1.0]), (2, 1, 1)), atol=1e-12)


def test_a_pole_on_the_line_leaves_the_natural_roll() -> None:
    for pole in ([0, 5, 0], [0, 0, 0], [0, -3, 0]):
        with_pole, without = solve(arm([0, 1, 0], pole=pole)), solve(arm([0, 1, 0]))
        np.testing.assert_allclose(with_pole.joints, without.joints, atol=1e-12)
        np.testing.assert_allclose(with_pole.rotations, without.rotations, atol=1e-12)


def test_other_chains_are_refused() -> None:
    rng = np.random.default_rng(4)
    for bones in (1, 3):
        problem = replace(make_chains(rng, 2, bones), solver=Solver.TWO_BONE)
        with pytest.raises(ValueError, match=f"exactly two segments with length, but the chain has {bones}"):
            solve(problem)
    rig = chain(3, CHAINS["limits-90"])
    with pytest.raises(ValueError, match="two-bone solver needs exactly two segments"):
        solve(replace(rig.problem(rig.at_rest(2), np.zeros((2, 1, 3))), solver=Solver.TWO_BONE))


def test_an_even_bend_gives_the_same_pose() -> None:
    rng = np.random.default_rng(5)
    for pose in ("straight", "bent"):
        problem = aim(make_chains(rng, 300, 2, pose), rng, 0.05, 0.98)
        exact = solve(replace(problem, solver=Solver.TWO_BONE))
        passes = solve(replace(problem, solver=Solver.EVEN_BEND, tolerance=1e-12))
        np.testing.assert_allclose(passes.joints, exact.joints, atol=1e-9)
        np.testing.assert_allclose(passes.rotations, exact.rotations, atol=1e-9)


def test_a_target_at_the_root_keeps_the_direction() -> None:
    problem = arm([0, 0, 0], [[0, 0, 0], [0, 1, 0], [0, 1.5, 0]])
    solution = solve(problem)
    assert solution.status[0] == Status.TOO_NEAR
    np.testing.assert_allclose(solution.joints[0, 1:], [[0, 1, 0], [0, 0.5, 0]], atol=1e-12)
