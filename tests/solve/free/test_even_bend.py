import warnings
from dataclasses import replace

import numpy as np

from ik_addon.solve import Goal, Problem, Solution, Solver, Status, pole_angle, solve
from tests.fuzz.verdict import assert_valid
from tests.solve.chains import POSES, aim, bends, for_each, make_chains, on_path, reached


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
    assert_valid(problem, solution)


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
    solution = reached(Problem(joints, frames, goal, solver=solver))
    assert np.abs(solution.joints - joints).max() < 1e-6


# ---- bends that are shared by stiffness, or led from the root or from the tip


SETTINGS = {
    "lead 1": {"bend_lead": 1.0},
    "lead -1": {"bend_lead": -1.0},
    "stiff root": {"stiffness": np.repeat([[0.99], [0.9], [0.5], [0.0], [0.0], [0.0]], 3, axis=1)},
    "both": {"bend_lead": 0.4, "stiffness": np.repeat([[0.0], [0.9], [0.0], [0.9], [0.0], [0.3]], 3, axis=1)},
}


def problems(pose: str, count: int = 100, low: float = 0.05, high: float = 0.98, *, pole: bool = False) -> Problem:
    rng = np.random.default_rng([len(pose), pole])
    problem = aim(make_chains(rng, count, 6, pose), rng, low, high, pole=pole)
    return replace(problem, solver=Solver.EVEN_BEND, tolerance=1e-6)


@for_each(name=SETTINGS, pose=POSES, pole=(False, True))
def test_targets_are_reached(name: str, pose: str, pole: bool) -> None:
    problem = replace(problems(pose, 100, 0.0, 0.9999, pole=pole), **SETTINGS[name])
    solution = reached(problem)
    assert solution.iterations.max() <= 30
    assert_valid(problem, solution)


@for_each(pose=POSES)
def test_the_pose_changes_continuously_from_equal_shares(pose: str) -> None:
    problem = problems(pose)
    even = solve(problem).joints
    np.testing.assert_allclose(solve(replace(problem, stiffness=np.full((6, 3), 0.5))).joints, even, atol=1e-5)
    for setting in ({"bend_lead": 1e-6}, {"stiffness": 1e-6 * np.arange(18).reshape(6, 3) / 18.0}):
        np.testing.assert_allclose(solve(replace(problem, **setting)).joints, even, atol=1e-4)
    few = problems(pose, 12)
    some = [solve(replace(few, bend_lead=lead)).joints for lead in np.linspace(0.0, 1.0, 41)]
    assert np.median(np.abs(np.diff(some, axis=0)).max(axis=(2, 3))) < 0.02


def test_stiff_joints_of_a_straight_chain_take_their_shares() -> None:
    """This holds unless the target is near the chain's root."""
    problem = problems("straight", 200, 0.5, 0.98)
    stiffness = np.repeat([[0.0], [0.75], [0.5], [0.0], [0.5], [0.0]], 3, axis=1)
    stiff, even = (bends(solve(one).joints) for one in (replace(problem, stiffness=stiffness), problem))
    share = stiff / even
    expected = (1.0 - stiffness[1:, 0]) * np.ones_like(share)
    np.testing.assert_allclose(share / share[:, :1], expected / expected[:, :1], rtol=0.1)


@for_each(axis=(0, 2))
def test_only_stiffness_about_the_bend_axis_counts(axis: int) -> None:
    """Straight chains bend about their X axes: stiffness about other axes has no effect."""
    problem = problems("straight", low=0.5)
    stiffness = np.zeros((6, 3))
    stiffness[:3, axis] = 0.9
    stiff, even = (bends(solve(one).joints) for one in (replace(problem, stiffness=stiffness), problem))
    if axis == 0:
        assert (stiff[:, :2].sum(axis=1) < 0.5 * even[:, :2].sum(axis=1)).all()
    else:
        np.testing.assert_allclose(stiff, even, atol=1e-6)


def test_the_bend_can_be_led_from_either_end() -> None:
    problem = problems("straight", low=0.5)
    to_tip, to_root = (bends(solve(replace(problem, bend_lead=lead)).joints) for lead in (1.0, -1.0))
    assert (to_tip[:, 0] < 0.2 * to_tip.sum(axis=1) / 5).all()
    assert (to_root[:, -1] < 0.2 * to_root.sum(axis=1) / 5).all()
    assert (np.diff(to_tip[:, :4], axis=1) > 0.0).mean() > 0.95
    assert (np.diff(to_root[:, 1:], axis=1) < 0.0).mean() > 0.95


@for_each(name=SETTINGS, solver=(Solver.FABRIK, Solver.TWO_BONE))
def test_other_solvers_ignore_shares(name: str, solver: Solver) -> None:
    bones = 2 if solver is Solver.TWO_BONE else 6
    rng = np.random.default_rng(3)
    problem = replace(aim(make_chains(rng, 50, bones), rng, 0.1, 0.9), solver=solver)
    settings = {key: value[:bones] if np.ndim(value) else value for key, value in SETTINGS[name].items()}
    np.testing.assert_allclose(solve(replace(problem, **settings)).joints, solve(problem).joints, atol=1e-9)


@for_each(name=SETTINGS)
def test_bones_of_zero_length_have_no_share(name: str) -> None:
    problem = problems("bent", 50)
    at = [0, 1, 1, 2, 3, 4, 5, 6]  # a bone of zero length after the first
    joints, frames = problem.joints[:, at], problem.frames[:, [0, 0, 1, 2, 3, 4, 5]]
    settings = {
        key: value[[0, 0, 1, 2, 3, 4, 5]] if isinstance(value, np.ndarray) else value
        for key, value in SETTINGS[name].items()
    }
    one = solve(replace(problem, **SETTINGS[name]))
    other = solve(replace(problem, joints=joints, frames=frames, **settings))
    np.testing.assert_allclose(other.joints[:, [0, 1, 3, 4, 5, 6, 7]], one.joints, atol=1e-6)
