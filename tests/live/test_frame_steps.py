"""How live solving responds to edits of an armature and of what its goals are attached to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.conftest import Addon


def rig() -> bpy.types.Object:
    """Two limbs with limits on a body, with control bones as targets; the second limb's pole is a control bone too."""
    ob = rigs.armature()
    rigs.add_bones(ob, [(0, 0, 0), (0, 0, 1)], ["body"])
    for x, side in ((-0.4, "L"), (0.4, "R")):
        rigs.add_bones(ob, [(x, 0, 1), (x, 0.1, 0.5), (x, 0, 0)], [f"upper.{side}", f"lower.{side}"], parent="body")
        rigs.add_bones(ob, [(x, 0.2, 0.1), (x, 0.4, 0.1)], [f"target.{side}"])
    rigs.add_bones(ob, [(0.4, 2, 0.5), (0.4, 2.2, 0.5)], ["pole"])
    rigs.chain(ob, "lower.L", ob, 2, target_bone="target.L")
    rigs.chain(ob, "lower.R", ob, 2, target_bone="target.R", pole=ob, pole_bone="pole", pole_angle=0.3)
    bone: Any = ob.pose.bones["lower.L"]
    bone.use_ik_limit_x, bone.ik_min_x, bone.ik_max_x = True, -0.5, 2.0
    ob.ik_addon.live = True
    bpy.context.scene.frame_set(1)
    return ob


def now(ob: bpy.types.Object) -> rigs.Poses:
    bpy.context.view_layer.update()
    return {0: rigs.pose(ob)}


def limit(ob: Any) -> None:
    ob.pose.bones["lower.L"].ik_min_x, ob.pose.bones["lower.L"].ik_max_x = -0.05, 0.05


def change_mode(ob: Any) -> None:
    ob.pose.bones["body"].rotation_mode, ob.pose.bones["body"].rotation_euler = "XYZ", (0.1, 0.2, 0.3)


def constrain(ob: Any) -> None:
    ob.pose.bones["body"].constraints.new("LIMIT_LOCATION")
    ob.pose.bones["body"].location = 0.1, 0.2, 0.3


def disinherit(ob: Any) -> None:
    ob.data.bones["upper.L"].use_inherit_rotation = False
    ob.pose.bones["body"].rotation_quaternion = 0.9, 0.1, 0.2, 0.3


def lengthen(ob: Any) -> None:
    with rigs.edit_mode(ob) as bones:
        bones["lower.L"].tail *= 1.3


def reparent(ob: Any) -> None:
    with rigs.edit_mode(ob) as bones:
        bones["target.L"].parent = bones["body"]
    ob.pose.bones["body"].location = 0.1, 0.2, 0.3


EDITS: dict[str, Callable[[Any], object]] = {
    "a limit is set": limit,
    "an axis is locked": lambda ob: setattr(ob.pose.bones["upper.L"], "lock_ik_y", True),
    "a rotation mode is changed": change_mode,
    "the body is constrained": constrain,
    "inheritance ends": disinherit,
    "a bone is driven": lambda ob: setattr(
        ob.pose.bones["upper.L"].driver_add("rotation_quaternion", 1).driver, "expression", "0.2"
    ),
    "a bone is longer": lengthen,
    "a target is attached": reparent,
    "a target is keyed": lambda ob: rigs.key(ob.pose.bones["target.L"], "location", {1: (0.1, 0.2, 0.1)}),
}


def test_any_other_edit_takes_effect_at_once(addon: Addon) -> None:
    registry, failed = addon.module("live.registry"), addon.module("live.state").State.FAILED
    for name, edit in EDITS.items():
        rigs.new_file()
        ob = rig()
        for target in ("target.L", "target.R"):
            ob.pose.bones[target].location = 0.1, 0.3, 0.1
            before = now(ob)
        edit(ob)
        edited = now(ob)
        assert rigs.apart(edited, before), name
        assert registry.state_of(ob, bpy.context.view_layer) is not failed, name
        registry.clear()
        bpy.context.scene.frame_set(1)
        assert not rigs.apart(now(ob), edited), name


@pytest.mark.parametrize("solver", ["AUTO", "FABRIK"])
def test_setting_the_iterations_takes_effect_at_once(addon: Addon, solver: str) -> None:
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.bent(6), [f"bone.{i}" for i in range(6)])
    for bone in ob.pose.bones:
        bone.use_ik_limit_x, bone.ik_min_x, bone.ik_max_x = True, -0.9, 0.9
        bone.lock_ik_y = bone.lock_ik_z = True
    rigs.chain(ob, "bone.5", rigs.empty("Target", (0.0, 2.5, 1.0)), 6, solver=solver, iterations=1)
    rigs.go_live(ob)
    before = now(ob)
    ob.pose.bones["bone.5"].ik_addon.iterations = 100
    edited = now(ob)
    assert rigs.apart(edited, before)
    addon.module("live.registry").clear()
    bpy.context.scene.frame_set(1)
    assert not rigs.apart(now(ob), edited)
