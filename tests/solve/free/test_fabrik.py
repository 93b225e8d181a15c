"""FABRIK, of free chains compared with a textbook implementation: the tip leads, and always arrives."""

from dataclasses import replace

import numpy as np

from benchmarks.cases import LOCKED, Rig, chain, degrees, random_ranges, tree_y
from ik_addon.solve import Goal, OutOfReach, Problem, Solution, Solver, Status, solve
from ik_addon.solve.problem import Floats
from tests.fuzz.verdict import assert_valid
from tests.solve.chains import (
    aim,
    for_each,
    led_by_tip,
    lengths_of,
    make_chains,
    on_path,
    random_rotations,
    reached,
    unit,
)


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


@for_each(bones=(2, 3, 7, 12), kind=("FABRIK", "FABRIK, folded", "even bend"))
def test_collinear_chains_always_bend_the_same_way(bones: int, kind: str) -> None:
    """They bend about the root's X axis, for targets in front and behind, without a deadlock."""
    problem = straight(bones, 5)
    if "folded" in kind:
        problem.joints[:, :, 1] = np.arange(bones + 1) % 2 / bones
    target = np.zeros((5, 3))
    target[:, 1] = 0.8, 0.4, 1e-4, -0.3, -0.7
    solver = Solver.EVEN_BEND if kind == "even bend" else Solver.FABRIK
    solution = reached(replace(problem, goal=Goal(target), solver=solver, tolerance=1e-8, iterations=200))
    assert solution.iterations.max() <= 30
    np.testing.assert_allclose(solution.joints[..., 0], 0.0, atol=1e-12)
    segments = np.diff(solution.joints, axis=1)
    turns = np.cross(segments[:, :-1], segments[:, 1:])[..., 0]
    if kind == "FABRIK":
        assert (turns[:3] > 1e-9).all()
    elif kind == "even bend":
        assert (turns > 1e-6).all()
        # In front the middle moves towards -Z; behind, the whole chain has turned about X.
        assert solution.joints[1, 1:-1, 2].max() < -0.01
        assert solution.joints[4, 1:-1, 2].min() > 0.01


def test_passes_are_counted_and_capped() -> None:
    rng = np.random.default_rng(4)
    problem = aim(make_chains(rng, 200, 6, "wild"), rng, 0.3, 0.99)
    for passes in (0, 1, 5):
        solution = fabrik(problem, 1e-12, passes)
        assert solution.iterations.max() == passes
        late = solution.error > 1e-12
        assert (solution.status[late] == Status.NOT_CONVERGED).all()
        assert_valid(replace(problem, tolerance=1e-12), solution)
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


# ---- within limits and in trees: passes with cones and sub-bases, and the search when they stall


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
    solution = reached(problem)
    assert_valid(problem, solution)


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
        solution = reached(replace(problem, solver=solver))
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
        solution = reached(problem)
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
        solution = reached(replace(rig.problem(rig.at_rest(1), target[:, None], tolerance=1e-6), solver=Solver.FABRIK))
        segments = np.diff(solution.joints[0], axis=0)
        turned = np.cross(segments[:-1], segments[1:]) @ rig.frames[0][:, 0]
        assert (turned > -1e-4).all()


def test_a_free_chain_with_an_orientation_is_led_by_its_tip() -> None:
    chains = make_chains(np.random.default_rng(9), 40, 6, "curled")
    rng = np.random.default_rng(10)
    target = chains.joints[:, -1] + 0.05 * unit(rng.normal(size=(40, 3)))
    goal = Goal(target, rotation=chains.frames[:, -1])
    solution = reached(replace(chains, goal=goal, solver=Solver.FABRIK, tolerance=1e-6))
    np.testing.assert_allclose(solution.rotations[:, -1], np.tile(np.eye(3), (40, 1, 1)), atol=1e-4)
