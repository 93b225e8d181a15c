"""Hands and feet at the end of chains, in the written pose as the depsgraph evaluates it."""

import math

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Quaternion, Vector
from numpy.typing import NDArray

from tests import rigs
from tests.conftest import Addon

PLACE, TURN = 1e-5, math.radians(0.05)
"""Tolerances for a foot that holds still: in lengths of the leg, and in radians."""


def leg(*, connect: bool = True, **settings: object) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return hips and a leg with foot and toes, on a chain whose target is rotated away from the foot."""
    ob = rigs.limb([(0, 0, 1.0), (0, 0, 1.2)], ["hips"])
    rigs.add_bones(ob, [(0.1, 0, 1), (0.1, -0.03, 0.5), (0.1, 0, 0.1)], ["thigh", "shin"], parent="hips")
    ankle = (0.1, 0, 0.1) if connect else (0.12, 0.03, 0.08)
    rigs.add_bones(ob, [ankle, (0.1, -0.15, 0.02), (0.1, -0.2, 0.02)], ["foot", "toe"], parent="shin")
    target = rigs.empty("Target", ankle)
    target.rotation_euler = (0.3, -0.5, 0.8)
    rigs.chain(ob, "shin", target, 2, end_bone="foot", **settings)
    return ob, target


def fit(addon: Addon, ob: bpy.types.Object, tip: str = "shin") -> None:
    """Make the end bone turn with its target from now on."""
    bpy.context.view_layer.update()
    addon.module("chains.new_chain").turn_end(bpy.context, ob.pose.bones[tip])
    bpy.context.view_layer.update()


def world(ob: bpy.types.Object, bone: str) -> Matrix:
    seen = rigs.evaluated(ob)
    return seen.matrix_world @ seen.pose.bones[bone].matrix


def turn_between(one: Matrix, other: Matrix) -> float:
    a, b = (np.array(m.to_3x3().normalized()) for m in (one, other))
    return 2.0 * math.asin(min(1.0, float(np.linalg.norm(a - b)) / math.sqrt(8.0)))


def poses(ob: bpy.types.Object) -> NDArray[np.float64]:
    return rigs.pose(ob).reshape(-1, 4, 4).astype(np.float64)


def move_hips(ob: bpy.types.Object, rng: np.random.Generator) -> None:
    hips = ob.pose.bones["hips"]
    hips.location = rng.uniform(-0.06, 0.06, 3) - (0.0, 0.12, 0.0)
    rigs.change(hips, rotation_quaternion=Euler(rng.uniform(-0.2, 0.2, 3)).to_quaternion())


@pytest.mark.parametrize(
    "matrix",
    [
        Matrix.Identity(4),
        Matrix.LocRotScale((3, -2, 1), Euler((0.4, -1.1, 2.0)), (2.5, 2.5, 2.5)),
        Matrix.LocRotScale((0.5, 0.2, 0), Euler((0.3, 0.7, 1.0)), (-1.0, 1.0, 1.0)),
        Matrix.LocRotScale((0.5, 0.2, 0), Euler((0.3, 0.7, 1.0)), (0.5, 2.0, 1.3)),
    ],
    ids=["plain", "scaled", "mirrored", "uneven"],
)
@pytest.mark.parametrize("connect", [True, False])
def test_the_foot_stays_when_the_hips_move(connect: bool, matrix: Matrix, addon: Addon) -> None:
    ob, target = leg(connect=connect)
    ob.matrix_world = matrix
    rigs.change(target, matrix_world=matrix @ target.matrix_basis)
    if not connect:
        rigs.change(ob.pose.bones["foot"], location=(0.02, -0.01, 0.015))
        target.location = world(ob, "foot").translation
    assert_nothing_moves_but_the_leg(addon, ob, 0.9 * max(abs(s) for s in matrix.to_scale()))


def assert_nothing_moves_but_the_leg(addon: Addon, ob: bpy.types.Object, size: float = 1.0) -> None:
    """Assert that going live moves nothing, that the foot stays while the hips move, and that the FK pose returns."""
    fit(addon, ob)
    before = poses(ob)
    rigs.go_live(ob)
    assert np.abs(poses(ob) - before).max() < 2e-6, "going live moves nothing"
    foot, rng = world(ob, "foot"), np.random.default_rng(1)
    for _ in range(10):
        move_hips(ob, rng)
        assert (world(ob, "foot").translation - foot.translation).length < PLACE * size
        assert turn_between(world(ob, "foot"), foot) < TURN
    assert addon.report(ob, "shin").reached
    ob.ik_addon.live = False
    rigs.change(ob.pose.bones["hips"], matrix_basis=Matrix.Identity(4))
    assert np.abs(poses(ob) - before).max() < 1e-6


def rigged() -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a leg whose foot is below two mechanism bones, as in control rigs."""
    ob, target = leg(connect=False)
    rigs.add_bones(ob, [(0.1, 0, 0.1), (0.1, 0, 0.08), (0.1, 0.02, 0.07)], ["MCH-foot", "MCH-roll"], "shin")
    with rigs.edit_mode(ob) as bones:
        bones["foot"].parent = bones["MCH-roll"]
        bones["MCH-foot"].inherit_scale = "NONE"
    rigs.constrain(ob.pose.bones["MCH-foot"], "COPY_SCALE", target=ob, subtarget="hips")
    ob.pose.bones["MCH-roll"].location = (0.01, 0.02, -0.01)
    ob.pose.bones["MCH-roll"].rotation_quaternion = Euler((0.2, -0.1, 0.3)).to_quaternion()
    rigs.change(ob.pose.bones["foot"], location=(0.02, -0.01, 0.015))
    rigs.change(target, location=world(ob, "foot").translation)
    return ob, target


def test_a_foot_below_mechanism_bones_stays_when_the_hips_move(addon: Addon) -> None:
    assert_nothing_moves_but_the_leg(addon, rigged()[0])


def test_mechanism_bones_above_a_foot_may_be_animated(addon: Addon) -> None:
    ob, _target = rigged()
    fit(addon, ob)
    roll = ob.pose.bones["MCH-roll"]
    rigs.key(roll, "location", {1: (0.01, 0.02, -0.01), 8: (-0.02, 0.01, 0.03)})
    rigs.key(roll, "rotation_quaternion", {1: (0.97, 0.1, 0.05, 0.2), 8: (0.9, -0.3, 0.2, 0.1)})
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 8
    ob.ik_addon.live = True
    scene.frame_set(1)
    foot = world(ob, "foot")

    def check() -> None:
        for frame in (1, 5, 8, 3):
            scene.frame_set(frame)
            assert (world(ob, "foot").translation - foot.translation).length < PLACE
            assert turn_between(world(ob, "foot"), foot) < TURN

    check()
    bpy.context.view_layer.objects.active = ob
    assert bpy.ops.ik_addon.bake() == {"FINISHED"}
    check()


def test_a_mechanism_bone_with_its_own_constraint_is_named_and_can_be_muted(addon: Addon) -> None:
    ob, _target = rigged()
    fit(addon, ob)
    copy = rigs.constrain(ob.pose.bones["MCH-roll"], "COPY_ROTATION", target=ob, subtarget="hips")
    rigs.go_live(ob)
    report = addon.report(ob, "shin")
    assert report.failed
    assert report.message.startswith("The constraint 'Copy Rotation' on bone 'MCH-roll' keeps the end bone 'foot' from")
    assert bpy.ops.ik_addon.fix(tip="shin") == {"FINISHED"}
    bpy.context.view_layer.update()
    assert copy.mute
    assert addon.report(ob, "shin").reached


def test_a_foot_whose_mechanism_bones_do_not_turn_along_is_refused(addon: Addon) -> None:
    ob, _target = rigged()
    fit(addon, ob)
    ob.data.bones["MCH-foot"].use_inherit_rotation = False
    rigs.go_live(ob)
    message = "Bone 'MCH-foot' doesn't inherit rotation, which keeps the end bone 'foot' from following the chain"
    assert addon.report(ob, "shin").message.startswith(message)
    assert bpy.ops.ik_addon.fix(tip="shin") == {"FINISHED"}
    bpy.context.view_layer.update()
    assert ob.pose.bones["shin"].ik_addon.end_bone == ""
    assert not addon.report(ob, "shin").failed


@pytest.mark.parametrize("bones", [1, 4])
def test_a_foot_below_a_bone_that_another_chain_poses_is_refused(addon: Addon, bones: int) -> None:
    ob, _target = rigged()
    fit(addon, ob)
    ob.pose.bones["MCH-foot"].constraints[0].mute = True
    rigs.chain(ob, "MCH-roll", rigs.empty("Other", (0.3, 0.2, 0.1)), bones)
    rigs.go_live(ob)
    message = "The chain on 'Leg' poses 'MCH-roll', which keeps the end bone 'foot' from following this chain"
    assert addon.report(ob, "shin").message.startswith(message)
    assert not addon.report(ob, "MCH-roll").failed
    assert bpy.ops.ik_addon.fix(tip="shin") == {"FINISHED"}
    bpy.context.view_layer.update()
    assert not ob.pose.bones["shin"].ik_addon.use_end_rotation
    assert not addon.report(ob, "shin").failed


def test_a_foot_in_the_orientation_of_its_target_is_reported_as_reached(addon: Addon) -> None:
    ob, _target = leg()
    fit(addon, ob)
    bpy.ops.ik_addon.solve()
    assert addon.report(ob, "shin").message == "Reached"


def test_the_foots_own_limits_hold(addon: Addon) -> None:
    ob, target = leg()
    fit(addon, ob)
    rigs.limit(ob.pose.bones["foot"], x=(-11, 17), y=(-11, 17), z=(-11, 17))
    ob.ik_addon.live = True
    rigs.change(target, rotation_euler=(2.0, 0.3, 0.8))
    seen = rigs.evaluated(ob).pose.bones
    rest = seen["shin"].bone.matrix_local.inverted() @ seen["foot"].bone.matrix_local
    joint = (rest.inverted() @ seen["shin"].matrix.inverted() @ seen["foot"].matrix).to_quaternion()
    assert 0.15 < 2.0 * math.asin(math.hypot(joint.x, joint.z)) < 0.31
    assert addon.report(ob, "shin").at_limit == ("foot",)
    rigs.change(ob.pose.bones["shin"].ik_addon, use_limits=False)
    seen = rigs.evaluated(ob).pose.bones
    assert 2.0 * seen["foot"].matrix.to_quaternion().rotation_difference(joint).angle > 0.5


def test_influence_blends_the_foot(addon: Addon) -> None:
    ob, target = leg()
    fit(addon, ob)
    fk = ob.pose.bones["foot"].matrix_basis.to_quaternion()
    target.rotation_euler.x += 0.8
    rigs.go_live(ob)
    full = ob.pose.bones["foot"].matrix_basis.to_quaternion()
    rigs.change(ob.pose.bones["shin"].ik_addon, influence=0.5)
    half = ob.pose.bones["foot"].matrix_basis.to_quaternion()
    assert fk.rotation_difference(full).angle > 0.5
    assert half.rotation_difference(fk.slerp(full, 0.5)).angle < 1e-4
    rigs.change(ob.pose.bones["shin"].ik_addon, influence=0.0)
    assert ob.pose.bones["foot"].matrix_basis.to_quaternion() == fk


def test_hands_follow_their_targets_on_arms_that_share_a_spine(addon: Addon) -> None:
    ob = rigs.limb([(0, 0, 0), (0, 0.02, 0.5), (0, 0, 1)], ["spine", "chest"])
    for side, x in (("L", 1), ("R", -1)):
        points = [(0.2 * x, 0, 1), (0.5 * x, 0.03, 1), (0.8 * x, 0, 1), (0.9 * x, 0, 1)]
        rigs.add_bones(ob, points, [f"{name}.{side}" for name in ("upper", "lower", "hand")], "chest", connect=True)
        target = rigs.empty(f"Target.{side}", (0.8 * x, 0, 1))
        target.rotation_euler = (0.3 * x, 0.2, 0.1)
        rigs.chain(ob, f"lower.{side}", target, 4, end_bone=f"hand.{side}")
        bpy.context.view_layer.update()
        fit(addon, ob, f"lower.{side}")
    hands = {side: world(ob, f"hand.{side}") for side in "LR"}
    turn = Euler((0.4, -0.3, 0.5)).to_matrix()
    for side in "LR":
        target = bpy.data.objects[f"Target.{side}"]
        target.location = (0.7 * target.location.x, 0.05, 1.1)
        target.rotation_euler = (turn @ target.matrix_world.to_3x3()).to_euler()
    rigs.go_live(ob)
    for side, was in hands.items():
        assert turn_between(world(ob, f"hand.{side}"), turn.to_4x4() @ was) < TURN
        gap = rigs.head(ob, f"hand.{side}") - rigs.position(bpy.data.objects[f"Target.{side}"])
        assert np.linalg.norm(gap) < 1e-4


@pytest.mark.parametrize("other", ["toe", "thigh"])
def test_an_end_bone_belongs_to_one_chain(other: str, addon: Addon) -> None:
    ob, _target = leg()
    fit(addon, ob)
    point = rigs.empty("Point", (0.1, -0.16, 0.06))
    if other == "toe":
        rigs.chain(ob, "toe", point, 2)
    else:
        rigs.chain(ob, "shin", point, 1)
        ob.pose.bones["thigh"].ik_addon.target = point
        with rigs.edit_mode(ob) as bones:
            bones["foot"].parent = bones["thigh"]
    rigs.go_live(ob)
    report = addon.report(ob, "shin")
    assert report.failed
    expected = {
        "toe": "The chain on 'toe' also poses the end bone 'foot'",
        "thigh": "The end bone 'foot' is not below 'shin'",
    }
    assert report.message.startswith(expected[other])


def test_a_chain_on_an_end_bone_is_as_long_as_its_bones(addon: Addon) -> None:
    ob, _target = leg()
    fit(addon, ob)
    rigs.chain(ob, "foot", rigs.empty("Point", (0.1, -0.16, 0.06)), 1)
    bpy.context.view_layer.update()
    plan = addon.module("rig.plan.plan").Plan.of(ob, bpy.context.evaluated_depsgraph_get())
    for tip, bones in (("shin", ("thigh", "shin")), ("foot", ("foot",))):
        lengths = [ob.data.bones[bone].length for bone in bones]
        assert plan.length(tip) == pytest.approx(np.sum(lengths))


def test_rotation_and_end_rotation_exclude_each_other() -> None:
    ob, _target = leg()
    chain = ob.pose.bones["shin"].ik_addon
    chain.use_end_rotation = True
    chain.use_rotation = True
    assert not chain.use_end_rotation
    chain.use_end_rotation = True
    assert not chain.use_rotation


def animated_leg(keyed: str) -> bpy.types.Object:
    """Return a leg whose foot turns with its moving target; besides, hips or foot are keyed, or it has another mode."""
    ob, target = leg(use_end_rotation=True)
    rng = np.random.default_rng(3)
    foot, hips = ob.pose.bones["foot"], ob.pose.bones["hips"]
    if keyed == "mode":
        foot.rotation_mode = "XYZ"
    for frame in (1, 12, 25, 40):
        target.location = Vector((0.1, 0, 0.27)) + Vector(rng.uniform(-0.08, 0.08, 3))
        target.rotation_euler = rng.uniform(-0.6, 0.6, 3).tolist()
        for path in ("location", "rotation_euler"):
            target.keyframe_insert(path, frame=frame)
        if keyed == "hips":
            hips.location = rng.uniform(-0.05, 0.05, 3)
            hips.keyframe_insert("location", frame=frame)
        if keyed == "foot":
            foot.rotation_quaternion = Quaternion((1, *rng.uniform(-0.3, 0.3, 3))).normalized()
            foot.keyframe_insert("rotation_quaternion", frame=frame)
    return ob


@pytest.mark.parametrize("keyed", ["target", "hips", "foot", "mode"])
def test_an_animated_foot_is_where_its_target_is_and_turns_with_it(keyed: str) -> None:
    """That it is the same however a frame is reached, and baked, is tested in `test_frames`."""
    ob = animated_leg(keyed)
    chain = ob.pose.bones["shin"].ik_addon
    ob.ik_addon.live = True
    for frame in np.random.default_rng(3).permutation(np.arange(1, 41)).tolist():
        bpy.context.scene.frame_set(frame)
        wanted = (chain.target.matrix_world.to_quaternion() @ chain.end_offset).to_matrix().to_4x4()
        assert turn_between(world(ob, "foot"), wanted) < TURN
        assert np.linalg.norm(rigs.head(ob, "foot") - rigs.position(chain.target)) < PLACE
