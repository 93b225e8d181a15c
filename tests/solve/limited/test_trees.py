"""Trees: several goals on bones that they share."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.cases import LOCKED, Rig, chain, degrees, tree_hand, tree_y
from ik_addon.solve import Goal, Problem, Status, solve
from ik_addon.solve.maths.cones import Cone, cone_of
from ik_addon.solve.maths.rotations import multiply, norm, quaternions
from ik_addon.solve.problem import Floats
from tests.fuzz.verdict import assert_valid

from ..chains import clamp, for_each, reached, unit

BALL = degrees((-60, 60), (-60, 60), (-60, 60))


def reachable(rig: Rig, count: int, seed: int) -> tuple[Floats, Floats]:
    """Return random joint rotations to start from, and reachable targets."""
    rng = np.random.default_rng(seed)
    joints, _ = rig.pose(rig.turns_inside(rng, count))
    return rig.turns_inside(rng, count), joints[:, rig.bones :]


@for_each(name=("y", "hand"), limited=(True, False), start=("rest", "random"))
def test_all_ends_reach_their_targets(name: str, limited: bool, start: str) -> None:
    rig, count = (tree_y(BALL), 100) if name == "y" else (tree_hand(), 25)
    turns, targets = reachable(rig, count, 1)
    problem = rig.problem(rig.at_rest(count) if start == "rest" else turns, targets, tolerance=1e-6)
    problem = problem if limited else replace(problem, limits=None)
    solution = solve(problem)
    assert (solution.error.max(axis=1) <= 1e-3).mean() >= (1.0 if name == "y" else 0.95)
    assert (solution.error.max(axis=1) <= 1e-4).mean() >= (0.99 if name == "y" else 0.95)
    assert_valid(problem, solution)


def test_a_chain_given_as_a_tree_is_solved_the_same() -> None:
    rig = chain(5, BALL)
    turns, targets = reachable(rig, 20, 3)
    problem = rig.problem(turns, targets)
    tree = replace(problem, parents=rig.parents, goal=replace(problem.goal, segment=4))
    np.testing.assert_allclose(solve(problem).rotations, solve(tree).rotations, atol=1e-9)


def test_a_goal_inside_a_chain_holds_the_middle() -> None:
    # Two goals on one branch: the elbow and the hand.
    rig = replace(chain(8, BALL), tips=(3, 7))
    turns, targets = reachable(rig, 40, 4)
    reached(rig.problem(turns, targets, tolerance=1e-6))


@for_each(limited=(True, False))
def test_a_branch_of_a_tree_bends_towards_its_pole_wherever_that_is(limited: bool) -> None:
    rig, count = tree_y(BALL), 150
    turns, targets = reachable(rig, count, 7)
    pole = 2.0 * np.random.default_rng(7).normal(size=(count, 3))
    problem = rig.problem(turns, targets, tolerance=1e-6)
    problem = replace(problem, goal=replace(problem.goal, pole=pole), limits=problem.limits if limited else None)
    solution = reached(problem)
    joints = solution.joints[:, [4, 5, 6, 10]]
    line = unit(targets[:, 0] - joints[:, 0])

    def across(vectors: Floats) -> Floats:
        return vectors - line * (line * vectors).sum(axis=-1, keepdims=True)

    out = across(joints.mean(axis=1) - joints[:, 0])
    bent = norm(out.T) > 0.02
    assert np.count_nonzero(bent) > count // 3
    cosine = (unit(out) * unit(across(pole - joints[:, 0]))).sum(axis=-1)[bent]
    assert (cosine > np.cos(np.radians(10.0))).mean() >= 0.9


def test_a_tree_with_all_joints_locked_does_not_change() -> None:
    rig = tree_y(degrees(LOCKED, LOCKED, LOCKED))
    solution = solve(rig.problem(rig.at_rest(2), np.ones((2, 2, 3))))
    np.testing.assert_allclose(solution.rotations, np.broadcast_to(np.eye(3), solution.rotations.shape), atol=1e-12)
    assert (solution.status == Status.LIMITED).all()


def test_inconsistent_trees_are_refused() -> None:
    rig = tree_y(degrees((-60, 60), LOCKED, (-60, 60)))
    problem = rig.problem(rig.at_rest(2), np.zeros((2, 2, 3)))

    def refused(words: str, **changes: object) -> None:
        with pytest.raises(ValueError, match=words):
            solve(replace(problem, **changes))

    refused("segment", goal=Goal(np.zeros((2, 3)), segment=10))
    refused("weight", goal=Goal(np.zeros((2, 3)), weight=0.0))
    refused(r"others\[0\].target", others=(Goal(np.zeros((3, 3)), segment=9),))
    refused("earlier bone", parents=np.arange(10))
    refused("joints", others=())
    refused("stiffness", stiffness=np.ones((10, 3)))


def test_no_small_change_brings_a_large_tree_nearer_to_targets_out_of_reach() -> None:
    trunk, branch, count = 5, 34, 3
    bones = trunk + count * branch
    parents = np.arange(bones) - 1
    parents[trunk::branch] = trunk - 1
    heads = np.zeros((bones, 3))
    heads[:, 1] = [0.02 * (i if i < trunk else trunk + (i - trunk) % branch) for i in range(bones)]
    tips = tuple(range(trunk + branch - 1, bones, branch))
    ranges = np.broadcast_to(degrees((-20, 20), (-20, 20), (-20, 20)), (bones, 3, 2))
    rig = Rig(parents, heads, np.tile(np.eye(3), (bones, 1, 1)), np.full(bones, 0.02), ranges, tips)
    rng = np.random.default_rng(3)
    targets = np.array([[[1.2, 0.3, 0.2], [-0.9, 0.8, 0.3], [0.1, 1.3, -0.5]]])
    problem = rig.problem(rig.turns_inside(rng, 1), targets)
    solution = solve(problem)
    assert solution.status[0] == Status.LIMITED
    assert_valid(problem, solution)
    # Turn each joint alone a little about each axis and back, within its limits.
    frames, rest = solution.rotations[0] @ problem.frames[0], rig.rest()
    below = [rest[i] if p < 0 else frames[p] @ rest[i] for i, p in enumerate(parents)]
    turns = quaternions((np.swapaxes(below, 1, 2) @ frames).transpose(1, 2, 0))
    small = np.concatenate([np.ones((1, 6)), 0.005 * np.concatenate([np.eye(3), -np.eye(3)], axis=1)])
    tried = np.tile(turns[:, None, None], (1, 6, bones, 1))
    for bone in range(bones):
        tried[:, :, bone, bone] = multiply(tried[:, :, bone, bone], small / np.linalg.norm(small, axis=0))
    cone = cone_of(ranges[:, [0, 2]].reshape(-1, 4), ranges[:, 1])
    inside = clamp(tried, Cone(*(part[..., None, None, :] for part in cone)))
    joints, _ = rig.pose(np.moveaxis(inside.reshape(4, -1, bones), 0, -1))
    found = np.linalg.norm(joints[:, bones:] - targets, axis=(1, 2))
    assert np.linalg.norm(solution.error) - found.min() < 1e-3


def test_a_folded_branch_stretches_fully_towards_a_target_out_of_reach() -> None:
    rng, count, bones = np.random.default_rng(8), 30, 5
    directions = unit(rng.normal(size=(count, bones, 3)))
    directions[:, 2:] = directions[:, 1:2] * np.array([-1.0, 1.0, -1.0])[:, None]  # folded by almost half a turn
    directions = unit(directions + 0.1 * rng.normal(size=directions.shape))
    joints = np.zeros((count, bones + 2, 3))
    joints[:, 1:bones] = np.cumsum(directions, axis=1)[:, :-1]
    joints[:, bones] = joints[:, 1]
    joints[:, bones + 1] = np.cumsum(directions, axis=1)[:, -1]
    across = unit(np.cross(directions, rng.normal(size=directions.shape)))
    frames = np.stack([across, directions, np.cross(across, directions)], axis=-1)
    targets = 6.0 * unit(rng.normal(size=(2, count, 3)))
    problem = Problem(
        joints=joints,
        frames=frames,
        goal=Goal(target=targets[0], segment=0),
        others=(Goal(target=targets[1], segment=bones - 1),),
        parents=np.arange(bones) - 1,
        tolerance=1e-6,
        iterations=50,
    )
    solved = solve(problem).joints
    # Whatever the first bone does, the others are free to point at their target.
    straight = norm((targets[1] - solved[:, 1]).T) - (bones - 1)
    missing = norm((targets[1] - solved[:, -1]).T)
    assert (missing - straight).max() < 1e-3
