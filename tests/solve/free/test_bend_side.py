"""Chains with a bend side stay on it, whatever their FK pose."""

from dataclasses import replace

import numpy as np

from ik_addon.solve import Goal, Limits, Problem, Solution, Solver, solve
from ik_addon.solve.problem import Floats
from tests.solve.chains import for_each, reached, turn_about

FRONT = np.array([0.0, -1.0, 0.0])
MANY = 40


def leg(
    bend: float, aside: float = 0.0, roll: float = 0.0, lengths: tuple[float, ...] = (1.0, 1.0)
) -> tuple[Floats, Floats]:
    """Return joints (n+1, 3) and frames (n, 3, 3) of a leg that hangs down and bends forward by an angle in radians.

    Its hinge is turned by `aside` about the leg; its root bone is rolled by `roll`.
    """
    hinge = np.array([np.cos(aside), np.sin(aside), 0.0])
    frame = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]).T
    frame = turn_about(frame[:, 1], roll).dot(frame)
    joints, frames = [np.zeros(3)], []
    for i, length in enumerate(lengths):
        turn = turn_about(hinge, bend * i / (len(lengths) - 1))
        frames.append(turn.dot(frame))
        joints.append(joints[-1] + turn.dot(np.array([0.0, 0.0, -length])))
    return np.array(joints), np.array(frames)


def problem(legs: list[tuple[Floats, Floats]], shares: list[float], **settings: object) -> Problem:
    """Return legs with targets on their lines, at shares of the way to the tip, and with the side to the front."""
    joints, frames = (np.array(part) for part in zip(*legs, strict=True))
    target = joints[:, -1] * np.array(shares)[:, None]
    return Problem(joints, frames, Goal(target), bend_side=np.tile(FRONT, (len(legs), 1)), **settings)


def fronts(solution: Solution) -> Floats:
    """Return how far (B,) the inner joints are in front of the line from root to tip."""
    line = solution.joints[:, -1] - solution.joints[:, 0]
    line = line / np.linalg.norm(line, axis=1)[:, None]
    middle = solution.joints[:, 1:-1].mean(axis=1)
    middle = middle - (middle * line).sum(axis=1)[:, None] * line
    side = FRONT - (line * FRONT).sum(axis=1)[:, None] * line
    return np.asarray((middle * side).sum(axis=1))


def degrees(angle: float) -> float:
    return float(np.radians(angle))


@for_each(kind=("two bones", "even bend", "limb"), pole=(False, True))
def test_a_chain_never_leaves_its_side(kind: str, pole: bool) -> None:
    rng = np.random.default_rng(7)
    lengths = (0.6, 0.5, 0.4, 0.5) if kind == "even bend" else (1.0, 0.8)
    bends = [0.0, *rng.uniform(degrees(-40), degrees(60), MANY), *rng.uniform(-1e-4, 1e-4, MANY)]
    legs = [leg(b, rng.uniform(-0.9, 0.9), 0.0, lengths) for b in bends]
    shares = rng.uniform(0.4, 0.999, len(legs)).tolist()
    asked = problem(legs, shares)
    asked = limited(asked, 177.0, 177.0) if kind == "limb" else asked
    if pole:
        goal = Goal(asked.goal.target, pole=np.tile(3.0 * FRONT, (len(legs), 1)))
        asked = Problem(asked.joints, asked.frames, goal, bend_side=asked.bend_side, limits=asked.limits)
    solution = reached(asked)
    assert fronts(solution).min() > 0.0
    assert solution.rotations[:, 0, 0, 0].min() > 0.3, "the leg is not turned round"


@for_each(solver=(Solver.AUTO, Solver.EVEN_BEND))
def test_without_a_side_these_legs_bend_the_wrong_way(solver: Solver) -> None:
    asked = problem([leg(degrees(-5.0))], [0.9], solver=solver)
    assert fronts(solve(asked))[0] > 0.0
    without = Problem(asked.joints, asked.frames, asked.goal, solver=solver)
    assert fronts(solve(without))[0] < 0.0


@for_each(kind=("two bones", "even bend", "limb"))
def test_an_fk_pose_that_bends_the_right_way_stays(kind: str) -> None:
    rng = np.random.default_rng(3)
    lengths = (0.6, 0.5, 0.4, 0.5) if kind == "even bend" else (1.0, 0.8)
    legs = [leg(degrees(b), rng.uniform(-0.9, 0.9), 0.0, lengths) for b in rng.uniform(2.0, 100.0, MANY)]
    asked = problem(legs, [1.0] * MANY)
    asked = limited(asked, 177.0, 177.0) if kind == "limb" else asked
    solution = solve(asked)
    assert np.abs(solution.joints - asked.joints).max() < 1e-9
    assert np.abs(solution.rotations - np.eye(3)).max() < 1e-8


@for_each(share=(0.9, 0.98, 0.999), aside=(0.0, 0.02), pole=(False, True))
def test_the_knee_passes_through_straight_without_a_flip(share: float, aside: float, pole: bool) -> None:
    """The FK knee goes from 6 degrees of flexion to 6 of hyperextension, with some of its bend to the side."""
    steps = np.linspace(degrees(6.0), degrees(-6.0), 241)
    legs = []
    for bend in steps:
        size = float(np.hypot(bend, aside))
        legs.append(leg(size, float(np.arctan2(aside, bend)), 0.5))
    asked = problem(legs, [share] * len(legs))
    goal = Goal(asked.goal.target, pole=np.tile([0.4, -3.0, -1.0], (len(legs), 1)) if pole else None)
    solution = solve(Problem(asked.joints, asked.frames, goal, bend_side=asked.bend_side))
    knees = np.abs(np.diff(solution.joints[:, 1], axis=0)).max()
    frames = solution.rotations @ asked.frames
    turns = np.abs(np.diff(frames, axis=0)).max()
    assert knees < 0.06
    assert turns < 0.2
    assert fronts(solution).min() > 0.0


def test_the_bend_plane_is_that_of_fk_if_fk_bends_clearly() -> None:
    asked = problem([leg(degrees(20.0), degrees(35.0))], [0.8])
    joints = solve(asked).joints[0]
    normal = np.cross(asked.joints[0, 1], asked.joints[0, 2])
    assert abs(normal.dot(joints[1])) < 1e-9


def test_a_side_that_is_not_finite_makes_only_its_own_member_invalid() -> None:
    asked = problem([leg(0.2)] * 3, [0.9] * 3)
    sides = np.array([FRONT, [np.nan, 0.0, 0.0], FRONT])
    solution = solve(Problem(asked.joints, asked.frames, asked.goal, bend_side=sides))
    assert solution.reached.tolist() == [True, False, True]


# ---- with limits, or another solver

ROLLED = np.radians(90.0)
"""Roll by which a straight leg bends aside if its side is ignored."""
LONG = (0.6, 0.5, 0.4, 0.5)


def limited(asked: Problem, widest: float, twists: float = 60.0) -> Problem:
    """Return a problem whose joints turn by at most so many degrees in all directions, the hip by more, and twist."""
    count, bones = asked.frames.shape[:2]
    rest = np.tile(np.eye(3), (count, bones, 1, 1))
    rest[:, 0] = asked.frames[:, 0]
    cones = np.tile(np.radians([-widest, widest, -widest, widest]), (bones, 1))
    cones[0] = np.radians([-170.0, 170.0, -170.0, 170.0])
    twist = np.tile(np.radians([-twists, twists]), (bones, 1))
    return replace(asked, limits=Limits(rest, np.tile(np.eye(3), (count, 1, 1)), cones, twist))


@for_each(with_pole=(False, True), turns=(False, True))
def test_longer_chains_with_limits_or_an_orientation_stay_on_their_side(with_pole: bool, turns: bool) -> None:
    rng = np.random.default_rng(20)
    bends = [0.0, *rng.uniform(degrees(-20), degrees(40), MANY)]
    asked = problem([leg(b, rng.uniform(-0.3, 0.3), ROLLED, LONG) for b in bends], rng.uniform(0.7, 0.99, MANY + 1))
    pole = np.tile(3.0 * FRONT, (MANY + 1, 1)) if with_pole else None
    asked = replace(asked, goal=Goal(asked.goal.target, pole, rotation=asked.frames[:, -1] if turns else None))
    solution = solve(limited(asked, 100.0))
    assert np.count_nonzero(solution.reached) >= 0.95 * MANY
    # The orientation decides where the last bone points.
    line = solution.joints[:, -2 if turns else -1]
    line = line / np.linalg.norm(line, axis=1)[:, None]
    middle = solution.joints[:, 1:-1].mean(axis=1)
    if turns:
        middle = solution.joints[:, 1:-2].mean(axis=1)
    across = FRONT - (line * FRONT).sum(axis=1)[:, None] * line
    assert ((middle * across).sum(axis=1)[solution.reached] > -1e-3).all()


def test_within_limits_an_fk_pose_that_bends_the_right_way_stays() -> None:
    rng = np.random.default_rng(21)
    legs = [leg(degrees(b), 0.0, 0.0, LONG) for b in rng.uniform(3.0, 80.0, MANY)]
    asked = limited(problem(legs, [1.0] * MANY), 100.0)
    solution = solve(asked)
    assert np.abs(solution.joints - asked.joints).max() < 1e-7
    assert np.abs(solution.rotations - np.eye(3)).max() < 1e-6


@for_each(members=(1, 20))
def test_a_locked_joint_keeps_its_rotation(members: int) -> None:
    asked = limited(problem([leg(degrees(30), 0.0, ROLLED, LONG)] * members, [0.7] * members), 100.0)
    assert asked.limits is not None
    asked.limits.cones[2] = asked.limits.twist[2] = 0.0
    before, after = ((f[:, 1].swapaxes(1, 2) @ f[:, 2]) for f in (asked.frames, solve(asked).rotations @ asked.frames))
    np.testing.assert_allclose(after, before, atol=1e-9)


@for_each(members=(1, 20))
def test_a_straight_chain_led_by_its_tip_bends_to_its_side(members: int) -> None:
    asked = problem([leg(0.0, 0.0, ROLLED, LONG)] * members, [0.6] * members, solver=Solver.FABRIK)
    assert fronts(solve(asked)).min() > 0.05
    assert fronts(solve(replace(asked, bend_side=None))).max() < 0.01, "it goes aside, by its roll"


@for_each(bend=(0.0, 12.0, -12.0), lengths=((1.0, 0.8), LONG))
def test_a_planar_chain_bends_to_its_side(bend: float, lengths: tuple[float, ...]) -> None:
    asked = problem([leg(degrees(bend), 0.0, 0.0, lengths)] * 3, [0.9] * 3, plane=np.tile([1.0, 0.0, 0.0], (3, 1)))
    assert fronts(solve(asked)).min() > 0.05
    other = replace(asked, bend_side=np.tile(-FRONT, (3, 1)))
    assert fronts(solve(other)).max() < -0.05
