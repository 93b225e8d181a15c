"""Knees that are hinges at an angle to the upper bone: limbs that straighten don't roll for it."""

from dataclasses import replace

import numpy as np

from benchmarks.cases import FREE, LOCKED, Rig, degrees
from ik_addon.solve import Goal, Problem, Solution, pole_angle, solve
from ik_addon.solve.limb.two_bones import ROLL, Hinge
from ik_addon.solve.maths.rotations import matrices
from ik_addon.solve.maths.turns import Frame
from ik_addon.solve.maths.vectors import Vector
from ik_addon.solve.problem import Floats

from ..chains import for_each, member, unit
from .test_limb import roll_of

AXES = ("x", "z")


def arm(axis: str, *, bend: float = 0.3, aside: float = 0.08, sign: float = 1.0) -> Rig:
    """Return two bones, at rest bent about an axis of the lower one and led aside about the other, in radians."""
    half = 0.5 * np.array([bend, aside] if axis == "x" else [aside, bend]) * sign
    turn = np.array([np.sqrt(1.0 - np.sin(half) @ np.sin(half)), np.sin(half[0]), 0.0, np.sin(half[1])])
    frames = np.stack([np.eye(3), matrices(turn[:, None])[..., 0]])
    span = sorted((-sign * bend, sign * 2.3))
    knee = [span if axis == name else LOCKED for name in ("x", "y", "z")]
    ranges = np.stack([degrees(FREE, FREE, FREE), np.array(knee)])
    return Rig(np.array([-1, 0]), np.array([[0.0, 0.0, 0.0], [0.0, 0.5, 0.0]]), frames, np.full(2, 0.5), ranges)


def reaching(rig: Rig, reaches: Floats, pole: Floats) -> tuple[Problem, Solution]:
    """Return the problem of bringing a limb from rest to targets at distances (B,) along X, and its solution."""
    targets = np.zeros((len(reaches), 1, 3))
    targets[:, 0, 0] = reaches
    turns = np.zeros((len(reaches), 2, 4))
    turns[..., 0] = 1.0
    problem = rig.problem(turns, targets, tolerance=1e-9)
    goal = replace(problem.goal, pole=np.broadcast_to(pole, (len(reaches), 3)), pole_angle=np.zeros(len(reaches)))
    problem = replace(problem, goal=goal)
    return problem, solve(problem)


def farthest(rig: Rig) -> float:
    """Return how far the tip of a limb gets from its root."""
    problem, solution = reaching(rig, np.array([2.0]), np.array([0.0, 0.0, -3.0]))
    return float(np.linalg.norm(solution.joints[0, 2] - problem.joints[0, 0]))


def roll_at(problem: Problem, solution: Solution, i: int) -> float:
    """Return the angle in radians from the pole's side to the knee of a member; 0 if the limb is straight."""
    return roll_of(member(problem, i), solution.members(np.arange(len(solution.joints)) == i)) or 0.0


def turns_between(frames: Floats) -> Floats:
    """Return the angles in degrees between consecutive frames (B, 3, 3)."""
    cosine = (np.einsum("bij,bij->b", frames[1:], frames[:-1]) - 1.0) / 2.0
    return np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))


@for_each(axis=AXES, sign=(1.0, -1.0), aside=(0.08, -0.02, 0.0))
def test_a_limb_that_straightens_hardly_rolls(axis: str, sign: float, aside: float) -> None:
    """Not at the end of its reach either, nor where the target goes on beyond it."""
    rig = arm(axis, aside=aside, sign=sign)
    far = farthest(rig)
    bends = np.linspace(0.5, 0.0, 400) ** 2  # the bend goes by the root of what is left of the reach
    reaches = np.concatenate([far - bends, far + np.array([1e-9, 1e-7, 1e-4, 0.3])])
    problem, solution = reaching(rig, reaches, np.array([0.0, 0.0, -3.0]))
    frames = solution.rotations[:, 0] @ problem.frames[:, 0]
    steps = turns_between(frames)
    assert (solution.iterations == 0).all()
    assert steps[-4:].max() < 0.05
    assert steps.max() < 1.5
    last = reaches > far - 0.01
    assert turns_between(frames[last][[0, -1]]).max() < 25.0
    # Without a hinge that leads aside, the knee points to the pole all the time.
    off = np.array([roll_at(problem, solution, i) for i in range(len(reaches) - 4)])
    assert np.abs(off[0]) < 1e-7
    assert (np.abs(off).max() < 1e-7) == (aside == 0.0)


def test_a_well_bent_knee_points_to_its_pole_exactly() -> None:
    for aside in (0.02, 0.08, 0.15):
        rig = arm("x", aside=aside)
        reaches = np.linspace(0.3, 0.85, 20)
        problem, solution = reaching(rig, reaches, np.array([0.3, 1.0, -3.0]))
        for i in range(len(reaches)):
            assert abs(roll_at(problem, solution, i)) < 1e-7


@for_each(axis=AXES)
def test_the_pole_angle_of_a_pose_keeps_it(axis: str) -> None:
    rng = np.random.default_rng(5)
    for sign in (1.0, -1.0):
        rig = arm(axis, sign=sign)
        far = farthest(rig)
        reaches = far - 0.4 * rng.uniform(size=40) ** 4
        pole = unit(rng.normal(size=3)) * 3.0
        problem, solution = reaching(rig, reaches, pole)
        frames = solution.rotations @ problem.frames
        hinge = hinge_of(rig)
        assert hinge is not None
        other = np.broadcast_to(unit(rng.normal(size=3)) * 3.0, (40, 3))
        angles = pole_angle(solution.joints, frames, solution.joints[:, 2], other, hinge=hinge)
        again = replace(problem, goal=Goal(solution.joints[:, 2], other, angles))
        np.testing.assert_allclose(solve(again).joints, solution.joints, atol=1e-6)
        turned = solve(again).rotations @ problem.frames
        np.testing.assert_allclose(turned, frames, atol=1e-5)


def hinge_of(rig: Rig) -> Hinge | None:
    x, y, z = (tuple(axis) for axis in rig.rest()[1].T.tolist())
    about_x, _, about_z = (tuple(range_) for range_ in rig.ranges[1].tolist())
    return Hinge.of((0.0, 1.0, 0.0), (x, y, z), (about_x, about_z))


def test_a_knee_that_bends_to_both_sides_or_about_both_axes_is_no_hinge() -> None:
    up: Vector = (0.0, 1.0, 0.0)
    rest: Frame = ((1.0, 0.0, 0.0), up, (0.0, 0.0, 1.0))
    locked, way = (0.0, 0.0), (-0.1, 2.0)
    assert Hinge.of(up, rest, (way, locked)) == ((1.0, 0.0, 0.0), ROLL)
    assert Hinge.of(up, rest, ((-2.0, 0.1), locked)) == ((-1.0, 0.0, 0.0), ROLL)
    assert Hinge.of(up, rest, (locked, way)) == ((0.0, 0.0, 1.0), ROLL)
    assert Hinge.of(up, rest, (locked, locked)) is None
    assert Hinge.of(up, rest, (way, way)) is None
    assert Hinge.of(up, rest, ((-1.01 * ROLL, 2.0), locked)) is None


def test_a_limb_keeps_its_rest_pose_however_its_hinge_lies() -> None:
    for aside in (0.05, 0.2, 0.6):
        rig = arm("x", bend=0.1, aside=aside)
        joints, _ = rig.pose(np.tile([1.0, 0.0, 0.0, 0.0], (1, 2, 1)))
        problem, _ = reaching(rig, np.ones(1), np.zeros(3))
        pole = joints[:, 1] + 10.0 * (joints[:, 1] - 0.5 * joints[:, 2])
        at_rest = replace(problem, goal=Goal(joints[:, 2], pole, np.zeros(1)))
        np.testing.assert_allclose(solve(at_rest).joints, joints, atol=1e-7)
