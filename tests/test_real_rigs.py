"""Rigs from elsewhere: a recorded walk with its own skeleton, and Blender's human metarig."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest
from mathutils import Vector
from numpy.typing import NDArray

from tests import recorded, rigs
from tests.rigs_generated import armature_of, rigify
from tools import blender

if TYPE_CHECKING:
    from tests.conftest import Addon

__all__ = ["rigify"]
Points = NDArray[np.float64]


def addon_utils() -> Any:
    """Return Blender's module for enabling add-ons."""
    return importlib.import_module("addon_utils")


# ---- a recorded walk: unconnected bones, Euler angles, legs that are straight on many frames


@dataclass
class Leg:
    """A leg of the walker, with the recorded positions of its joints on each frame."""

    thigh: str
    shin: str
    length: float
    knees: Points
    """(frames, 3)"""
    ankles: Points
    """(frames, 3)"""


@dataclass
class Walk:
    """The walker, with chains on its legs that follow the recording."""

    ob: bpy.types.Object
    frames: range
    legs: list[Leg]

    def check(self) -> None:
        """Check that ankles and knees are where they were recorded, on every frame."""
        joints = played(self.ob, [leg.shin for leg in self.legs], self.frames)
        for leg, (knees, ankles) in zip(self.legs, joints, strict=True):
            assert np.linalg.norm(ankles - leg.ankles, axis=1).max() < 1e-4 * leg.length
            assert np.linalg.norm(knees - leg.knees, axis=1).max() < 1e-3 * leg.length


def played(ob: bpy.types.Object, bones: list[str], frames: range) -> list[tuple[Points, Points]]:
    """Return the head and the tail of each bone on each frame, (frames, 3)."""
    heads: list[list[Points]] = [[] for _ in bones]
    tails: list[list[Points]] = [[] for _ in bones]
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        for i, bone in enumerate(bones):
            heads[i].append(rigs.head(ob, bone))
            tails[i].append(rigs.tail(ob, bone))
    return [(np.array(head), np.array(tail)) for head, tail in zip(heads, tails, strict=True)]


def copy_of(points: Points, frames: range, name: str) -> bpy.types.Object:
    """Add an empty that is keyed to these positions."""
    empty = rigs.empty(name)
    rigs.key(empty, "location", dict(zip(frames, points.tolist(), strict=True)))
    return empty


def delete_keys(addon: Addon, ob: bpy.types.Object, bones: list[str]) -> None:
    """Delete all keys of these bones and reset them to rest."""
    curves = addon.module("compat").curve_owner(ob).fcurves
    for name in bones:
        bone = ob.pose.bones[name]
        for curve in [curve for curve in curves if curve.data_path.startswith(bone.path_from_id() + ".")]:
            curves.remove(curve)
        bone.rotation_euler = (0.0, 0.0, 0.0)
        bone.location = (0.0, 0.0, 0.0)


@pytest.fixture
def walk(addon: Addon) -> Walk:
    """Return the walk, with live legs that have no keys of their own."""
    ob = recorded.walk()
    frames = range(bpy.context.scene.frame_start, bpy.context.scene.frame_end + 1, 3)
    shins = ["LeftLeg", "RightLeg"]
    legs = [
        Leg(ob.data.bones[shin].parent.name, shin, rigs.length(ob, shin, 2), knees, ankles)
        for shin, (knees, ankles) in zip(shins, played(ob, shins, frames), strict=True)
    ]
    delete_keys(addon, ob, [name for leg in legs for name in (leg.thigh, leg.shin)])
    for leg in legs:
        target = copy_of(leg.ankles, frames, f"{leg.shin} target")
        rigs.chain(ob, leg.shin, target, 2, pole=copy_of(leg.knees, frames, f"{leg.shin} pole"))
    bpy.context.view_layer.update()
    ob.ik_addon.live = True
    return Walk(ob, frames, legs)


def test_a_walk_matches_the_recording_live_and_baked_without_the_addon(walk: Walk) -> None:
    walk.check()
    bpy.context.view_layer.objects.active = walk.ob
    assert bpy.ops.ik_addon.bake() == {"FINISHED"}
    blender.disable()
    walk.check()


# ---- Blender's human metarig: five chains, four of which are attached to the fifth

CHAINS = (("spine.003", 4), ("forearm.L", 2), ("forearm.R", 2), ("shin.L", 2), ("shin.R", 2))
FRAMES = range(1, 31)


@dataclass
class Metarig:
    """The metarig with moving targets."""

    ob: bpy.types.Object
    targets: dict[str, bpy.types.Object]
    """By tip bone."""


def wave(middle: tuple[float, float, float], size: float, turns: float) -> dict[int, object]:
    """Return points around a center on all frames."""
    found: dict[int, object] = {}
    for frame in FRAMES:
        t = 2.0 * math.pi * turns * (frame - 1) / len(FRAMES)
        found[frame] = Vector(middle) + size * Vector((math.sin(t), math.sin(1.7 * t + 1.0), math.cos(1.3 * t)))
    return found


@pytest.fixture
def metarig(rigify: None) -> Metarig:
    """Set up the metarig; some of its bones are keyed, others are posed by hand."""
    ob = armature_of("human")
    bones = ob.pose.bones
    rigs.key(bones["spine"], "location", {1: (0, -0.05, 0), 30: (0.1, -0.1, 0.05), 60: (-0.1, -0.1, 0)})
    rigs.key(bones["spine.002"], "rotation_quaternion", {1: (1, 0, 0, 0), 60: (0.95, 0, 0.3, 0)})
    rigs.key(bones["upper_arm.L"], "rotation_quaternion", {1: (1, 0, 0, 0), 60: (0.9, 0.2, -0.3, 0.1)})
    # Euler angles, on a bone between two chains: child of one and parent of the other.
    rigs.key(bones["shoulder.R"], "rotation_euler", {1: (0, 0, 0), 60: (0.1, 0.2, 0.15)})
    bones["forearm.R"].rotation_quaternion = (0.97, 0.2, 0.1, 0.0)
    middles = {
        "spine.003": ((0.0, -0.05, 1.42), 0.06, 2.0),
        "forearm.L": ((0.35, -0.25, 1.35), 0.09, 3.0),
        "forearm.R": ((-0.35, -0.25, 1.35), 0.09, 2.0),
        "shin.L": ((0.12, -0.05, 0.2), 0.06, 1.0),
        "shin.R": ((-0.12, -0.05, 0.2), 0.06, 2.0),
    }
    targets = {}
    for tip, length in CHAINS:
        targets[tip] = rigs.empty(f"{tip} target")
        rigs.key(targets[tip], "location", wave(*middles[tip]))
        rigs.chain(ob, tip, targets[tip], length)
    bpy.context.scene.frame_set(FRAMES[0])
    return Metarig(ob, targets)


def test_metarig_follows_its_targets_with_five_chains_and_keeps_its_bones(metarig: Metarig) -> None:
    ob = metarig.ob
    ob.ik_addon.live = True
    chests = []
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        for tip, length in CHAINS:
            assert rigs.miss(ob, tip) < 1e-5 * rigs.length(ob, tip, length), f"'{tip}' on frame {frame}"
        chests.append(rigs.tail(ob, "spine.003"))
        for bone in rigs.evaluated(ob).pose.bones:
            assert (bone.tail - bone.head).length == pytest.approx(bone.bone.length, rel=1e-4, abs=1e-6)
            if bone.bone.use_connect:
                assert (bone.head - bone.parent.tail).length < 1e-6
    assert np.ptp(chests, axis=0).min() > 0.05, "the arms stay on their targets although the spine carries them about"


def test_metarig_gets_its_fk_pose_back(metarig: Metarig) -> None:
    ob = metarig.ob
    before = {}
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        before[frame] = rigs.channels(ob).tobytes(), rigs.pose(ob).tobytes()
    ob.ik_addon.live = True
    bpy.context.scene.frame_set(20)
    assert rigs.channels(ob).tobytes() != before[20][0]
    ob.ik_addon.live = False
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        assert (rigs.channels(ob).tobytes(), rigs.pose(ob).tobytes()) == before[frame], f"frame {frame}"


def test_metarig_plays_its_bake_without_the_addon(metarig: Metarig) -> None:
    ob = metarig.ob
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = FRAMES[0], FRAMES[-1]
    ob.ik_addon.live = True
    live = {}
    for frame in FRAMES:
        scene.frame_set(frame)
        live[frame] = rigs.pose(ob)
    bpy.context.view_layer.objects.active = ob
    assert bpy.ops.ik_addon.bake() == {"FINISHED"}
    blender.disable()
    for frame in FRAMES:
        scene.frame_set(frame)
        assert np.abs(rigs.pose(ob) - live[frame]).max() < 1e-5, f"frame {frame}"
