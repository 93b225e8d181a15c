"""Chains as Blender shows them: IK limits, locks and stiffness, each solver, planes, trees."""

import math
import random
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Quaternion, Vector

from ik_addon.solve.maths.cones import cone_of
from tests import rigs
from tests.conftest import Addon
from tests.solve.chains import violation

ALLOWED = math.radians(0.01)


def joint_rotation(ob: bpy.types.Object, name: str) -> Quaternion:
    """Return the rotation of an evaluated bone from its rest pose, relative to its parent."""
    bone = rigs.evaluated(ob).pose.bones[name]
    local = bone.bone.convert_local_to_pose(
        bone.matrix,
        bone.bone.matrix_local,
        parent_matrix=bone.parent.matrix if bone.parent else bone.bone.matrix_local @ bone.bone.matrix_local.inverted(),
        parent_matrix_local=bone.parent.bone.matrix_local if bone.parent else bone.matrix.Identity(4),
        invert=True,
    )
    return local.to_quaternion()


def beyond(ob: bpy.types.Object, name: str) -> float:
    """Return by how many radians a bone is outside of its limits; 0 if inside."""
    bone = ob.pose.bones[name]
    x, y, z = (
        (getattr(bone, f"ik_min_{axis}"), getattr(bone, f"ik_max_{axis}"))
        if getattr(bone, f"use_ik_limit_{axis}")
        else (-np.inf, np.inf)
        for axis in "xyz"
    )
    cone = cone_of(np.array([[*x, *z]]), np.array([y]))
    return float(violation(np.array(joint_rotation(ob, name))[:, None], cone)[0])


def limited_rig(rng: random.Random, bones: int) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a chain whose joints all have random limits, below a turned parent, and a target."""
    ob = rigs.limb([(0, 0, 0), (0.1, 0.2, 1.0)], ["body"])
    points = [(0.1, 0.2, 1.0)]
    points += [(0.1 + rng.uniform(-0.1, 0.1), 0.2 + rng.uniform(-0.1, 0.1), 2.0 + i) for i in range(bones)]
    rigs.add_bones(ob, points, [f"b{i}" for i in range(bones)], parent="body")
    with rigs.edit_mode(ob) as edited:
        for bone in edited:
            bone.roll = rng.uniform(-3, 3)
    ob.pose.bones["body"].rotation_quaternion = Euler([rng.uniform(-1, 1) for _ in range(3)]).to_quaternion()
    for i in range(bones):
        bone = ob.pose.bones[f"b{i}"]
        bone.rotation_mode = rng.choice(["QUATERNION", "XYZ", "AXIS_ANGLE"])
        rigs.limit(
            bone,
            x=(-rng.uniform(0, 60), rng.uniform(0, 90)),
            z=rng.choice([(0.0, 0.0), (-rng.uniform(5, 60), rng.uniform(5, 60))]),
            y=rng.choice([(0.0, 0.0), (-rng.uniform(0, 40), rng.uniform(0, 40))]),
        )
    target = rigs.empty("Target")
    rigs.chain(ob, f"b{bones - 1}", target, bones)
    return ob, target


def reachable(ob: bpy.types.Object, rng: random.Random, bones: int) -> Vector:
    """Return the tip's place with random joint rotations within limits; the pose is left unchanged."""
    saved = [(bone, bone.matrix_basis.copy()) for bone in ob.pose.bones]
    for i in range(bones):
        bone = ob.pose.bones[f"b{i}"]
        angle = rng.uniform(0, 2 * math.pi)
        size = 0.9 * math.sqrt(rng.random())
        x, z = size * math.cos(angle), size * math.sin(angle)
        x *= math.sin((bone.ik_max_x if x > 0 else -bone.ik_min_x) / 2)
        z *= 0.0 if bone.lock_ik_z else math.sin((bone.ik_max_z if z > 0 else -bone.ik_min_z) / 2)
        swing = Quaternion((math.sqrt(1 - x * x - z * z), x, 0, z))
        twist = Quaternion((0, 1, 0), 0.0 if bone.lock_ik_y else rng.uniform(bone.ik_min_y, bone.ik_max_y))
        bone.matrix_basis = (swing @ twist).to_matrix().to_4x4()
    bpy.context.view_layer.update()
    tip = ob.pose.bones[f"b{bones - 1}"].tail.copy()
    for bone, matrix in saved:
        bone.matrix_basis = matrix
    bpy.context.view_layer.update()
    return tip


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("bones", [2, 3, 5])
def test_limits_hold_and_the_tip_reaches_its_target(bones: int, seed: int) -> None:
    rng = random.Random(1000 * bones + seed)
    ob, target = limited_rig(rng, bones)
    places = [reachable(ob, rng, bones), *(Vector([rng.uniform(-8, 8) for _ in range(3)]) for _ in range(6))]
    ob.ik_addon.live = True
    for number, place in enumerate(places):
        rigs.change(target, location=place)
        assert max(beyond(ob, f"b{i}") for i in range(bones)) < ALLOWED
        assert number or rigs.miss(ob, f"b{bones - 1}") < 1e-4 * bones, "the others are out of reach"


def test_limits_are_measured_from_rest_whatever_the_fk_pose() -> None:
    ob, _target = rigs.arm()
    rigs.limit(ob.pose.bones["lower"], x=(-150, 120), z=(0, 0), y=(0, 0))
    ob.pose.bones["lower"].rotation_quaternion = (0.7, 0.5, 0.3, -0.4)
    rigs.go_live(ob)
    assert beyond(ob, "lower") < ALLOWED
    assert rigs.miss(ob) < 1e-4


def test_limits_can_be_switched_off() -> None:
    ob, _target = rigs.arm()
    for name in ("upper", "lower"):
        rigs.limit(ob.pose.bones[name], x=(0, 0), y=(0, 0), z=(0, 0))
    rigs.go_live(ob)
    assert rigs.miss(ob) > 0.1
    rigs.change(ob.pose.bones["lower"].ik_addon, use_limits=False)
    assert rigs.miss(ob) < 1e-5


def test_report_says_that_limits_hold_the_chain_back(addon: Addon) -> None:
    ob, _target = rigs.arm()
    rigs.limit(ob.pose.bones["lower"], x=(0, 5), y=(0, 0), z=(0, 0))
    rigs.go_live(ob)
    verdict: Any = addon.report(ob)
    assert not verdict.reached
    assert not verdict.failed
    assert "limit" in verdict.message


def test_a_stiff_bone_turns_less() -> None:
    turned = {}
    for stiff in (0.0, 0.9):
        ob = rigs.limb(rigs.bent(4), ["a", "b", "c", "d"], name=f"Stiff {stiff}")
        for bone in ob.pose.bones:
            bone.ik_stiffness_x = bone.ik_stiffness_y = bone.ik_stiffness_z = 0.1
        bone = ob.pose.bones["b"]
        bone.ik_stiffness_x = bone.ik_stiffness_y = bone.ik_stiffness_z = stiff
        rigs.chain(ob, "d", rigs.empty("Target", (0.5, 1.6, 1.9)), 4)
        rigs.go_live(ob)
        assert np.linalg.norm(rigs.tail(ob, "d") - np.array((0.5, 1.6, 1.9))) < 1e-4
        turned[stiff] = joint_rotation(ob, "b").angle
    assert turned[0.9] < 0.75 * turned[0.0]


@pytest.mark.parametrize("bones", [2, 4])
def test_the_tip_takes_the_orientation_of_its_target(bones: int) -> None:
    ob = rigs.limb(rigs.bent(bones + 1), [f"b{i}" for i in range(bones + 1)])
    target = rigs.empty("Target", (0.4, 0.9, 0.6 * bones))
    target.rotation_euler = (0.7, -0.4, 0.9)
    rigs.chain(ob, f"b{bones}", target, bones + 1, use_rotation=True)
    ob.location, ob.rotation_euler, ob.scale = (0.1, 0, 0), (0.2, 0.1, 0), (0.9, 0.9, 0.9)
    rigs.go_live(ob)
    assert rigs.miss(ob, f"b{bones}") < 1e-4
    done = rigs.evaluated(ob)
    frame = (done.matrix_world @ done.pose.bones[f"b{bones}"].matrix).to_3x3().normalized()
    apart = frame.to_quaternion().rotation_difference(target.matrix_world.to_quaternion()).angle
    assert min(apart, 2 * math.pi - apart) < 1e-3


# ---- each solver, chains that stay in a plane, and trees


def test_fabrik_is_led_by_its_tip() -> None:
    """Move the target by a fiftieth of the chain's length, and look at the pose shown."""
    turned = {}
    for solver in ("FABRIK", "EVEN_BEND"):
        ob = rigs.limb([(0.0, 0.0, 0.1 * i) for i in range(11)], [f"{solver}{i}" for i in range(10)], name=solver)
        rigs.chain(ob, f"{solver}9", rigs.empty(f"At {solver}", (0.02, 0.0, 0.98)), 10, solver=solver)
        rigs.go_live(ob)
        bones = rigs.evaluated(ob).pose.bones
        angles = [bones[f"{solver}{i}"].matrix_basis.to_quaternion().angle for i in range(10)]
        turned[solver] = sum(angles[-3:]) / sum(angles)
    assert turned["FABRIK"] > 0.9
    assert turned["EVEN_BEND"] < 0.25


def flat_arm(bones: int) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a chain drawn in the XZ plane, below a body, and a target that moves in front of that plane."""
    ob = rigs.limb([(0, 0, 0), (0, 0, 1)], ["body"])
    points = [(0.5 * math.sin(0.3 * i), 0.0, 1.0 + i) for i in range(bones + 1)]
    rigs.add_bones(ob, points, [f"b{i}" for i in range(bones)], parent="body")
    target = rigs.empty("Target")
    for frame in range(1, 31):
        angle = frame / 30 * 2 * math.pi
        x, z = 0.6 * bones * math.cos(angle), 1.0 + 0.5 * bones * math.sin(angle)
        rigs.key(target, "location", {frame: (x, -2.0 + math.sin(3 * angle), z)})
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
    ob = rigs.limb([(0, 0, 0), (0, -0.02, 0.3), (0, -0.02, 0.6), (0, 0, 0.9)], ["s0", "s1", "s2"])
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
