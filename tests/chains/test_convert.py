"""Chains that replace Blender's IK constraints: the pose they keep, the settings they take, and the way back."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Vector

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import activate, refused, said

PLACES = [(0.6, 0.5, 1.2), (0.9, -0.3, 0.8), (-0.5, 0.9, 0.4), (0.2, 0.1, 1.8), (1.2, 0.2, 0.2), (0.1, 0.3, 0.9)]
TURNED = Matrix.LocRotScale((3.0, -2.0, 1.0), Euler((0.4, -1.1, 2.0)), (2.0, 2.0, 2.0))


def constraint(ob: bpy.types.Object, bone: str, target: bpy.types.Object, length: int, **settings: Any) -> Any:
    """Add an IK constraint to a bone."""
    made = rigs.constrain(ob.pose.bones[bone], "IK", target=target, chain_count=length, **settings)
    bpy.context.view_layer.update()
    return made


def limb(seed: int, pole: bool, matrix: Matrix | None = None) -> tuple[bpy.types.Object, bpy.types.Object, Any]:
    """Return an arm of two bones with any roll, solved by a constraint, with its target and the constraint."""
    random = np.random.default_rng(seed)
    ob = rigs.limb([(0, 0, 0), (0.05, -0.2, 1), (0, 0, 2)], ["upper", "lower"])
    with rigs.edit_mode(ob) as bones:
        for bone in bones:
            bone.roll = random.uniform(-math.pi, math.pi)
    ob.matrix_world = matrix or Matrix.Identity(4)
    target = rigs.empty("T", ob.matrix_world @ Vector(PLACES[0]))
    settings: dict[str, Any] = {}
    if pole:
        place = ob.matrix_world @ Vector((0.3, -3.0, 1.0))
        settings = {"pole_target": rigs.empty("P", place), "pole_angle": random.uniform(-math.pi, math.pi)}
    made = constraint(ob, "lower", target, 2, **settings)
    activate(ob, "lower")
    return ob, target, made


def tentacle(count: int = 6, **settings: Any) -> tuple[bpy.types.Object, bpy.types.Object, Any]:
    """Return a chain of many bones solved by a constraint."""
    ob = rigs.limb(rigs.bent(count, 0.3), list("abcdefgh"[:count]))
    target = rigs.empty("T", (0.4, 0.5, 0.7))
    made = constraint(ob, "abcdefgh"[count - 1], target, 0, **settings)
    activate(ob, "a")
    return ob, target, made


def move(ob: bpy.types.Object, target: bpy.types.Object, place: rigs.Point) -> None:
    """Move a target to a place in armature space."""
    rigs.change(target, location=ob.matrix_world @ Vector(place))


def matrices(ob: bpy.types.Object) -> list[Matrix]:
    return [bone.matrix.copy() for bone in rigs.evaluated(ob).pose.bones]


def degrees_between(before: list[Matrix], after: list[Matrix]) -> float:
    """Return the largest angle between the rotations of bones."""
    turns = [a.to_3x3().normalized().transposed() @ b.to_3x3().normalized() for a, b in zip(before, after, strict=True)]
    chords = [np.linalg.norm(np.array(turn) - np.eye(3)) / math.sqrt(8.0) for turn in turns]
    return math.degrees(2.0 * math.asin(min(max(chords), 1.0)))


def assert_converted_alike(ob: bpy.types.Object, within: float = 0.1) -> None:
    """Convert the constraints of an armature; assert that its bones turn by no more degrees."""
    before = matrices(ob)
    assert bpy.ops.ik_addon.convert_constraints() == {"FINISHED"}
    assert degrees_between(before, matrices(ob)) < within


def state(ob: bpy.types.Object) -> dict[str, Any]:
    """Return everything that a conversion changes, with the exact pose."""
    bpy.context.view_layer.update()
    data = ob.animation_data
    return {
        "pose": rigs.pose(ob).tobytes(),
        "channels": rigs.channels(ob).tobytes(),
        "live": ob.ik_addon.live,
        "muted": [c.mute for bone in ob.pose.bones for c in bone.constraints],
        "chains": [bone.name for bone in ob.pose.bones if bone.ik_addon.is_chain],
        "bases": rigs.held(ob),
        "properties": {bone.name: sorted(bone.keys()) for bone in ob.pose.bones},
        "drivers": [] if data is None else [curve.data_path for curve in data.drivers],
    }


# ---- the pose


@pytest.mark.parametrize("matrix", [None, TURNED])
@pytest.mark.parametrize("seed", range(3))
def test_limb_with_a_pole_follows_the_constraints_plane_wherever_its_target_is(
    seed: int, matrix: Matrix | None
) -> None:
    ob, target, _made = limb(seed, pole=True, matrix=matrix)
    solved = []
    for place in PLACES:
        move(ob, target, place)
        solved.append((matrices(ob), rigs.tail(ob, "lower")))
    move(ob, target, PLACES[0])
    bpy.ops.ik_addon.convert_constraints()
    length = rigs.length(ob, "lower", 2) * ob.matrix_world.median_scale
    exact = 1e-5 * length
    for place, (before, tip) in zip(PLACES, solved, strict=True):
        move(ob, target, place)
        assert degrees_between(before, matrices(ob)) < 0.1
        # The tip moves no further than the constraint missed its target by.
        missed = np.linalg.norm(rigs.position(target) - tip)
        assert np.linalg.norm(rigs.tail(ob, "lower") - tip) < missed + exact
        assert missed < 2e-4 * length


@pytest.mark.parametrize("make", [lambda: limb(1, pole=False), lambda: limb(2, pole=True), tentacle])
def test_conversion_keeps_the_pose(make: Callable[[], Any]) -> None:
    ob, _target, _made = make()
    before = matrices(ob)
    assert bpy.ops.ik_addon.convert_constraints() == {"FINISHED"}
    after = matrices(ob)
    assert degrees_between(before, after) < 0.1
    length = sum(bone.length for bone in ob.data.bones)
    assert max((a.translation - b.translation).length for a, b in zip(before, after, strict=True)) < 1e-4 * length


@pytest.mark.parametrize(
    ("seed", "far"), list(enumerate([(1.0, 1.5, 3.0), (10.0, 15.0, 30.0), (300.0, -200.0, 100.0)]))
)
def test_stretched_limb_bends_as_before_when_its_target_comes_back(seed: int, far: rigs.Point) -> None:
    ob, target, _made = limb(seed, pole=True)
    near = matrices(ob)
    move(ob, target, far)
    bpy.ops.ik_addon.convert_constraints()
    move(ob, target, PLACES[0])
    assert degrees_between(near, matrices(ob)) < 0.1


def test_limb_with_limits_on_its_root_keeps_its_pose(capfd: pytest.CaptureFixture[str]) -> None:
    ob, _target, _made = limb(2, pole=True)
    upper = ob.pose.bones["upper"]
    rigs.change(upper, use_ik_limit_x=True, ik_min_x=-0.1, ik_max_x=0.1, lock_ik_y=True)
    before = matrices(ob)
    assert "Blender ignores the limits of 'upper'" in said(capfd, bpy.ops.ik_addon.convert_constraints)
    assert degrees_between(before, matrices(ob)) < 0.1


def test_tree_keeps_its_pose() -> None:
    ob = rigs.limb([(0, 0, 0), (0, 0.1, 0.5), (0, 0, 1)], ["spine", "chest"])
    for side, x in (("L", 0.4), ("R", -0.4)):
        points = [(0, 0, 1), (x, 0.1, 1.2), (2 * x, 0, 1.1)]
        rigs.add_bones(ob, points, [f"upper.{side}", f"lower.{side}"], parent="chest")
        constraint(ob, f"lower.{side}", rigs.empty(side, (1.4 * x, -0.4, 1.0 + 0.5 * x)), 0)
    assert_converted_alike(ob)
    assert ob.ik_addon.live


def test_says_that_a_tip_came_closer_to_its_target(capfd: pytest.CaptureFixture[str]) -> None:
    ob, target, _made = limb(0, pole=False)
    move(ob, target, (2.5, 2.4, 1.4))  # too far: Blender's solver stops before the limb is straight
    assert "of the chain's length, closer to its target" in said(capfd, bpy.ops.ik_addon.convert_constraints)


def test_says_how_far_an_animated_chain_moves(capfd: pytest.CaptureFixture[str]) -> None:
    ob, _target, _made = tentacle()
    ob.pose.bones["b"].keyframe_insert("rotation_quaternion", frame=1)
    before = matrices(ob)
    fk = rigs.channels(ob)
    said_this = said(capfd, bpy.ops.ik_addon.convert_constraints)
    moved = degrees_between(before, matrices(ob))
    assert moved > 0.1
    assert f"its bones turned by up to {moved:.2g}°" in said_this
    ob.ik_addon.live = False
    assert rigs.channels(ob).tobytes() == fk.tobytes()


def test_keys_of_a_bake_show_at_once_after_the_constraint_is_restored(addon: Addon) -> None:
    ob, _target, _made = tentacle()
    bpy.ops.ik_addon.convert_constraints()
    assert bpy.ops.ik_addon.bake(chains="ALL", frame_range="SCENE") == {"FINISHED"}
    keyed = rigs.channels(ob).tobytes()
    bpy.ops.ik_addon.restore_constraints()
    assert rigs.channels(ob).tobytes() == keyed
    bpy.context.scene.frame_set(bpy.context.scene.frame_current)
    assert rigs.channels(ob).tobytes() == keyed


def test_chain_with_half_influence_keeps_its_fk_pose() -> None:
    ob, _target, _made = tentacle(influence=0.5)
    fk = rigs.channels(ob).tobytes()
    bpy.ops.ik_addon.convert_constraints()
    ob.ik_addon.live = False
    assert rigs.channels(ob).tobytes() == fk


# ---- settings


def test_copies_the_settings() -> None:
    ob, target, made = limb(0, pole=True)
    made.use_rotation, made.influence, made.weight, made.iterations = True, 0.75, 0.4, 33
    bpy.ops.ik_addon.convert_constraints()
    chain = ob.pose.bones["lower"].ik_addon
    assert (chain.is_chain, chain.chain_length, chain.target, chain.pole) == (True, 2, target, made.pole_target)
    assert (chain.use_rotation, chain.influence, chain.iterations) == (True, 0.75, 33)
    assert chain.weight == pytest.approx(0.4)
    assert made.mute
    assert ob.ik_addon.live


def test_copies_bones_as_target_and_pole() -> None:
    ob, _target, made = limb(0, pole=True)
    rigs.add_bones(ob, [(0.6, 0.5, 1.2), (0.6, 0.5, 1.4)], ["hand"])
    rigs.add_bones(ob, [(0.3, -3.0, 1.0), (0.3, -3.0, 1.2)], ["elbow"])
    rigs.change(made, target=ob, subtarget="hand", pole_target=ob, pole_subtarget="elbow")
    assert_converted_alike(ob)
    chain = ob.pose.bones["lower"].ik_addon
    assert (chain.target, chain.target_bone, chain.pole, chain.pole_bone) == (ob, "hand", ob, "elbow")


def test_chain_ends_in_the_parent_of_a_bone_the_constraint_does_not_move() -> None:
    ob, _target, _made = tentacle(4, use_tail=False)
    rigs.change(ob.pose.bones["d"].constraints[0], chain_count=2)
    assert_converted_alike(ob, 0.3)  # the constraint misses its target by this much
    assert [bone.name for bone in ob.pose.bones if bone.ik_addon.is_chain] == ["c"]
    assert ob.pose.bones["c"].ik_addon.chain_length == 2


def test_stretches_if_the_constraint_did() -> None:
    ob, target, _made = limb(0, pole=True)
    for bone in ob.pose.bones:
        bone.ik_stretch = 0.5
    move(ob, target, (1.0, 1.0, 2.5))
    tip = rigs.tail(ob, "lower")
    bpy.ops.ik_addon.convert_constraints()
    assert ob.pose.bones["lower"].ik_addon.out_of_reach == "STRETCH"
    assert np.linalg.norm(rigs.tail(ob, "lower") - tip) < 1e-2


def test_moves_keys_and_drivers_of_the_influence_to_the_chain() -> None:
    ob, _target, made = limb(0, pole=True)
    rigs.key(made, "influence", {1: 0.0, 11: 1.0})
    bpy.context.scene.frame_set(11)
    bpy.ops.ik_addon.convert_constraints()
    for frame in (1, 4, 11):
        bpy.context.scene.frame_set(frame)
        assert rigs.evaluated(ob).pose.bones["lower"].ik_addon.influence == pytest.approx(made.influence)
    bpy.ops.ik_addon.restore_constraints()
    rigs.change(made.driver_add("influence").driver, expression="0.25")
    bpy.ops.ik_addon.convert_constraints()
    assert rigs.evaluated(ob).pose.bones["lower"].ik_addon.influence == pytest.approx(0.25)


def test_says_which_animation_is_not_converted(capfd: pytest.CaptureFixture[str]) -> None:
    ob, _target, made = limb(0, pole=True)
    made.keyframe_insert("pole_angle", frame=1)
    assert "The animation of 'pole_angle' of 'IK' on 'lower'" in said(capfd, bpy.ops.ik_addon.convert_constraints)
    assert ob.pose.bones["lower"].ik_addon.is_chain


# ---- the way back


@pytest.mark.parametrize("driven", [False, True])
@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("make", [lambda: limb(1, pole=False), lambda: limb(2, pole=True), tentacle])
def test_restores_everything_exactly(make: Callable[[], Any], live: bool, driven: bool) -> None:
    ob, target, made = make()
    for bone in ob.pose.bones:
        bone.rotation_mode = "YZX"
        bone.rotation_euler = (0.1, 0.2, -0.3)
    if driven:
        made.driver_add("influence").driver.expression = "1.0"
    ob.ik_addon.live = live
    before = state(ob)
    bpy.ops.ik_addon.convert_constraints()
    assert state(ob)["channels"] != before["channels"]
    place = target.location.copy()
    move(ob, target, (0.1, 0.2, 0.3))
    target.location = place
    bpy.ops.ik_addon.restore_constraints()
    assert state(ob) == before


def test_restores_the_pose_after_a_change_of_rotation_mode() -> None:
    ob, _target, _made = limb(1, pole=False)
    bpy.context.view_layer.update()
    before = matrices(ob)
    bpy.ops.ik_addon.convert_constraints()
    for bone in ob.pose.bones:
        bone.rotation_mode = "XYZ"
    bpy.ops.ik_addon.restore_constraints()
    bpy.context.view_layer.update()
    assert degrees_between(before, matrices(ob)) < 0.1


@pytest.mark.parametrize("what", ["an unkeyed pose", "after a refusal", "keys", "another constraint that is muted"])
def test_restores_also(what: str) -> None:
    ob, target, made = limb(0, pole=True)
    if what in {"an unkeyed pose", "after a refusal"}:
        for bone in ob.pose.bones:
            bone.keyframe_insert("rotation_quaternion", frame=1)
            bone.rotation_quaternion = (0.9, 0.1, -0.2, 0.3)
    elif what == "keys":
        rigs.key(made, "influence", {1: 0.5})
    else:
        constraint(ob, "lower", target, 2, mute=True)
    target.hide_viewport = what == "after a refusal"
    before = state(ob)
    if what == "after a refusal":
        with refused("disabled in viewports"):
            bpy.ops.ik_addon.convert_constraints()
    else:
        bpy.ops.ik_addon.convert_constraints()
        bpy.ops.ik_addon.restore_constraints()
    assert state(ob) == before
    assert not rigs.fcurves(ob, "ik_addon"), "nothing animates the chain any more"


def test_restores_after_renaming_the_bone_saving_and_opening_the_file(tmp_path: Path) -> None:
    ob, _target, _made = limb(1, pole=False)
    before = state(ob)
    bpy.ops.ik_addon.convert_constraints()
    rigs.save_and_open(tmp_path / "converted.blend")
    ob = bpy.data.objects["Rig"]
    ob.pose.bones["lower"].name = "forearm"
    assert bpy.ops.ik_addon.restore_constraints() == {"FINISHED"}
    ob.pose.bones["forearm"].name = "lower"
    assert state(ob) == before


def test_does_not_restore_a_deleted_constraint() -> None:
    ob, _target, made = limb(0, pole=True)
    bpy.ops.ik_addon.convert_constraints()
    made.name = "Other"
    with refused("Bone 'lower' no longer has an IK constraint 'IK'"):
        bpy.ops.ik_addon.restore_constraints()
    assert ob.pose.bones["lower"].ik_addon.is_chain


# ---- refusals


NOT_OURS: tuple[Any, ...] = (
    *(5, "text", [1.0, 2.0], {}, {"constraint": 5, "was_live": 1}, {"constraint": "IK"}),
    *({"mode": "XYZ"}, {"mode": "XYZ", "channels": [1.0]}, {"mode": 3, "channels": [0.0] * 17}),
    {"mode": "XYZ", "channels": [math.nan] * 17},
)


@pytest.mark.parametrize("value", NOT_OURS, ids=map(str, NOT_OURS))
def test_ignores_a_foreign_custom_property_of_the_same_name(addon: Addon, value: Any) -> None:
    """A file may be edited by hand, or another add-on may use the name."""
    convert = addon.module("chains.convert")
    ob, target = rigs.arm()
    bpy.ops.ik_addon.chain_remove()
    constraint(ob, "lower", target, 2)
    for bone in ob.pose.bones:
        for name in (convert.CONVERTED, convert.FK_BEFORE):
            bone[name] = value
    assert convert.converted_bones(ob) == []
    assert bpy.ops.ik_addon.convert_constraints() == {"FINISHED"}
    assert [bone.name for bone in convert.converted_bones(ob)] == ["lower"]
    assert bpy.ops.ik_addon.restore_constraints() == {"FINISHED"}
    assert not ob.pose.bones["lower"].constraints[0].mute


def test_refuses_itasc_and_an_armature_scaled_to_zero() -> None:
    ob, _target, _made = limb(0, pole=True)
    ob.pose.ik_solver = "ITASC"
    with refused("iTaSC"):
        bpy.ops.ik_addon.convert_constraints()
    ob.pose.ik_solver = "LEGACY"
    ob.scale = (0.0, 1.0, 1.0)
    with refused("is scaled to zero. Reset its scale"):
        bpy.ops.ik_addon.convert_constraints()


def test_needs_a_constraint_and_something_to_restore() -> None:
    ob = rigs.arm()[0]
    with refused("'Rig' has no enabled IK constraint"):
        bpy.ops.ik_addon.convert_constraints()
    with refused("No IK constraint of 'Rig' was converted"):
        bpy.ops.ik_addon.restore_constraints()
    assert not ob.ik_addon.live


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda ob, made: setattr(made, "target", None), "it has no valid target or pole"),
        (lambda ob, made: setattr(made, "use_location", False), "it does not pull its tip"),
        (lambda ob, made: made.keyframe_insert("mute", frame=1), "animated or driven"),
        (lambda ob, made: setattr(ob.pose.bones["lower"].ik_addon, "is_chain", True), "already has a chain"),
        (lambda ob, made: ob.pose.bones["upper"].constraints.new("COPY_ROTATION"), "The constraint 'Copy Rotation'"),
        (lambda ob, made: setattr(made.target, "hide_viewport", True), "disabled in viewports"),
    ],
)
def test_leaves_unconvertible_constraints_unchanged(spoil: Callable[[Any, Any], Any], reason: str) -> None:
    ob, _target, made = limb(0, pole=True)
    spoil(ob, made)
    before = state(ob)
    with refused(f"'IK' on 'lower' was not converted: .*{reason}"):
        bpy.ops.ik_addon.convert_constraints()
    assert state(ob) == before


def test_converts_the_others_if_one_cannot_be_converted(capfd: pytest.CaptureFixture[str]) -> None:
    ob, target, _made = limb(0, pole=True)
    rigs.add_bones(ob, [(2, 0, 0), (2, 0.3, 1), (2, 0, 2)], ["left", "right"])
    bad = constraint(ob, "right", target, 2)
    ob.pose.bones["left"].constraints.new("COPY_SCALE")
    report = said(capfd, bpy.ops.ik_addon.convert_constraints)
    assert "'IK' on 'right' was not converted: The constraint 'Copy Scale' on bone 'left'" in report
    assert not bad.mute
    assert ob.pose.bones["lower"].ik_addon.is_chain
    assert not ob.pose.bones["right"].ik_addon.is_chain


def test_reports_the_frame_on_which_joints_are_elsewhere(capfd: pytest.CaptureFixture[str]) -> None:
    """Without a pole, Blender's plane of the limb depends on where it began."""
    ob, target, _made = limb(0, pole=False)
    rigs.key(target, "location", {1: target.location.copy(), 20: (0.9, -0.3, 1.0)})
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 20
    scene.frame_set(20)
    elbow = rigs.head(ob, "lower")
    scene.frame_set(1)
    message = said(capfd, bpy.ops.ik_addon.convert_constraints)
    assert scene.frame_current == 1
    scene.frame_set(20)
    assert np.linalg.norm(rigs.head(ob, "lower") - elbow) > 0.01 * rigs.length(ob, "lower", 2)
    assert "On frame 20, joints of the chain on 'lower' are elsewhere" in message
