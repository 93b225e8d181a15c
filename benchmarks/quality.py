"""Measure how often, how exactly and how smoothly targets are reached, against Blender's own IK on the same rigs.

At last, what Pose Body folds when it drags a hand, the hips or a foot.

    python -m benchmarks.quality [--solves N] [--case NAME]...   (--case once for each)

with an interpreter that has bpy, from the project's folder. Prints a table in Markdown and writes it with all figures
to `build/bench/quality.json`. Everything is seeded: the figures change only when the code does.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from ik_addon.solve import Solver, solve
from ik_addon.solve.maths.cones import Cone, cone_of
from ik_addon.solve.maths.rotations import quaternions
from ik_addon.solve.problem import Floats
from tests.solve.chains import violation

from .cases import CHAINS, FREE, Rig, bone_steps, chain, degrees, random_ranges, smooth_turns, tree_hand, tree_y

BONES = (2, 3, 5, 9, 20)
TOLERANCE = 1e-7
VIOLATION = 0.01
"""Degrees outside of a limit from which it counts as broken."""
RANDOM_RIGS = 8
PATHS = 12
"""Number of paths in a row of `smooth-paths`, each of half as many frames."""
OUTPUT = Path("build/bench/quality.json")
BODY = "pose-body"
"""The case that drags a whole body."""
STEPS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120)
"""Steps in degrees per frame; the frames above each are counted."""


@dataclass(frozen=True)
class Trial:
    """One row: solves on one rig, or on several with the same number of bones."""

    case: str
    seed: int
    parts: tuple[tuple[Rig, Floats, Floats], ...]
    """Rig, joint rotations to start from (B, n, 4), targets (B, E, 3)."""
    path: bool = False
    """The targets are consecutive frames of a motion."""
    limited: bool = True
    limits: str = ""
    """Which limits the chains have, if the case's name does not say."""


@dataclass
class Result:
    """The results of one solver in a trial."""

    errors: list[Floats] = field(default_factory=list)
    violations: int = 0
    steps: list[Floats] = field(default_factory=list)
    iterations: list[Floats] = field(default_factory=list)

    def figures(self, trial: Trial) -> dict[str, object]:
        """Return the row's figures; errors are in chain lengths, and a tree's worst effector counts."""
        errors = np.concatenate(self.errors)
        row: dict[str, object] = {
            f"within_{limit}": float((errors <= float(limit)).mean()) for limit in ("1e-3", "1e-4", "1e-6")
        }
        row["violations"] = self.violations
        row["worst_error"] = float(errors.max())
        if trial.path:
            steps = np.concatenate(self.steps)
            row["largest_step"] = float(steps.max())
            row["frames_above_30"] = int((steps.max(axis=1) > 30.0).sum())
            row["below_10"] = float((steps < 10.0).mean())
            row["frames_above"] = {str(step): int((steps.max(axis=1) > step).sum()) for step in STEPS}
        if self.iterations:
            row["iterations_p95"] = float(np.percentile(np.concatenate(self.iterations), 95))
        return row


def trials(solves: int) -> Iterator[Trial]:
    """Yield all trials, with `solves` solves each."""
    for number, (case, ranges) in enumerate(CHAINS.items()):
        for bones in BONES:
            if case != "hinges" or bones <= 5:
                seed = 100 * number + bones
                yield _reachable(case, [chain(bones, ranges)], seed, solves)
    for bones in BONES:
        rng = np.random.default_rng(bones)
        rigs = [chain(bones, random_ranges(rng, bones)) for _ in range(RANDOM_RIGS)]
        yield _reachable("limits-random", rigs, 1000 + bones, solves)
    free = np.array([FREE, FREE, FREE])
    yield replace(
        _reachable("tree-y", [tree_y(degrees((-60, 60), (-60, 60), (-60, 60)))], 1100, solves, free), limited=False
    )
    yield _reachable("tree-hand", [tree_hand()], 1101, solves)
    for case in ("limits-30", "limits-45", "limits-90", "limits-asym"):
        for bones in (5, 9):
            rig = chain(bones, CHAINS[case])
            yield Trial("smooth-path", 1200 + bones, (_path(rig, (1200 + bones,), solves),), path=True, limits=case)
            parts = tuple(_path(rig, (1400 + bones, number), solves // 2) for number in range(PATHS))
            yield Trial("smooth-paths", 1400 + bones, parts, path=True, limits=case)
    for bones in BONES:
        rig = chain(bones, free)
        rng = np.random.default_rng(1300 + bones)
        along = np.stack([np.zeros(solves), rng.uniform(0.05, 0.95, solves), np.zeros(solves)], axis=-1)
        yield Trial("collinear", 1300 + bones, ((rig, rig.at_rest(solves), along[:, None]),), limited=False)
        away = rng.normal(size=(solves, 3))
        away *= (rng.uniform(0.978, 0.9999, solves) / np.linalg.norm(away, axis=1))[:, None]
        yield Trial("near-extension", 1300 + bones, ((rig, rig.at_rest(solves), away[:, None]),), limited=False)


def _path(rig: Rig, seed: tuple[int, ...], frames: int) -> tuple[Rig, Floats, Floats]:
    """Return targets that follow a smooth motion, each to be reached from rest."""
    joints, _ = rig.pose(smooth_turns(np.random.default_rng(seed if len(seed) > 1 else seed[0]), rig, frames))
    return rig, rig.at_rest(frames), joints[:, rig.bones :]


def _reachable(case: str, rigs: list[Rig], seed: int, solves: int, solved_with: Floats | None = None) -> Trial:
    """Return targets made by forward kinematics within the limits, half of them started from rest."""
    rng = np.random.default_rng(seed)
    parts = []
    for rig in rigs:
        count = solves // len(rigs)
        joints, _ = rig.pose(rig.turns_inside(rng, count))
        turns = rig.turns_inside(rng, count)
        turns[: count // 2] = rig.at_rest(count // 2)
        if solved_with is not None:
            rig = replace(rig, ranges=np.array(np.broadcast_to(solved_with, rig.ranges.shape)))
        parts.append((rig, turns, joints[:, rig.bones :]))
    return Trial(case, seed, tuple(parts))


def ours(trial: Trial, solver: Solver = Solver.AUTO) -> Result:
    """Solve a trial with one of this project's solvers."""
    result = Result()
    for rig, turns, targets in trial.parts:
        problem = rig.problem(turns, targets, tolerance=TOLERANCE, solver=solver)
        if not trial.limited:
            goal = problem.goal if problem.others else replace(problem.goal, segment=None)
            problem = replace(problem, limits=None, goal=goal)
        solution = solve(problem)
        result.iterations.append(solution.iterations)
        _add(result, trial, rig, solution.error.reshape(len(targets), -1), solution.rotations @ problem.frames)
    return result


def blender(trial: Trial) -> Result:
    """Solve a trial with Blender's IK constraint."""
    from .blender_ik import BlenderRig

    result = Result()
    for rig, turns, targets in trial.parts:
        _add(result, trial, rig, *BlenderRig(rig).solve(turns, targets))
    return result


def _add(result: Result, trial: Trial, rig: Rig, errors: Floats, frames: Floats) -> None:
    lengths = np.array([_length(rig, tip) for tip in rig.tips])
    result.errors.append((errors / lengths).max(axis=1))
    if trial.limited:
        result.violations += int((violations(rig, frames) > VIOLATION).sum())
    if trial.path:
        result.steps.append(bone_steps(frames))


def _length(rig: Rig, tip: int) -> float:
    bone, length = int(np.arange(rig.bones)[tip]), 0.0
    while bone >= 0:
        length += float(rig.lengths[bone])
        bone = int(rig.parents[bone])
    return length


def violations(rig: Rig, frames: Floats) -> Floats:
    """Return the degrees (B,) by which bone frames (B, n, 3, 3) break a limit of the rig, at the worst joint."""
    rest = rig.rest()
    cone = cone_of(rig.ranges[:, [0, 2]].reshape(-1, 4), rig.ranges[:, 1])
    worst = np.zeros(len(frames))
    for i, parent in enumerate(rig.parents):
        zero = rest[i] if parent < 0 else frames[:, parent] @ rest[i]
        turn = quaternions((np.swapaxes(zero, -1, -2) @ frames[:, i]).transpose(1, 2, 0))
        over = violation(turn, Cone(*(part[..., i : i + 1] for part in cone)))
        worst = np.maximum(worst, np.degrees(over))
    return worst


def table(rows: list[dict[str, object]]) -> Iterator[str]:
    """Yield the lines of the table in Markdown."""
    yield "| case | bones | solves | solver | within 1e-3 | 1e-4 | 1e-6 | violations | worst | other |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        for solver in ("ours", "blender"):
            if solver not in row:
                continue
            figures = row[solver]
            assert isinstance(figures, dict)
            shares = " | ".join(f"{100.0 * figures[f'within_{limit}']:.2f} %" for limit in ("1e-3", "1e-4", "1e-6"))
            other = []
            if "largest_step" in figures:
                other.append(f"at most {figures['largest_step']:.1f} degrees a frame")
                other.append(f"{100.0 * figures['below_10']:.2f} % below 10")
            if "iterations_p95" in figures:
                other.append(f"{figures['iterations_p95']:.0f} passes (95 %)")
            name = f"{row['case']} {row.get('limits', '')}".strip()
            yield (
                f"| {name} | {row['bones']} | {row['solves']} | {solver} | {shares} | {figures['violations']} "
                f"| {figures['worst_error']:.1e} | {', '.join(other)} |"
            )


def measure(trial: Trial, solvers: dict[str, Callable[[Trial], Result]]) -> dict[str, object]:
    """Return the row of a trial."""
    rig = trial.parts[0][0]
    row: dict[str, object] = {
        "case": trial.case,
        "bones": rig.bones,
        "solves": sum(len(targets) for _, _, targets in trial.parts),
        "seed": trial.seed,
    }
    if trial.limits:
        row["limits"] = trial.limits
    return row | {name: solver(trial).figures(trial) for name, solver in solvers.items()}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--solves", type=int, default=2000, help="solves in each case (2000)")
    parser.add_argument("--case", action="append", help="measure only the cases that begin like this")
    names = [solver.name for solver in Solver]
    parser.add_argument("--solver", choices=names, help="measure this solver alone; nothing is written then")
    arguments = parser.parse_args()
    solvers: dict[str, Callable[[Trial], Result]] = {"ours": ours, "blender": blender}
    if arguments.solver is not None:
        solvers = {"ours": partial(ours, solver=Solver[arguments.solver])}
    rows: list[dict[str, object]] = []
    for trial in trials(arguments.solves):
        if arguments.case is None or trial.case.startswith(tuple(arguments.case)):
            rows.append(measure(trial, solvers))
            print(f"{trial.case}, {rows[-1]['bones']} bones", file=sys.stderr, flush=True)
    print("\n".join(table(rows)))
    if arguments.solver is None and (arguments.case is None or BODY.startswith(tuple(arguments.case))):
        from . import folds

        folded = folds.measure()
        print("\n".join(["", *folds.table(folded)]))
        rows += [{"case": BODY} | row for row in folded]
    if arguments.solver is None:
        OUTPUT.parent.mkdir(parents=True, exist_ok=True)
        OUTPUT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    sys.stdout.flush()
    # Some versions of the module crash when the interpreter shuts down.
    os._exit(0)


if __name__ == "__main__":
    main()
