"""Legs whose joints fold to alternate sides keep each joint on its side, whatever the FK pose and the target."""

from dataclasses import replace

import numpy as np
import pytest

from ik_addon.solve import Goal, Limits, OutOfReach, Problem, Solution, solve
from ik_addon.solve.free.folds import place_of
from ik_addon.solve.maths.numbers import ONE
from ik_addon.solve.problem import Floats
from tests.solve.chains import for_each, reached, turn_about

MANY = 60
HINGE = np.array([1.0, 0.0, 0.0])
"""Axis about which a leg that hangs down bends forward: a positive rotation moves its end backward."""
SIGNS = np.array([0.0, 1.0, -1.0])
"""Stifle forward, hock backward."""
LENGTHS = np.array([0.35, 0.35, 0.3])


def posed(angles: Floats, aside: Floats | None = None, lengths: Floats = LENGTHS) -> tuple[Floats, Floats]:
    """Return joints (n+1, 3) and frames (n, 3, 3) of a leg, from its joint angles (n,) about the hinge, and about Y."""
    aside = np.zeros(len(angles)) if aside is None else aside
    joints, frames, turn = [np.zeros(3)], [], np.eye(3)
    at_rest = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    for angle, other, length in zip(angles, aside, lengths, strict=True):
        turn = turn.dot(turn_about(HINGE, -angle)).dot(turn_about(np.array([0.0, 1.0, 0.0]), other))
        frames.append(turn.dot(at_rest))
        joints.append(joints[-1] + turn.dot(np.array([0.0, 0.0, -length])))
    return np.array(joints), np.array(frames)


def folds_of(frames: Floats, shares: Floats) -> Floats:
    """Return the folds (n, 3) of a leg with frames (n, 3, 3), whose hinges follow the bones above."""
    above = np.concatenate([frames[:1], frames[:-1]])
    return np.asarray(above[:, :, 0] * shares[:, None])


def angles_in(solution: Solution, asked: Problem) -> Floats:
    """Return the angles (B, n-1) of joints about their hinges, with the folds' signs."""
    found = solution.rotations @ asked.frames
    steps = np.diff(solution.joints, axis=1)
    hinges = found[:, :-1, :, 0]
    sines = (np.cross(steps[:, :-1], steps[:, 1:]) * hinges).sum(axis=-1)
    return np.asarray(np.arctan2(sines, (steps[:, :-1] * steps[:, 1:]).sum(axis=-1)))


def problem(legs: list[tuple[Floats, Floats]], targets: Floats, shares: Floats = SIGNS, **settings: object) -> Problem:
    joints, frames = (np.array(part) for part in zip(*legs, strict=True))
    folds = np.array([folds_of(own, shares) for own in frames])
    side = frames[:, 0] @ np.array([0.0, 0.0, -1.0])
    return Problem(joints, frames, Goal(targets), bend_side=side, folds=folds, **settings)


def random_legs(seed: int, least: float = -8.0) -> list[tuple[Floats, Floats]]:
    rng = np.random.default_rng(seed)
    bends = np.radians(rng.uniform(least, 70.0, (MANY, 3))) * -SIGNS
    bends[:, 0] = rng.uniform(-0.8, 0.8, MANY)
    return [posed(own, rng.uniform(-0.1, 0.1, 3)) for own in bends]


def directions(count: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(count, 3)) * [0.5, 0.5, 0.1] - [0.0, 0.0, 1.0]
    return np.asarray(found / np.linalg.norm(found, axis=1)[:, None])


@for_each(with_pole=(False, True))
def test_each_joint_stays_on_its_side_down_to_40_percent(with_pole: bool) -> None:
    legs = random_legs(1)
    for share in np.linspace(0.4, 0.9999, 13):
        asked = problem(legs, share * directions(MANY, 2))
        if with_pole:
            asked = replace(asked, goal=Goal(asked.goal.target, pole=np.tile([0.3, -2.0, -0.4], (MANY, 1))))
        solution = solve(asked)
        assert solution.reached.all(), share
        assert np.abs(solution.joints[:, -1] - asked.goal.target).max() < 1e-9
        turned = angles_in(solution, asked) * SIGNS[1:]
        assert turned.min() > -1e-3, "a joint that FK bends to the wrong side may be straight, but not wrong"


def test_an_fk_pose_that_bends_the_right_way_stays() -> None:
    legs = random_legs(3, least=0.0)
    asked = problem(legs, np.array([joints[-1] for joints, _ in legs]))
    solution = solve(asked)
    assert np.abs(solution.joints - asked.joints).max() < 1e-9
    assert np.abs(solution.rotations - np.eye(3)).max() < 1e-7


def test_joints_fold_in_proportion_as_the_target_comes_nearer() -> None:
    shares = np.array([0.0, 0.5, -0.25])
    leg = posed(2.0 * np.arctan(-shares * 0.2))
    for size in (0.95, 0.8, 0.6, 0.45):
        asked = problem([leg], np.array([[0.0, 0.0, -size]]), shares)
        angle = np.tan(angles_in(solve(asked), asked)[0] / 2.0)
        assert angle[0] / angle[1] == pytest.approx(-2.0, rel=1e-6)


def test_the_pose_changes_smoothly_with_the_target() -> None:
    leg = posed(np.array([0.3, -0.9, 0.6]), np.array([0.1, 0.05, -0.1]))
    sizes = np.linspace(0.34, 0.999, 3001)
    asked = problem([leg] * len(sizes), sizes[:, None] * np.array([0.1, -0.2, -0.97]))
    solution = reached(asked)
    steps = np.abs(np.diff(solution.joints, axis=0)).max(axis=(1, 2))
    assert steps.max() < 0.01
    assert steps[sizes[1:] < 0.99].max() < 0.002


def test_joints_pass_through_straight_without_a_flip() -> None:
    """The FK hock goes from 6 degrees of flexion to 6 of hyperextension, and the stifle does the same later."""
    times = np.linspace(-1.0, 1.0, 401)
    bends = [np.radians([0.0, -6.0 * (t + 0.3), 6.0 * (t - 0.2)]) for t in times]
    for share in (0.8, 0.97, 0.995):
        asked = problem([posed(bend) for bend in bends], np.tile([0.0, 0.0, -share], (len(times), 1)))
        solution = reached(asked)
        assert (angles_in(solution, asked) * SIGNS[1:]).min() > -1e-6
        assert np.abs(np.diff(solution.joints, axis=0)).max() < 0.004


def test_a_pole_rolls_the_leg_and_changes_no_fold() -> None:
    legs = random_legs(5, least=2.0)
    asked = problem(legs, 0.7 * directions(MANY, 6))
    free = solve(asked)
    rng = np.random.default_rng(8)
    pole = rng.normal(size=(MANY, 3)) * 2.0
    towards = solve(replace(asked, goal=Goal(asked.goal.target, pole=pole)))
    assert np.abs(angles_in(free, asked) - angles_in(towards, asked)).max() < 1e-7
    line = towards.joints[:, -1] / np.linalg.norm(towards.joints[:, -1], axis=1)[:, None]
    stifle = towards.joints[:, 1]
    across = [v - (v * line).sum(axis=1)[:, None] * line for v in (stifle, pole)]
    cosine = (across[0] * across[1]).sum(axis=1) / np.prod([np.linalg.norm(v, axis=1) for v in across], axis=0)
    assert cosine.min() > 0.95, "but for what the leg is bent aside"


def test_a_joint_without_a_share_is_rigid() -> None:
    """In a thigh and a shin of two bones each, only the knee bends."""
    lengths = np.array([0.25, 0.25, 0.25, 0.25])
    leg = posed(np.radians([5.0, 3.0, -20.0, 2.0]), lengths=lengths)
    shares = np.array([0.0, 0.0, 1.0, 0.0])
    for size in (0.99, 0.8, 0.5, 0.1):
        asked = problem([leg], np.array([[0.0, 0.1, -size]]), shares)
        solution = reached(asked)
        assert np.degrees(angles_in(solution, asked)[0, [0, 2]]) == pytest.approx([-3.0, -2.0], abs=1e-6)
        same = solution.rotations[0, [0, 2]] - solution.rotations[0, [1, 3]]
        assert np.abs(same).max() < 1e-9, "the bones of one segment turn as one"


@for_each(size=(0.0, 0.1, 0.3))
def test_a_target_nearer_than_the_folds_allow_is_still_reached(size: float) -> None:
    asked = problem(random_legs(16), size * directions(MANY, 17))
    assert solve(asked).reached.all()


def test_a_folding_leg_stretches_and_is_pushed_like_other_chains() -> None:
    legs = random_legs(18)
    for policy in (OutOfReach.STRETCH, OutOfReach.PUSH_ROOT):
        reached(problem(legs, 1.1 * directions(MANY, 19), out_of_reach=policy, softness=0.1))


def test_a_fold_that_is_not_finite_makes_only_its_own_member_invalid() -> None:
    asked = problem(random_legs(20)[:3], 0.7 * directions(3, 21))
    assert asked.folds is not None
    asked.folds[1, 2, 0] = np.nan
    assert solve(asked).reached.tolist() == [True, False, True]


# ---- within limits


def limited(asked: Problem, ranges: Floats, root: Floats | None = None) -> Problem:
    """Return a problem whose joints have limits about X in degrees (n, 2), and turn little about Z and Y."""
    cones = np.concatenate([np.radians(ranges), np.tile(np.radians([-5.0, 5.0]), (len(ranges), 1))], axis=1)
    cones[0] = np.radians([-170.0, 170.0, -170.0, 170.0])
    rest = np.tile(np.eye(3), (len(ranges), 1, 1))
    root = posed(np.zeros(3))[1][0] if root is None else root
    upright = np.tile(root, (len(asked.joints), 1, 1))
    twist = np.tile(np.radians([-20.0, 20.0]), (len(ranges), 1))
    twist[0] = np.pi * np.array([-1.0, 1.0])
    return replace(asked, limits=Limits(rest, upright, cones, twist))


def swings(solution: Solution, asked: Problem) -> Floats:
    """Return the swings (B, n-1, 2) in degrees of joints below the root, about X and Z from rest."""
    frames = solution.rotations @ asked.frames
    joints = frames[:, :-1].swapaxes(-1, -2) @ frames[:, 1:]
    y = joints[..., 1]
    return np.degrees(np.stack([np.arctan2(y[..., 2], y[..., 1]), np.arcsin(-y[..., 0])], axis=-1))


STIFLE, HOCK = (-2.0, 150.0), (-150.0, 2.0)


@for_each(with_pole=(False, True))
def test_limits_that_do_not_bind_do_not_change_the_folds(with_pole: bool) -> None:
    legs = [posed(np.array([0.2, -a, b])) for a, b in np.random.default_rng(30).uniform(0.1, 1.2, (MANY, 2))]
    free = problem(legs, 0.7 * directions(MANY, 31))
    if with_pole:
        free = replace(free, goal=Goal(free.goal.target, pole=np.tile([0.3, -2.0, -0.4], (MANY, 1))))
    asked = limited(free, np.array([(0.0, 0.0), STIFLE, HOCK]))
    solution, other = solve(asked), solve(free)
    assert solution.reached.all()
    assert np.abs(solution.joints - other.joints).max() < 1e-9
    assert np.abs(solution.rotations - other.rotations).max() < 1e-7


def test_a_joint_stays_at_its_limit_while_the_others_fold_on() -> None:
    leg = posed(np.array([0.2, -0.6, 0.6]))
    sizes = np.linspace(0.95, 0.54, 300)
    asked = problem([leg] * len(sizes), sizes[:, None] * np.array([0.05, -0.1, -1.0]))
    asked = limited(asked, np.array([(0.0, 0.0), (0.0, 60.0), (-150.0, 0.0)]))
    solution = reached(asked)
    stifle = swings(solution, asked)[:, 0, 0]
    assert stifle.max() == pytest.approx(60.0, abs=1e-4)
    assert solution.at_limit[:, 1].tolist() == (stifle > 60.0 - 1e-3).tolist()
    assert solution.at_limit[-1, 1]
    assert np.abs(np.diff(solution.joints, axis=0)).max() < 0.01


def test_limits_hold_and_joints_keep_their_sides_for_all_targets() -> None:
    legs = random_legs(32)
    for size in (0.35, 0.5, 0.8, 0.99, 1.1):
        asked = limited(problem(legs, size * directions(MANY, 33)), np.array([(0.0, 0.0), STIFLE, HOCK]))
        solution = solve(asked)
        found = swings(solution, asked)
        assert found[:, 0, 0].min() > -2.001
        assert found[:, 1, 0].max() < 2.001
        assert np.abs(found[..., 1]).max() < 5.001
        if 0.4 < size < 1.0:
            assert np.count_nonzero(solution.reached) >= 0.95 * MANY


def test_a_hip_at_its_limit_leaves_the_rest_to_the_search() -> None:
    legs = [posed(np.array([0.0, -0.5, 0.5]))] * 20
    asked = problem(legs, 0.8 * directions(20, 34))
    asked = limited(asked, np.array([(0.0, 0.0), (-10.0, 150.0), (-150.0, 10.0)]))
    assert asked.limits is not None
    cones = asked.limits.cones.copy()
    cones[0] = np.radians([-25.0, 25.0, -40.0, 40.0])
    asked = replace(asked, limits=replace(asked.limits, cones=cones))
    solution = solve(asked)
    frames = solution.rotations[:, 0] @ asked.frames[:, 0]
    leans = np.degrees(np.arccos(np.clip((frames[:, :, 1] * posed(np.zeros(3))[1][0, :, 1]).sum(axis=1), -1, 1)))
    assert leans.max() < 40.001
    assert solution.reached.any()


def test_rounding_does_not_choose_the_side_of_a_jump() -> None:
    for way in (1.0, -1.0):
        for jump in (0.4 + 1e-13 * np.arange(-9.0, 9.0)).tolist():

            def gap_at(place: float, way: float = way, jump: float = jump) -> float:
                return way * (0.3 if way * (place - 1.0) < jump else -0.2)

            assert way * (place_of(ONE, gap_at) - 1.0) < jump
