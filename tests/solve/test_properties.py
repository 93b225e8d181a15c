"""Properties of all solvers: identity at the FK tip, symmetry, independence of the batch, roll, planes."""

from dataclasses import replace

import numpy as np

from ik_addon.solve import Goal, OutOfReach, Problem, Solver, pole_angle, solve
from ik_addon.solve.problem import Floats
from tests.fuzz.verdict import assert_valid
from tests.solve.chains import (
    POSES,
    aim,
    assert_mirrored,
    for_each,
    inner_radius,
    lengths_of,
    make_chains,
    random_rotations,
    reached,
    unit,
)

ITERATIVE = (Solver.EVEN_BEND, Solver.FABRIK)
SHAPES = [(Solver.TWO_BONE, 2), *((solver, bones) for solver in ITERATIVE for bones in (2, 3, 9, 20))]


def problems(solver: Solver, bones: int, pose: str, *, pole: bool, count: int = 24) -> Problem:
    rng = np.random.default_rng([bones, POSES.index(pose), pole])
    problem = aim(make_chains(rng, count, bones, pose, uneven=True), rng, 0.05, 1.1, pole=pole)
    return replace(problem, solver=solver, softness=0.05, tolerance=1e-10)


@for_each(shape=SHAPES, pose=POSES, pole=(False, True))
def test_a_target_at_the_tip_keeps_the_pose(shape: tuple[Solver, int], pose: str, pole: bool) -> None:
    """With a pole, too, at the angle that the pose has to it."""
    solver, bones = shape
    rng = np.random.default_rng(1)
    problem = replace(make_chains(rng, 200, bones, pose, uneven=True), solver=solver)
    if pole:
        target, towards = problem.goal.target, problem.joints[:, 0] + rng.normal(size=(200, 3))
        angle = pole_angle(problem.joints, problem.frames, target, towards)
        problem = replace(problem, goal=Goal(target, towards, angle))
    solution = solve(problem)
    np.testing.assert_allclose(solution.rotations, np.broadcast_to(np.eye(3), solution.rotations.shape), atol=1e-9)
    np.testing.assert_allclose(solution.joints, problem.joints, atol=1e-9)
    assert solution.reached.all()
    assert (solution.iterations == 0).all()


@for_each(shape=SHAPES, pose=POSES, pole=(False, True), policy=OutOfReach)
def test_mirrored_input_gives_mirrored_output(
    shape: tuple[Solver, int], pose: str, pole: bool, policy: OutOfReach
) -> None:
    solver, bones = shape
    assert_mirrored(replace(problems(solver, bones, pose, pole=pole), out_of_reach=policy))


@for_each(
    solver=ITERATIVE, bones=(2, 3, 5, 9, 20, 50), ends=((0.0, 0.9999), (0.0, 0.001), (0.978, 0.9999), (0.999999, 1.0))
)
def test_every_reachable_target_is_reached_in_few_passes(solver: Solver, bones: int, ends: tuple[float, float]) -> None:
    low, high = ends
    rng = np.random.default_rng(bones)
    for pose, uneven in zip(POSES, (False, True) * 3, strict=True):
        problem = aim(make_chains(rng, min(40, 400 // bones), bones, pose, uneven=uneven), rng, low, high)
        for tolerance in (1e-4, 1e-9):
            asked = replace(problem, solver=solver, tolerance=tolerance)
            solution = solve(asked)
            assert solution.reached.all(), (pose, uneven)
            assert solution.error.max() <= tolerance * (1.0 + 1e-9) + 1e-15
            assert solution.iterations.max() <= (30 if tolerance > 1e-9 or solver is Solver.FABRIK else 40)
            assert_valid(asked, solution)


@for_each(solver=(Solver.TWO_BONE, *ITERATIVE))
def test_singular_cases_are_mirrored_too(solver: Solver) -> None:
    """The target collinear in front, and exactly behind; a bone whose X axis is along the chain."""
    joints = np.zeros((4, 3, 3))
    joints[:, :, 1] = [0.0, 0.4, 1.0]
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    frames = np.stack([np.eye(3), np.eye(3), turn, turn])[:, None].repeat(2, axis=1)
    target = np.array([[0.0, 0.7, 0.0], [0.0, -0.7, 0.0]] * 2)
    flip = np.diag([-1.0, 1.0, 1.0])
    for mirror in (flip, np.diag([1.0, 1.0, -1.0])):
        one = solve(Problem(joints, frames, Goal(target), solver=solver))
        other = solve(Problem(joints @ mirror, mirror @ frames @ flip, Goal(target @ mirror), solver=solver))
        np.testing.assert_allclose(other.joints, one.joints @ mirror, atol=1e-12)


@for_each(shape=SHAPES, pose=POSES, pole=(False, True))
def test_moving_the_input_moves_the_output(shape: tuple[Solver, int], pose: str, pole: bool) -> None:
    solver, bones = shape
    problem = problems(solver, bones, pose, pole=pole)
    rng = np.random.default_rng(2)
    turn, shift = random_rotations(rng, 1)[0], rng.normal(size=3)
    goal = problem.goal
    one = solve(problem)
    for scale in (1e-6, 1.0, 1e6):

        def moved(points: Floats, scale: float = scale) -> Floats:
            return np.asarray(points @ turn.T + shift) * scale

        there = replace(
            problem,
            joints=moved(problem.joints),
            frames=turn @ problem.frames,
            goal=Goal(moved(goal.target), None if goal.pole is None else moved(goal.pole), goal.pole_angle),
        )
        other = solve(there)
        np.testing.assert_allclose(other.joints, moved(one.joints), atol=1e-7 * scale)
        np.testing.assert_allclose(other.rotations, turn @ one.rotations @ turn.T, atol=1e-7)
        np.testing.assert_allclose(other.error, one.error * scale, atol=1e-8 * scale)


@for_each(shape=SHAPES, pose=POSES)
def test_the_chain_bends_towards_its_pole(shape: tuple[Solver, int], pose: str) -> None:
    solver, bones = shape
    problem = problems(solver, bones, pose, pole=True, count=300)
    problem = replace(problem, softness=0.0)
    solution = solve(problem)
    assert problem.goal.pole is not None
    assert problem.goal.pole_angle is not None
    clear = solution.reached & (np.linalg.norm(problem.goal.target - problem.joints[:, 0], axis=1) < 0.999)
    line = unit(problem.goal.target - problem.joints[:, 0])
    lengths = lengths_of(solution.joints)
    middles = (solution.joints[:, 1:] + solution.joints[:, :-1]) / 2
    centroid = (middles * lengths[..., None]).sum(axis=1) / lengths.sum(axis=1)[:, None] - solution.joints[:, 0]
    side = centroid - (centroid * line).sum(axis=1)[:, None] * line
    pole = problem.goal.pole - problem.joints[:, 0]
    wanted = unit(pole - (pole * line).sum(axis=1)[:, None] * line)
    angle = problem.goal.pole_angle[:, None]
    wanted = np.cos(angle) * wanted + np.sin(angle) * np.cross(line, wanted)
    clear &= np.linalg.norm(side, axis=1) > 1e-3
    assert clear.sum() > 150
    assert np.degrees(np.linalg.norm(unit(side[clear]) - wanted[clear], axis=1)).max() < 0.01


def test_pole_angle_is_right_handed_about_the_line_to_the_target() -> None:
    joints = np.array([[[0.0, 0, 0], [0, 1, -0.5], [0, 2, 0]]])
    frames = np.tile(np.eye(3), (1, 2, 1, 1))
    for pole, degrees in (([0, 1, -5], 0), ([5, 1, 0], 90), ([-5, 1, 0], -90)):
        angle = pole_angle(joints, frames, np.array([[0.0, 2, 0]]), np.array([pole], dtype=float))
        np.testing.assert_allclose(np.degrees(angle), degrees, atol=1e-9)
    nothing = pole_angle(joints * np.nan, frames, np.array([[0.0, 2, 0]]), np.array([[0.0, 5, 0]]))
    assert nothing[0] == 0.0


@for_each(bones=(2, 3, 6))
def test_a_bone_that_does_not_inherit_starts_from_its_own_pose(bones: int) -> None:
    rng = np.random.default_rng(4)
    problem = aim(make_chains(rng, 100, bones, "bent"), rng, 0.2, 0.95)
    inherits = np.ones(bones, dtype=bool)
    inherits[1] = False
    chained, apart = solve(problem), solve(replace(problem, inherits=inherits))
    np.testing.assert_allclose(apart.joints, chained.joints, atol=1e-12)
    np.testing.assert_allclose(apart.rotations[:, 0], chained.rotations[:, 0], atol=1e-9)
    # The smallest rotation between two directions has an axis perpendicular to both.
    rotation = apart.rotations[:, 1]
    axis = np.stack([rotation[:, 2, 1] - rotation[:, 1, 2], rotation[:, 0, 2] - rotation[:, 2, 0]], axis=-1)
    axis = np.concatenate([axis, (rotation[:, 1, 0] - rotation[:, 0, 1])[:, None]], axis=1)
    assert np.abs((axis * unit(np.diff(problem.joints, axis=1))[:, 1]).sum(axis=1)).max() < 1e-12


@for_each(bones=(2, 3, 8))
def test_bones_turn_only_by_hinges(bones: int) -> None:
    """There is no twist along the chain: from bone to bone, a planar chain turns only about its own normal."""
    rng = np.random.default_rng(5)
    problem = aim(make_chains(rng, 200, bones, "bent"), rng, 0.1, 0.99)
    solution = solve(problem)
    normals = np.einsum("bnij,bnj->bni", solution.rotations, problem.frames[..., 0])
    np.testing.assert_allclose(normals, np.broadcast_to(normals[:, :1], normals.shape), atol=1e-9)


@for_each(counts=((3, 2), (5, 2), (4, 1), (6, 4)))
def test_bones_of_zero_length_follow_the_others(counts: tuple[int, int]) -> None:
    bones, real = counts
    rng = np.random.default_rng(6)
    plain = aim(make_chains(rng, 50, real, "bent", uneven=True), rng, 0.2, 0.95)
    kept = np.sort(rng.permutation(bones)[:real])
    joints, frames = [plain.joints[:, 0]], []
    for i in range(bones):
        own = int(np.searchsorted(kept, i))
        frames.append(plain.frames[:, min(own, real - 1)])
        joints.append(plain.joints[:, own + 1] if i in kept else joints[-1])
    problem = replace(plain, joints=np.stack(joints, axis=1), frames=np.stack(frames, axis=1))
    expected, solution = solve(plain), solve(problem)
    np.testing.assert_allclose(solution.rotations[:, kept], expected.rotations, atol=1e-9)
    np.testing.assert_allclose(solution.error, expected.error, atol=1e-12)
    assert (solution.iterations == expected.iterations).all()
    for i in set(range(bones)) - set(kept.tolist()):
        before = solution.rotations[:, i - 1] if i > 0 else np.broadcast_to(np.eye(3), (50, 3, 3))
        np.testing.assert_allclose(solution.rotations[:, i], before, atol=1e-9)


# ---- chains that stay in a plane


MEMBERS = 300


def random_problem(seed: int, bones: int, pole: bool = False, flat: bool = False) -> Problem:
    """Return chains in random poses, with random planes and targets whose projections are within reach."""
    rng = np.random.default_rng(seed)
    problem = make_chains(rng, MEMBERS, bones, "wild", uneven=True)
    normal = unit(rng.normal(size=(MEMBERS, 3)))
    root, joints = problem.joints[:, :1], problem.joints
    if flat:
        joints = joints - ((joints - root) @ normal[:, :, None]) * normal[:, None]
    problem = replace(problem, joints=joints, plane=normal, tolerance=1e-9)
    inner, outer = inner_radius(problem), lengths_of(joints).sum(axis=1)
    distance = inner + rng.uniform(0.05, 0.95, size=MEMBERS) * (outer - inner)
    direction = unit(np.cross(normal, rng.normal(size=(MEMBERS, 3))))
    target = root[:, 0] + distance[:, None] * direction + rng.normal(size=(MEMBERS, 1)) * normal
    poles = root[:, 0] + 2.0 * rng.normal(size=(MEMBERS, 3)) if pole else None
    return replace(problem, goal=Goal(target, poles))


@for_each(pole=(False, True), bones=(1, 2, 3, 7))
def test_a_planar_chain_stays_in_its_plane_and_reaches_the_projected_target(bones: int, pole: bool) -> None:
    problem = random_problem(bones, bones, pole)
    if bones == 1:
        problem = replace(problem, tolerance=10.0)
    solution = reached(problem)
    assert_valid(problem, solution)
    if bones > 1:
        missed = problem.goal.target - solution.joints[:, -1]
        assert np.abs(np.cross(missed, problem.plane)).max() < 1e-7


@for_each(bones=(2, 5))
def test_a_flat_chain_turns_only_about_the_normal(bones: int) -> None:
    problem = random_problem(20 + bones, bones, pole=True, flat=True)
    assert problem.plane is not None
    solution = solve(problem)
    kept = (solution.rotations @ problem.plane[:, None, :, None])[..., 0]
    assert np.abs(kept - problem.plane[:, None]).max() < 1e-9


def test_a_pole_decides_the_side_of_straight_and_bent_chains() -> None:
    for flat in (True, False):
        problem = random_problem(31, 2, pole=True, flat=flat)
        if flat:
            line = problem.joints[:, 1:2] - problem.joints[:, :1]
            joints = problem.joints[:, :1] + line * np.arange(3)[None, :, None]
            problem = replace(problem, joints=joints, frames=problem.frames[:, [0, 0]])
            reach = np.linalg.norm(line[:, 0], axis=1, keepdims=True)
            aside = np.cross(problem.plane, line[:, 0])
            problem = replace(problem, goal=replace(problem.goal, target=joints[:, 0] + line[:, 0] + 0.7 * aside / 1.0))
            assert (np.linalg.norm(problem.goal.target - joints[:, 0], axis=1) < 2.0 * reach[:, 0]).all()
        solution = solve(problem)
        root, elbow = solution.joints[:, 0], solution.joints[:, 1]
        line = solution.joints[:, 2] - root
        assert problem.goal.pole is not None
        assert problem.plane is not None
        sides = [(np.cross(line, point - root) * problem.plane).sum(axis=1) for point in (elbow, problem.goal.pole)]
        assert solution.reached.all()
        assert (np.sign(sides[0]) == np.sign(sides[1])).all()


@for_each(bones=(2, 3, 4, 9))
def test_an_orientation_is_missed_by_no_more_than_its_place_needs(bones: int) -> None:
    rng = np.random.default_rng(bones)
    problem = aim(make_chains(rng, 200, bones, uneven=True), rng, 0.9, 1.1)
    wanted, lengths = random_rotations(rng, 200), lengths_of(problem.joints)
    solution = solve(replace(problem, goal=replace(problem.goal, rotation=wanted)))
    place, tip = problem.goal.target - problem.joints[:, 0], problem.joints[:, -1] - problem.joints[:, -2]
    tip = (wanted @ problem.frames[:, -1].swapaxes(1, 2) @ tip[:, :, None])[..., 0]
    away, size, rest = np.linalg.norm(place, axis=1), lengths[:, -1], lengths[:, :-1].sum(axis=1)
    assert np.abs(solution.error - np.maximum(away - size - rest, 0.0)).max() < 1e-6
    # The angle between the last bone and the line to the target: as wanted, and at most, by the law of cosines.
    angles = (unit(tip) * unit(place)).sum(axis=1), (size**2 + away**2 - rest**2) / (2.0 * size * away)
    apart, most = np.arccos(np.clip(angles, -1.0, 1.0))
    off = np.trace(wanted.swapaxes(1, 2) @ solution.rotations[:, -1] @ problem.frames[:, -1], axis1=1, axis2=2)
    needed = np.abs(apart - most) if bones == 2 else np.maximum(apart - most, 0.0)
    assert (needed > 0.1).mean() > 0.5
    assert np.abs(np.arccos(np.clip(off / 2.0 - 0.5, -1.0, 1.0)) - needed)[needed > 0.0].max() < 1e-6
