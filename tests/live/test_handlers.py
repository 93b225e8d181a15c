"""Live solving, as the depsgraph evaluates it."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon


def test_a_cancelled_gesture_leaves_the_fk_pose_unchanged() -> None:
    ob, _target = rigs.arm()
    before = rigs.channels(ob)
    rigs.go_live(ob)
    lower = ob.pose.bones["lower"]
    solved = lower.rotation_quaternion.copy()
    for step in (0.1, 0.2, 0.3):
        lower.rotation_quaternion = (1.0, 0.0, step, 0.0)
        bpy.context.view_layer.update()
    lower.rotation_quaternion = solved  # what Esc restores
    bpy.context.view_layer.update()
    ob.ik_addon.live = False
    assert np.array_equal(rigs.channels(ob), before)


def test_a_bone_moved_while_a_setting_changes_leaves_the_keyed_fk_pose_unchanged() -> None:
    ob, _target = rigs.animated_arm()
    rigs.change(ob.ik_addon, live=False)
    before = ob.pose.bones["upper"].rotation_quaternion.copy()
    rigs.go_live(ob)
    ob.pose.bones["lower"].location = (0.0, 0.1, 0.0)
    ob.pose.bones["lower"].ik_addon.chain_length = 1
    rigs.change(ob.pose.bones["lower"].ik_addon, chain_length=2)
    ob.ik_addon.live = False
    assert np.array_equal(ob.pose.bones["upper"].rotation_quaternion, before)


@pytest.mark.parametrize("field", ["location", "scale"])
@pytest.mark.parametrize("update", [False, True])
def test_keys_of_a_solved_bone_play_when_their_frame_is_set_again(field: str, update: bool) -> None:
    ob, _target = rigs.arm()
    rigs.go_live(ob)
    upper = ob.pose.bones["upper"]
    shown = getattr(upper, field).copy()
    rigs.key(upper, field, {1: (0.5, 0.6, 0.7), 20: (1.0, 1.0, 1.0)})
    setattr(upper, field, shown)
    if update:
        bpy.context.view_layer.update()
    bpy.context.scene.frame_set(1)
    assert tuple(getattr(upper, field)) == pytest.approx((0.5, 0.6, 0.7))
    again = rigs.pose(ob)
    for frame in (20, 1):
        bpy.context.scene.frame_set(frame)
    assert np.abs(rigs.pose(ob) - again).max() < rigs.SAME


def now(ob: bpy.types.Object) -> rigs.Poses:
    bpy.context.view_layer.update()
    return {0: rigs.pose(ob)}


@pytest.mark.parametrize("solver", ["AUTO", "FABRIK"])
def test_setting_the_iterations_takes_effect_at_once(addon: Addon, solver: str) -> None:
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.bent(6), [f"bone.{i}" for i in range(6)])
    for bone in ob.pose.bones:
        bone.use_ik_limit_x, bone.ik_min_x, bone.ik_max_x = True, -0.9, 0.9
        bone.lock_ik_y = bone.lock_ik_z = True
    rigs.chain(ob, "bone.5", rigs.empty("Target", (0.0, 2.5, 1.0)), 6, solver=solver, iterations=1)
    rigs.go_live(ob)
    before = now(ob)
    ob.pose.bones["bone.5"].ik_addon.iterations = 100
    edited = now(ob)
    assert rigs.apart(edited, before)
    addon.module("live.registry").clear()
    bpy.context.scene.frame_set(1)
    assert not rigs.apart(now(ob), edited)
