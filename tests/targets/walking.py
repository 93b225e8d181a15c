"""Walking legs on moving hips, for tests of snapping."""

from __future__ import annotations

import math
from typing import Any

import bpy
import numpy as np
from mathutils import Euler
from numpy.typing import NDArray

from tests import rigs
from tests.reliability.states import add

FRAMES = range(1, 31)


def walker(controls: str = "EMPTIES") -> bpy.types.Object:
    """Return a pelvis with one leg, keyed on all frames, straight on some, with a foot, and with a chain on the leg."""
    ob = rigs.limb([(0, 0, 1.0), (0, 0, 1.2), (0, 0, 1.6), (0, 0, 1.8)], ["hips", "chest", "head"], name="Walker")
    rigs.add_bones(
        ob, [(0.1, 0, 1.0), (0.1, 0, 0.5), (0.1, 0, 0.1)], ["thigh.L", "shin.L"], parent="hips", connect=False
    )
    rigs.add_bones(ob, [(0.1, 0, 0.1), (0.1, -0.2, 0.0)], ["foot.L"], parent="shin.L")
    for bone in ob.pose.bones:
        bone.rotation_mode = "XYZ"
    bones = ob.pose.bones
    for frame in FRAMES:
        phase = 2.0 * math.pi * frame / 24.0
        bones["hips"].location = (0.05 * math.sin(phase), 0.0, 0.05 * frame)
        bones["hips"].rotation_euler = Euler((0.1, 0.3 * math.sin(phase), 0.02 * frame))
        bones["thigh.L"].rotation_euler = Euler((0.6 * math.sin(phase), 0.2 * math.cos(phase), 0.1))
        bones["shin.L"].rotation_euler = Euler((max(0.0, 0.9 * math.sin(phase + 1.0)), 0.0, 0.0))
        bones["foot.L"].rotation_euler = Euler((0.3 * math.sin(phase), 0.0, 0.2))
        bones["hips"].keyframe_insert("location", frame=frame)
        for name in ("hips", "thigh.L", "shin.L", "foot.L"):
            bones[name].keyframe_insert("rotation_euler", frame=frame)
    bpy.context.scene.frame_set(1)
    add(ob, "shin.L", tip="shin.L", chain_length=2, controls=controls)
    return ob


def played(ob: bpy.types.Object, frames: range = FRAMES) -> NDArray[Any]:
    """Return the evaluated pose matrices (frames, bones, 4, 4)."""
    return np.array([pose.reshape(-1, 4, 4) for pose in rigs.poses_at(ob, frames).values()])


def paths(goal: bpy.types.Object, frames: range = FRAMES) -> NDArray[Any]:
    """Return the world positions (frames, 3) of an object."""
    return np.array(list(rigs.on_frames(frames, lambda: rigs.position(goal)).values()))


def off_the_line(ob: bpy.types.Object, pole: bpy.types.Object, frames: range = FRAMES) -> NDArray[Any]:
    """Return a pole's distance (frames,) from the line from hip to ankle."""

    def off() -> float:
        line = rigs.tail(ob, "shin.L") - rigs.head(ob, "thigh.L")
        line /= np.linalg.norm(line)
        seen = rigs.position(pole) - rigs.head(ob, "thigh.L")
        return float(np.linalg.norm(seen - (seen @ line) * line))

    return np.array(list(rigs.on_frames(frames, off).values()))
