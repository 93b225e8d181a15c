"""Chains whose targets are too far or too near."""

from dataclasses import replace

import numpy as np

from ik_addon.solve import Goal, OutOfReach, Problem, Solution, Status, solve
from ik_addon.solve.maths.numbers import MANY
from ik_addon.solve.problem import FARTHEST, FULL, Floats, goal_of, target_for
from tests.fuzz.verdict import assert_valid
from tests.solve.chains import aim, for_each, inner_radius, lengths_of, make_chains, reached, repeated, unit

BONES = (1, 2, 3, 7)


def far(bones: int, pose: str = "bent") -> Problem:
    rng = np.random.default_rng(bones)
    problem = make_chains(rng, 200, bones, pose, uneven=True)
    away = unit(rng.normal(size=(200, 3))) * rng.uniform(1.01, 3.0, (200, 1))
    return replace(problem, goal=Goal(problem.joints[:, 0] + away))


def ray(problem: Problem, distances: Floats) -> Problem:
    """Return copies of a problem's first member, with targets at distances along a line from the root."""
    root = problem.joints[0, 0]
    return repeated(problem, root + distances[:, None] * unit(problem.goal.target[0] - root))


def along(problem: Problem, solution: Solution) -> Floats:
    """Return the distance of the tips from the original roots, along the line to the target."""
    line = unit(problem.goal.target - problem.joints[:, 0])
    return np.asarray(((solution.joints[:, -1] - problem.joints[:, 0]) * line).sum(axis=1))


@for_each(bones=BONES)
def test_extend_points_straight_at_the_target(bones: int) -> None:
    problem = far(bones)
    solution = solve(problem)
    line = unit(problem.goal.target - problem.joints[:, 0])
    directions = unit(np.diff(solution.joints, axis=1))
    np.testing.assert_allclose(directions, np.broadcast_to(line[:, None], directions.shape), atol=1e-9)
    distance = np.linalg.norm(problem.goal.target - problem.joints[:, 0], axis=1)
    np.testing.assert_allclose(solution.error, distance - 1.0, atol=1e-9)
    assert (solution.status == Status.TOO_FAR).all()
    assert_valid(problem, solution)


@for_each(bones=BONES, softness=(0.0, 0.2))
def test_push_root_arrives_up_to_its_limit(bones: int, softness: float) -> None:
    problem = replace(far(bones), out_of_reach=OutOfReach.PUSH_ROOT, softness=softness)
    solution = solve(problem)
    assert solution.error.max() <= 1e-5
    assert solution.reached.all()
    push = solution.joints[:, 0] - problem.joints[:, 0]
    line = unit(problem.goal.target - problem.joints[:, 0])
    assert np.linalg.norm(np.cross(push, line), axis=1).max() < 1e-12
    assert_valid(problem, solution)

    limited = solve(replace(problem, push_limit=0.1))
    push = np.linalg.norm(limited.joints[:, 0] - problem.joints[:, 0], axis=1)
    assert push.max() <= 0.1 + 1e-12
    np.testing.assert_array_equal(limited.reached, limited.error <= 1e-5)
    assert (limited.status[~limited.reached] == Status.TOO_FAR).all()
    assert (~limited.reached).any()


@for_each(bones=BONES, members=(200, 1))
def test_a_pushed_root_is_never_too_far_or_too_near_at_any_tolerance(bones: int, members: int) -> None:
    problem = replace(far(bones), out_of_reach=OutOfReach.PUSH_ROOT, softness=0.3, tolerance=0.0)
    for first in range(0, 200, members):
        some = slice(first, first + members)
        part = replace(problem, joints=problem.joints[some], frames=problem.frames[some])
        solution = solve(replace(part, goal=Goal(problem.goal.target[some])))
        assert np.isin(solution.status, [Status.REACHED, Status.NOT_CONVERGED]).all()


@for_each(bones=BONES)
def test_push_root_moves_nothing_while_the_target_is_in_reach(bones: int) -> None:
    rng = np.random.default_rng(bones)
    high = 0.99 if bones > 1 else 0.0
    problem = aim(make_chains(rng, 100, bones), rng, 0.0, high)
    solution = solve(replace(problem, out_of_reach=OutOfReach.PUSH_ROOT))
    np.testing.assert_allclose(solution.joints[:, 0], problem.joints[:, 0], atol=1e-12)


@for_each(bones=BONES, softness=(0.0, 0.2))
def test_stretch_arrives(bones: int, softness: float) -> None:
    problem = replace(far(bones), out_of_reach=OutOfReach.STRETCH, softness=softness)
    solution = reached(problem)
    np.testing.assert_allclose(solution.stretch, solution.stretch[:, :1] * np.ones(bones), rtol=1e-12)
    assert (solution.stretch > 1).all()
    assert_valid(problem, solution)


def test_stretch_is_shared_by_weight() -> None:
    problem = replace(far(3), out_of_reach=OutOfReach.STRETCH, stretch_weights=np.array([0.0, 1.0, 0.5]))
    solution = reached(problem)
    np.testing.assert_array_equal(solution.stretch[:, 0], 1.0)
    np.testing.assert_allclose(solution.stretch[:, 1] - 1, 2 * (solution.stretch[:, 2] - 1), rtol=1e-9)
    equal = solve(replace(problem, stretch_weights=np.zeros(3)))
    np.testing.assert_allclose(equal.stretch, solve(replace(problem, stretch_weights=None)).stretch, rtol=1e-12)


@for_each(bones=(1, 2, 3, 6), policy=OutOfReach)
def test_too_near_folds_onto_the_line(bones: int, policy: OutOfReach) -> None:
    rng = np.random.default_rng(bones)
    problem = make_chains(rng, 200, bones, "bent")
    long = rng.integers(bones, size=200)
    segments = np.diff(problem.joints, axis=1)
    segments[np.arange(200), long] *= 2.0 * bones
    joints = problem.joints.copy()
    joints[:, 1:] = joints[:, :1] + np.cumsum(segments, axis=1)
    inner = inner_radius(replace(problem, joints=joints))
    line = unit(rng.normal(size=(200, 3)))
    target = joints[:, 0] + line * (inner * rng.uniform(0.1, 0.9, 200))[:, None]
    problem = replace(problem, joints=joints, goal=Goal(target), out_of_reach=policy)
    solution = solve(problem)
    assert_valid(problem, solution)
    if policy is OutOfReach.PUSH_ROOT:
        assert solution.reached.all()
        assert (((solution.joints[:, 0] - joints[:, 0]) * line).sum(axis=1) < 0).all()
        line = unit(target - solution.joints[:, 0])
    else:
        assert (solution.status == Status.TOO_NEAR).all()
        tip = np.linalg.norm(solution.joints[:, -1] - joints[:, 0], axis=1)
        np.testing.assert_allclose(tip, inner, atol=1e-9)
    side = (unit(np.diff(solution.joints, axis=1)) * line[:, None]).sum(axis=-1)
    expected = np.where(np.arange(bones) == long[:, None], 1.0, -1.0)
    np.testing.assert_allclose(side, expected, atol=1e-9)


@for_each(policy=OutOfReach, softness=(0.0, 0.02, 0.3, 1.0), bones=(2, 4))
def test_the_tip_moves_continuously_and_monotonously(bones: int, softness: float, policy: OutOfReach) -> None:
    distances = np.linspace(0.3, 3.0, 5401)
    problem = ray(make_chains(np.random.default_rng(1), 1, bones), distances)
    problem = replace(problem, softness=softness, out_of_reach=policy, push_limit=0.5, tolerance=1e-10)
    solution = solve(problem)
    tips = along(problem, solution)
    steps = np.diff(tips) / np.diff(distances)
    assert steps.min() > -1e-6
    assert steps.max() < 1 + 1e-6
    np.testing.assert_allclose(solution.error, distances - tips, atol=1e-9)
    np.testing.assert_array_equal(solution.reached, solution.error <= 1e-10)
    if softness > 0 and policy is OutOfReach.EXTEND:
        # The slope is continuous: it is 1 where easing begins and decreases without a jump.
        assert np.abs(np.diff(steps)).max() < 1.2 * 5e-4 / softness
        assert tips.max() < 1.0 + 1e-12
        assert solution.reached[distances < 1 - softness - 1e-9].all()
        eased = distances > 1 - softness + 1e-2
        assert (solution.status[eased] == Status.TOO_FAR).all()
    if policy is OutOfReach.STRETCH:
        np.testing.assert_allclose(solution.error, 0.0, atol=1e-9)
        assert np.diff(solution.stretch, axis=0).min() >= -1e-12
        assert (np.diff(solution.stretch, axis=0) / np.diff(distances)[:, None]).max() < 2.1


def test_softness_keeps_the_knee_from_popping() -> None:
    problem = ray(make_chains(np.random.default_rng(2), 1, 2), np.linspace(0.8, 1.2, 2001))
    knees = [solve(replace(problem, softness=softness)).joints[:, 1] for softness in (0.0, 0.1)]
    hard, soft = (np.linalg.norm(np.diff(own, axis=0), axis=1).max() for own in knees)
    assert soft < 0.3 * hard


def test_targets_for_soft_chains_bring_them_where_they_should() -> None:
    rng = np.random.default_rng(5)
    softness = rng.uniform(size=2000) * rng.choice([0.0, 1e-4, 0.01, 0.3, 1.0], 2000)
    longest = rng.uniform(0.3, 0.9, 2000)
    wanted = 1.0 - np.minimum(2.0 - 2.0 * longest, 1.0) * rng.uniform(size=2000) ** 9  # most are nearly straight
    targets = target_for(wanted, longest, softness)
    off = goal_of(MANY, targets, longest, softness, 0.0, OutOfReach.EXTEND)[0] - wanted
    assert ((np.abs(off) < 2.0 * FULL) | (off < 0.0) & (targets == FARTHEST) & (softness > 0.01)).all()


def test_too_few_passes_are_not_reported_as_out_of_reach() -> None:
    rng = np.random.default_rng(3)
    problem = aim(make_chains(rng, 400, 3, "wild", uneven=True), rng, 0.1, 1.5)
    for policy in (OutOfReach.STRETCH, OutOfReach.PUSH_ROOT):
        problem = replace(problem, softness=0.1, out_of_reach=policy, tolerance=1e-12)
        needed = solve(problem).iterations > 0
        assert needed.sum() > 5
        cut = solve(replace(problem, iterations=0))
        assert (cut.status[needed] == Status.NOT_CONVERGED).all()
        assert (cut.status[~needed] == Status.REACHED).all()


def test_softness_begins_no_nearer_than_the_chain_can_fold() -> None:
    joints = np.array([[[0.0, 0.0, 0.0], [0.0, 0.7, 0.2], [0.0, 0.9, 0.3]]])
    problem = Problem(joints, np.tile(np.eye(3), (1, 2, 1, 1)), Goal(np.array([[1.0, 0.0, 0.0]])), softness=1.0)
    inner, outer = inner_radius(problem)[0], lengths_of(joints).sum()
    distances = np.linspace(0.8 * inner, outer, 1001)
    along_line = along(ray(problem, distances), solve(ray(problem, distances)))
    slopes = np.diff(along_line) / np.diff(distances)
    assert slopes.min() > -1e-6
    assert slopes[np.searchsorted(distances, inner) + 1] > 0.98


def test_no_bone_is_shortened_for_a_soft_target_at_the_root() -> None:
    problem = make_chains(np.random.default_rng(8), 20, 4)
    problem = replace(problem, joints=problem.joints - problem.joints[:, :1])
    for count in (1, 20):  # solved one by one, and as arrays
        some = replace(problem, joints=problem.joints[:count], frames=problem.frames[:count])
        goal = Goal(np.full((count, 3), 3e-13))
        solution = solve(replace(some, goal=goal, out_of_reach=OutOfReach.STRETCH, softness=1.0))
        assert (solution.stretch >= 1.0).all()
        assert solution.reached.all()
