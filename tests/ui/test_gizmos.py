"""Which targets and poles have gizmos; using them is tested in a window."""

from __future__ import annotations

import bpy

from tests import rigs
from tests.conftest import Addon


def shown(addon: Addon) -> list[tuple[str, str, str]]:
    """Return tip, role and object of everything that has a gizmo."""
    bpy.ops.object.mode_set(mode="POSE")
    return [(goal.tip, goal.role, goal.ob.name) for goal in addon.module("ui.gizmos").grips(bpy.context)]


def test_targets_and_poles_of_enabled_chains_have_gizmos(addon: Addon) -> None:
    ob, target = rigs.arm()
    rigs.add_bones(ob, [(2, 0, 0), (2, 0, 1)], ["other"])
    chain = ob.pose.bones["lower"].ik_addon
    chain.pole = rigs.empty("Pole", (1.0, 2.0, 3.0))
    rigs.chain(ob, "other", rigs.empty("Second", (2.0, 0.5, 0.5)))
    bpy.context.view_layer.update()
    both = [("lower", "target", target.name), ("lower", "pole", "Pole")]
    assert shown(addon) == [*both, ("other", "target", "Second")]
    bpy.data.objects["Second"].hide_set(True)
    assert shown(addon) == both
    chain.pole = None
    assert shown(addon) == both[:1]
    chain.enabled = False
    assert shown(addon) == []


def test_every_armature_in_pose_mode_has_its_gizmos(addon: Addon) -> None:
    obs = [rigs.arm()[0] for _ in range(2)]
    for ob in obs:
        bpy.context.view_layer.objects.active = ob
        bpy.ops.object.mode_set(mode="POSE")
    bpy.context.view_layer.update()
    found = {(goal.rig, goal.ob.name) for goal in addon.module("ui.gizmos").grips(bpy.context)}
    assert found == {(ob.name, ob.pose.bones["lower"].ik_addon.target.name) for ob in obs}
    assert len(found) == 2


def test_target_bones_have_blenders_own_gizmo(addon: Addon) -> None:
    ob, _target = rigs.arm()
    rigs.add_bones(ob, [(0.5, 0.5, 0.5), (0.5, 0.5, 0.8)], ["control"])
    chain = ob.pose.bones["lower"].ik_addon
    chain.target, chain.target_bone = ob, "control"
    assert shown(addon) == []


def test_gizmos_are_only_for_pose_mode(addon: Addon) -> None:
    gizmos = addon.module("ui.gizmos")
    rigs.arm()
    found = []
    for mode in ("OBJECT", "POSE", "EDIT"):
        bpy.ops.object.mode_set(mode=mode)
        found.append([cls.poll(bpy.context) for cls in (gizmos.IK_ADDON_GGT_rings, gizmos.IK_ADDON_GGT_tool)])
    assert found == [[False, False], [True, False], [False, False]], "without a window no tool is active"
    bpy.ops.object.mode_set(mode="POSE")
    bpy.context.scene.ik_addon.show_overlay = False
    assert not gizmos.IK_ADDON_GGT_rings.poll(bpy.context), "rings are a part of the overlay"
