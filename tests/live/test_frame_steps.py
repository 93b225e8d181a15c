"""How live solving responds to edits of an armature and of what its goals are attached to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy
import numpy as np
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


@pytest.mark.parametrize(("kind", "counts"), [("leg", (2, 2, 2)), ("tail", (3, 4, 6))])
def test_a_limb_whose_target_moves_has_the_pose_of_its_frame(addon: Addon, kind: str, counts: tuple[int, ...]) -> None:
    """On a still frame, limbs with limits are solved one by one: in reach and out of it, and near their FK pose."""
    ob, targets = limbs(kind, counts)
    rigs.go_live(ob)
    registry, reports, rng = addon.module("live.registry"), addon.module("live.reports"), np.random.default_rng(3)
    seen = set()
    for step in range(30):
        limb = step % len(counts)
        away = rng.normal(size=3)
        targets[limb].location = (np.array((limb, 0, 0)) + rng.uniform(0.1, 1.4) * away / np.linalg.norm(away)).tolist()
        if step % 10 == 9:  # about a rounding error off the FK pose
            ob.ik_addon.live = False
            targets[limb].location = (rigs.tail(ob, f"{kind}{limb}.{counts[limb] - 1}") * (1.0 + 1e-8)).tolist()
            ob.ik_addon.live = True
        moved = now(ob)
        seen.add(reports.get(ob, f"{kind}{limb}.{counts[limb] - 1}").status)
        registry.clear()
        bpy.context.scene.frame_set(1)
        assert not rigs.apart(now(ob), moved), step
    assert len(seen) > 2, "reached, too far, limited"


def limbs(kind: str, counts: tuple[int, ...]) -> tuple[bpy.types.Object, list[bpy.types.Object]]:
    """Return limbs with limits, of so many bones, on a turned body, the last with a pole, and their targets."""
    ob = rigs.armature()
    rigs.add_bones(ob, [(0, 0, -1), (0, 0, 0)], ["body"])
    targets = []
    for limb, bones in enumerate(counts):
        names = [f"{kind}{limb}.{i}" for i in range(bones)]
        points = [(x + limb, y, z) for x, y, z in rigs.bent(bones, 1.0 / bones, 0.4)]
        rigs.add_bones(ob, points, names, parent="body", connect=False)
        targets.append(rigs.empty(f"target{limb}", (limb + 0.2, 0.3, 0.6)))
        for i, bone in enumerate(ob.pose.bones[name] for name in names):
            bone.use_ik_limit_x = bone.use_ik_limit_y = bone.use_ik_limit_z = True
            bone.ik_min_x, bone.ik_max_x = (0.0, 2.2) if kind == "leg" and i else (-0.9, 1.2)
            bone.ik_min_y, bone.ik_max_y, bone.ik_min_z, bone.ik_max_z = -0.3, 0.4, -0.6, 0.7
        extra = {"softness": 0.1 * limb} if limb < 2 else {"pole": rigs.empty("pole", (0.5, 3.0, 1.0))}
        rigs.chain(ob, names[-1], targets[-1], bones, **extra)
    ob.pose.bones["body"].rotation_quaternion = (0.98, 0.1, 0.15, 0.05)
    ob.pose.bones[f"{kind}0.0"].rotation_quaternion = (0.97, 0.2, 0.0, 0.1)
    return ob, targets
