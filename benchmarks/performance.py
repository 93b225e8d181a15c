"""Time live solving, baking and the solver against Blender's own IK on the same rigs and targets.

    python -m benchmarks.performance [--case NAME ...] [--runs N] [--growth]
    python -m benchmarks.performance --case production- --case bake-rigify --runs 1    # a minute

with an interpreter that has bpy, from the project's folder. The sides of each case take turns. The mean step of each
run is measured, and the median of the runs counts. Prints a table in Markdown and writes it to
`build/bench/performance.json`; with `--growth` also plots how the times grow, in `build/bench/growth.svg`. The cases
are in `production.py`, `playback.py`, `drag.py`, `chains.py` and `solvers.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import bpy
import numpy as np

import ik_addon

from . import chains, drag, playback, production, solvers
from .chains import Work
from .growth import Curve, chart
from .timing import Row, measure

OUTPUT = Path("build/bench")
CASES = {**production.CASES, **playback.CASES, **drag.CASES, **chains.CASES, **solvers.CASES}


def table(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the table in Markdown."""
    yield "| case | ours | Blender | floor | unit | ratio | of medians | aim | by the floor | worst |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        floor = " / ".join(_number(floor) for floor in (row.before, row.after) if floor is not None)
        worst = "" if row.worst is None else f"{row.worst:.1f} / {_number(row.blender_worst, 1)}"
        yield (
            f"| `{row.case}` | {row.ours:.3g} | {row.blender:.3g} | {floor} | {row.unit} | {_number(row.ratio)} "
            f"| {_number(row.median_ratio)} "
            f"| {_number(row.aim)} | {_number(row.floor_aim)} | {worst} |"
        )


def _number(value: float | None, digits: int = 2) -> str:
    if value is None:
        return ""
    return f"{value:.{digits if value >= 0.1 else digits + 1}f}"


def idle(frames: int = 2000) -> tuple[float, float]:
    """Return the extension's cost when unused: milliseconds to enable it, microseconds on each frame."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    scene = bpy.context.scene
    took = {True: math.inf, False: math.inf}
    enabling = math.inf
    for _ in range(5):
        for enabled in (True, False):
            start = time.perf_counter()
            for i in range(frames):
                scene.frame_set(1 + i % chains.FRAMES)
            took[enabled] = min(took[enabled], 1e6 * (time.perf_counter() - start) / frames)
            if enabled:
                ik_addon.unregister()
        start = time.perf_counter()
        ik_addon.register()
        enabling = min(enabling, 1e3 * (time.perf_counter() - start))
    return enabling, took[True] - took[False]


def growth() -> str:
    """Return a chart, as SVG, of how the times grow."""
    sizes = [1, 3, 10, 30, 100, 300, 1000]

    def frames_of(size: int) -> int:
        return max(50, min(chains.FRAMES, 5000 // size))

    panels: dict[str, tuple[list[int], Callable[[int, str], float]]] = {
        "chains of 10 bones, ms a frame": (
            sizes,
            lambda n, solver: chains.live(Work(n, 10), solver, frames_of(n)).time,
        ),
        "bones of one chain, ms a frame": (
            [2, *sizes[1:]],
            lambda n, solver: chains.live(Work(1, n), solver, frames_of(n)).time,
        ),
        "frames of a bake of 10 bones, s": (
            [10 * n for n in sizes],
            lambda n, solver: chains.baked(chains.ONE, solver, n).time,
        ),
    }
    found = {}
    for title, (points, measured) in panels.items():
        times = [[measured(x, solver) for solver in ("ours", "blender")] for x in points]
        sides = np.transpose(times).tolist()
        found[title] = [Curve("ours", points, sides[0]), Curve("Blender", points, sides[1])]
        print(title, *zip(points, *sides, strict=True), sep="\n", file=sys.stderr)
    return chart(found)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", action="append", help="measure only the cases that begin like this")
    parser.add_argument("--runs", type=int, default=5, help="runs of each side (5)")
    parser.add_argument("--growth", action="store_true", help="also draw how the times grow")
    arguments = parser.parse_args()
    ik_addon.register()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, case in CASES.items():
        if arguments.case is None or name.startswith(tuple(arguments.case)):
            start = time.perf_counter()
            rows.append(measure(name, case, arguments.runs))
            text = json.dumps([asdict(row) for row in rows], indent=1)
            (OUTPUT / "performance.json").write_text(text + "\n", encoding="utf-8")
            print(f"{name} ({time.perf_counter() - start:.0f} s)", file=sys.stderr, flush=True)
    enabling, frame = idle()
    print("\n".join(table(rows)))
    print(f"\nEnabling takes {enabling:.1f} ms; a scene without chains pays {frame:.2f} us a frame.")
    if arguments.growth:
        (OUTPUT / "growth.svg").write_text(growth(), encoding="utf-8")
    sys.stdout.flush()
    # Some versions of the module crash when the interpreter shuts down.
    os._exit(0)


if __name__ == "__main__":
    main()
