"""How fast live solving, baking and the solver are, side by side with Blender's own IK on the same rigs and targets.

    python -m benchmarks.performance [--case NAME ...] [--runs N] [--growth]

with an interpreter that has bpy, from the project's folder. Of each case both sides run in turns, and the median of
their runs counts. Prints a table in Markdown and writes it to `build/bench/performance.json`; with `--growth` also how
the times grow, as `build/bench/growth.svg`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import bpy
import numpy as np

import ik_addon
from ik_addon.bake import bake
from ik_addon.live import reports
from ik_addon.solve import Limits, solve
from tests import rigs
from tests.solve.chains import aim, make_chains

from .growth import Curve, chart

OUTPUT = Path("build/bench")
FRAMES = 250
"""Frames of a bake, and those on which the targets are keyed."""
LIMIT = math.radians(30.0)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    case: str
    ours: float
    """Median of the runs, as the next one."""
    blender: float
    unit: str
    ratio: float
    """Ours / Blender's: smaller is better."""
    runs: int


@dataclass(frozen=True)
class Work:
    """Chains side by side in one armature, and how far the targets move."""

    chains: int
    bones: int
    limits: bool = False
    body: bool = False
    """All chains hang on one more bone."""
    meshes: int = 0
    """Subdivided meshes in the scene, of 100,000 faces each, that nothing needs."""


def build(work: Work, solver: str) -> bpy.types.Object:
    """Return the armature of a new scene, its chains solved by "ours", "blender" or "nobody"."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    scene = bpy.context.scene
    scene.frame_end = FRAMES
    ob = rigs.armature()
    _add_bones(ob, work)
    for c in range(work.chains):
        tip = f"c{c}b{work.bones - 1}"
        target = rigs.empty(f"target {c}")
        for frame in range(1, FRAMES + 2, 10):
            target.location = (c + 0.4 * math.sin(0.1 * frame), 0.4 * math.cos(0.13 * frame), 0.5)
            target.keyframe_insert("location", frame=frame)
        if solver == "ours":
            rigs.chain(ob, tip, target, work.bones, use_limits=work.limits)
        elif solver == "blender":
            constraint = ob.pose.bones[tip].constraints.new("IK")
            constraint.target, constraint.chain_count = target, work.bones
    for bone in ob.pose.bones if work.limits else ():
        for axis in "xyz":
            setattr(bone, f"use_ik_limit_{axis}", True)
            setattr(bone, f"ik_min_{axis}", -LIMIT)
            setattr(bone, f"ik_max_{axis}", LIMIT)
    for i in range(work.meshes):
        _add_heavy_mesh(i)
    bpy.context.view_layer.update()
    return ob


def _add_bones(ob: bpy.types.Object, work: Work) -> None:
    """Add all chains, a unit apart, each of length 1."""
    bpy.ops.object.mode_set(mode="EDIT")
    bones = ob.data.edit_bones
    body = None
    if work.body:
        body = bones.new("body")
        body.head, body.tail = (0, 0, -1), (0, 0, 0)
    points = rigs.bent(work.bones, 1.0 / work.bones, min(0.5, 1.0 / work.bones))
    for c in range(work.chains):
        above = body
        for i, (head, tail) in enumerate(pairwise(points)):
            bone = bones.new(f"c{c}b{i}")
            bone.head, bone.tail = ((x + c, y, z) for x, y, z in (head, tail))
            bone.parent, bone.use_connect = above, i > 0
            above = bone
    bpy.ops.object.mode_set(mode="OBJECT")


def _add_heavy_mesh(index: int) -> None:
    """Add a mesh that takes long on every frame: subdivided, and driven by what moves."""
    mesh = bpy.data.meshes.new("heavy")
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], [], [(0, 1, 2, 3)])
    ob = bpy.data.objects.new("heavy", mesh)
    bpy.context.scene.collection.objects.link(ob)
    subdivision = ob.modifiers.new("subdivision", "SUBSURF")
    subdivision.levels = subdivision.render_levels = 6
    wave = ob.modifiers.new("wave", "WAVE")  # changes with time
    wave.height = 0.1 + 0.01 * index


def live(work: Work, solver: str, frames: int) -> float:
    """Return the milliseconds that a change of the frame takes."""
    ob = build(work, solver)
    if solver == "ours":
        ob.ik_addon.live = True
    scene = bpy.context.scene
    for frame in range(1, 4):
        scene.frame_set(frame)
    start = time.perf_counter()
    for i in range(frames):
        scene.frame_set(1 + i % FRAMES)
    took = time.perf_counter() - start
    if solver == "ours" and not work.limits:
        assert all(report(ob, f"c{c}b{work.bones - 1}") for c in range(work.chains)), "a target was not reached"
    return 1e3 * took / frames


def report(ob: bpy.types.Object, tip: str) -> bool:
    """Return whether a chain reached its target."""
    found = reports.get(ob, tip)
    return found is not None and found.reached


def baked(work: Work, solver: str, frames: int = FRAMES) -> float:
    """Return the seconds that a bake takes."""
    ob = build(work, solver)
    start = time.perf_counter()
    if solver == "ours":
        tips = [f"c{c}b{work.bones - 1}" for c in range(work.chains)]
        done = bake.bake(bpy.context, ob, tips, range(1, frames + 1))
        assert done.plays_alike
    else:
        bpy.context.view_layer.objects.active = ob
        ob.select_set(True)
        bpy.ops.nla.bake(
            frame_start=1,
            frame_end=frames,
            only_selected=False,
            visual_keying=True,
            clear_constraints=True,
            bake_types={"POSE"},
        )
    return time.perf_counter() - start


def solver_alone(chains: int, bones: int, limits: bool = False, solves: int = 5) -> float:
    """Return the microseconds that the solver takes for each of many chains: the mean of some solves after the first.

    Blender's are the mean of many too, see `blender_alone`.
    """
    rng = np.random.default_rng(1)
    problem = replace(aim(make_chains(rng, chains, bones), rng, 0.15, 0.97), tolerance=1e-4)
    if limits:
        ranges = np.tile([-LIMIT, LIMIT], (bones, 3))
        rest = np.tile(np.eye(3), (bones, 1, 1))
        root = problem.frames[:, 0]
        problem = replace(problem, limits=Limits(rest, root, ranges[:, :4], ranges[:, 4:]))
    solve(problem)
    start = time.perf_counter()
    for _ in range(solves):
        solve(problem)
    return 1e6 * (time.perf_counter() - start) / (solves * chains)


def blender_alone(work: Work, solves: int = 300) -> float:
    """Return the microseconds of an update with Blender's IK on one chain, without those of the same update alone."""
    found = []
    for solver in ("blender", "nobody"):
        build(work, solver)
        target, layer = bpy.data.objects["target 0"], bpy.context.view_layer
        target.animation_data_clear()
        rng = np.random.default_rng(1)
        places = rng.normal(size=(solves, 3))
        places *= (rng.uniform(0.15, 0.97, solves) / np.linalg.norm(places, axis=1))[:, None]
        took = 0.0
        for place in places.tolist():
            target.location = place
            bpy.data.objects["Rig"].update_tag(refresh={"DATA"})
            start = time.perf_counter()
            layer.update()
            took += time.perf_counter() - start
        found.append(1e6 * took / solves)
    return found[0] - found[1]


Measure = Callable[[], float]

ONE, TEN, HUNDRED, SPIDER = Work(1, 10), Work(10, 10), Work(100, 10), Work(8, 2, body=True)
LIMITED = Work(1, 10, limits=True)


def _live_case(work: Work, frames: int) -> tuple[Measure, Measure]:
    return lambda: live(work, "ours", frames), lambda: live(work, "blender", frames)


def _bake_case(work: Work) -> tuple[Measure, Measure]:
    return lambda: baked(work, "ours"), lambda: baked(work, "blender")


CASES: dict[str, tuple[str, Measure, Measure]] = {
    "live-1x2": ("ms", *_live_case(Work(1, 2), 250)),
    "live-1x10": ("ms", *_live_case(ONE, 250)),
    "live-10x10": ("ms", *_live_case(TEN, 250)),
    "live-100x10": ("ms", *_live_case(HUNDRED, 250)),
    "live-1x10-limits-30": ("ms", *_live_case(LIMITED, 250)),
    "live-spider": ("ms", *_live_case(SPIDER, 250)),
    "bake-1x10": ("s", *_bake_case(ONE)),
    "bake-10x10": ("s", *_bake_case(TEN)),
    "bake-100x10": ("s", *_bake_case(HUNDRED)),
    # Against the same bake without the meshes.
    "bake-heavy": ("s", lambda: baked(replace(TEN, meshes=50), "ours"), lambda: baked(TEN, "ours")),
    "solve-1000x10": ("us", lambda: solver_alone(1000, 10), lambda: blender_alone(ONE)),
    "solve-1000x10-limits-30": ("us", lambda: solver_alone(1000, 10, limits=True), lambda: blender_alone(LIMITED)),
    # Per chain and per bone: the larger against the smaller.
    "growth-chains": ("us", lambda: solver_alone(10_000, 10), lambda: solver_alone(1000, 10)),
    "growth-bones": ("us", lambda: solver_alone(10, 1000) / 1000, lambda: solver_alone(10, 100) / 100),
}


def measure(case: str, runs: int) -> Row:
    """Return the row of a case; both sides take turns."""
    unit, ours, theirs = CASES[case]
    pairs = [(ours(), theirs()) for _ in range(runs)]
    medians = [statistics.median(side) for side in zip(*pairs, strict=True)]
    return Row(case, round(medians[0], 4), round(medians[1], 4), unit, round(medians[0] / medians[1], 3), runs)


def table(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the table in Markdown."""
    yield "| case | ours | Blender | unit | ratio |"
    yield "|---|---|---|---|---|"
    for row in rows:
        yield f"| `{row.case}` | {row.ours:.3g} | {row.blender:.3g} | {row.unit} | {row.ratio:.2f} |"


def idle(frames: int = 2000) -> tuple[float, float]:
    """Return what the extension costs where it is not used: milliseconds to enable it, microseconds on each frame."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    scene = bpy.context.scene
    took = {True: math.inf, False: math.inf}
    enabling = math.inf
    for _ in range(5):
        for enabled in (True, False):
            start = time.perf_counter()
            for i in range(frames):
                scene.frame_set(1 + i % FRAMES)
            took[enabled] = min(took[enabled], 1e6 * (time.perf_counter() - start) / frames)
            if enabled:
                ik_addon.unregister()
        start = time.perf_counter()
        ik_addon.register()
        enabling = min(enabling, 1e3 * (time.perf_counter() - start))
    return enabling, took[True] - took[False]


def growth() -> str:
    """Return how the times grow, as a chart in SVG."""
    sizes = [1, 3, 10, 30, 100, 300, 1000]

    def frames_of(size: int) -> int:
        return max(50, min(250, 5000 // size))

    panels: dict[str, tuple[list[int], Callable[[int, str], float]]] = {
        "chains of 10 bones, ms a frame": (sizes, lambda n, solver: live(Work(n, 10), solver, frames_of(n))),
        "bones of one chain, ms a frame": ([2, *sizes[1:]], lambda n, solver: live(Work(1, n), solver, frames_of(n))),
        "frames of a bake of 10 bones, s": ([10 * n for n in sizes], lambda n, solver: baked(ONE, solver, n)),
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
    for case in CASES:
        if arguments.case is None or case.startswith(tuple(arguments.case)):
            rows.append(measure(case, arguments.runs))
            print(case, file=sys.stderr, flush=True)
    enabling, frame = idle()
    print("\n".join(table(rows)))
    print(f"\nEnabling takes {enabling:.1f} ms; a scene without chains pays {frame:.2f} us a frame.")
    text = json.dumps([asdict(row) for row in rows], indent=1)
    (OUTPUT / "performance.json").write_text(text + "\n", encoding="utf-8")
    if arguments.growth:
        (OUTPUT / "growth.svg").write_text(growth(), encoding="utf-8")
    sys.stdout.flush()
    # Some versions of the module end badly when the interpreter tears it down.
    os._exit(0)


if __name__ == "__main__":
    main()
