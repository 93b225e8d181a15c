"""Selecting and keying the controls of a figure or of a limb."""

from __future__ import annotations

from typing import Any

import bpy
import pytest
from mathutils import Vector

from tests import rigs_named
from tests.reliability.states import activate
from tests.rigs_generated import armature_of, rigify
from tests.rigs_named import RIGS

__all__ = ["rigify"]


@pytest.fixture(params=["BONES", "EMPTIES"])
def figure(request: pytest.FixtureRequest) -> bpy.types.Object:
    """Return a figure with chains on all parts, whose left leg is active."""
    ob = rigs_named.build(RIGS["Mixamo"])
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="POSE")
    assert bpy.ops.ik_addon.character_setup(controls=request.param) == {"FINISHED"}
    activate(ob, "mixamorig:LeftLeg")
    return ob


def controls(ob: bpy.types.Object, tips: set[str]) -> set[tuple[str, str]]:
    """Return object and bone of the targets and poles of chains."""
    chains = [ob.pose.bones[tip].ik_addon for tip in tips]
    goals = [(getattr(own, role), getattr(own, f"{role}_bone")) for own in chains for role in ("target", "pole")]
    return {(goal.name, bone) for goal, bone in goals if goal is not None}


def selected(ob: bpy.types.Object, addon: Any) -> set[tuple[str, str]]:
    is_selected = addon.module("core.compat").is_selected
    bones = {(ob.name, bone.name) for bone in ob.pose.bones if is_selected(bone)}
    return bones | {(own.name, "") for own in bpy.context.selected_objects if own != ob}


def keyed(ob: bpy.types.Object, addon: Any, name: str, bone: str) -> set[str]:
    """Return which transform channels of a control have a key on the current frame."""
    owner = bpy.data.objects[name]
    holder = owner.pose.bones[bone] if bone else owner
    curves = addon.module("core.compat").curve_owner_of(owner.animation_data)
    start = holder.path_from_id("location").removesuffix("location")
    paths = {} if curves is None else {curve.data_path: curve for curve in curves.fcurves}
    now = bpy.context.scene.frame_current
    return {
        path.removeprefix(start)
        for path, curve in paths.items()
        if path.startswith(start) and any(key.co[0] == now for key in curve.keyframe_points)
    } & {"location", "rotation_euler", "rotation_quaternion"}


@pytest.mark.parametrize("chains", ["ALL", "ACTIVE"])
def test_controls_of_the_figure_or_the_limb_are_selected_and_keyed(
    figure: bpy.types.Object, addon: Any, chains: str
) -> None:
    tips = {bone.name for bone in figure.pose.bones if bone.ik_addon.is_chain}
    wanted = controls(figure, tips if chains == "ALL" else {"mixamorig:LeftLeg"})
    if chains == "ALL":
        own = ("mixamorig:Hips", "mixamorig:LeftShoulder", "mixamorig:RightShoulder")
        wanted |= {(figure.name, bone) for bone in own}
    bpy.context.scene.frame_set(7)
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = False
    bpy.context.preferences.edit.use_keyframe_insert_available = True
    try:
        assert bpy.ops.ik_addon.key_controls(chains=chains) == {"FINISHED"}
    finally:
        bpy.context.preferences.edit.use_keyframe_insert_available = False
    assert all(len(keyed(figure, addon, *control)) == 2 for control in wanted)
    assert not keyed(figure, addon, figure.name, "mixamorig:LeftLeg"), "solved bones have no keys"
    assert bpy.ops.ik_addon.select_controls(chains=chains) == {"FINISHED"}
    assert selected(figure, addon) == wanted


def test_a_pose_pasted_flipped_is_the_mirror_image_of_arms_stretched_from_their_shoulders(rigify: None) -> None:
    ob = armature_of("human")
    bpy.ops.object.mode_set(mode="POSE")
    assert bpy.ops.ik_addon.character_setup() == {"FINISHED"}
    bpy.ops.ik_addon.pose_body(bone="hand.L", offset=(0.1, -0.4, 0.5))
    bpy.context.view_layer.update()
    before = {side: ob.pose.bones[f"hand.{side}"].head.copy() for side in "LR"}
    assert ob.pose.bones["shoulder.L"].matrix_basis.to_quaternion().angle > 0.01, "the shoulder gives way"
    assert bpy.ops.ik_addon.select_controls() == {"FINISHED"}
    bpy.ops.pose.copy()
    bpy.ops.pose.paste(flipped=True)
    bpy.context.view_layer.update()
    for side, other in ("LR", "RL"):
        place = before[other]
        assert (ob.pose.bones[f"hand.{side}"].head - Vector((-place.x, place.y, place.z))).length < 1e-3, side


def test_copy_pose_says_which_controls_it_leaves_out(
    figure: bpy.types.Object, addon: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    left_out, compat = addon.module("targets.controls").not_copied, addon.module("core.compat")
    is_empty = not figure.pose.bones["mixamorig:LeftLeg"].ik_addon.target_bone
    bpy.ops.ik_addon.select_controls()
    assert bool(left_out(bpy.context, figure)) == is_empty
    if is_empty:
        capfd.readouterr()
        bpy.ops.ik_addon.copy_pose()
        assert "Left out, as they are empties: 'IK Target mixamorig:" in capfd.readouterr().out
        for bone in figure.pose.bones:
            compat.set_selected(bone, to=True)
        assert left_out(bpy.context, figure) == [], "the limbs are copied as a whole"
