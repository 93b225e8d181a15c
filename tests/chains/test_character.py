"""Set Up Character: chains on a whole figure, without moving it."""

import math
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Vector

from tests import rigs, rigs_named
from tests.anatomy.test_members import build_without
from tests.conftest import Addon
from tests.reliability.states import activate, add, joints, refused, said, snapshot
from tests.reliability.test_libraries import as_override
from tests.rigs_generated import armature_of, rigify
from tests.rigs_named import RIGS

__all__ = ["rigify"]
PLACED = Matrix.LocRotScale((3.0, -2.0, 0.5), Euler((0.3, -0.2, 2.0)), (-0.8, 0.8, 0.8))
"""Mirrored, scaled and rotated."""


def chains(ob: bpy.types.Object) -> dict[str, list[str]]:
    """Return the bones of each chain by its tip."""
    found = {}
    for bone in ob.pose.bones:
        if bone.ik_addon.is_chain:
            row = [bone, *bone.parent_recursive][: bone.ik_addon.chain_length]
            found[bone.name] = [b.name for b in row[::-1]]
    return found


def bend(ob: bpy.types.Object, row: list[str]) -> float:
    """Return the sum of the angles in degrees by which a chain's joints bend, as posed."""
    bones = [rigs.evaluated(ob).pose.bones[name] for name in row]
    points = [*(bone.head for bone in bones), bones[-1].tail]
    steps = [b - a for a, b in pairwise(points) if (b - a).length > 1e-6]
    return math.degrees(sum(a.angle(b) for a, b in pairwise(steps)))


def places(ob: bpy.types.Object) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Return the evaluated head and tail (2, 3) of each bone in armature space."""
    return dict(zip(ob.pose.bones.keys(), joints(ob), strict=True))


def set_up(ob: bpy.types.Object, **options: Any) -> dict[str, list[str]]:
    """Set up a character; assert that no joint moved by more than 1e-6 of its limb, or 1e-4 if the limb is straight."""
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    before = places(ob)
    assert bpy.ops.ik_addon.character_setup(**options) == {"FINISHED"}
    after, found = places(ob), chains(ob)
    moved = {name: float(np.abs(after[name] - place).max()) for name, place in before.items()}
    corners = [(ob.matrix_world @ Vector(place.tolist())).length for ends in before.values() for place in ends]
    # World places are stored in single precision, and the trunk's targets are computed from those of two bones.
    coarse = 8.0 * np.finfo(np.float32).eps * max(corners) / ob.matrix_world.median_scale
    for row in found.values():
        length = sum(float(np.linalg.norm(before[name][1] - before[name][0])) for name in row)
        exact = 1e-6 * length + coarse if bend(ob, row) > 2.0 else 1e-4 * length
        assert max(moved[name] for name in row) < exact, row
    assert max(moved.values()) < 1e-4 * np.ptp(list(before.values()))
    return found


def figure(**options: Any) -> bpy.types.Object:
    """Return a character that has been set up."""
    ob = rigs_named.build(RIGS["Mixamo"])
    set_up(ob, **options)
    return ob


@pytest.mark.parametrize("name", RIGS)
def test_all_limbs_get_chains_and_nothing_moves(addon: Addon, name: str) -> None:
    """Every other one has straight limbs, and is mirrored, scaled and rotated."""
    is_straight = len(name) % 2 == 0
    ob = rigs_named.build(RIGS[name], is_straight=is_straight)
    if is_straight:
        ob.matrix_world = PLACED
    found = set_up(ob)
    limbs = rigs_named.limbs(RIGS[name], ob)
    assert len(found) == 6
    for limb in limbs:
        assert found[limb[-1]] == limb
        chain = ob.pose.bones[limb[-1]].ik_addon
        assert chain.target is not None
        assert chain.pole is not None
        assert Vector(chain.bend_side).length == pytest.approx(1.0, abs=1e-5)
    others = [ob.pose.bones[tip].ik_addon for tip in found if tip not in {limb[-1] for limb in limbs}]
    assert [(chain.target is not None, chain.pole) for chain in others] == [(True, None)] * 2
    assert all(ob.pose.bones[tip].ik_addon.target == ob for tip in found)
    assert ([o.name for o in bpy.context.scene.objects], ob.users) == ([ob.name], 1), "controls are bones"
    assert ob.ik_addon.live
    assert all(addon.report(ob, tip).reached for tip in found)


@pytest.mark.usefixtures("rigify")
@pytest.mark.parametrize("kind", ["human", "horse", "bird"])
def test_rigifys_metarigs_can_be_set_up(kind: str) -> None:
    ob = armature_of(kind)
    assert len(set_up(ob)) == 6
    limited = any(bone.use_ik_limit_x or bone.use_ik_limit_z for bone in ob.pose.bones)
    assert limited == (kind == "human")


def test_a_raised_foot_bends_the_knee_forward() -> None:
    ob = rigs_named.build(RIGS["Mixamo"], is_straight=True)
    set_up(ob, controls="EMPTIES")
    target = ob.pose.bones["mixamorig:LeftLeg"].ik_addon.target
    target.location += Vector((0.0, -0.15, 0.2))
    bpy.context.view_layer.update()
    knee, ankle = rigs.head(ob, "mixamorig:LeftLeg"), rigs.tail(ob, "mixamorig:LeftLeg")
    assert np.linalg.norm(ankle - rigs.position(target)) < 1e-5
    assert knee[1] < -0.1


@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
def test_the_trunk_follows_the_hips_and_hands_and_feet_stay(controls: str, addon: Addon) -> None:
    ob = rigs_named.build(RIGS["Mixamo"])
    ob.matrix_world = PLACED
    for side, sign in (("Left", -1.0), ("Right", 1.0)):
        ob.pose.bones[f"mixamorig:{side}ForeArm"].rotation_quaternion = Euler((0.0, 0.0, 1.2 * sign)).to_quaternion()
    set_up(ob, controls=controls)
    ends = ["mixamorig:LeftFoot", "mixamorig:RightFoot", "mixamorig:LeftHand", "mixamorig:RightHand"]
    before = {name: rigs.head(ob, name) for name in (*ends, "mixamorig:Head", "mixamorig:Spine2")}
    step = Vector((0.03, -0.06, 0.02))  # along the bone, which points up
    rigs.change(ob.pose.bones["mixamorig:Hips"], location=step)
    bpy.context.view_layer.update()
    moved = {name: np.linalg.norm(rigs.head(ob, name) - place) for name, place in before.items()}
    for name, distance in moved.items():
        assert distance < 1e-4 if name in ends else distance == pytest.approx(0.8 * step.length, rel=0.02), name
    assert all(addon.report(ob, tip).reached for tip in chains(ob))


def test_a_figure_with_control_bones_gets_the_missing_chains() -> None:
    ob = figure(controls="BONES", regions={"LEG"})
    assert len(set_up(ob, controls="BONES")) == 6
    elbow = ob.pose.bones["mixamorig:LeftForeArm"]
    assert any(getattr(elbow, f"use_ik_limit_{axis}") for axis in "xyz")


@pytest.mark.parametrize("bends", [(0, 9), (3, 9), (30, 30), (30, 9), (30, 30, 30), (30, 30, 6), (9, 30, 0)])
def test_legs_get_as_much_softness_as_all_known_poses_leave(bends: tuple[int, ...]) -> None:
    """Knees are bent by these degrees in the rest pose, on the current frame, and on another one if it is animated."""
    ob, (thigh, shin) = rigs_named.build(RIGS["Mixamo"], is_straight=True), ("mixamorig:LeftUpLeg", "mixamorig:LeftLeg")
    with rigs.edit_mode(ob) as bones:
        bones[thigh].tail.y -= bones[thigh].length * math.tan(math.radians(0.5 * bends[0]))
        bones[shin].head = bones[thigh].tail
    knee = ob.pose.bones[shin]
    now, *later = (Euler((math.radians(bend - bends[0]), 0.0, 0.0)).to_quaternion() for bend in bends[1:])
    knee.rotation_quaternion = now
    rigs.key(knee, "rotation_quaternion", dict(zip((9, 10, 1), 2 * later + len(later) * [now], strict=False)))
    set_up(ob)
    a, b = (ob.data.bones[name].length for name in (thigh, shin))
    reach = math.sqrt(a * a + b * b + 2.0 * a * b * math.cos(math.radians(min(bends)))) / (a + b)
    assert knee.ik_addon.softness == pytest.approx(min(1.0 - reach, 0.01), abs=2e-6)


# ---- existing chains and settings stay


def test_a_second_run_changes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    ob = rigs_named.build(RIGS["Daz"])
    bpy.ops.object.mode_set(mode="POSE")
    ob.data.bones.active = None
    assert (len(set_up(ob)), ob.mode) == (6, "POSE"), "as without an active bone in Pose Mode"
    before = snapshot()
    assert "already have chains" in said(capfd, bpy.ops.ik_addon.character_setup)
    assert bpy.ops.ik_addon.character_setup() == {"CANCELLED"}
    assert snapshot() == before


def test_an_existing_chain_is_left_alone(capfd: pytest.CaptureFixture[str]) -> None:
    ob = rigs_named.build(RIGS["Mixamo"])
    own = rigs.chain(ob, "mixamorig:LeftFoot", rigs.empty("Own"), 3, softness=0.3)
    assert "already have chains: left leg" in said(capfd, bpy.ops.ik_addon.character_setup)
    found = chains(ob)
    assert len(found) == 6
    assert found["mixamorig:LeftFoot"][0] == "mixamorig:LeftUpLeg"
    assert (own.ik_addon.target.name, round(own.ik_addon.softness, 6)) == ("Own", 0.3)
    assert {tip for tip in found if ob.pose.bones[tip].ik_addon.softness} == {own.name, "mixamorig:RightLeg"}


def test_limbs_with_constraints_are_left_for_conversion(capfd: pytest.CaptureFixture[str]) -> None:
    ob = rigs_named.build(RIGS["Mixamo"])
    goal = rigs.empty("T", (0.1, 0.0, 0.1))
    rigs.constrain(ob.pose.bones["mixamorig:LeftLeg"], "IK", target=goal, chain_count=2)
    ob.pose.bones["mixamorig:RightArm"].constraints.new("LIMIT_ROTATION")
    text = said(capfd, bpy.ops.ik_addon.character_setup)
    assert "Convert IK Constraints turns them into chains: left leg" in text
    assert "Use the rig's controls instead: right arm" in text
    assert sorted(chains(ob)) == [f"mixamorig:{tip}" for tip in ("Head", "LeftForeArm", "RightLeg", "Spine2")]


def test_limits_and_shapes_of_bones_are_kept() -> None:
    ob = rigs_named.build(RIGS["Mixamo"])
    knee, hips, own = ob.pose.bones["mixamorig:LeftLeg"], ob.pose.bones["mixamorig:Hips"], rigs.empty("Own")
    knee.use_ik_limit_x, knee.ik_max_x, hips.custom_shape = True, 1.0, own
    set_up(ob)
    assert hips.custom_shape == own
    assert (knee.use_ik_limit_x, knee.use_ik_limit_z, knee.lock_ik_z) == (True, False, False)
    assert knee.ik_max_x == pytest.approx(1.0)
    other = ob.pose.bones["mixamorig:RightLeg"]
    assert other.lock_ik_y or other.lock_ik_z or other.use_ik_limit_x


def test_a_pose_outside_human_limits_is_kept(capfd: pytest.CaptureFixture[str], addon: Addon) -> None:
    ob = rigs_named.build(RIGS["Mixamo"])
    knee, spine = (ob.pose.bones[f"mixamorig:{name}"] for name in ("LeftLeg", "Spine1"))
    held = joints(ob)
    knee.rotation_quaternion = Euler((0.0, 0.0, 0.7)).to_quaternion()
    rigs.change(spine, rotation_quaternion=Euler((1.2, 0.0, 0.0)).to_quaternion())
    assert np.abs(joints(ob) - held).max() > 0.1
    set_up(ob)
    for bone in (knee, spine):
        assert not any(getattr(bone, f"{kind}_{axis}") for kind in ("use_ik_limit", "lock_ik") for axis in "xyz")
        assert bone.ik_stiffness_x == 0.0
    remarks = addon.module("chains.character").last(ob).remarks
    assert remarks == ("The pose of these parts is outside human limits, so no limits were added: spine, left leg",)
    assert remarks == addon.module("ui.panels.main").remarks_on(ob)


def test_scripts_get_all_remarks(capfd: pytest.CaptureFixture[str]) -> None:
    ob = build_without(RIGS["Mixamo"], "mixamorig:Neck")
    ob.pose.bones["mixamorig:LeftForeArm"].rotation_quaternion = Euler((1.6, 0.0, 0.0)).to_quaternion()
    rigs.change(ob.pose.bones["mixamorig:LeftLeg"], rotation_quaternion=Euler((0.0, 0.0, 0.7)).to_quaternion())
    add(ob, "mixamorig:RightLeg")
    rigs.key(ob.pose.bones["mixamorig:RightArm"], "rotation_quaternion", {1: (1, 0, 0, 0)})
    text = said(capfd, bpy.ops.ik_addon.character_setup)
    assert "outside human limits" in text
    assert "bent the wrong way" in text
    assert "These parts are animated" in text
    assert "These parts already have chains: right leg" in text
    assert "Not found by name or shape. Use Add Chain instead: head" in text


def test_a_character_set_up_in_object_mode_is_posed_in_pose_mode(capfd: pytest.CaptureFixture[str]) -> None:
    ob = rigs_named.build(RIGS["Mixamo"])
    activate(ob, None)
    bpy.ops.object.mode_set(mode="OBJECT")
    assert "To pose it, go to Pose Mode" in said(capfd, bpy.ops.ik_addon.character_setup, regions={"ARM"})
    bpy.ops.object.mode_set(mode="POSE")
    assert "go to Pose Mode" not in said(capfd, bpy.ops.ik_addon.character_setup, regions={"LEG"})


def test_warns_about_a_pose_bent_to_the_wrong_side(addon: Addon) -> None:
    ob = rigs_named.build(RIGS["Mixamo"])
    rigs.change(ob.pose.bones["mixamorig:LeftForeArm"], rotation_quaternion=Euler((1.6, 0.0, 0.0)).to_quaternion())
    before = places(ob)
    bpy.ops.ik_addon.character_setup(with_presets=False, live=False)
    assert all(np.array_equal(place, places(ob)[name]) for name, place in before.items())
    assert addon.module("chains.character").last(ob).remarks == (
        "These parts were bent the wrong way, so their pose changed: left arm",
    )


# ---- options


def test_only_the_chosen_parts_are_set_up() -> None:
    ob = rigs_named.build(RIGS["SMPL"])
    found = set_up(ob, regions={"LEG", "SPINE"}, with_poles=False, with_presets=False, live=False)
    assert sorted(found) == ["L_Knee", "R_Knee", "Spine3"]
    assert all(ob.pose.bones[tip].ik_addon.pole is None for tip in found)
    assert not any(bone.use_ik_limit_x or bone.lock_ik_x or bone.lock_ik_z for bone in ob.pose.bones)
    assert not ob.ik_addon.live
    assert rigs.held(ob) == []


def test_all_chains_are_removed_at_once_with_all_that_was_made_for_them() -> None:
    ob = rigs_named.build(RIGS["Mixamo"])
    before = {bone.name: bone.matrix_basis.copy() for bone in ob.pose.bones}
    bpy.ops.ik_addon.character_setup(arms="CHEST")
    bpy.ops.ik_addon.chains_remove()
    assert {bone.name: bone.matrix_basis for bone in ob.pose.bones} == before
    assert not any(bone.ik_addon.is_chain or bone.custom_shape for bone in ob.pose.bones)


def test_missing_parts_are_reported_and_shown_while_the_chains_exist(
    capfd: pytest.CaptureFixture[str], addon: Addon
) -> None:
    panel = addon.module("ui.panels.main")
    ob = build_without(RIGS["Mixamo"], "mixamorig:Neck")
    text = said(capfd, bpy.ops.ik_addon.character_setup)
    assert "Set up 5 chains" in text
    assert "Use Add Chain instead: head" in text
    assert panel.VIEW3D_PT_ik_addon_character.poll(bpy.context)
    assert any("head" in remark for remark in panel.remarks_on(ob))
    activate(ob, "mixamorig:LeftLeg")
    bpy.ops.ik_addon.chain_remove()
    assert not panel.VIEW3D_PT_ik_addon_character.poll(bpy.context)


def test_a_figure_without_known_parts_is_refused() -> None:
    rigs.limb(rigs.bent(3), "abc")
    with refused("No chain was added.*Not found.*arms, legs, spine, head"):
        bpy.ops.ik_addon.character_setup()


def test_a_library_override_gets_chains(tmp_path: Path) -> None:
    rigs.in_collection("Character", rigs_named.build(RIGS["Mixamo"]))
    assert len(set_up(as_override(tmp_path))) == 6


@pytest.mark.parametrize("degrees", [0, 40, 150])
@pytest.mark.usefixtures("rigify")
def test_straight_legs_get_human_limits_whichever_way_the_figure_faces(degrees: int) -> None:
    ob = armature_of("human")
    with rigs.edit_mode(ob) as bones:
        for bone in bones:
            bone.use_connect = False
        for side in "LR":
            thigh, shin = bones[f"thigh.{side}"], bones[f"shin.{side}"]
            below = Vector((thigh.head.x, thigh.head.y, shin.tail.z))
            off = below - shin.tail
            thigh.tail = shin.head = thigh.head.lerp(below, 0.5)
            shin.tail = below
            for name in ("foot", "toe", "heel.02"):
                bones[f"{name}.{side}"].translate(off)
        for bone in bones:
            bone.transform(Matrix.Rotation(math.radians(degrees), 4, "Z"))
    set_up(ob)
    assert [ob.pose.bones[f"shin.{side}"].use_ik_limit_x for side in "LR"] == [True, True]


@pytest.mark.parametrize("rig", ["Mixamo", "VRM", "Daz", "Character Creator", "Second Life", "Manny"])
def test_flipped_poses_find_the_controls_of_the_other_side(rig: str) -> None:
    ob = rigs_named.build(RIGS[rig])
    set_up(ob)
    sided = [bone for bone in ob.pose.bones if bone.name.startswith("IK ") and abs(bone.head.x) > 0.05]
    assert len(sided) >= 8
    for bone in sided:
        other = ob.pose.bones.get(bpy.utils.flip_name(bone.name))
        assert other not in {None, bone}, bone.name
        assert other.head.x == pytest.approx(-bone.head.x, abs=1e-3)


def test_the_hips_and_the_root_become_controls_as_they_are_until_the_last_chain_goes() -> None:
    ob = rigs_named.build(RIGS["Mixamo"])
    named = {bone.name for bone in ob.pose.bones}
    set_up(ob)
    hips = ob.pose.bones["mixamorig:Hips"]
    assert hips.custom_shape is not None
    assert ob.show_in_front
    assert hips.color.palette == "THEME09"
    assert all(bone.custom_shape for bone in ob.pose.bones if bone.name not in named)
    assert not any(ob.pose.bones[name].constraints for name in named)
    colors = {side: ob.pose.bones[f"IK Target mixamorig:Leg.{side}"].color.palette for side in "LR"}
    assert colors == {"L": "THEME04", "R": "THEME01"}
    for tip in [bone.name for bone in ob.pose.bones if bone.ik_addon.is_chain]:
        activate(ob, tip)
        bpy.ops.ik_addon.chain_remove()
    assert ob.pose.bones["mixamorig:Hips"].custom_shape is None
    assert not [shape for shape in bpy.data.objects if shape.name.startswith("IK Shape")]


def test_hips_and_chest_that_are_points_get_controls_that_can_be_clicked() -> None:
    """Such bones come with recorded motions."""
    ob = rigs_named.build(RIGS["Mixamo"])
    with rigs.edit_mode(ob) as bones:
        for name in ("mixamorig:Hips", "mixamorig:Spine2"):
            bones[name].tail = bones[name].head + Vector((0.0, 0.0, 0.001))
    set_up(ob)
    thigh = ob.data.bones["mixamorig:LeftUpLeg"].length
    assert ob.pose.bones["mixamorig:Hips"].custom_shape_scale_xyz[0] > 0.5 * thigh
    assert ob.data.bones["IK Target mixamorig:Spine2"].length > 0.05 * thigh


@pytest.mark.parametrize("arms", ["WORLD", "CHEST"])
def test_hands_stay_in_place_or_go_along_with_the_chest(arms: str) -> None:
    ob = figure(arms=arms, regions={"ARM"}, with_presets=False)
    before = rigs.tail(ob, "mixamorig:LeftForeArm")
    ob.pose.bones["mixamorig:Hips"].location.x += 0.05 * ob.pose.bones["mixamorig:Hips"].bone.length
    rigs.change(ob.pose.bones["mixamorig:Spine"], rotation_quaternion=Euler((0.1, 0.0, 0.0)).to_quaternion())
    moved = float(np.linalg.norm(rigs.tail(ob, "mixamorig:LeftForeArm") - before))
    assert moved < 1e-5 if arms == "WORLD" else moved > 1e-2


def test_a_bone_of_the_same_armature_is_a_target_without_an_object() -> None:
    ob, _target = rigs.arm()
    chain = ob.pose.bones["lower"].ik_addon
    for settings in permutations({"target": ob, "target_bone": "upper"}.items()):
        for name, value in settings:
            setattr(chain, name, value)
        assert (chain.target, chain.target_bone, chain.target_object, ob.users) == (ob, "upper", None, 1)
        chain.target = None
        assert (chain.target, chain.target_bone) == (None, "")


def test_an_armature_that_shares_its_data_gets_empties_and_is_told() -> None:
    ob = rigs_named.build(RIGS["Mixamo"])
    bpy.context.scene.collection.objects.link(ob.copy())
    bones = len(ob.data.bones)
    set_up(ob)
    assert len(ob.data.bones) == bones
    assert ob.pose.bones["mixamorig:LeftLeg"].ik_addon.target.type == "EMPTY"


def test_advice_to_transfer_animation_goes_once_it_is_followed(addon: Addon) -> None:
    panel = addon.module("ui.panels.main")
    ob = rigs_named.build(RIGS["Mixamo"])
    rigs.key(ob.pose.bones["mixamorig:RightArm"], "location", {1: (0, 0, 0), 3: (0, 0, 0)})
    set_up(ob)
    assert any("These parts are animated" in remark for remark in panel.remarks_on(ob))
    bpy.ops.ik_addon.snap_target(chains="ALL", frame_range="CUSTOM", frame_start=1, frame_end=3)
    assert not panel.remarks_on(ob)


def test_a_head_that_cannot_turn_as_far_as_its_control_says_so(addon: Addon) -> None:
    ob = figure()
    tip = next(bone for bone in ob.pose.bones if bone.ik_addon.is_chain and "Head" in bone.name)
    control = ob.pose.bones[tip.ik_addon.target_bone]
    rigs.change(control, rotation_quaternion=Euler((0.9, 0.0, 0.0)).to_quaternion())
    posed = rigs.evaluated(ob).pose.bones
    turned = posed[tip.name].matrix.to_quaternion().rotation_difference(posed[control.name].matrix.to_quaternion())
    assert turned.angle > 0.3
    assert f"turned {math.degrees(turned.angle):.0f}° away" in addon.report(ob, tip.name).message
