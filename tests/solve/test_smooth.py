"""Smoothed sequences turn less, and miss nothing that frames solved by themselves reach."""

from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from benchmarks.cases import CHAINS, FREE, bone_steps, chain, degrees, smooth_turns, tree_y
from benchmarks.quality import VIOLATION, violations
from ik_addon.solve import Problem, Solution, pole_angle, solve
from ik_addon.solve.maths.rotations import about_vectors, matrices
from ik_addon.solve.problem import Floats, Ints
from ik_addon.solve.smooth import does_as_well, shortest, smoothed

REACHED = 3e-7
NEARLY = 1e-4
"""Radians by which an orientation or a pole may be missed more than before."""


def path(bones: int, limits: str, seed: tuple[int, int], frames: slice) -> tuple[Any, Problem]:
    """Return frames of a path of docs/lab/quality.md, and its rig."""
    rig = chain(bones, CHAINS[limits])
    joints, _frames = rig.pose(smooth_turns(np.random.default_rng(seed), rig, 1000)[frames])
    count = len(joints)
    return rig, rig.problem(rig.at_rest(count), joints[:, rig.bones :], tolerance=1e-7)


def live_and_smoothed(problem: Problem) -> tuple[Solution, Solution]:
    """Return the solutions of the frames of one clip, by themselves and smoothed."""
    live = solve(problem)
    return live, smoothed(problem, live, len(live.status))


def turns(problem: Problem, solution: Solution) -> Floats:
    """Return the largest rotation in degrees to each frame."""
    return bone_steps(solution.rotations @ np.asarray(problem.frames)).max(axis=1)


@pytest.mark.parametrize(("number", "jump"), [(1, 608), (3, 795), (6, 34), (10, 213)])
def test_a_jump_is_spread_over_frames(number: int, jump: int) -> None:
    rig, problem = path(9, "limits-90", (1409, number), np.s_[max(jump - 70, 0) : jump + 70])
    live, found = live_and_smoothed(problem)
    assert turns(problem, live).max() > 28.0
    assert turns(problem, found).max() < 20.0
    assert (found.error <= np.maximum(live.error, REACHED)).all()
    assert (found.status == live.status).all()
    assert violations(rig, found.rotations @ np.asarray(problem.frames)).max() < VIOLATION


def test_a_sequence_without_jumps_stays_exactly() -> None:
    _rig, problem = path(9, "limits-asym", (1409, 0), np.s_[:100])
    live = solve(problem)
    assert (smoothed(problem, live, 100).rotations == live.rotations).all()


def test_clips_do_not_affect_each_other() -> None:
    _rig, first = path(9, "limits-90", (1409, 1), np.s_[580:640])
    _rig, other = path(9, "limits-90", (1409, 10), np.s_[185:245])
    both = first.members(np.zeros(120, dtype=np.int64))
    both = replace(both, goal=replace(first.goal, target=np.concatenate([first.goal.target, other.goal.target])))
    found = smoothed(both, solve(both), 60)
    for problem, own in ((first, np.s_[:60]), (other, np.s_[60:])):
        alone = smoothed(problem, solve(problem), 60)
        assert turns(problem, alone).max() < 20.0
        assert np.abs(found.rotations[own] - alone.rotations).max() < 1e-6


@pytest.mark.parametrize("wish", ["orientation", "pole"])
def test_orientations_and_poles_are_kept(wish: str) -> None:
    rig = chain(6, CHAINS["limits-90"])
    jumped = 0
    for seed in (0, 2):
        rng = np.random.default_rng((77, seed))
        joints, frames = rig.pose(smooth_turns(rng, rig, 300)[:100])
        problem = rig.problem(rig.at_rest(100), joints[:, rig.bones :], tolerance=1e-7)
        pole = np.tile([0.5, 0.3, 2.0], (100, 1))
        goal = replace(problem.goal, segment=None)
        goal = replace(goal, rotation=frames[:, -1]) if wish == "orientation" else replace(goal, pole=pole)
        problem = replace(problem, goal=goal)
        live, found = live_and_smoothed(problem)
        jumped += (found.rotations != live.rotations).any()
        assert turns(problem, found).max() <= turns(problem, live).max() + 1e-9
        assert (found.error <= np.maximum(live.error, REACHED)).all()
        if wish == "orientation":
            ends = [(solution.rotations @ problem.frames)[:, -1] for solution in (live, found)]
            missed = [np.linalg.norm(end - frames[:, -1], axis=(1, 2)) for end in ends]
        else:
            missed = [away_from_pole(solution, pole) for solution in (live, found)]
        assert (missed[1] <= missed[0] + 2.0 * NEARLY).all()
    assert jumped, "or nothing was tested"


def away_from_pole(solution: Solution, pole: Floats) -> Floats:
    """Return the angle (F,) between a chain's centroid and its pole, about the line to the tip."""
    joints = solution.joints
    found = pole_angle(joints, solution.rotations, joints[:, -1], pole)
    return np.asarray(np.abs((found + np.pi) % (2.0 * np.pi) - np.pi))


def test_trees_reach_all_their_targets() -> None:
    rig = tree_y(degrees((-60, 60), (-60, 60), (-60, 60)))
    joints, _frames = rig.pose(smooth_turns(np.random.default_rng(8), rig, 100))
    problem = rig.problem(rig.at_rest(100), joints[:, rig.bones :], tolerance=1e-7)
    live, found = live_and_smoothed(problem)
    assert (found.error <= np.maximum(live.error, REACHED * 7.0)).all()
    assert turns(problem, found).max() <= turns(problem, live).max()


def test_an_arm_without_pole_does_not_flip_when_its_target_passes_behind() -> None:
    """The smallest rotation that takes the chain to its target is undefined exactly behind it."""
    rig = chain(2, np.array([FREE, FREE, FREE]))
    side = np.linspace(-0.6, 0.6, 81)
    targets = 0.7 * np.stack([side, -np.ones(81), np.full(81, 0.02)], axis=1)
    targets /= np.linalg.norm(targets, axis=1, keepdims=True) / 0.7
    problem = rig.problem(rig.at_rest(81), targets[:, None])
    problem = replace(problem, limits=None, goal=replace(problem.goal, segment=None))
    live, found = live_and_smoothed(problem)
    assert turns(problem, live).max() > 60.0
    assert turns(problem, found).max() < 15.0
    assert found.error.max() < REACHED


def test_frames_that_cannot_be_solved_stay_unchanged() -> None:
    _rig, problem = path(9, "limits-90", (1409, 1), np.s_[560:660])
    target = problem.goal.target.copy()
    target[70:] = np.nan
    problem = replace(problem, goal=replace(problem.goal, target=target))
    live, found = live_and_smoothed(problem)
    assert (found.status == live.status).all()
    assert (found.rotations[70:] == live.rotations[70:]).all()
    assert turns(problem, found)[:69].max() < 20.0


def test_a_solution_that_misses_more_does_not_do_as_well() -> None:
    rig = chain(6, CHAINS["limits-90"])
    joints, frames = rig.pose(smooth_turns(np.random.default_rng(3), rig, 50))
    problem = rig.problem(rig.at_rest(50), joints[:, rig.bones :], tolerance=1e-7)
    goal = replace(problem.goal, segment=None, rotation=frames[:, -1])
    with_pole = replace(goal, rotation=None, pole=np.tile([0.5, 0.3, 2.0], (50, 1)))
    for wanted in (replace(problem, goal=goal), replace(problem, goal=with_pole)):
        live = solve(wanted)
        assert does_as_well(wanted, live, live).all()
        assert not does_as_well(wanted, replace(live, error=live.error + 1e-5), live).any()
        assert not does_as_well(wanted, replace(live, status=live.status + 1), live).any()
        turned = matrices(about_vectors(np.tile([[0.0], [0.01], [0.0]], (1, 50)))).transpose(2, 0, 1)[:, None]
        turned = np.broadcast_to(turned, live.rotations.shape)
        joints = np.einsum("bij,bkj->bki", turned[:, 0], live.joints)
        other = replace(live, rotations=turned @ live.rotations, joints=joints)
        assert not does_as_well(wanted, other, live).all(), "all of it turned about the axis Y"


def test_no_other_path_costs_less() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        sizes = rng.integers(1, 5, size=6)
        layers = [np.arange(size) + 10 * k for k, size in enumerate(sizes.tolist())]
        places = rng.normal(size=100)

        def cost(before: Ints, after: Ints, places: Floats = places) -> Floats:
            return np.asarray((places[before][:, None] - places[after]) ** 2)

        found = shortest(layers, cost)
        assert all(chosen in layer for chosen, layer in zip(found, layers, strict=True))
        lengths = {
            path: sum((places[a] - places[b]) ** 2 for a, b in pairwise(path))
            for path in product(*(layer.tolist() for layer in layers))
        }
        assert np.isclose(lengths[tuple(found.tolist())], min(lengths.values()))
