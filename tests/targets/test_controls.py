"""Selecting and keying the controls of a figure or of a limb."""

from __future__ import annotations

from typing import Any

import bpy
import pytest

from tests import rigs_named
from tests.reliability.states import activate
from tests.rigs_named import RIGS


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
        wanted.add((figure.name, "mixamorig:Hips"))
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
