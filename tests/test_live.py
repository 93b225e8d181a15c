"""Live solving, as the depsgraph evaluates it."""

from __future__ import annotations

import random

import bpy
import numpy as np
import pytest

from tests import rigs


def animated_arm() -> tuple[bpy.types.Object, bpy.types.Object]:
    """An arm whose upper bone is keyed and whose lower bone is not, with a moving target."""
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.5, 0.9, 0.8), 50: (0.2, -0.7, 1.4)})
    upper = ob.pose.bones["upper"]
    rigs.key(upper, "rotation_quaternion", {1: (1, 0, 0, 0), 30: (0.9, 0.1, 0.3, 0.0), 50: (0.8, -0.2, 0, 0.3)})
    ob.pose.bones["lower"].rotation_quaternion = (0.98, 0.0, 0.17, 0.1)
    bpy.context.scene.frame_set(1)
    ob.ik_addon.live = True
    return ob, target


def test_follows_in_playback() -> None:
    ob, target = animated_arm()
    for frame in range(1, 51):
        bpy.context.scene.frame_set(frame)
        assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5


def test_pose_is_a_pure_function_of_the_frame() -> None:
    ob, _target = animated_arm()
    frames = list(range(1, 51))
    poses = {}
    for order in (frames, frames[::-1], random.Random(5).sample(frames, len(frames))):
        for frame in order:
            bpy.context.scene.frame_set(frame)
            pose = rigs.pose(ob).tobytes()
            assert poses.setdefault(frame, pose) == pose, f"frame {frame} depends on the frames before it"


def test_follows_while_the_target_moves() -> None:
    ob, target = rigs.arm()
    ob.ik_addon.live = True
    for x in np.linspace(-0.8, 0.8, 9):
        target.location.x = x
        bpy.context.view_layer.update()
        assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5
