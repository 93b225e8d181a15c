"""The written pose, as the depsgraph evaluates it, on rigs of every kind."""

import math
import random
from itertools import pairwise

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Vector

from tests import rigs
from tests.conftest import Addon
from tests.rigs import CHANNELS

MODES = ("QUATERNION", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "AXIS_ANGLE")
SCALE_MODES = ("FULL", "FIX_SHEAR", "ALIGNED", "AVERAGE", "NONE")


def random_rig(rng: random.Random, bones: int, flags: bool = True) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a randomly posed chain, with some unconnected bones, below a posed parent, and a target within reach."""
    ob = rigs.armature()
    point = Vector((0.0, 0.0, 1.0))
    rigs.add_bones(ob, [(0, 0, 0), (0.2, 0.1, 1.0)], ["body"])
    bpy.ops.object.mode_set(mode="EDIT")
    above = ob.data.edit_bones["body"]
    for i in range(bones):
        bone = ob.data.edit_bones.new(f"b{i}")
        bone.head = point
        bone.tail = point + Vector((rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3), rng.uniform(0.4, 1.0)))
        bone.roll = rng.uniform(-3, 3)
        bone.parent = above
        connected = rng.random() < 0.5
        bone.use_connect = connected and i > 0
        point = bone.tail if connected else bone.tail + Vector((rng.uniform(-0.1, 0.1), 0.05, 0.0))
        if flags:
            bone.use_inherit_rotation = rng.random() < 0.8
            bone.use_local_location = rng.random() < 0.8
            bone.inherit_scale = rng.choice(SCALE_MODES)
        above = bone
    bpy.ops.object.mode_set(mode="OBJECT")
    for bone in ob.pose.bones:
        bone.rotation_mode = rng.choice(MODES)
        bone.matrix_basis = (
            Matrix.Translation([rng.uniform(-0.1, 0.1) for _ in range(3)])
            @ Euler([rng.uniform(-0.5, 0.5) for _ in range(3)]).to_matrix().to_4x4()
            @ Matrix.Scale(rng.uniform(0.7, 1.4), 4)
        )
    bpy.context.view_layer.update()
    tip = ob.pose.bones[f"b{bones - 1}"]
    heads = [ob.pose.bones[f"b{i}"].head for i in range(bones)] + [tip.tail]
    reach = sum((b - a).length for a, b in pairwise(heads))
    direction = Vector((rng.uniform(-1, 1), rng.uniform(-1, 1), rng.uniform(-1, 1))).normalized()
    target = rigs.empty("Target", heads[0] + direction * reach * rng.uniform(0.45, 0.9))
    return ob, target


def place(rng: random.Random, ob: bpy.types.Object, target: bpy.types.Object, scale: tuple[float, ...]) -> None:
    """Transform the armature object together with the target."""
    ob.matrix_world = Matrix.LocRotScale(
        [rng.uniform(-3, 3) for _ in range(3)], Euler([rng.uniform(-3, 3) for _ in range(3)]), Vector(scale)
    )
    bpy.context.view_layer.update()
    target.location = ob.matrix_world @ target.location


def missed(ob: bpy.types.Object, tip: str, target: bpy.types.Object) -> float:
    """Return the distance from tip to target in the armature's space, in chain lengths."""
    inverse = np.linalg.inv(np.array(ob.matrix_world, dtype=np.float64))
    done = rigs.evaluated(ob)
    at = inverse[:3, :3] @ rigs.position(target) + inverse[:3, 3]
    bones = [b for b in done.pose.bones if b.name.startswith("b") and b.name != "body"]
    joints = [np.array(b.head) for b in bones] + [np.array(bones[-1].tail)]
    reach = np.linalg.norm(np.diff(joints, axis=0), axis=1).sum()
    return float(np.linalg.norm(np.array(done.pose.bones[tip].tail) - at) / reach)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("bones", [2, 3, 6])
def test_reaches_the_target_with_every_flag_mode_and_transform(bones: int, seed: int) -> None:
    rng = random.Random(100 * bones + seed)
    ob, target = random_rig(rng, bones)
    scale = rng.choice([(1, 1, 1), (0.01, 0.01, 0.01), (-1, 1, 1), (1, 2, 0.5), (30, -10, 20)])
    place(rng, ob, target, scale)
    rigs.chain(ob, f"b{bones - 1}", target, bones)
    rigs.go_live(ob)
    assert missed(ob, f"b{bones - 1}", target) < 1e-5


@pytest.mark.parametrize("mode", MODES)
def test_only_the_rotation_in_the_bones_own_mode_is_written(mode: str) -> None:
    ob, _target = rigs.arm()
    for bone in ob.pose.bones:
        bone.rotation_mode = mode
        bone.location, bone.scale = (0.0, 0.1, 0.0), (1.0, 1.0, 1.0)
    before = {(bone.name, name): getattr(bone, name)[:] for bone in ob.pose.bones for name in CHANNELS}
    bpy.context.view_layer.update()
    rigs.go_live(ob)
    used = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(mode, "rotation_euler")
    changed = {name for bone in ob.pose.bones for name in CHANNELS if getattr(bone, name)[:] != before[bone.name, name]}
    assert changed == {used}


def test_quaternions_are_continuous_from_frame_to_frame() -> None:
    ob, target = rigs.arm()
    for frame in range(1, 101):
        angle = frame / 100 * 2 * math.pi
        place = 0.9 * math.cos(angle), 0.9 * math.sin(angle), 1.0 + 0.2 * math.sin(3 * angle)
        rigs.key(target, "location", {frame: place})
    ob.ik_addon.live = True
    found = []
    for frame in range(1, 101):
        bpy.context.scene.frame_set(frame)
        found.append([bone.rotation_quaternion[:] for bone in ob.pose.bones])
    steps = np.abs(np.diff(found, axis=0)).max(axis=(1, 2))
    assert steps.max() < 0.2, f"jump after frame {steps.argmax() + 1}"


@pytest.mark.parametrize("policy", ["PUSH_ROOT", "STRETCH"])
@pytest.mark.parametrize("bones", [2, 4])
def test_a_chain_is_pushed_or_stretched_until_the_tip_arrives(bones: int, policy: str) -> None:
    ob, target = random_rig(random.Random(7), bones)
    tip = f"b{bones - 1}"
    rigs.chain(ob, tip, target, bones, out_of_reach=policy, push_limit=5.0)
    root = ob.pose.bones["b0"].head.copy()
    target.location = root + (target.location - root) * 3.0
    rigs.go_live(ob)
    assert missed(ob, tip, target) < 1e-5
    pushed = (rigs.evaluated(ob).pose.bones["b0"].head - root).length
    assert pushed > 0.1 if policy == "PUSH_ROOT" else pushed < 1e-5


def test_non_uniform_bone_scale_is_refined_until_the_tip_arrives() -> None:
    rng = random.Random(11)
    ob, target = random_rig(rng, 4, flags=False)
    ob.pose.bones["body"].scale = (1.2, 0.9, 1.1)
    rigs.change(ob.pose.bones["b1"], scale=(0.9, 1.3, 1.0))
    rigs.chain(ob, "b3", target, 4)
    rigs.go_live(ob)
    assert missed(ob, "b3", target) < 1e-4


@pytest.mark.parametrize("seed", range(12))
def test_reported_error_matches_the_tip_however_bones_are_scaled(addon: Addon, seed: int) -> None:
    rng = random.Random(seed)
    ob, target = random_rig(rng, 4, flags=False)
    for name in ("b0", "b1", "b2"):
        ob.pose.bones[name].scale = [rng.choice([0.0, 0.3, 1.0, 2.5]) for _ in range(3)]
    bpy.context.view_layer.update()
    rigs.chain(ob, "b3", target, 4)
    rigs.go_live(ob)
    report = addon.report(ob, "b3")
    if not report.failed:
        assert report.reached == (missed(ob, "b3", target) <= 1e-4)


def test_bones_of_zero_length_follow_and_do_no_harm() -> None:
    ob = rigs.limb([(0, 0, 0), (0, -0.1, 1)], ["upper"])
    rigs.add_bones(ob, [(0, -0.1, 1), (0, -0.1, 1.2)], ["helper"], parent="upper")
    rigs.add_bones(ob, [(0, -0.1, 1), (0, 0, 2)], ["lower"], parent="helper", connect=False)
    target = rigs.empty("Target", (0.7, 0.4, 1.0))
    rigs.chain(ob, "lower", target, 3)
    rigs.go_live(ob)
    assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5
    drift = np.array(ob.pose.bones["helper"].matrix_basis) - np.eye(4)
    assert np.abs(drift).max() < 1e-6


@pytest.mark.parametrize("why", ["no influence", "no solution"])
@pytest.mark.parametrize("mode", MODES)
def test_channels_stay_exact_when_nothing_is_blended(mode: str, why: str) -> None:
    ob, target = rigs.arm()
    for bone in ob.pose.bones:
        bone.rotation_mode = mode
        bone.rotation_euler, bone.rotation_axis_angle = (4.0, 2.0, -5.0), (7.0, 0.3, 0.5, 0.1)
        bone.rotation_quaternion, bone.scale = (0.3, 0.5, -0.2, 0.7), (0.7, 1.3, 0.4)
    before = rigs.channels(ob)
    ob.pose.bones["lower"].ik_addon.influence = 0.0 if why == "no influence" else 0.5
    if why == "no solution":
        target.location.x = np.inf
    rigs.go_live(ob)
    bpy.context.scene.frame_set(3)
    assert np.array_equal(rigs.channels(ob), before)


@pytest.mark.parametrize(("policy", "field"), [("PUSH_ROOT", "location"), ("STRETCH", "scale")])
def test_driven_channels_are_left_to_their_driver_and_a_miss_is_reported(addon: Addon, policy: str, field: str) -> None:
    ob, target = random_rig(random.Random(9), 2)
    rigs.chain(ob, "b1", target, 2, out_of_reach=policy, push_limit=5.0)
    driver = ob.pose.bones["b0"].driver_add(field, 0)
    driver.driver.expression = "0.9"
    root = ob.pose.bones["b0"].head.copy()
    target.location = root + (target.location - root) * 3.0
    rigs.go_live(ob)
    report = addon.report(ob, "b1")
    assert any("driven" in remark for remark in report.remarks)
    assert missed(ob, "b1", target) == pytest.approx(report.error, rel=1e-4)
    rigs.change(driver, mute=True)
    assert missed(ob, "b1", target) < 1e-5


@pytest.mark.parametrize("seed", [0, 1, 4, 6, 10, 29, 50])
def test_a_root_scaled_flat_does_not_amplify_rounding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ob = rigs.limb([(0, 0, 0), (0.6, -0.9, 0.0), (-0.5, -0.8, 0.8)], ["upper", "lower"])
    upper, lower = ob.pose.bones
    upper.scale, upper.ik_stiffness_x = (0.0, 1.4, 1.2), 0.99
    upper.use_ik_limit_y, upper.ik_min_y, upper.ik_max_y = True, -0.15, 1.25
    for bone in (lower, upper):
        bone.rotation_mode, bone.rotation_euler = "ZYX", rng.normal(size=3)
    target = rigs.empty("Target")
    rigs.chain(ob, "lower", target, 2)
    place = 1.5 * rng.normal(size=3)
    poses = []
    for step in (0.0, 1e-6, -1e-6, 2e-6):
        ob.ik_addon.live = False
        rigs.change(target, location=(place + step * np.array([1.0, -1.0, 0.5])).tolist())
        rigs.go_live(ob)
        poses.append(rigs.pose(ob))
    assert np.abs(np.array(poses[1:]) - poses[0]).max() < 1e-4
