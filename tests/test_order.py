"""Chains whose targets hang on bones that other chains move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy
import numpy as np
import pytest
from mathutils import Vector

from tests import rigs

if TYPE_CHECKING:
    from tests.conftest import Addon


def at_bone(name: str, ob: bpy.types.Object, bone: str, location: rigs.Point) -> bpy.types.Object:
    """An empty that hangs on a bone, at a world location."""
    goal = rigs.empty(name)
    goal.parent, goal.parent_type, goal.parent_bone = ob, "BONE", bone
    bpy.context.view_layer.update()
    goal.matrix_world.translation = Vector(location)
    goal.location = (goal.matrix_parent_inverse @ goal.matrix_world).translation
    at = rigs.position(goal)
    goal.location += Vector(location) - Vector(at)
    return goal


def two_arms() -> tuple[bpy.types.Object, bpy.types.Object]:
    """Two arms in one armature, side by side; the leader has a target."""
    ob = rigs.armature()
    rigs.add_bones(ob, [(2, 0, 0), (2, -0.2, 1), (2, 0, 2)], ["upper.B", "lower.B"])
    rigs.add_bones(ob, [(0, 0, 0), (0, -0.2, 1), (0, 0, 2)], ["upper.A", "lower.A"])
    target = rigs.empty("Leader", (0.5, 0.4, 1.2))
    rigs.chain(ob, "lower.A", target, 2)
    return ob, target


def missed(ob: bpy.types.Object, tip: str, goal: bpy.types.Object) -> float:
    """World distance between tip and goal."""
    return float(np.linalg.norm(rigs.tail(ob, tip) - rigs.position(goal)))


@pytest.mark.parametrize("constrained", [False, True])
def test_a_target_on_another_chain_of_the_armature(constrained: bool) -> None:
    ob, leader = two_arms()
    if constrained:
        goal = rigs.empty("Goal")
        constraint = goal.constraints.new("COPY_LOCATION")
        constraint.target, constraint.subtarget = ob, "lower.A"
    else:
        goal = at_bone("Goal", ob, "lower.A", (1.2, 0.1, 1.5))
    rigs.chain(ob, "lower.B", goal, 2, out_of_reach="STRETCH")
    rigs.key(leader, "location", {1: (0.5, 0.4, 1.2), 20: (0.9, -0.6, 0.9)})
    ob.ik_addon.live = True
    for frame in (1, 7, 20, 3):
        bpy.context.scene.frame_set(frame)
        assert missed(ob, "lower.A", leader) < 1e-5
        assert missed(ob, "lower.B", goal) < 1e-5
    leader.location.x -= 0.3
    bpy.context.view_layer.update()
    assert missed(ob, "lower.B", goal) < 1e-5


@pytest.mark.parametrize("by_bone", [False, True])
def test_a_target_on_a_chain_of_another_armature(by_bone: bool) -> None:
    follower, goal = rigs.arm()
    bpy.data.objects.remove(goal)
    follower.name = "A follower comes first by name"
    leader_rig, leader = two_arms()
    rigs.add_bones(leader_rig, [(0, 0, 2), (0, 0, 2.3)], ["hand"], parent="lower.A")
    leader_rig.location = (-0.5, 0.3, 0.1)
    if by_bone:
        rigs.chain(follower, "lower", leader_rig, 2, target_bone="hand", out_of_reach="STRETCH")
        goal = leader
    else:
        goal = at_bone("Goal", leader_rig, "hand", (0.4, 0.5, 1.1))
        rigs.chain(follower, "lower", goal, 2, out_of_reach="STRETCH")
    rigs.key(leader, "location", {1: (0.1, 0.6, 1.2), 20: (-0.2, -0.3, 0.9)})
    follower.ik_addon.live = leader_rig.ik_addon.live = True
    for frame in (1, 7, 20, 3):
        bpy.context.scene.frame_set(frame)
        assert missed(leader_rig, "lower.A", leader) < 1e-5
        assert missed(follower, "lower", goal) < 1e-5
    leader.location.x += 0.3
    bpy.context.view_layer.update()
    assert missed(follower, "lower", goal) < 1e-5


def test_a_circle_is_named_on_both_chains_and_neither_moves(addon: Addon) -> None:
    ob, _leader = two_arms()
    before = rigs.channels(ob)
    rigs.chain(ob, "lower.B", at_bone("On A", ob, "lower.A", (1, 0, 1)), 2)
    rigs.chain(ob, "lower.A", at_bone("On B", ob, "lower.B", (1, 0, 1)), 2)
    ob.ik_addon.live = True
    bpy.context.scene.frame_set(4)
    reports = addon.module("reports")
    for tip, other in (("lower.A", "lower.B"), ("lower.B", "lower.A")):
        assert reports.get(ob, tip).failed
        assert f"'{other}'" in reports.get(ob, tip).message
    assert np.array_equal(rigs.channels(ob), before)


@pytest.mark.parametrize("keyed", [False, True])
def test_a_circle_of_armatures_is_named_and_neither_moves(addon: Addon, keyed: bool) -> None:
    one, _ = rigs.arm()
    two, _ = rigs.arm()
    if keyed:
        for frame, turn in ((1, 0.1), (20, 0.7)):
            one.pose.bones["lower"].rotation_quaternion = (0.9, turn, 0.2, 0.1)
            one.pose.bones["lower"].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.scene.frame_set(9)
    before = rigs.channels(one), rigs.channels(two)
    rigs.chain(one, "lower", at_bone("On two", two, "lower", (0.5, 0.5, 1)), 2)
    one.ik_addon.live = two.ik_addon.live = True
    bpy.context.view_layer.update()
    rigs.chain(two, "lower", at_bone("On one", one, "lower", (0.5, 0.5, 1)), 2)
    bpy.context.view_layer.update()
    for ob in (one, two):
        report = addon.module("reports").get(ob, "lower")
        assert report.failed
        assert f"'{one.name}'" in report.message
        assert f"'{two.name}'" in report.message
    assert np.array_equal(rigs.channels(one), before[0])
    assert np.array_equal(rigs.channels(two), before[1])
    bpy.context.scene.frame_set(3)
    bpy.context.scene.frame_set(9)
    assert np.array_equal(rigs.channels(one), before[0])
