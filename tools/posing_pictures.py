"""Render the pictures of the guide's page on posing: part of `python3 tools/dev.py pictures`.

Needs no window: Cycles renders on the CPU, for some minutes.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import bpy
import numpy as np
from mathutils import Vector
from numpy.typing import NDArray

from benchmarks.beside import AutoIK, Constraints
from tools import animated_png, blender, demo, moving_picture, sample_pictures, scenery
from tools.environments import ROOT

IMAGES = ROOT / "docs" / "images"
SIZE = 330, 330
"""Size of a picture, in pixels."""
STEP = 2
"""Frame interval between the pictures."""
RATE = 12
"""Pictures per second."""
HAND = "hand.L"
PLACES = {
    "posing_human": {
        1: (0.6, 0.0, 1.07),
        13: (0.2, -0.6, 0.45),
        25: (0.35, -0.15, 1.9),
        37: (1.0, -0.1, 1.35),
        49: (0.6, 0.0, 1.07),
    },
    "posing_horse": {
        1: (0.0, -1.38, 1.62),
        13: (0.2, -1.25, 0.2),
        25: (-0.15, -1.3, 0.3),
        37: (0.75, -0.85, 1.5),
        49: (0.0, -1.38, 1.62),
    },
}
"""By sample, where the hand or the muzzle goes on some frames, up to the one after the last."""
REACH = {
    1: (0.5, -0.1, 0.9),
    15: (0.42, -0.48, 0.83),
    27: (0.05, -0.56, 0.8),
    39: (0.42, -0.48, 0.83),
    49: (0.5, -0.1, 0.9),
}
"""Where the hand goes that passes through a table."""
TABLE = (0.7, 0.55, 0.05), (-0.1, -0.7, 0.84)
"""Size and place of the table top."""
DEEPEST, LIFT = 27, Vector((0.0, 0.0, 0.15))
"""The frame on which the hand is dragged out, and how far."""
AWAY = Vector((-0.3, -0.6, -0.55))
"""Offset of the hand from rest, in the comparison with Auto IK and constraints."""


def opened(name: str) -> bpy.types.Object:
    """Open a sample; return its armature."""
    bpy.ops.wm.open_mainfile(filepath=str(sample_pictures.SAMPLES / f"{name}.blend"))
    (rig,) = (ob for ob in bpy.context.scene.objects if ob.type == "ARMATURE")
    return rig


def goal(place: Vector) -> bpy.types.Object:
    """Add a ball where a bone should go."""
    return scenery.ball("Goal", 0.075, place, scenery.material("Goal", (0.8, 0.05, 0.03)))


def path(places: dict[int, tuple[float, float, float]]) -> Iterator[tuple[int, Vector]]:
    """Yield each frame with its place, easing from place to place."""
    for (first, start), (last, end) in pairwise(places.items()):
        for frame in range(first, last):
            share = 0.5 - 0.5 * math.cos(math.pi * (frame - first) / (last - first))
            yield frame, Vector(start).lerp(Vector(end), share)


def follow(rig: bpy.types.Object, places: dict[int, tuple[float, float, float]], *, use_tail: bool = False) -> None:
    """Key poses on every frame in which the active bone goes to places."""
    operators: Any = bpy.ops
    start = {bone: bone.matrix_basis.copy() for bone in rig.pose.bones}
    poses = {}
    for frame, place in path(places):
        for bone, basis in start.items():
            bone.matrix_basis = basis
        operators.ik_addon.pose_body(location=place, use_tail=use_tail)
        poses[frame] = {bone: bone.matrix_basis.copy() for bone in rig.pose.bones}
    for frame, pose in poses.items():
        for bone, basis in pose.items():
            bone.matrix_basis = basis
            bone.keyframe_insert("location", frame=frame)
            bone.keyframe_insert("rotation_quaternion", frame=frame)


def frames_of(samples: int) -> NDArray[np.uint8]:
    """Render the frames of the sample that is open."""
    scene = bpy.context.scene
    return moving_picture.render(range(scene.frame_start, scene.frame_end + 1, STEP), samples, SIZE)


def encoded(pixels: NDArray[np.uint8]) -> bytes:
    """Return an animation of rendered frames."""
    return animated_png.encode(pixels, 1000 // RATE, moving_picture.COLORS, moving_picture.TOLERANCE)


def moving(name: str, samples: int) -> bytes:
    """Render a sample whose active bone follows a ball, frame by frame."""
    follow(opened(name), PLACES[name], use_tail=name == "posing_horse")
    ball = goal(Vector())
    for frame, place in path(PLACES[name]):
        ball.location = place
        ball.keyframe_insert("location", frame=frame)
    return encoded(frames_of(samples))


def mended(samples: int) -> bytes:
    """Render a clip in which a hand passes through a table, beside the same clip after one drag over a range."""
    rig, operators = opened("posing_human"), cast("Any", bpy.ops)
    follow(rig, REACH)
    wood, (x, y, z) = scenery.material("Table", (0.45, 0.25, 0.12)), TABLE[1]
    for part in (TABLE, ((0.1, 0.1, z), (x, y, 0.5 * z))):
        scenery.box("Table", *part, wood)
    render = bpy.context.scene.render
    whole = render.resolution_x, render.resolution_y
    before = frames_of(samples)
    render.resolution_x, render.resolution_y = whole
    bpy.context.scene.frame_set(DEEPEST)
    operators.ik_addon.pose_body(offset=LIFT, range=20)
    return encoded(np.concatenate([before, frames_of(samples)], axis=2))


def by_pose_body(_rig: bpy.types.Object) -> None:
    """Pose with the sample's pins."""
    operators: Any = bpy.ops
    operators.ik_addon.pose_body(bone=HAND, offset=AWAY)


def by_auto_ik(rig: bpy.types.Object) -> None:
    """Pose with Blender's Move."""
    way = AutoIK(rig)
    way.grab(HAND)
    way.move(AWAY)


def by_constraints(rig: bpy.types.Object) -> None:
    """Pose with IK constraints on arms and legs."""
    way = Constraints(rig)
    way.grab(HAND)
    way.move(AWAY)


def beside(pose: Callable[[bpy.types.Object], None], samples: int) -> NDArray[np.float32]:
    """Render the human with its hand moved in one of these ways; return the pixels (height, width, 4)."""
    rig = opened("posing_human")
    goal(rig.matrix_world @ rig.pose.bones[HAND].head + AWAY)
    pose(rig)
    scenery.crop(*SIZE)
    bpy.context.scene.cycles.samples = samples
    with tempfile.TemporaryDirectory() as folder:
        bpy.context.scene.render.filepath = str(Path(folder, "beside.png"))
        with demo.quiet():
            bpy.ops.render.render(write_still=True)
        return demo.load(bpy.context.scene.render.filepath)


def main() -> None:
    """Render the pictures."""
    parser = argparse.ArgumentParser(description="Render the pictures of the page on posing.")
    parser.add_argument("--samples", type=int, default=12, help="how often each pixel is sampled; more is smoother")
    samples = parser.parse_args().samples
    blender.enable()
    ways = (by_pose_body, by_auto_ik, by_constraints)
    still = IMAGES / "posing-beside.jpg"
    sample_pictures.save(np.concatenate([beside(way, 4 * samples) for way in ways], axis=1), still)
    print(f"Rendered {still.name}, {still.stat().st_size // 1024} kB")
    for name in PLACES:
        file = IMAGES / f"{name.replace('_', '-')}.png"
        file.write_bytes(moving(name, samples))
        print(f"Rendered {file.name}, {file.stat().st_size // 1024} kB", flush=True)
    file = IMAGES / "range.png"
    file.write_bytes(mended(samples))
    print(f"Rendered {file.name}, {file.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
    blender.leave(0)
