"""Input that cannot be solved."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ik_addon.solve import Goal, Limits, OutOfReach, Problem, Solver, Status, check, solve
from tests.solve.chains import aim, assert_alike, for_each, make_chains, unit


def spoil(problem: Problem, what: str, value: float) -> Problem:
    """Return a copy with `value` somewhere in member 3."""
    joints, frames = problem.joints.copy(), problem.frames.copy()
    target = problem.goal.target.copy()
    pole = None if problem.goal.pole is None else problem.goal.pole.copy()
    angle = None if problem.goal.pole_angle is None else problem.goal.pole_angle.copy()
    softness, push_limit, tolerance = (np.full(len(joints), x) for x in (0.0, np.inf, 1e-5))
    if what == "length":
        joints[3] = joints[3, :1]
    else:
        arrays: dict[str, Any] = {"root": joints[:, 0], "joints": joints[:, -1], "frames": frames[:, -1, 0]}
        arrays |= {"target": target, "pole": pole, "pole_angle": angle}
        arrays |= {"softness": softness, "push_limit": push_limit, "tolerance": tolerance}
        arrays[what][3] = value
    goal = Goal(target, pole, angle)
    return replace(
        problem, joints=joints, frames=frames, goal=goal, softness=softness, push_limit=push_limit, tolerance=tolerance
    )


@pytest.mark.filterwarnings("error")
@for_each(
    bones=(2, 5),
    policy=OutOfReach,
    spot=(
        *(("root", value) for value in (np.nan, 1e300)),
        *((what, value) for what in ("joints", "pole") for value in (np.nan, np.inf, 1e300)),
        *(("frames", value) for value in (np.nan, np.inf)),
        *(("target", value) for value in (np.nan, -np.inf, 1e300)),
        *((what, np.nan) for what in ("pole_angle", "softness", "push_limit", "tolerance")),
        ("length", 0.0),
    ),
)
def test_a_bad_member_affects_no_other(bones: int, policy: OutOfReach, spot: tuple[str, float]) -> None:
    what, value = spot
    rng = np.random.default_rng(1)
    good = replace(aim(make_chains(rng, 6, bones), rng, 0.2, 1.5, pole=True), out_of_reach=policy)
    bad = spoil(good, what, value)
    expected, solution = solve(good), solve(bad)
    assert solution.status[3] == Status.INVALID
    assert not solution.reached[3]
    assert np.isnan(solution.error[3])
    assert solution.iterations[3] == 0
    np.testing.assert_array_equal(solution.rotations[3], np.tile(np.eye(3), (bones, 1, 1)))
    np.testing.assert_array_equal(solution.stretch[3], 1.0)
    np.testing.assert_array_equal(solution.joints[3], bad.joints[3])
    others = np.arange(6) != 3
    assert_alike(solution.members(others), expected.members(others))


def test_batches_of_only_bad_members_or_none() -> None:
    problem = make_chains(np.random.default_rng(2), 4, 3)
    for solver in Solver:
        solution = solve(replace(problem, joints=problem.joints * np.nan, solver=solver))
        assert (solution.status == Status.INVALID).all()
    empty = solve(make_chains(np.random.default_rng(2), 0, 3))
    assert empty.joints.shape == (0, 4, 3)
    assert empty.reached.shape == (0,)


@for_each(value=(-0.0, 1e-300, 1e-12))
def test_a_target_on_the_root_is_no_error(value: float) -> None:
    for bones in (1, 2, 5):
        problem = make_chains(np.random.default_rng(3), 5, bones)
        solution = solve(replace(problem, goal=Goal(problem.joints[:, 0] + value)))
        assert np.isfinite(solution.rotations).all()
        assert np.isfinite(solution.error).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"joints": np.zeros((4, 1, 3))}, "joints must have the shape"),
        ({"frames": np.zeros((4, 2, 3, 3))}, r"frames must have the shape \(4, 3, 3, 3\)"),
        ({"goal": Goal(np.zeros((3, 3)))}, r"goal.target must have the shape \(4, 3\)"),
        ({"goal": Goal(np.zeros((4, 3)), np.zeros(3))}, "goal.pole must have"),
        ({"goal": Goal(np.zeros((4, 3)), None, np.zeros(3))}, "goal.pole_angle must be one number"),
        ({"inherits": np.ones(4, dtype=bool)}, "inherits must have"),
        ({"stretch_weights": np.ones(2)}, "stretch_weights must have"),
        ({"stretch_weights": -np.ones(3)}, "stretch_weights must be finite and not negative"),
        ({"softness": 1.5}, "softness must be between 0 and 1"),
        ({"softness": np.zeros(2)}, "softness must be one number"),
        ({"push_limit": -1.0}, "push_limit and tolerance must not be negative"),
        ({"tolerance": -1.0}, "push_limit and tolerance must not be negative"),
        ({"iterations": -1}, "iterations must not be negative"),
        *(({"bend_lead": lead}, "bend_lead must be between -1 and 1") for lead in (-1.1, 1.1, np.nan)),
    ],
)
def test_a_malformed_problem_is_refused(change: dict[str, Any], message: str) -> None:
    problem = make_chains(np.random.default_rng(4), 4, 3)
    with pytest.raises(ValueError, match=message):
        solve(replace(problem, **change))


def test_a_body_stretched_a_million_times_is_solved() -> None:
    rng = np.random.default_rng(0)
    for bones in (1, 2, 4):
        problem = make_chains(rng, 40, bones)
        target = problem.joints[:, 0] + 1e6 * unit(rng.normal(size=(40, 3)))
        problem = replace(problem, goal=Goal(target), stiffness=np.full((bones, 3), 0.2))
        solution = solve(replace(problem, out_of_reach=OutOfReach.STRETCH))
        assert (solution.error < 1e3).all()


@pytest.mark.filterwarnings("error")
@for_each(
    limited=(False, True),
    spot=(
        (None, 0.0),
        ("target", np.nan),
        ("target", 1e300),
        ("pole", np.inf),
        ("pole_angle", np.nan),
        ("frames", np.nan),
    ),
)
def test_a_check_remains_valid_for_other_goals(limited: bool, spot: tuple[str | None, float]) -> None:
    what, value = spot
    rng = np.random.default_rng(11)
    problem = aim(make_chains(rng, 5, 2), rng, 0.3, 0.9, pole=True)
    limits = Limits(np.tile(np.eye(3), (2, 1, 1)), problem.frames[:, 0], np.tile([-1.0, 1.0], (2, 2)), np.zeros((2, 2)))
    problem = replace(problem, limits=limits if limited else None)
    moved = replace(problem, goal=aim(problem, rng, 0.3, 0.9, pole=True).goal)
    if what == "frames":
        problem, moved = (spoil(one, what, value) for one in (problem, moved))
    elif what is not None:
        moved = spoil(moved, what, value)
    plain, known = solve(moved), solve(moved, check(problem))
    assert_alike(known, plain)
    assert (plain.status == Status.INVALID).tolist() == [what is not None and i == 3 for i in range(5)]


@for_each(policy=OutOfReach)
def test_cached_search_data_remains_valid_for_other_goals(policy: OutOfReach) -> None:
    rng = np.random.default_rng(13)
    problem = replace(aim(make_chains(rng, 4, 4), rng, 0.3, 0.9), out_of_reach=policy)
    ranges = np.tile([-0.7, 0.7], (4, 2))
    problem = replace(
        problem, limits=Limits(np.tile(np.eye(3), (4, 1, 1)), problem.frames[:, 0], ranges, ranges[:, :2])
    )
    known = check(problem)
    for kind in ("pole", "away", "gone", "bone", "place"):
        moved = aim(problem, rng, 0.3, 1.3 if kind == "away" else 0.9, pole=kind == "pole")
        if kind == "gone":  # the other members are searched for without it
            moved = spoil(moved, "target", np.nan)
        elif kind == "bone":
            moved = replace(moved, goal=replace(moved.goal, segment=2), softness=0.1)
        plain, again = solve(moved), solve(moved, known)
        assert_alike(again, plain)
