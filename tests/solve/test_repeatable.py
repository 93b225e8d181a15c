"""A problem always has the same solution, to the last bit, whatever the batch and the memory layout."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest

import ik_addon.solve
from benchmarks.cases import CHAINS, Rig, chain, degrees, tree_hand, tree_y
from ik_addon.solve import Goal, OutOfReach, Problem, Solution, Solver, solve
from ik_addon.solve.problem import Floats

from .chains import aim, make_chains, random_rotations, shifted, unit

COUNT = 8
BALL = degrees((-60, 60), (-60, 60), (-60, 60))
TIGHT = degrees((-1, 6), (-6, 3), (-6, 3))
SOURCE = Path(ik_addon.solve.__file__).parent
BLAS = {"linalg", "dot", "vdot", "inner", "matmul", "matvec", "vecmat", "tensordot", "convolve", "correlate"}
"""What numpy may delegate to a BLAS or to LAPACK. `einsum` does so when asked to optimize."""


def near_and_far(rig: Rig, count: int = COUNT, *, pole: bool = False, rotation: bool = False) -> Problem:
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
    "limited": lambda: near_and_far(chain(5, CHAINS["limits-30"])),
    "limited, with FABRIK": lambda: replace(near_and_far(chain(5, CHAINS["limits-30"]), 4), solver=Solver.FABRIK),
    "limited, not straight": lambda: near_and_far(chain(9, CHAINS["limits-asym"])),
    "limited, with a pole": lambda: near_and_far(chain(5, CHAINS["limits-45"]), pole=True),
    "limited, with an orientation": lambda: near_and_far(chain(4, BALL), rotation=True),
    "long, with both": lambda: near_and_far(chain(20, TIGHT), 2, pole=True, rotation=True),
    "tree": lambda: near_and_far(tree_y(BALL)),
    "tree, with both": lambda: near_and_far(tree_y(BALL), 3, pole=True, rotation=True),
    "free tree": lambda: replace(near_and_far(tree_y(BALL)), limits=None),
    "hand": lambda: near_and_far(tree_hand(), 3),
}


def changed(problem: Problem, change: Callable[[Floats], Floats]) -> Problem:
    """Return a problem with a change applied to each array that has a batch axis."""

    def goal_of(goal: Goal) -> Goal:
        pole, angle, rotation = (
            None if part is None else change(part) for part in (goal.pole, goal.pole_angle, goal.rotation)
        )
        return replace(goal, target=change(goal.target), pole=pole, pole_angle=angle, rotation=rotation)

    limits = problem.limits
    return replace(
        problem,
        joints=change(problem.joints),
        frames=change(problem.frames),
        goal=goal_of(problem.goal),
        others=tuple(map(goal_of, problem.others)),
        limits=None if limits is None else replace(limits, root=change(limits.root)),
        plane=None if problem.plane is None else change(problem.plane),
        bend_side=None if problem.bend_side is None else change(problem.bend_side),
    )


def assert_same(one: Solution, other: Solution) -> None:
    for name in ("joints", "rotations", "stretch", "error", "status", "iterations", "at_limit"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("name", PROBLEMS)
def test_memory_layout_changes_no_bit(name: str) -> None:
    problem = PROBLEMS[name]()
    assert_same(solve(changed(problem, shifted)), solve(problem))


@pytest.mark.parametrize("name", PROBLEMS)
def test_other_members_of_the_batch_change_no_bit(name: str) -> None:
    problem = PROBLEMS[name]()
    together = solve(problem)
    for i in range(len(problem.joints)):
        alone = solve(changed(changed(problem, itemgetter(slice(i, i + 1))), shifted))
        assert_same(alone, Solution(*(getattr(together, part)[i : i + 1] for part in Solution.__dataclass_fields__)))


SOLVE_ALL = """
import pickle, sys
from ik_addon.solve import solve
with open(sys.argv[1], "rb") as file:
    problems = pickle.load(file)
with open(sys.argv[2], "wb") as file:
    pickle.dump([solve(problem) for problem in problems], file)
"""


def test_the_kind_of_processor_changes_no_bit(tmp_path: Path) -> None:
    given = tmp_path / "problems"
    problems = [make() for make in PROBLEMS.values()]
    given.write_bytes(pickle.dumps(problems))
    answers = [[solve(problem) for problem in problems]]
    # This process uses one of them.
    for kernel in sorted({"Prescott", "Haswell", ""} - {os.environ.get("OPENBLAS_CORETYPE", "")}):
        solved = tmp_path / f"solved {kernel}"
        kind = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
        if kernel:
            kind["OPENBLAS_CORETYPE"] = kernel
        command = [sys.executable, "-c", SOLVE_ALL, str(given), str(solved)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, cwd=SOURCE.parents[1], env=kind)
        answers.append(pickle.loads(solved.read_bytes()))
    for first, *others in zip(*answers, strict=True):
        for other in others:
            assert_same(other, first)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_nothing_is_delegated_to_a_blas(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        place = f"{path.name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.BinOp | ast.AugAssign):
            assert not isinstance(node.op, ast.MatMult), place
        elif isinstance(node, ast.ImportFrom):
            assert node.module is None or not node.module.startswith("numpy.linalg"), place
            assert node.module != "numpy" or not BLAS & {name.name for name in node.names}, place
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np":
            assert node.attr not in BLAS, place
            assert node.attr != "einsum" or path.name == "products.py", place
