"""Poses looked up for chains in one FK pose, compared with solved ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ik_addon.solve import Goal, Problem, solve
from ik_addon.solve.lookup import Found, Tabulated
from ik_addon.solve.maths.rotations import matrices, multiply
from ik_addon.solve.problem import Floats
from tests.solve.chains import make_chains, unit

CHAINS, FRAMES = 6, 200


def prepared(bones: int, pose: str, pole: bool) -> tuple[Problem, Floats]:
    """Return chains with their roots in the origin, and random quaternions for their joints."""
    rng = np.random.default_rng([bones, len(pose)])
    problem = make_chains(rng, CHAINS, bones, pose)
    problem = replace(problem, joints=problem.joints - problem.joints[:, :1])
    goal = Goal(problem.joints[:, -1], problem.joints[:, -1] if pole else None)
    return replace(problem, goal=goal), unit(rng.normal(size=(CHAINS, bones, 4)))


def rotations(problem: Problem, fk: Floats, found: Found) -> Floats:
    """Return bone rotations (C, F, n, 3, 3), as in a solution, from joint rotations."""
    frames = np.asarray(problem.frames)[:, None]
    back = fk.transpose(2, 0, 1)[:, :, None] * np.array([1.0, -1.0, -1.0, -1.0])[:, None, None, None]
    turns = found.turns.astype(np.float64).transpose(3, 0, 1, 2)
    after = matrices(multiply(turns, np.broadcast_to(back, turns.shape))).transpose(2, 3, 4, 0, 1)
    own = matrices(multiply(np.broadcast_to(back, turns.shape), turns)).transpose(2, 3, 4, 0, 1)
    result = [after[:, :, 0]]
    for i in range(1, frames.shape[2]):
        result.append(result[-1] @ frames[:, :, i] @ own[:, :, i] @ frames[:, :, i].swapaxes(-1, -2))
    return np.stack(result, axis=2)


@pytest.mark.parametrize("bones", [2, 3, 4, 9, 20])
@pytest.mark.parametrize("pose", ["straight", "bent"])
@pytest.mark.parametrize("pole", [False, True])
@pytest.mark.parametrize("softness", [0.0, 0.3])
def test_lookup_gives_the_pose_of_solve(bones: int, pose: str, pole: bool, softness: float) -> None:
    problem, fk = prepared(bones, pose, pole)
    table = Tabulated.of(problem, fk)
    assert table is not None
    rng = np.random.default_rng(1)
    target = unit(rng.normal(size=(CHAINS, FRAMES, 3))) * rng.uniform(0.0, 1.3, (CHAINS, FRAMES, 1))
    target[:, 0] = problem.joints[:, -1]
    poles = rng.normal(size=target.shape) if pole else None
    angle = rng.uniform(-3.0, 3.0, target.shape[:2]) if pole else None
    found = table.look_up(target, np.full((CHAINS, 1), softness), poles, angle)
    assert found.usual.mean() > 0.9
    goal = Goal(
        target.reshape(-1, 3), None if poles is None else poles.reshape(-1, 3), None if angle is None else angle.ravel()
    )
    joints, frames = (np.repeat(array, FRAMES, axis=0) for array in (problem.joints, problem.frames))
    expected = solve(Problem(joints, frames, goal, softness=softness, tolerance=1e-9))
    usual = found.usual.ravel()
    error = np.abs(found.distance - found.wanted).ravel()[usual]
    np.testing.assert_allclose(error, expected.error[usual], atol=1e-7)
    # In a nearly straight chain, single precision does not resolve a hundredth of a degree.
    reached = rotations(problem, fk, found).reshape(-1, bones, 3, 3)[usual]
    np.testing.assert_allclose(reached, expected.rotations[usual], atol=5e-4 if pose == "straight" else 3e-6)
    near = np.abs(found.wanted - 1.0).ravel()[usual] > 1e-6
    np.testing.assert_allclose(reached[near], expected.rotations[usual][near], atol=3e-6)


@pytest.mark.parametrize("reach", [(0.2, 0.6), (0.5, 1.2), (0.8, 0.81)])
@pytest.mark.parametrize("softness", [0.0, 0.3])
def test_a_table_for_known_targets_gives_the_same_pose(reach: tuple[float, float], softness: float) -> None:
    problem, fk = prepared(9, "bent", pole=False)
    rng = np.random.default_rng(2)
    target = unit(rng.normal(size=(CHAINS, FRAMES, 3))) * rng.uniform(*reach, (CHAINS, FRAMES, 1))
    soft = np.full((CHAINS, FRAMES), softness)
    whole, part = Tabulated.of(problem, fk), Tabulated.of(problem, fk, (target, soft))
    assert whole is not None
    assert part is not None
    assert part.table.size <= 0.5 * whole.table.size
    expected, found = whole.look_up(target, soft), part.look_up(target, soft)
    np.testing.assert_array_equal(found.usual, expected.usual)
    assert found.usual.mean() > 0.9
    np.testing.assert_allclose(found.turns[found.usual], expected.turns[found.usual], atol=4e-6)
    for factor in (0.5, 1.5):
        other = part.look_up(factor * target, soft)
        assert not other.usual[(other.wanted < part.least[:, None]) | (other.wanted > part.most[:, None])].any()


def test_chains_that_do_not_bend_smoothly_have_no_table() -> None:
    for pose in ("folded", "curled"):
        problem, fk = prepared(3, pose, pole=False)
        assert Tabulated.of(problem, fk) is None


def test_targets_that_are_not_finite_or_behind_are_not_usual() -> None:
    problem, fk = prepared(4, "bent", pole=True)
    table = Tabulated.of(problem, fk)
    assert table is not None
    tip = np.asarray(problem.joints)[:, -1:]
    target = np.concatenate([0.5 * tip, np.full_like(tip, np.nan), 0.0 * tip, -0.5 * tip, 1e200 * tip], axis=1)
    pole = np.ones_like(target)
    found = table.look_up(target, np.zeros((CHAINS, 1)), pole, np.zeros(target.shape[:2]))
    assert found.usual[:, 0].all()
    assert not found.usual[:, 1:4].any()
    assert not np.isnan(found.turns[found.usual]).any()


@pytest.mark.parametrize("bones", [2, 5, 12])
@pytest.mark.parametrize("softness", [0.0, 0.25])
@pytest.mark.parametrize("pole", [False, True])
def test_a_frame_gets_the_same_bits_alone_and_in_a_batch(bones: int, softness: float, pole: bool) -> None:
    problem, fk = prepared(bones, "bent", pole=pole)
    table = Tabulated.of(problem, fk)
    assert table is not None
    rng = np.random.default_rng(2)
    target = unit(rng.normal(size=(CHAINS, FRAMES, 3))) * rng.uniform(0.0, 1.3, (CHAINS, FRAMES, 1))
    soft = np.full((CHAINS, FRAMES), softness)
    poles = rng.normal(size=target.shape) if pole else None
    angles = rng.uniform(-1.0, 1.0, (CHAINS, FRAMES)) if pole else None
    found = table.look_up(target, soft, poles, angles)
    for first, last in ((0, 1), (3, 4), (5, 12), (0, FRAMES - 1)):
        some = [None if part is None else part[:, first:last] for part in (target, soft, poles, angles)]
        for own, among in zip(table.look_up(*some), found, strict=True):
            assert np.asarray(own).tobytes() == np.asarray(among)[:, first:last].tobytes()


@pytest.mark.parametrize("pose", ["straight", "bent"])
@pytest.mark.parametrize("beyond", [(), (1.05,)], ids=["there alone", "and beyond"])
def test_a_table_for_known_targets_keeps_a_pose_that_fits_already(pose: str, beyond: tuple[float, ...]) -> None:
    """With no bending needed on any frame, and with none needed on some of the frames."""
    problem, fk = prepared(3, pose, pole=False)
    tips = np.asarray(problem.joints)[:, -1:]
    target = np.concatenate([tips, *(factor * tips for factor in beyond)], axis=1)
    none = np.zeros((CHAINS, 1))
    table = Tabulated.of(problem, fk, (target, none))
    assert table is not None
    found = table.look_up(target, none)
    assert found.usual[:, 0].all()
    # In a straight chain, rounding decides how far it has to bend.
    np.testing.assert_allclose(found.turns[:, 0], fk, atol=5e-4 if pose == "straight" else 1e-6)
