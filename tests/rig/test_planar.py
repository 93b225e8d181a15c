"""Planar chains, in the written pose as the depsgraph evaluates it."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
from mathutils import Euler, Vector

from tests import rigs
from tests.conftest import Addon


def flat_arm(bones: int) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a chain drawn in the XZ plane, below a body, and a target that moves in front of that plane."""
    ob = rigs.armature()
    rigs.add_bones(ob, [(0, 0, 0), (0, 0, 1)], ["body"])
    points = [(0.5 * math.sin(0.3 * i), 0.0, 1.0 + i) for i in range(bones + 1)]
    rigs.add_bones(ob, points, [f"b{i}" for i in range(bones)], parent="body")
    target = rigs.empty("Target")
    for frame in range(1, 31):
        angle = frame / 30 * 2 * math.pi
        target.location = (
            0.6 * bones * math.cos(angle),
            -2.0 + math.sin(3 * angle),
            1.0 + 0.5 * bones * math.sin(angle),
        )
        target.keyframe_insert("location", frame=frame)
    rigs.chain(ob, f"b{bones - 1}", target, bones, planar=True)
    return ob, target


@pytest.mark.parametrize("bones", [2, 5])
def test_a_planar_chain_stays_in_its_plane_below_the_target(bones: int) -> None:
    ob, target = flat_arm(bones)
    ob.ik_addon.live = True
    for frame in range(1, 31):
        bpy.context.scene.frame_set(frame)
        done = rigs.evaluated(ob)
        for i in range(bones):
            assert abs(done.pose.bones[f"b{i}"].tail.y) < 1e-5
            bone = done.pose.bones[f"b{i}"]
            turn = bone.matrix.to_3x3() @ bone.bone.matrix_local.to_3x3().inverted()
            assert (turn @ Vector((0, 1, 0)) - Vector((0, 1, 0))).length < 1e-5
        tail, goal = rigs.tail(ob, f"b{bones - 1}"), rigs.position(target)
        assert np.hypot(tail[0] - goal[0], tail[2] - goal[2]) < 1e-5 * bones


def test_the_plane_turns_with_the_body() -> None:
    ob, target = flat_arm(3)
    target.animation_data_clear()
    body = ob.pose.bones["body"]
    body.rotation_quaternion = Euler((0.4, 0.8, -0.3)).to_quaternion()
    bpy.context.view_layer.update()
    target.location = body.matrix @ Vector((1.2, 2.0, 0.7))
    rigs.go_live(ob)
    turn = rigs.evaluated(ob).pose.bones["body"].matrix.inverted()
    rest = ob.data.bones["body"].matrix_local
    for i in range(3):
        tail = rest @ turn @ rigs.evaluated(ob).pose.bones[f"b{i}"].tail
        assert abs(tail.y) < 1e-5


def test_report_says_that_planar_has_no_effect_with_limits(addon: Addon) -> None:
    ob, _target = flat_arm(2)
    ob.pose.bones["b1"].lock_ik_y = True
    rigs.go_live(ob)
    assert any("Stay in Plane" in remark for remark in addon.report(ob, "b1").remarks)
