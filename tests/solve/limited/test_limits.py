"""Joint limits: the cones themselves, that limits hold while the target is reached, and what settles the pose."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.cases import CHAINS, Rig, bone_steps, bow, chain, degrees, random_ranges, smooth_turns, tree_y
from ik_addon.solve import Goal, Limits, Problem, Status, solve
from ik_addon.solve.maths.cones import Cone, cone_of, joint_rotation, nearest_direction, nearest_swing, swing_twist
from ik_addon.solve.maths.rotations import dot, matrices, multiply
from ik_addon.solve.problem import Floats
from tests.fuzz.verdict import assert_valid

from ..chains import clamp, for_each, random_rotations, reached, solve_together, unit, violation

CONES = {
    "round": (-30, 30, -30, 30),
    "asymmetric": (-10, 80, -20, 40),
    "thin": (-1, 150, -90, 2),
    "hinge": (0, 150, 0, 0),
    "wide": (-170, 180, -120, 179),
    "locked": (0, 0, 0, 0),
    "strip": (-40, 20, -np.inf, np.inf),
    "half": (0, 90, -45, 45),
    "free": (-np.inf, np.inf, -np.inf, np.inf),
}


def cone(name: str, twist: tuple[float, float] = (-50, 20)) -> Cone:
    return cone_of(np.radians([CONES[name]]), np.radians([twist]))


def random_quaternions(seed: int, count: int) -> Floats:
    return unit(np.random.default_rng(seed).normal(size=(count, 4))).T


def directions(q: Floats) -> Floats:
    return matrices(q)[:, 1]


def test_swing_times_twist_is_the_rotation() -> None:
    q = random_quaternions(1, 1000)
    again = joint_rotation(*swing_twist(q))
    assert np.abs(np.abs(dot(q[1:], again[1:]) + q[0] * again[0]) - 1.0).max() < 1e-14


@for_each(axis=(0, 2))
def test_a_rotation_about_one_axis_is_limited_by_its_angle(axis: int) -> None:
    for angle in np.radians([-170.0, -40.0, 10.0, 179.0]):
        q = np.zeros((4, 1))
        q[0], q[1 + axis] = np.cos(angle / 2), np.sin(angle / 2)
        ranges = np.zeros((1, 4))
        ranges[0, axis : axis + 2] = min(angle, 0.0), max(angle, 0.0)
        assert violation(q, cone_of(ranges, np.zeros((1, 2)))) < 1e-12
        assert violation(q, cone_of(ranges * 0.9, np.zeros((1, 2)))) == pytest.approx(abs(angle) * 0.1, abs=1e-9)


@for_each(name=CONES)
def test_clamping_stays_inside_and_leaves_inner_swings_unchanged(name: str) -> None:
    q = random_quaternions(3, 2000)
    inside = clamp(q, cone(name))
    assert violation(inside, cone(name)).max() < 1e-7
    again = clamp(inside, cone(name))
    assert np.abs(directions(again) - directions(inside)).max() < 1e-7
    swing, twist = swing_twist(inside)
    shrunk = joint_rotation(0.5 * swing, 0.5 * twist)
    assert np.array_equal(nearest_swing(0.5 * swing, cone(name)), 0.5 * swing)
    assert violation(shrunk, cone(name)).max() < 1e-7


@for_each(name=("round", "asymmetric", "thin", "hinge", "wide", "half"))
def test_the_clamped_swing_is_the_nearest_in_the_cone(name: str) -> None:
    limits = cone(name)
    swing, _ = swing_twist(random_quaternions(4, 300))
    near = nearest_swing(swing, limits)
    angle = np.linspace(0.0, 2.0 * np.pi, 3601)
    rim = np.stack([np.cos(angle), np.sin(angle)])
    rim = rim * np.where(rim < 0.0, limits.low, limits.high)
    distance = np.hypot(*(swing - near))
    of_rim = np.hypot(swing[0][:, None] - rim[0], swing[1][:, None] - rim[1]).min(axis=1)
    moved = distance > 0.0
    assert moved.any()
    # The samples of the rim are slightly apart.
    assert (distance - of_rim)[moved].max() < 1e-9
    assert (of_rim - distance)[moved].max() < 1e-3


def test_a_direction_behind_the_cone_goes_to_the_side_nearer_round_the_back() -> None:
    # 175 degrees down is 5 degrees from straight back and 95 from the upper side, which opens to 90.
    down = np.array([[-np.sin(np.radians(175.0) / 2)], [0.0]])
    up = nearest_direction(down, cone_of(np.radians([[-10.0, 90.0, -10.0, 10.0]]), np.zeros((1, 2))))
    np.testing.assert_allclose(up[:, 0], [np.sin(np.radians(45.0)), 0.0], atol=1e-9)


@for_each(name=(*CHAINS, *range(4)), bones=(2, 3, 5, 9, 20), start=("rest", "random"))
def test_targets_within_the_limits_are_reached(name: str | int, bones: int, start: str) -> None:
    if name == "hinges" and bones > 5:
        return  # a leg or a finger has no more than five hinges
    seeded = np.random.default_rng([bones, name]) if isinstance(name, int) else None
    rig = chain(bones, CHAINS[str(name)] if seeded is None else random_ranges(seeded, bones))
    rng = np.random.default_rng(rig.bones)
    joints, _ = rig.pose(rig.turns_inside(rng, 30))
    turns = rig.at_rest(30) if start == "rest" else rig.turns_inside(rng, 30)
    problem = rig.problem(turns, joints[:, rig.bones :], tolerance=1e-6)
    solution = solve(problem)
    assert (solution.error <= 1e-3).mean() >= 0.999
    assert (solution.error <= 1e-6).mean() >= 0.99
    assert_valid(problem, solution)


def test_a_pose_outside_the_limits_is_brought_inside() -> None:
    rig, wide = chain(4, CHAINS["limits-30"]), chain(4, CHAINS["limits-90"])
    rng = np.random.default_rng(6)
    turns = wide.turns_inside(rng, 100)
    joints, _ = rig.pose(rig.turns_inside(rng, 100))
    problem = rig.problem(turns, joints[:, 4:])
    solution = solve(problem)
    assert_valid(problem, solution)
    assert solution.reached.all()


@for_each(bones=(5, 9), name=("limits-30", "limits-45", "limits-asym"))
def test_a_smooth_path_makes_a_smooth_motion(name: str, bones: int) -> None:
    rig = chain(bones, CHAINS[name])
    for seed in range(2):
        joints, _ = rig.pose(smooth_turns(np.random.default_rng(seed), rig, 500))
        problem = rig.problem(rig.at_rest(500), joints[:, bones:])
        solution = solve(problem)
        steps = bone_steps(solution.rotations @ problem.frames)
        assert solution.reached.all()
        assert steps.max() < 30.0
        assert (steps < 10.0).mean() > 0.99


@for_each(bones=(2, 3, 5, 9), name=("limits-90", "hinges"))
def test_straight_chains_bend_for_targets_on_their_own_line(name: str, bones: int) -> None:
    rig = chain(bones, CHAINS[name])
    if name == "hinges":
        # The root must turn both ways, or nothing on the line could be reached.
        rig.ranges[0, 0] = np.radians([-90, 90])
    share = np.linspace(0.75, 0.999, 40)
    reached(rig.problem(rig.at_rest(40), share[:, None, None] * [0.0, 1.0, 0.0]))


@for_each(name=("limits-30", "limits-90", "limits-asym", "limits-tight", "hinges"))
def test_out_of_reach_the_tip_comes_as_near_as_from_any_other_pose(name: str) -> None:
    rig = chain(3, CHAINS[name])
    rng = np.random.default_rng(9)
    targets = unit(rng.normal(size=(25, 1, 3))) * rng.uniform(0.2, 1.6, (25, 1, 1))
    starts = [rig.at_rest(25), *(rig.turns_inside(rng, 25) for _ in range(8))]
    solution, *others = solve_together(*(rig.problem(turns, targets) for turns in starts))
    best = np.min([other.error for other in others], axis=0)
    assert ((solution.error - best) < 1e-3).mean() >= 0.99


def test_joints_at_a_limit_are_reported() -> None:
    rig = chain(3, CHAINS["limits-30"])
    solution = solve(rig.problem(rig.at_rest(1), np.array([[[0.8, -0.4, 0.3]]])))
    assert solution.at_limit.all()
    assert solution.status[0] == Status.LIMITED
    solution = solve(rig.problem(rig.at_rest(1), np.array([[[0.05, 0.99, 0.05]]])))
    assert not solution.at_limit.any()


def test_a_stiff_joint_turns_less() -> None:
    rig = chain(5, CHAINS["limits-90"])
    targets = np.array([[[0.4, 0.6, 0.2]]])
    stiffness = np.zeros((5, 3))
    plain = solve(rig.problem(rig.at_rest(1), targets))
    stiffness[1] = 0.95
    stiff = reached(rig.problem(rig.at_rest(1), targets, stiffness=stiffness))
    bent = [np.linalg.norm(s.rotations[0, 1] - s.rotations[0, 0]) for s in (plain, stiff)]
    assert bent[1] < 0.7 * bent[0]


@for_each(pole=([1.0, 0.4, 0.0], [-1.0, 0.4, 0.2], [0.9, 0.4, -0.4], [0.2, 0.4, 1.0]))
def test_a_limited_chain_follows_its_pole_even_if_its_target_is_out_of_reach(pole: list[float]) -> None:
    rig = chain(5, degrees((-40, 40), (-40, 40), (-40, 40)))
    bent = rig.turns(np.stack([np.full((1, 5), -0.5), np.zeros((1, 5))]), np.zeros((1, 5)))
    problem = rig.problem(bent, np.array([[[0.0, 0.5, 0.0]]]))
    solution = solve(replace(problem, goal=replace(problem.goal, pole=np.array([pole]))))
    assert solution.status[0] == Status.LIMITED
    middle, across = solution.joints[0, 3] * [1, 0, 1], np.array(pole) * [1, 0, 1]
    assert middle @ across > 0.95 * np.linalg.norm(middle) * np.linalg.norm(across)


@pytest.mark.parametrize(
    ("cones", "words"),
    [
        ((0.5, -0.5, 0, 0), "joint 1: .* about X"),
        ((0, 0, np.nan, 1), "joint 1: .* about Z"),
        ((0.2, 1, 0, 0), "rest pose"),
    ],
)
def test_malformed_limits_are_refused_by_name(cones: tuple[float, ...], words: str) -> None:
    rig = chain(3, CHAINS["limits-30"])
    problem = rig.problem(rig.at_rest(2), np.zeros((2, 1, 3)))
    assert problem.limits is not None
    bad = problem.limits.cones.copy()
    bad[1] = cones
    with pytest.raises(ValueError, match=words):
        solve(replace(problem, limits=replace(problem.limits, cones=bad)))


def test_limits_are_measured_in_the_frame_of_the_chains_parent() -> None:
    rng = np.random.default_rng(13)
    rig = chain(3, CHAINS["limits-asym"])
    joints, _ = rig.pose(rig.turns_inside(rng, 30))
    rest, rest_frames = rig.pose(rig.at_rest(30))
    turn = matrices(multiply(random_quaternions(14, 1), random_quaternions(15, 1)))[:, :, 0]
    plain = solve(rig.problem(rig.at_rest(30), joints[:, 3:]))
    limits = Limits(rig.rest(), np.tile(turn, (30, 1, 1)), rig.ranges[:, [0, 2]].reshape(-1, 4), rig.ranges[:, 1])
    moved = solve(
        Problem(5.0 + 2.0 * rest @ turn.T, turn @ rest_frames, Goal(5.0 + 2.0 * joints[:, 3] @ turn.T), limits=limits)
    )
    np.testing.assert_allclose(moved.joints, 5.0 + 2.0 * plain.joints @ turn.T, atol=1e-7)
    assert moved.reached.all()


def test_members_with_their_own_rest_poses_are_solved_as_if_alone() -> None:
    rig = chain(3, CHAINS["limits-asym"])
    rests = matrices(random_quaternions(16, 12).reshape(4, 4, 3)).transpose(2, 3, 0, 1)
    limits = [Limits(rest, np.eye(3)[None], rig.ranges[:, [0, 2]].reshape(-1, 4), rig.ranges[:, 1]) for rest in rests]
    one = rig.problem(rig.at_rest(1), np.array([[[0.2, 0.6, 0.3]]]))
    alone = [solve(replace(one, limits=own)).rotations[0] for own in limits]
    four = rig.problem(rig.at_rest(4), np.tile([[[0.2, 0.6, 0.3]]], (4, 1, 1)))
    root = np.tile(np.eye(3), (4, 1, 1))
    together = solve(replace(four, limits=replace(limits[0], rest=rests, root=root)))
    np.testing.assert_allclose(together.rotations, alone, atol=1e-9)
    assert not np.allclose(together.rotations[0], together.rotations[1])
    rests[1, 0] = np.nan
    assert solve(replace(four, limits=replace(limits[0], rest=rests, root=root))).status[1] == Status.INVALID


def test_mixing_mirrored_and_upright_bones_in_a_chain_is_refused() -> None:
    rig = chain(3, CHAINS["limits-30"])
    problem = rig.problem(rig.at_rest(3), np.tile([[[0.1, 0.9, 0.1]]], (3, 1, 1)))
    assert problem.limits is not None
    frames, root = problem.frames.copy(), problem.limits.root.copy()
    frames[0, 2, :, 0] *= -1.0
    frames[1, :, :, 0] *= -1.0
    root[1, :, 0] *= -1.0
    solution = solve(replace(problem, frames=frames, limits=replace(problem.limits, root=root)))
    assert solution.status.tolist() == [Status.INVALID, Status.REACHED, Status.REACHED]


# ---- poses that a target out of reach leaves undetermined are settled: rounding in the input gives the same pose


COUNT, HAIR = 16, 1e-7
FREE = (-np.inf, np.inf)
BALL = degrees((-60, 60), (-60, 60), (-60, 60))
JOINT = degrees((-60, 60), (-30, 30), (-60, 60))
SOME = np.array([[FREE] * 3, [(-0.3, 0.2), FREE, FREE], [(-0.3, 0.2), FREE, FREE], [FREE] * 3])


def moved(problem: Problem, rng: np.random.Generator, hair: float = HAIR) -> Problem:
    """Return a problem whose numbers differ slightly, as if they had been sampled with different rounding."""

    def turn(frames: Floats) -> Floats:
        turns = np.stack([np.ones(frames.shape[:-2]), *(0.5 * hair * rng.normal(size=(3, *frames.shape[:-2])))])
        return np.asarray(frames @ np.moveaxis(matrices(unit(turns.T).T), (0, 1), (-2, -1)))

    def shift(places: Floats) -> Floats:
        return np.asarray(places + hair * rng.normal(size=places.shape))

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
    count = 12 * COUNT if len(rig.tips) > 1 else COUNT
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


def test_different_rounding_gives_the_same_pose_where_a_place_is_reached_but_not_its_pole_and_orientation() -> None:
    rng, rig, count = np.random.default_rng(0), RIGS["bent, some limits"](), 4 * COUNT
    turns = rig.turns_inside(rng, count, 0.6)
    joints, _ = rig.pose(rig.turns_inside(rng, count))
    problem = rig.problem(turns, joints[:, rig.bones :], tolerance=1e-6)
    goal = replace(problem.goal, pole=2.0 * rng.normal(size=(count, 3)), rotation=random_rotations(rng, count))
    problem = replace(problem, goal=goal)
    one, other = solve_together(problem, moved(problem, rng, 1e-13))
    assert one.reached.all()
    # Two poses may be equally good.
    assert np.count_nonzero(np.abs(one.joints - other.joints).max(axis=(1, 2)) > 1e-6) <= 1
