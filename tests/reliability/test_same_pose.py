"""Every way to a frame gives the same pose, tested where rounding shows most: a target beyond narrow limits."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Quaternion, Vector
from numpy.random import Generator
from numpy.typing import NDArray

from tests import rigs

OPERATORS: Any = bpy.ops
FRAMES = (1, 4, 7, 10, 13, 16, 20)
KEYED = (1, 7, 13, 20)
BONES = ("b0", "b1", "b2")
SAME = 1e-6
"""In lengths of the chain."""


def turn(rng: Generator, bones: Iterable[bpy.types.PoseBone], amount: float) -> None:
    for bone in bones:
        for frame in KEYED:
            axis, angle = Vector(rng.normal(size=3).tolist()).normalized(), amount * float(rng.normal())
            rigs.key(bone, "rotation_quaternion", {frame: Quaternion(axis, angle)})


def build(carried_by: str, rng: Generator) -> bpy.types.Object:
    """A keyed chain of length 1 with limits, and a target out of reach that is attached to `carried_by`."""
    ob = rigs.armature()
    rigs.add_bones(ob, [(0, 0, -1), (0, 0, 0)], ["root"])
    rigs.add_bones(ob, rigs.bent(len(BONES), 1.0 / len(BONES)), BONES, parent="root")
    ob.location, ob.rotation_euler = rng.normal(size=3).tolist(), rng.normal(size=3).tolist()
    for bone in ob.pose.bones:
        for axis, share in (("x", 1.0), ("y", 0.35), ("z", 1.0)):
            setattr(bone, f"use_ik_limit_{axis}", True)
            setattr(bone, f"ik_min_{axis}", -share * rng.uniform(0.5, 1.0))
            setattr(bone, f"ik_max_{axis}", share * rng.uniform(0.5, 1.0))
    turn(rng, ob.pose.bones, 0.15)
    bpy.context.view_layer.update()
    target = rigs.empty("Target")
    for frame in KEYED:
        away = rng.normal(size=3)
        away *= rng.uniform(1.1, 1.5) / np.linalg.norm(away)
        rigs.key(target, "location", {frame: ob.matrix_world @ Vector(away.tolist())})
    if carried_by == "a constraint":
        anchor: Any = target.constraints.new("CHILD_OF")
        anchor.target = rigs.empty("Anchor")
        rigs.key(anchor.target, "location", {1: (0, 0, 0), 20: (0.1, 0.1, -0.1)})
    elif carried_by == "an armature":
        other = rigs.armature("Other")
        rigs.add_bones(other, [(0, 0, 0), (0, 0.1, 0.5), (0, 0, 1)], ["lower", "hand"])
        other.location = (0.3, 0.2, -0.4)
        turn(rng, other.pose.bones, 0.2)
        target.parent, target.parent_type, target.parent_bone = other, "BONE", "hand"
    rigs.chain(ob, BONES[-1], target, len(BONES))
    return ob


def played(frames: Iterable[int]) -> dict[int, NDArray[np.float32]]:
    found = {}
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found[frame] = rigs.pose(bpy.data.objects["Rig"])
    return found


@pytest.mark.parametrize("carried_by", ["nothing", "a constraint", "an armature"])
@pytest.mark.parametrize("seed", [2, 3])
def test_opening_on_any_frame_playing_in_any_order_and_baking_give_the_same_pose(
    carried_by: str, seed: int, tmp_path: Path
) -> None:
    ob = build(carried_by, np.random.default_rng(seed))
    for frame in (1, 20):
        bpy.context.scene.frame_set(frame)
        ob.ik_addon.live = True
        bpy.context.view_layer.update()
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / f"{frame}.blend"), copy=True)
        ob.ik_addon.live = False
    ways = []
    for frame, order in ((1, FRAMES), (20, FRAMES[::-1]), (20, (*FRAMES[1::2], *FRAMES[::2]))):
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / f"{frame}.blend"))
        ways.append(played(order))
    bpy.context.view_layer.objects.active = bpy.data.objects["Rig"]
    OPERATORS.ik_addon.bake(frame_range="CUSTOM", frame_start=1, frame_end=20)
    bpy.data.objects["Rig"].ik_addon.live = False
    ways.append(played(FRAMES))
    first = ways[0]
    assert np.abs(first[1] - first[20]).max() > 0.01
    for way in ways[1:]:
        assert max(float(np.abs(way[frame] - first[frame]).max()) for frame in FRAMES) <= SAME
