"""The pose shown during a drag, and the pose in which it settles."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Vector

from tests import rigs
from tests.conftest import Addon

BONES = 6
OFFSETS = ((0.0, 0.3, -0.2), (0.5, 1.6, 0.9), (-0.3, -0.4, -0.5), (-1.9, 0.2, 0.3))
"""Within the reach of the chains, and out of it."""


def limited(by_bone: bool, live: bool) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return two chains with limits and poles; the first one's target is a bone of the armature, or an object."""
    ob = rigs.armature()
    goals = []
    for x, side in ((0.0, "A"), (2.0, "B")):
        joints = [(x + px, py, pz) for px, py, pz in rigs.bent(BONES, 1.0 / BONES, 0.3)]
        rigs.add_bones(ob, joints, [f"{side}{i}" for i in range(BONES)])
        goals.append(rigs.empty(f"Target {side}", tuple(np.add(joints[-1], (0.0, 0.05, -0.1)))))
        pole = rigs.empty(f"Pole {side}", (x + 0.4, 1.5, 0.5))
        rigs.chain(ob, f"{side}{BONES - 1}", goals[-1], BONES, pole=pole)
    rigs.add_bones(ob, [(0.0, 0.2, 0.8), (0.0, 0.4, 0.8)], ["control"])
    for bone in ob.pose.bones:
        bone.use_ik_limit_x = bone.use_ik_limit_z = True
        bone.ik_min_x, bone.ik_max_x, bone.ik_min_z, bone.ik_max_z = -0.7, 0.7, -0.4, 0.4
    chain: Any = ob.pose.bones[f"A{BONES - 1}"].ik_addon
    if by_bone:
        chain.target, chain.target_bone = ob, "control"
    ob.ik_addon.live = live
    bpy.context.scene.frame_set(1)
    return ob, goals[1]


def bits(ob: bpy.types.Object) -> bytes:
    bpy.context.view_layer.update()
    return rigs.channels(ob).tobytes()


@pytest.mark.parametrize("live", [True, False], ids=["live", "not live"])
@pytest.mark.parametrize("by_bone", [False, True], ids=["object", "bone"])
def test_a_drag_settles_in_the_pose_of_a_frame_change(addon: Addon, by_bone: bool, live: bool) -> None:
    drag = addon.module("targets.drag")
    ob, other = limited(by_bone, live)
    gesture = drag.Drag(bpy.context, ob.pose.bones[f"A{BONES - 1}"])
    differ = False
    for number, offset in enumerate(OFFSETS):
        with addon.module("live.registry").hurried():
            gesture.move(bpy.context, Vector(offset))
        hurried = bits(ob)
        if number == 2:
            # Another chain is solved fully beside the dragged one, and does not change it.
            other.location.z -= 0.1
        gesture.settle(bpy.context)
        settled = bits(ob)
        if live:
            bpy.context.scene.frame_set(1)
            assert bits(ob) == settled
            addon.module("live.registry").clear()
            bpy.context.scene.frame_set(1)
            assert bits(ob) == settled
        else:
            addon.module("live.solving").solve_now(ob, bpy.context.evaluated_depsgraph_get(), [f"A{BONES - 1}"])
            assert bits(ob) == settled
        differ |= hurried != settled
    assert differ, "no first attempt was other than the settled pose: this shows nothing"


def test_a_frame_change_finishes_a_hurried_solve(addon: Addon) -> None:
    drag = addon.module("targets.drag")
    ob, _other = limited(False, True)
    gesture = drag.Drag(bpy.context, ob.pose.bones[f"A{BONES - 1}"])
    for offset in OFFSETS:
        with addon.module("live.registry").hurried():
            gesture.move(bpy.context, Vector(offset))
        bpy.context.scene.frame_set(1)
        played = bits(ob)
        gesture.settle(bpy.context)
        assert bits(ob) == played
        addon.module("live.registry").clear()
        bpy.context.scene.frame_set(1)
        assert bits(ob) == played
