"""Render the pictures of the guide's page on posing: part of `python3 tools/dev.py pictures`.

Needs no window: Cycles renders on the CPU, for some minutes. The samples are posed from the goal objects in them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def moving(name: str, samples: int) -> bytes:
    """Render a sample posed from its goals, frame by frame."""
    opened(name)
    goals = sample_pictures.SAMPLES / f"{name}.json"
    command = importlib.import_module(f"{blender.PACKAGE}.ik_addon.posing.command")
    if command.main([str(goals), "--strict"]) != 0:
        raise SystemExit(f"The goals of {name} are not reached.")
    ball = goal(Vector())
    for frame in json.loads(goals.read_text(encoding="utf-8"))["frames"]:
        ball.location = frame["goals"][0]["location"]
        ball.keyframe_insert("location", frame=frame["frame"])
    shown = range(bpy.context.scene.frame_start, bpy.context.scene.frame_end + 1, STEP)
    pixels = moving_picture.render(shown, samples, SIZE)
    return animated_png.encode(pixels, 1000 // RATE, moving_picture.COLORS, moving_picture.TOLERANCE)


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
    for name in ("posing_human", "posing_horse"):
        file = IMAGES / f"{name.replace('_', '-')}.png"
        file.write_bytes(moving(name, samples))
        print(f"Rendered {file.name}, {file.stat().st_size // 1024} kB", flush=True)


if __name__ == "__main__":
    main()
    blender.leave(0)
