"""Chains name the right bones after Blender's Symmetrize and Join, which copy settings as they are."""

from __future__ import annotations

import bpy
import pytest

from tests import rigs
from tests.chains.test_end_bone import body
from tests.conftest import Addon
from tests.reliability.states import activate


def symmetrize(ob: bpy.types.Object) -> None:
    """Copy the left side of an armature to the right, which may be there already."""
    with rigs.edit_mode(ob) as bones:
        rigs.select_edit_bones(bones, ".L")
        bpy.ops.armature.symmetrize()
    bpy.context.view_layer.update()


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
def test_a_symmetrized_leg_ends_in_its_own_foot_and_can_be_mirrored(addon: Addon, controls: str, live: bool) -> None:
    chains = addon.module("rig.plan.chain")
    ob = body()
    assert bpy.ops.ik_addon.chain_add(controls=controls, live=live) == {"FINISHED"}
    symmetrize(ob)
    right = ob.pose.bones["shin.R"]
    assert right.ik_addon.is_chain
    assert chains.end_of(right).name == "foot.R"
    assert not live or right.ik_addon.end_bone == "foot.R", "the panel shows this name"
    activate(ob, "shin.R")
    bpy.ops.ik_addon.solve()
    report = addon.report(ob, "shin.R")
    assert not report.failed
    assert report.remarks == ("The target belongs to the other side. Mirror the chain on 'shin.L'",)
    assert not addon.report(ob, "shin.L").remarks
    assert bpy.ops.ik_addon.chain_fix(tip="shin.R") == {"FINISHED"}
    bpy.ops.ik_addon.solve()
    report = addon.report(ob, "shin.R")
    assert (report.reached, report.remarks) == (True, ())
    goal = ob.pose.bones["shin.R"].ik_addon
    assert (goal.target_bone or goal.target.name) == "IK Target shin.R"


def test_both_sides_may_follow_a_target_of_neither(addon: Addon) -> None:
    ob = body()
    sword = rigs.empty("Sword", (0.0, -0.2, 0.4))
    for side in "LR":
        rigs.chain(ob, f"shin.{side}", sword, 2)
    bpy.ops.ik_addon.solve()
    assert not any(addon.report(ob, f"shin.{side}").remarks for side in "LR")


@pytest.mark.parametrize("live", [True, False])
def test_joined_armatures_keep_their_end_bones(addon: Addon, live: bool) -> None:
    chains = addon.module("rig.plan.chain")
    first = body()
    bpy.ops.ik_addon.chain_add(live=live)
    second = body()
    bpy.ops.ik_addon.chain_add(live=live)
    bpy.context.view_layer.update()
    for ob in (first, second):
        ob.select_set(True)
    bpy.context.view_layer.objects.active = first
    bpy.ops.object.join()
    bpy.context.view_layer.update()
    tip = first.pose.bones["shin.L.001"]
    assert chains.end_of(tip).name == "foot.L.001"
    assert chains.end_of(first.pose.bones["shin.L"]).name == "foot.L"
    bpy.ops.ik_addon.solve()
    assert addon.report(first, tip.name).reached


def test_a_child_of_another_name_is_no_end_bone(addon: Addon) -> None:
    ob = body()
    tip = rigs.chain(ob, "shin.L", rigs.empty("Target"), 2, end_bone="hips")
    assert addon.module("rig.plan.chain").end_of(tip) is None
