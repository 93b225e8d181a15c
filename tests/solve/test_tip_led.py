"""FABRIK within limits and in trees: passes with cones and sub-bases, and the search when they stall."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.cases import LOCKED, Rig, chain, degrees, random_ranges, tree_y
from benchmarks.quality import violations
from ik_addon.solve import Goal, Problem, Solver, Status, solve
from tests.solve.chains import for_each, led_by_tip, make_chains, random_rotations, unit
from tests.solve.limited.test_limits import assert_consistent

BALL = degrees((-60, 60), (-60, 60), (-60, 60))
FREE = np.full((10, 3, 2), [-np.inf, np.inf])
RIGS = {
    "limits-30": chain(5, degrees((-30, 30), LOCKED, (-30, 30))),
    "limits-90": chain(9, degrees((-90, 90), LOCKED, (-90, 90))),
    "asym": chain(5, degrees((-10, 80), LOCKED, (-20, 40))),
    "hinges": chain(4, degrees((0, 150), LOCKED, LOCKED)),
    "random": chain(6, random_ranges(np.random.default_rng(3), 6)),
    "tree-y": tree_y(BALL),
    "free tree": tree_y(FREE),
}


def problems(rig: Rig, count: int, seed: int = 1) -> Problem:
    """Return problems with reachable targets, from rest and from other poses within the limits."""
    rng = np.random.default_rng(seed)
    joints, _ = rig.pose(rig.turns_inside(rng, count))
    turns = rig.turns_inside(rng, count)
    turns[::2] = rig.at_rest(count)[::2]
    return replace(rig.problem(turns, joints[:, rig.bones :], tolerance=1e-6), solver=Solver.FABRIK)


@for_each(name=RIGS)
def test_reachable_targets_are_reached_within_the_limits(name: str) -> None:
    rig = RIGS[name]
    problem = problems(rig, 200)
    solution = solve(problem)
    assert (solution.status == Status.REACHED).all()
    assert violations(rig, solution.rotations @ problem.frames).max() < 1e-6
    assert_consistent(problem, solution)


def test_a_small_move_turns_the_joints_next_to_the_tip_within_limits() -> None:
    rig = chain(10, BALL)
    at_rest = rig.at_rest(1)
    joints, _ = rig.pose(at_rest)
    size = float(np.linalg.norm(joints[0, -1] - joints[0, 0]))
    forward = (joints[0, -1] - joints[0, 0]) / size
    side = np.cross(forward, [0.3, 0.5, 0.8])
    side /= np.linalg.norm(side)
    target = joints[:, 0] + size * (0.98 * forward + 0.02 * side)
    problem = rig.problem(at_rest, target[:, None], tolerance=1e-6)

    def share(solver: Solver) -> float:
        solution = solve(replace(problem, solver=solver))
        assert solution.reached.all()
        return led_by_tip(solution.joints[0], forward)

    assert share(Solver.FABRIK) > 0.9
    assert share(Solver.AUTO) < 0.6


def test_a_sub_base_goes_to_the_weighted_centroid() -> None:
    """A long trunk ends far from where both branches point: the branch with three times the weight comes nearer."""
    rig = tree_y(BALL)
    targets = np.array([[[0.5, 0.7, 0.0], [-0.5, 0.7, 0.0]]])
    problem = replace(rig.problem(rig.at_rest(1), targets), solver=Solver.FABRIK, limits=None)
    even = solve(problem)
    np.testing.assert_allclose(even.error[0, 0], even.error[0, 1], atol=1e-5)
    uneven = solve(replace(problem, goal=replace(problem.goal, weight=3.0)))
    assert uneven.error[0, 0] < even.error[0, 0] < uneven.error[0, 1]


@for_each(limited=(False, True), solver=(Solver.AUTO, Solver.FABRIK))
def test_the_tip_takes_its_orientation(limited: bool, solver: Solver) -> None:
    rng = np.random.default_rng(7)
    rig = chain(7, degrees((-120, 120), (-120, 120), (-120, 120)))
    joints, frames = rig.pose(rig.turns_inside(rng, 60, 0.5))
    problem = replace(rig.problem(rig.turns_inside(rng, 60, 0.5), joints[:, 7:], tolerance=1e-6), solver=solver)
    problem = replace(problem, goal=replace(problem.goal, rotation=frames[:, -1]))
    problem = problem if limited else replace(problem, limits=None)
    solution = solve(problem)
    assert solution.reached.mean() == 1.0
    turned = solution.rotations[:, -1] @ problem.frames[:, -1]
    assert (np.abs(turned - frames[:, -1]).max(axis=(1, 2)) < 1e-4).mean() > 0.95


@for_each(solver=(Solver.AUTO, Solver.FABRIK))
def test_a_pole_turns_a_limited_chain(solver: Solver) -> None:
    rig = chain(6, degrees((-90, 90), (-90, 90), (-90, 90)))
    joints, _ = rig.pose(rig.at_rest(1))
    size = joints[0, -1] - joints[0, 0]
    target = joints[:, 0] + 0.7 * size
    for pole in random_rotations(np.random.default_rng(8), 6)[:, :, 0]:
        problem = replace(rig.problem(rig.at_rest(1), target[:, None], tolerance=1e-6), solver=solver)
        problem = replace(problem, goal=replace(problem.goal, pole=joints[:, 0] + 3.0 * pole))
        solution = solve(problem)
        assert solution.reached.all()
        line = unit(target - joints[:, 0])[0]
        bend = (solution.joints[0] - joints[0, 0]).mean(axis=0)
        bend, towards = bend - line * (bend @ line), pole - line * (pole @ line)
        assert bend @ towards > 0.99 * np.linalg.norm(bend) * np.linalg.norm(towards)


def test_a_straight_limited_chain_bends_to_its_free_side() -> None:
    """The target is on the chain's own line, where passes alone would leave the chain straight."""
    ranges = np.tile(degrees((-2, 80), LOCKED, (-2, 2)), (5, 1, 1))
    ranges[0] = degrees((-90, 90), LOCKED, (-2, 2))
    rig = chain(5, ranges)
    joints, _ = rig.pose(rig.at_rest(1))
    for share in (0.9, 0.6, 0.4):
        target = joints[:, 0] + share * (joints[:, -1] - joints[:, 0])
        solution = solve(replace(rig.problem(rig.at_rest(1), target[:, None], tolerance=1e-6), solver=Solver.FABRIK))
        assert solution.reached.all()
        segments = np.diff(solution.joints[0], axis=0)
        turned = np.cross(segments[:-1], segments[1:]) @ rig.frames[0][:, 0]
        assert (turned > -1e-4).all()


def test_a_free_chain_with_an_orientation_is_led_by_its_tip() -> None:
    chains = make_chains(np.random.default_rng(9), 40, 6, "curled")
    rng = np.random.default_rng(10)
    target = chains.joints[:, -1] + 0.05 * unit(rng.normal(size=(40, 3)))
    goal = Goal(target, rotation=chains.frames[:, -1])
    solution = solve(replace(chains, goal=goal, solver=Solver.FABRIK, tolerance=1e-6))
    assert solution.reached.all()
    np.testing.assert_allclose(solution.rotations[:, -1], np.tile(np.eye(3), (40, 1, 1)), atol=1e-4)
