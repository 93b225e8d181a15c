"""Compare how far bones turn per frame on smooth paths: each frame solved by itself, as live does, and smoothed.

    python -m benchmarks.smooth

with an interpreter that has bpy, from the project's folder. The paths are those of `benchmarks.quality`. Prints the
table in docs/lab/quality.md; its last column is the time of solving and smoothing relative to solving alone.
"""

from __future__ import annotations

import time

import numpy as np

from ik_addon.solve import solve
from ik_addon.solve.smooth import smoothed

from .cases import bone_steps
from .quality import TOLERANCE, Trial, trials, violations


def row(trial: Trial) -> str:
    """Return the table's line for a trial."""
    turns: list[list[float]] = [[], []]
    seconds = np.zeros(2)
    error = broken = 0.0
    for rig, start, targets in trial.parts:
        problem = rig.problem(start, targets, tolerance=TOLERANCE)
        began = time.perf_counter()
        live = solve(problem)
        solved = time.perf_counter()
        smooth = smoothed(problem, live, len(targets))
        seconds += solved - began, time.perf_counter() - solved
        for own, solution in zip(turns, (live, smooth), strict=True):
            own += bone_steps(solution.rotations @ problem.frames).max(axis=1).tolist()
        error = max(error, float(smooth.error.max()))
        broken = max(broken, float(violations(rig, smooth.rotations @ problem.frames).max()))
    largest = " | ".join(f"{max(own):.1f}°" for own in turns)
    above = " | ".join(str(sum(turn > 30.0 for turn in own)) for own in turns)
    return (
        f"| {trial.case} {trial.limits} | {trial.parts[0][0].bones} | {largest} | {above} "
        f"| {error:.0e} | {broken:.3f}° | {1.0 + seconds[1] / seconds[0]:.1f} |"
    )


def main() -> None:
    """Measure and print."""
    print("| case | bones | live | smooth | live above 30° | smooth | error, L | limits broken by | time, solves |")
    print("|---|---|---|---|---|---|---|---|---|")
    for trial in trials(2000):
        if trial.path:
            print(row(trial), flush=True)


if __name__ == "__main__":
    main()
