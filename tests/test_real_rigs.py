"""Blender's human metarig, with five chains, four of which are attached to the fifth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import bpy
import numpy as np
import pytest
from mathutils import Vector

from tests import rigs
from tests.rigs_generated import armature_of, rigify
from tools import blender

__all__ = ["rigify"]


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


def test_metarig_plays_its_bake_without_the_addon(metarig: Metarig) -> None:
    ob = metarig.ob
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = FRAMES[0], FRAMES[-1]
    ob.ik_addon.live = True
    live = rigs.poses_at(ob, FRAMES)
    bpy.context.view_layer.objects.active = ob
    assert bpy.ops.ik_addon.bake() == {"FINISHED"}
    blender.disable()
    for frame, pose in rigs.poses_at(ob, FRAMES).items():
        assert np.abs(pose - live[frame]).max() < 1e-5, f"frame {frame}"
