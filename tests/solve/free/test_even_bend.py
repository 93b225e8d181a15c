from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from ik_addon.solve import Goal, Problem, Solution, Solver, Status, pole_angle, solve
from tests.solve.chains import POSES, aim, bends, check_consistent, for_each, make_chains, on_path


def even_bend(problem: Problem, tolerance: float = 1e-4, iterations: int = 200) -> Solution:
    return solve(replace(problem, solver=Solver.EVEN_BEND, tolerance=tolerance, iterations=iterations))


@for_each(bones=(2, 3, 6, 12))
def test_inner_reach_of_a_chain_with_one_long_bone(bones: int) -> None:
    rng = np.random.default_rng(200 + bones)
    for pose in POSES:
        problem = make_chains(rng, 300, bones, pose)
        long = rng.integers(bones, size=300)
        segments = np.diff(problem.joints, axis=1)
        segments[np.arange(300), long] *= bones * 1.2
        segments /= np.linalg.norm(segments, axis=-1).sum(axis=1)[:, None, None]
        joints = problem.joints.copy()
        joints[:, 1:] = joints[:, :1] + np.cumsum(segments, axis=1)
        problem = replace(problem, joints=joints)
        for low, high in ((0.0, 0.0), (0.0, 1e-6), (0.0, 0.1), (0.0, 1.0)):
            solution = even_bend(aim(problem, rng, low, high))
            assert solution.reached.all(), (pose, low, high)


@for_each(bones=(1, 200, 1000))
def test_any_number_of_bones(bones: int) -> None:
    rng = np.random.default_rng(5)
    low, high = (0.1, 0.99) if bones > 1 else (0.0, 0.0)
    problem = aim(make_chains(rng, 5, bones, "bent"), rng, low, high)
    solution = even_bend(problem)
    assert solution.reached.all()
    check_consistent(problem, solution)


@for_each(bones=(2, 3, 7, 12))
def test_a_straight_chain_bends_about_x_for_targets_on_its_own_line(bones: int) -> None:
    joints = np.zeros((3, bones + 1, 3))
    joints[:, :, 1] = np.linspace(0.0, 1.0, bones + 1)
    frames = np.tile(np.eye(3), (3, bones, 1, 1))
    target = np.array([[0.0, 0.6, 0.0], [0.0, 1e-4, 0.0], [0.0, -0.6, 0.0]])
    solution = even_bend(Problem(joints, frames, Goal(target)), tolerance=1e-8)
    assert solution.reached.all()
    np.testing.assert_allclose(solution.joints[:, :, 0], 0.0, atol=1e-12)
    segments = np.diff(solution.joints, axis=1)
    turns = np.cross(segments[:, :-1], segments[:, 1:])[..., 0]
    assert (turns > 1e-6).all()
    # In front the middle moves towards -Z; behind, the whole chain has turned about X.
    assert solution.joints[0, 1:-1, 2].max() < -0.01
    assert solution.joints[2, 1:-1, 2].min() > 0.01


@for_each(bones=(5, 12, 24))
def test_a_straight_chain_bends_as_an_arc(bones: int) -> None:
    rng = np.random.default_rng(6)
    problem = aim(make_chains(rng, 300, bones, "straight"), rng, 0.2, 0.98)
    solution = even_bend(problem, tolerance=1e-6)
    segments, angles = np.diff(solution.joints, axis=1), bends(solution.joints)
    assert (angles.max(axis=1) < 2.0 * np.median(angles, axis=1)).all()
    normals = np.cross(segments[:, :-1], segments[:, 1:])
    assert ((normals[:, :-1] * normals[:, 1:]).sum(axis=-1) > 0).all()


@for_each(pose=("straight", "bent", "wavy"), bones=(2, 3, 5, 9, 24))
def test_motion_is_continuous_on_a_smooth_path(bones: int, pose: str) -> None:
    time = np.linspace(0.0, 2 * np.pi, 2001)
    sides = np.stack([0.55 * np.sin(3 * time), 0.45 + 0.2 * np.cos(2 * time), 0.55 * np.sin(2 * time + 0.5)], axis=-1)
    one = make_chains(np.random.default_rng(7), 1, bones, pose)
    solution = even_bend(on_path(one, sides), tolerance=1e-5)
    assert solution.reached.all()
    change = np.linalg.norm(np.diff(solution.rotations, axis=0), axis=(-2, -1)) / np.sqrt(8)
    assert np.degrees(2 * np.arcsin(change)).max() < 2.0


@for_each(members=(1, 40))
def test_a_chain_folded_onto_its_root_points_to_the_pole(members: int) -> None:
    """Its tip is exactly on the root, so there is no line about which the chain could roll."""
    root = np.array([170.17151771572986, -22.64798138814826, 71.71966036714092])
    middle = np.array([root[0], -22.576303653417636, 71.71246860513091])
    tip = np.array([root[0], -22.50462591868701, root[2]])
    pole = np.array([170.04672696212938, -22.583459949606002, 71.86467147116696])
    problem = Problem(
        joints=np.tile(np.stack([root, middle, tip]), (members, 1, 1)),
        frames=np.tile(np.eye(3), (members, 2, 1, 1)),
        goal=Goal(np.tile(root, (members, 1)), pole=np.tile(pole, (members, 1))),
        solver=Solver.EVEN_BEND,
        tolerance=1e-10,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = solve(problem)
    assert (solution.status == Status.REACHED).all()
    side = (pole - root) * [1.0, 0.0, 1.0]
    towards = (solution.joints[:, 1] - root) / np.linalg.norm(middle - root)
    np.testing.assert_allclose(towards, np.tile(side / np.linalg.norm(side), (members, 1)), atol=1e-6)
    turned = solution.rotations.swapaxes(-1, -2) @ solution.rotations
    np.testing.assert_allclose(turned, np.broadcast_to(np.eye(3), turned.shape), atol=1e-12)


@for_each(solver=(Solver.AUTO, Solver.FABRIK), pole=(False, True))
def test_a_closed_chain_with_its_tip_at_the_target_keeps_its_pose(solver: Solver, pole: bool) -> None:
    rng = np.random.default_rng(1)
    angles = np.linspace(0.0, 2.0 * np.pi, 6)
    ring = np.stack([np.cos(angles), np.sin(angles), 0.1 * np.sin(2.0 * angles)], axis=-1)
    near = 1e-8 * rng.normal(size=(20, 3))
    joints = ring - ring[0] + rng.normal(size=(20, 1, 3))
    frames = np.tile(np.eye(3), (20, 5, 1, 1))
    goal, towards = Goal(joints[:, -1] + near), joints[:, 0] + rng.normal(size=(20, 3))
    if pole:
        goal = replace(goal, pole=towards, pole_angle=pole_angle(joints, frames, goal.target, towards))
    solution = solve(Problem(joints, frames, goal, solver=solver))
    assert solution.reached.all()
    assert np.abs(solution.joints - joints).max() < 1e-6
