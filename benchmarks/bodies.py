"""Drag whole bodies: do pins and limits hold while a hand or the hips move, how fast do joints turn, what does it cost?

Run it with the Python of one of the environments: `python -m benchmarks.bodies --steps 2000`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Vector

from ik_addon.anatomy.body import Region, ends_of, root_of
from ik_addon.anatomy.figure import Figure
from ik_addon.anatomy.limbs import limb_of
from ik_addon.posing.drag import Ask, BodyDrag
from ik_addon.posing.read import Stand
from ik_addon.registration import register
from ik_addon.solve import Body, Grab, Pin, PosedBody, Poser
from ik_addon.solve.maths.cones import cone_of
from ik_addon.solve.maths.rotations import norm, quaternions
from ik_addon.solve.problem import Floats
from tests.solve.chains import violation
from tools.environments import ROOT

from .metarig import add_metarig, bones_of

OUTPUT = ROOT / "build" / "bodies.json"
STEP = 0.01
"""In units of the body's height / 1.8: a step of one centimeter, scaled from a human."""
FAST = 5.0
"""Degrees that a joint may turn in such a step."""
HELD, TURNED = 1e-4, 0.1
"""Tolerances for pins: a share of the height, and degrees."""


@dataclass(frozen=True)
class Drag:
    """A figure, the part of it that is dragged, and the path of the drag."""

    name: str
    body: Body
    pins: tuple[int, ...]
    grabbed: int
    height: float
    path: Floats
    """(F, 3)"""
    step: float
    """Distance between two places, in centimeters scaled from a human."""
    limb: int | None = None
    """The first bone of the limb that is dragged by its end."""


def sphere(middle: Floats, radius: float, count: int) -> Floats:
    """Return places (count, 3) evenly spaced on a spiral from pole to pole, ten times around."""
    share = np.linspace(0.0, 1.0, 20001)
    polar, around = np.pi * share, 20.0 * np.pi * share
    points = np.stack([np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)], axis=1)
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    at = np.linspace(0.0, way[-1], count)
    return np.asarray(middle + radius * np.stack([np.interp(at, way, points[:, i]) for i in range(3)], axis=1))


def box(middle: Floats, size: float, count: int) -> Floats:
    """Return places (count, 3) inside a box, row by row, there and back."""
    side = max(2, round(count ** (1 / 3)))
    steps = np.linspace(-0.5, 0.5, side) * size
    found = []
    for i, z in enumerate(steps):
        for j, y in enumerate(steps[:: 1 if i % 2 == 0 else -1]):
            found += [(x, y, z) for x in steps[:: 1 if (i + j) % 2 == 0 else -1]]
    return np.asarray(middle + np.array(found))


def drags(steps: int) -> Iterator[Drag]:
    """Build the figures one after another, and yield what is dragged."""
    human = _figure("human")
    bpy.ops.ik_addon.character_setup(live=False)
    yield from _drags("human", human, "hand.L", "upper_arm.L", steps)
    yield from _drags("horse", _figure("horse"), "f_toe.L", "upper_arm.L", steps)
    yield from _drags("bird", _figure("bird"), "head", "spine.006", steps)
    yield from _drags("spider", _spider(), "foot.0.L", "hip.0.L", steps)


def _figure(kind: str) -> bpy.types.Object:
    bones_of(kind)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    return add_metarig(kind)


def _spider() -> bpy.types.Object:
    """Build a body with eight legs, each of three bones and a foot, whose joints are hinges."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    ob = bpy.data.objects.new("spider", bpy.data.armatures.new("spider"))
    bpy.context.scene.collection.objects.link(ob)
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="EDIT")
    bones = ob.data.edit_bones
    body = bones.new("body")
    body.head, body.tail = (0.0, 0.3, 0.5), (0.0, -0.3, 0.5)
    for side, sign in (("L", 1.0), ("R", -1.0)):
        for leg in range(4):
            angle = np.radians(60.0 - 40.0 * leg)
            x, y = sign * np.cos(angle), np.sin(angle)
            above = body
            points = [(0.2, 0.5), (0.5, 0.8), (0.9, 0.6), (1.1, 0.0), (1.15, -0.02)]
            places = [(x * out, y * out, height) for out, height in points]
            for name, head, tail in zip(("hip", "leg", "shin", "foot"), places, places[1:], strict=False):
                bone = bones.new(f"{name}.{leg}.{side}")
                bone.head, bone.tail, bone.parent = head, tail, above
                bone.align_roll((0.0, 0.0, 1.0))
                above = bone
    bpy.ops.object.mode_set(mode="POSE")
    for pose_bone in ob.pose.bones:
        if pose_bone.name.startswith(("leg", "shin")):
            pose_bone.lock_ik_y = pose_bone.lock_ik_z = True
            pose_bone.use_ik_limit_x, pose_bone.ik_min_x, pose_bone.ik_max_x = True, -1.2, 1.2
    return ob


def _drags(name: str, ob: bpy.types.Object, end: str, top: str, steps: int) -> Iterator[Drag]:
    bpy.context.view_layer.update()
    figure = Figure.of(ob)
    root = figure.names[root_of(figure, figure.names.index(end))]
    stand = Stand.of(bpy.context.evaluated_depsgraph_get(), ob, root)
    body, index = stand.body, stand.index
    assert body.root is not None
    feet = tuple(index[figure.names[foot]] for foot in ends_of(figure, Region.LEG))
    if name == "spider":
        feet = tuple(i for bone, i in index.items() if bone.startswith("foot"))
    height = float(np.ptp(body.heads, axis=0).max())
    grabbed, middle = index[end], body.heads[index[top]]
    unit = STEP * height / 1.8
    radius = float(np.linalg.norm(body.heads[grabbed] - middle))
    path = sphere(middle, radius, steps)
    others, limb = tuple(foot for foot in feet if foot != grabbed), limb_of(figure, figure.names.index(end))
    first = index[figure.names[limb[0]]] if limb else None
    yield Drag(f"{name}, {end} around", body, others, grabbed, height, path, _step(path) / unit, first)
    leg = max(float(np.linalg.norm(body.heads[foot] - body.heads[body.root])) for foot in feet)
    hips = box(body.heads[body.root] - [0.0, 0.0, 0.25 * leg], 0.5 * leg, steps)
    yield Drag(f"{name}, hips in a box", body, feet, body.root, height, hips, _step(hips) / unit)


def _step(path: Floats) -> float:
    return float(np.median(np.linalg.norm(np.diff(path, axis=0), axis=1)))


def measure(drag: Drag, repeats: int) -> dict[str, object]:
    """Return the figures of a drag. Each pose is solved `repeats` times, and the least time counts."""
    body = drag.body
    poser = Poser(body, [Pin(bone) for bone in drag.pins], [Grab(drag.grabbed, np.zeros(3), limb=drag.limb)])
    times, poses = [], []
    for place in drag.path:
        took = []
        for _ in range(repeats):
            begin, cpu = time.perf_counter(), time.process_time()
            posed = poser.pose([place])
            took.append((time.perf_counter() - begin, time.process_time() - cpu))
        poses.append(posed)
        times.append(took)
    milliseconds = 1e3 * np.array(times).min(axis=1)
    first = 1e3 * np.array(times)[:, 0, 0]
    speeds = _speeds(body, poses) / drag.step
    held = np.array([p.pin_error < HELD * drag.height and np.degrees(p.pin_turn) < TURNED for p in poses])
    before = outside(body, body.frames)
    broken = sum(bool((outside(body, pose.frames) > before + 1e-5).any()) for pose in poses)
    again = [poser.pose([place]) for place in drag.path[::-97]]
    alike = all((one.frames == other.frames).all() for one, other in zip(again, poses[::-97], strict=True))
    errors = np.array([pose.error for pose in poses]) / drag.height
    return {
        "drag": drag.name,
        "steps": len(poses),
        "joints": len(poser.tree.bones),
        "pins_held": float(held.mean()),
        "reached_1e-3": float((errors < 1e-3).mean()),
        "limits_broken": broken,
        "below_5": float((speeds < FAST).mean()),
        "fast": int((speeds >= FAST).sum()),
        "fastest": float(speeds.max()),
        "backwards_alike": alike,
        "ms": [float(np.median(milliseconds[:, 0])), float(milliseconds[:, 0].max())],
        "cpu_ms": [float(np.median(milliseconds[:, 1])), float(milliseconds[:, 1].max())],
        "cpu_ms_99": float(np.quantile(milliseconds[:, 1], 0.99)),
        "first_ms": [float(np.median(first)), float(first.max())],
    }


def measure_character(steps: int) -> dict[str, object]:
    """Return the figures of a drag of the hips of a human with chains on all parts: solving, and posing the armature.

    Places that the legs can't reach are left out of how far off the hips are.
    """
    ob = _figure("human")
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.ik_addon.character_setup()
    drag, bones = BodyDrag(bpy.context, ob, Ask("spine")), ob.pose.bones
    start = {name: bones[name].head.copy() for name in ("spine", "foot.L", "foot.R")}
    leg = (bones["thigh.L"].head - bones["foot.L"].head).length
    took, off, slid = [], [], []
    for place in box(np.array([0.0, 0.0, -0.25 * leg]), 0.5 * leg, steps):
        begin = time.process_time()
        posed = drag.move(bpy.context, Vector(place.tolist()))
        took.append(time.process_time() - begin)
        slid.append(max((bones[foot].head - start[foot]).length for foot in ("foot.L", "foot.R")) / leg)
        if not posed.held_by:
            off.append((bones["spine"].head - start["spine"] - Vector(place.tolist())).length)
    return {
        "drag": "set-up human, hips in a box",
        "steps": len(took),
        "reached": len(off),
        "off_mm": 1e3 * max(off),
        "feet_slid": max(slid),
        "cpu_ms": [1e3 * float(np.median(took)), 1e3 * max(took)],
        "cpu_ms_99": 1e3 * float(np.quantile(took, 0.99)),
    }


def _local(body: Body, frames: Floats) -> Floats:
    parents = np.asarray(body.parents)
    above = np.where((parents >= 0)[:, None, None], frames[parents], np.eye(3))
    return np.einsum("nji,njk->nik", above, frames)


def outside(body: Body, frames: Floats) -> Floats:
    """Return how far joints (n,) are outside of their limits; the root has none."""
    assert body.rest is not None
    assert body.cones is not None
    assert body.twist is not None
    joints = np.einsum("nji,njk->nik", body.rest, _local(body, frames))
    found = violation(quaternions(joints.transpose(1, 2, 0)), cone_of(body.cones, body.twist))
    found[body.root] = 0.0
    return found


def _speeds(body: Body, poses: list[PosedBody]) -> Floats:
    """Return the largest angle in degrees by which any joint turns in each step."""
    joints = np.array([_local(body, pose.frames) for pose in poses])
    q = quaternions(np.einsum("fnji,fnjk->fnik", joints[:-1], joints[1:]).transpose(2, 3, 0, 1))
    return np.asarray(np.degrees(2.0 * np.arctan2(norm(q[1:]), np.abs(q[0]))).max(axis=1))


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=2000, help="steps of each drag (2000)")
    parser.add_argument("--repeats", type=int, default=3, help="times that each pose is found; the least counts (3)")
    parser.add_argument("--drag", help="measure only the drags that begin like this")
    arguments = parser.parse_args()
    register()
    rows = []
    if arguments.drag is None or "set-up human".startswith(arguments.drag):
        rows.append(measure_character(arguments.steps))
        print(json.dumps(rows[-1]), flush=True)
    for drag in drags(arguments.steps):
        if arguments.drag is None or drag.name.startswith(arguments.drag):
            rows.append(measure(drag, arguments.repeats))
            print(json.dumps(rows[-1]), flush=True)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    sys.stdout.flush()
    # Some versions of the module crash when the interpreter shuts down.
    os._exit(0)


if __name__ == "__main__":
    main()
