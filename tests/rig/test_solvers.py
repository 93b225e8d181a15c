"""Chains as Blender shows them: each solver, chains that stay in a plane, and trees."""

from __future__ import annotations

import math
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Vector

from tests import rigs
from tests.conftest import Addon


def test_fabrik_is_led_by_its_tip() -> None:
    """Move the target by a fiftieth of the chain's length, and look at the pose shown."""
    turned = {}
    for solver in ("FABRIK", "EVEN_BEND"):
        ob = rigs.armature(solver)
        rigs.add_bones(ob, [(0.0, 0.0, 0.1 * i) for i in range(11)], [f"{solver}{i}" for i in range(10)])
        rigs.chain(ob, f"{solver}9", rigs.empty(f"At {solver}", (0.02, 0.0, 0.98)), 10, solver=solver)
        rigs.go_live(ob)
        bones = rigs.evaluated(ob).pose.bones
        angles = [bones[f"{solver}{i}"].matrix_basis.to_quaternion().angle for i in range(10)]
        turned[solver] = sum(angles[-3:]) / sum(angles)
    assert turned["FABRIK"] > 0.9
    assert turned["EVEN_BEND"] < 0.25


def flat_arm(bones: int) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a chain drawn in the XZ plane, below a body, and a target that moves in front of that plane."""
    ob = rigs.armature()
    rigs.add_bones(ob, [(0, 0, 0), (0, 0, 1)], ["body"])
    points = [(0.5 * math.sin(0.3 * i), 0.0, 1.0 + i) for i in range(bones + 1)]
    rigs.add_bones(ob, points, [f"b{i}" for i in range(bones)], parent="body")
    target = rigs.empty("Target")
    for frame in range(1, 31):
        angle = frame / 30 * 2 * math.pi
        x, z = 0.6 * bones * math.cos(angle), 1.0 + 0.5 * bones * math.sin(angle)
        target.location = (x, -2.0 + math.sin(3 * angle), z)
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
    rigs.change(body, rotation_quaternion=Euler((0.4, 0.8, -0.3)).to_quaternion())
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


def torso() -> bpy.types.Object:
    """Return a spine of three bones with two arms, whose chains share the spine."""
    ob = rigs.armature()
    rigs.add_bones(ob, [(0, 0, 0), (0, -0.02, 0.3), (0, -0.02, 0.6), (0, 0, 0.9)], ["s0", "s1", "s2"])
    for side, x in (("L", 1.0), ("R", -1.0)):
        points = [(0.2 * x, 0, 0.85), (0.5 * x, 0.05, 0.8), (0.8 * x, 0, 0.75)]
        rigs.add_bones(ob, points, [f"upper.{side}", f"lower.{side}"], parent="s2", connect=False)
        target = rigs.empty(f"Hand.{side}", (0.6 * x, -0.3, 0.9))
        rigs.chain(ob, f"lower.{side}", target, 5)
    return ob


def test_weights_decide_between_conflicting_targets(addon: Addon) -> None:
    ob = torso()
    for side, x in (("L", 3.0), ("R", -3.0)):
        bpy.data.objects[f"Hand.{side}"].location = (x, 0.0, 0.5)
    ob.ik_addon.live = True
    short = {}
    for weight in (1.0, 20.0):
        rigs.change(ob.pose.bones["lower.L"].ik_addon, weight=weight)
        short[weight] = rigs.miss(ob, "lower.L"), rigs.miss(ob, "lower.R")
    assert short[20.0][0] < short[1.0][0] - 0.01
    assert short[20.0][1] > short[1.0][1] + 0.01
    for side in "LR":
        report: Any = addon.report(ob, f"lower.{side}")
        assert not report.reached
        assert report.error > 0.1


def test_a_pole_works_in_a_tree() -> None:
    ob = torso()
    sides = {}
    for y in (-2.0, 2.0):
        pole = rigs.empty("Pole", (0.6, y, 0.8))
        ob.pose.bones["lower.L"].ik_addon.pole = pole
        rigs.go_live(ob)
        assert rigs.miss(ob, "lower.L") < 1e-4
        elbow, shoulder = rigs.head(ob, "lower.L"), rigs.head(ob, "upper.L")
        middle = (shoulder + rigs.tail(ob, "lower.L")) / 2
        sides[y] = elbow[1] - middle[1]
    assert sides[-2.0] < 0.0 < sides[2.0]


def test_a_chain_that_leaves_a_tree_releases_its_bones() -> None:
    ob = torso()
    before = rigs.channels(ob)
    rigs.go_live(ob)
    rigs.change(ob.pose.bones["lower.R"].ik_addon, enabled=False)
    assert rigs.miss(ob, "lower.L") < 1e-4
    assert ob.pose.bones["lower.R"].matrix_basis == ob.pose.bones["lower.R"].matrix_basis.Identity(4)
    ob.ik_addon.live = False
    assert np.array_equal(rigs.channels(ob), before)
