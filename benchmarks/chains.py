"""Chains side by side in one armature without keys: played, and baked."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import bpy

from ik_addon.bake import baking
from ik_addon.live import reports
from tests import rigs

from .timing import Case, Run, steps

FRAMES = 250
"""Number of frames of a bake, over which the targets are keyed."""
WARM = 3
"""Frames played before timing begins."""


@dataclass(frozen=True)
class Work:
    """The chains, and what else the scene contains."""

    chains: int
    bones: int
    limits: float | None = None
    """Degrees that each joint may turn about each axis, in both directions."""
    body: bool = False
    """All chains are children of one more bone."""
    meshes: int = 0
    """Subdivided meshes in the scene, of 100,000 faces each, that nothing depends on."""


def build(work: Work, solver: str) -> bpy.types.Object:
    """Return the armature of a new scene, with its chains solved by "ours", "blender" or "nobody"."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    scene = bpy.context.scene
    scene.frame_end = FRAMES
    ob = rigs.armature()
    _add_bones(ob, work)
    for c in range(work.chains):
        tip = f"c{c}b{work.bones - 1}"
        target = rigs.empty(f"target {c}")
        for frame in range(1, FRAMES + WARM + 2, 10):
            target.location = (c + 0.4 * math.sin(0.1 * frame), 0.4 * math.cos(0.13 * frame), 0.5)
            target.keyframe_insert("location", frame=frame)
        if solver == "ours":
            rigs.chain(ob, tip, target, work.bones, use_limits=work.limits is not None)
        elif solver == "blender":
            constraint = ob.pose.bones[tip].constraints.new("IK")
            constraint.target, constraint.chain_count = target, work.bones
    if work.limits is not None:
        for bone in ob.pose.bones:
            for axis in "xyz":
                setattr(bone, f"use_ik_limit_{axis}", True)
                setattr(bone, f"ik_min_{axis}", -math.radians(work.limits))
                setattr(bone, f"ik_max_{axis}", math.radians(work.limits))
    for i in range(work.meshes):
        _add_heavy_mesh(i)
    bpy.context.view_layer.update()
    return ob


def _add_bones(ob: bpy.types.Object, work: Work) -> None:
    """Add all chains, one unit apart and one unit long."""
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
    """Add a mesh that is slow on every frame: subdivided, and with a modifier that changes with time."""
    mesh = bpy.data.meshes.new("heavy")
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], [], [(0, 1, 2, 3)])
    ob = bpy.data.objects.new("heavy", mesh)
    bpy.context.scene.collection.objects.link(ob)
    subdivision = ob.modifiers.new("subdivision", "SUBSURF")
    subdivision.levels = subdivision.render_levels = 6
    wave = ob.modifiers.new("wave", "WAVE")  # changes with time
    wave.height = 0.1 + 0.01 * index


def live(work: Work, solver: str, frames: int, _number: int = 0) -> Run:
    """Return the milliseconds that a frame change takes; every timed frame is a new one."""
    ob = build(work, solver)
    if solver == "ours":
        ob.ik_addon.live = True
    show = bpy.context.scene.frame_set
    for frame in range(1, 1 + WARM):
        show(frame)
    took = steps((partial(show, frame) for frame in range(1 + WARM, 1 + WARM + frames)), frames)
    if solver == "ours" and work.limits is None:
        assert all(is_reached(ob, f"c{c}b{work.bones - 1}") for c in range(work.chains)), "a target was not reached"
    return took


def is_reached(ob: bpy.types.Object, tip: str) -> bool:
    """Return whether a chain reached its target."""
    found = reports.get(ob, tip)
    return found is not None and found.reached


def baked(work: Work, solver: str, frames: int = FRAMES, _number: int = 0) -> Run:
    """Return the seconds that a bake takes."""
    ob = build(work, solver)
    start = time.perf_counter()
    if solver == "ours":
        tips = [f"c{c}b{work.bones - 1}" for c in range(work.chains)]
        done = baking.bake(bpy.context, ob, tips, range(1, frames + 1))
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
    return Run(time.perf_counter() - start)


def _live_case(work: Work, aim: float | None = None) -> Case:
    return Case("ms", partial(live, work, "ours", FRAMES), partial(live, work, "blender", FRAMES), aim=aim)


def _bake_case(work: Work, aim: float) -> Case:
    return Case("s", partial(baked, work, "ours", FRAMES), partial(baked, work, "blender", FRAMES), aim=aim)


ONE, TEN, HUNDRED, SPIDER = Work(1, 10), Work(10, 10), Work(100, 10), Work(8, 2, body=True)

CASES = {
    "live-1x2": _live_case(Work(1, 2)),
    "live-1x10": _live_case(ONE, 1.0),
    "live-10x10": _live_case(TEN, 0.9),
    "live-100x10": _live_case(HUNDRED, 0.7),
    "live-1x10-limits-30": _live_case(Work(1, 10, limits=30.0), 1.5),
    "live-spider": _live_case(SPIDER, 1.0),
    "bake-1x10": _bake_case(ONE, 0.2),
    "bake-10x10": _bake_case(TEN, 0.1),
    "bake-100x10": _bake_case(HUNDRED, 0.1),
    # Compared with the same bake without the meshes.
    "bake-heavy": Case(
        "s", partial(baked, replace(TEN, meshes=50), "ours", FRAMES), partial(baked, TEN, "ours", FRAMES), aim=3.0
    ),
}
