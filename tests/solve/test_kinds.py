"""What holds for every kind of problem, in and out of reach: a member alone, a mirror image, a target at the tip."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.cases import CHAINS, FREE, LOCKED, Rig, chain, degrees, tree_hand, tree_y
from ik_addon.solve import Goal, OutOfReach, Problem, Solution, Solver, solve
from ik_addon.solve import solver as dispatch
from ik_addon.solve.problem import Floats
from tests.solve.chains import (
    POSES,
    aim,
    assert_alike,
    assert_mirrored,
    for_each,
    lengths_of,
    make_chains,
    member,
    random_rotations,
    unit,
)

from .free.test_folds import HOCK, STIFLE, limited, random_legs
from .free.test_folds import directions as forwards
from .free.test_folds import problem as legs

COUNT = 12
"""More than are solved one by one."""
HALF = np.arange(COUNT) % 2.0
"""Every second member."""
BALL = degrees((-60, 60), (-60, 60), (-60, 60))
TIGHT = degrees((-1, 6), (-6, 3), (-6, 3))
KNEE = degrees((0, 150), LOCKED, LOCKED)


def near_and_far(rig: Rig, count: int = 8, *, pole: bool = False, rotation: bool = False) -> Problem:
    """Return problems half of which are out of reach, with a pole or an orientation for the first end effector."""
    rng = np.random.default_rng(rig.bones)
    joints, _ = rig.pose(rig.turns_inside(rng, count))
    targets = joints[:, rig.bones :].copy()
    targets[::2] *= 1.2
    problem = rig.problem(rig.turns_inside(rng, count, 0.5), targets)
    poles, rotations = rng.normal(size=(count, 3)), random_rotations(rng, count)
    goal = replace(problem.goal, pole=poles if pole else None, rotation=rotations if rotation else None)
    return replace(problem, goal=goal)


def free(bones: int, *, pole: bool = False, policy: OutOfReach = OutOfReach.EXTEND) -> Problem:
    rng = np.random.default_rng(bones)
    return replace(aim(make_chains(rng, COUNT, bones, "wavy"), rng, 0.1, 1.3, pole=pole), out_of_reach=policy)


def flat(bones: int, *, pole: bool) -> Problem:
    problem = free(bones, pole=pole)
    return replace(problem, plane=directions())


def folding(seed: int) -> Problem:
    reach = np.random.default_rng(seed).uniform(0.3, 1.1, COUNT)[:, None]
    return legs(random_legs(seed)[:COUNT], reach * forwards(COUNT, seed))


def directions() -> Floats:
    return unit(np.random.default_rng(1).normal(size=(COUNT, 3)))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "two bones": lambda: free(2, pole=True),
    "free": lambda: free(7),
    "free, stretched": lambda: free(5, pole=True, policy=OutOfReach.STRETCH),
    "flat": lambda: flat(5, pole=False),
    "flat, with a pole": lambda: flat(5, pole=True),
    "FABRIK": lambda: replace(free(6, pole=True), solver=Solver.FABRIK),
    "stiff": lambda: replace(free(6), stiffness=0.1 * (np.arange(18.0).reshape(6, 3) % 7.0)),
    "on a side, led from the root": lambda: replace(free(6), bend_lead=-0.6, bend_side=directions()),
    "on a side, half of them": lambda: replace(free(6), bend_side=HALF[:, None] * directions()),
    "limited": lambda: near_and_far(chain(5, CHAINS["limits-30"])),
    "limited, with FABRIK": lambda: replace(near_and_far(chain(5, CHAINS["limits-30"]), 4), solver=Solver.FABRIK),
    "limited, not straight": lambda: near_and_far(chain(9, CHAINS["limits-asym"])),
    "limited, with a pole": lambda: near_and_far(chain(5, CHAINS["limits-45"]), pole=True),
    "limited, with an orientation": lambda: near_and_far(chain(4, BALL), rotation=True),
    "long, with both": lambda: near_and_far(chain(20, TIGHT), 5, pole=True, rotation=True),
    "tree": lambda: near_and_far(tree_y(BALL)),
    "tree, with both": lambda: near_and_far(tree_y(BALL), 6, pole=True, rotation=True),
    "free tree": lambda: replace(near_and_far(tree_y(BALL)), limits=None),
    "hand": lambda: near_and_far(tree_hand(), 5),
    "FABRIK in a tree": lambda: replace(near_and_far(tree_y(BALL)), solver=Solver.FABRIK),
    "limb": lambda: near_and_far(chain(2, np.stack([BALL, KNEE]))),
    "limb, with a pole": lambda: near_and_far(chain(2, np.stack([BALL, KNEE])), pole=True),
    "limb, with a foot": lambda: near_and_far(chain(3, np.stack([BALL, KNEE, BALL])), pole=True, rotation=True),
    "limb, at half a turn": lambda: near_and_far(chain(2, degrees((-30, 180), FREE, (-20, 30)))),
    "folds": lambda: folding(1),
    "folds, half of them": lambda: replace(folding(3), folds=HALF[:, None, None] * np.asarray(folding(3).folds)),
    "folds, with limits": lambda: limited(folding(2), np.array([(0.0, 0.0), STIFLE, HOCK])),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_member_has_the_same_solution_alone(name: str) -> None:
    problem = PROBLEMS[name]()
    together = solve(problem)
    for i in range(len(problem.joints)):
        alone = solve(member(problem, i))
        assert_alike(alone, Solution(*(part[i : i + 1] for part in vars(together).values())))
        assert (alone.at_limit[0] == together.at_limit[i]).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_mirrored_problem_has_the_mirrored_solution(name: str) -> None:
    """To 1e-6, or as far as rounding moves a member: mirroring changes it on some versions of numpy."""
    problem, rng = PROBLEMS[name](), np.random.default_rng(0)
    try:
        assert_mirrored(problem, 1e-6)
    except AssertionError:
        one, moved = solve(problem).rotations, np.zeros((1, 1, 1, 1))
        for _ in range(4):
            target = problem.goal.target + 1e-15 * rng.normal(size=problem.goal.target.shape)
            other = solve(replace(problem, goal=replace(problem.goal, target=target))).rotations
            moved = np.maximum(moved, np.abs(other - one).max(axis=(1, 2, 3), keepdims=True))
        assert_mirrored(problem, 1e-6 + 2.0 * moved)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if not name.startswith(("fl", "folds", "on a side, half"))])
def test_a_target_at_the_tip_keeps_the_pose(name: str) -> None:
    problem = PROBLEMS[name]()
    bones = problem.frames.shape[1]
    tips = [problem.joints[:, bones + i] for i in range(len(problem.goals))]
    goals = [Goal(tip, segment=goal.segment) for tip, goal in zip(tips, problem.goals, strict=True)]
    solution = solve(replace(problem, goal=goals[0], others=tuple(goals[1:])))
    np.testing.assert_allclose(solution.joints, problem.joints, atol=1e-9)
    np.testing.assert_allclose(solution.rotations, np.broadcast_to(np.eye(3), solution.rotations.shape), atol=1e-9)


# ---- the kernel in plain floats for a few free chains, and the one in arrays for many


def assert_same(problem: Problem, monkeypatch: pytest.MonkeyPatch, within: float = 1e-9) -> None:
    """Solve each member alone and all as arrays, and compare everything."""
    alone = solve(problem)
    monkeypatch.setattr(dispatch, "FEW", 0)
    arrays = solve(problem)
    monkeypatch.undo()
    assert_alike(alone, arrays, np.maximum(1.0, np.abs(problem.joints).max(axis=(1, 2))), within)
    assert (alone.iterations == arrays.iterations).all()


def test_rounding_decides_nothing_without_a_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains far from the origin, one of whose bones is longer than the others together, and targets in their hole."""
    rng = np.random.default_rng(96)
    lengths = rng.uniform(0.5, 1.5, 111)
    lengths *= 0.3 / lengths.sum()
    lengths[40] = 0.77
    chains = make_chains(rng, 8, 111, "wild")
    steps = np.diff(chains.joints, axis=1)
    joints = np.cumsum(np.concatenate([np.zeros((8, 1, 3)), unit(steps) * lengths[:, None]], axis=1), axis=1)
    joints = joints + rng.normal(size=(8, 1, 3)) * 1000.0
    near = rng.uniform(0.1, 1.3, (8, 1)) * unit(rng.normal(size=(8, 3)))
    softness = rng.uniform(0.1, 0.8, 8)
    goal = Goal(joints[:, 0] + near)
    for solver in (Solver.EVEN_BEND, Solver.FABRIK):
        problem = replace(chains, joints=joints, goal=goal, tolerance=0.0, softness=softness, solver=solver)
        assert_same(problem, monkeypatch)
        moved = replace(problem, joints=joints * (1.0 + 1e-15))
        np.testing.assert_allclose(solve(moved).rotations, solve(problem).rotations, atol=1e-6)


@for_each(bones=(1, 2, 3, 4, 9, 20), pose=POSES, solver=(Solver.AUTO, Solver.EVEN_BEND, Solver.FABRIK))
def test_one_chain_is_solved_like_many(bones: int, pose: str, solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, count = np.random.default_rng([bones, POSES.index(pose)]), 6
    for policy, pole in zip(OutOfReach, rng.permutation([False, True, bool(bones % 2)]), strict=True):
        problem = aim(make_chains(rng, count, bones, pose, uneven=True), rng, -0.2, 1.3, pole=bool(pole))
        problem = replace(
            problem,
            solver=solver,
            out_of_reach=policy,
            softness=rng.uniform(0.0, 0.3, count),
            push_limit=rng.uniform(0.0, 0.2, count),
            stretch_weights=rng.uniform(0.0, 1.0, bones).round(),
            inherits=rng.uniform(size=bones) < 0.7,
            tolerance=10.0 ** rng.uniform(-12.0, -2.0, count),
        )
        assert_same(problem, monkeypatch)


def test_each_member_takes_the_solver_that_suits_it() -> None:
    problem = aim(make_chains(np.random.default_rng(6), 16, 3), np.random.default_rng(6), 0.2, 0.9)
    problem.joints[0, 2] = problem.joints[0, 1]
    found = solve(problem)
    even_bend = solve(replace(problem, solver=Solver.EVEN_BEND))
    two_bone = solve(replace(member(problem, 0), solver=Solver.TWO_BONE))
    np.testing.assert_allclose(found.joints[:1], two_bone.joints, atol=1e-9)
    np.testing.assert_allclose(found.joints[1:], even_bend.joints[1:], atol=1e-9)
    assert found.iterations[0] == 0
    assert lengths_of(found.joints).shape == (16, 3)
