"""Drag Target as called by scripts, and what cancelling restores; the mouse is tested in a window."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import activate, refused, snapshot


@pytest.fixture(params=[True, False], ids=["live", "not live"])
def arm(request: pytest.FixtureRequest) -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a posed arm, solved once."""
    ob, target = rigs.arm()
    ob.matrix_world = Matrix.Translation((0.2, 0.1, 0.0)) @ Matrix.Rotation(0.5, 4, "Y")
    ob.pose.bones["upper"].rotation_quaternion = (0.9, 0.1, 0.3, -0.2)
    ob.ik_addon.live = request.param
    bpy.context.view_layer.update()
    if not request.param:
        bpy.ops.ik_addon.solve()
    bpy.context.view_layer.update()
    return ob, target


def reached(ob: bpy.types.Object, target: bpy.types.Object) -> bool:
    return bool(np.allclose(rigs.tail(ob, "lower"), rigs.position(target), atol=1e-5))


def test_only_the_targets_location_changes(arm: Any) -> None:
    _ob, target = arm
    parent = rigs.empty("Parent", (1.0, 2.0, 3.0))
    parent.matrix_world = Matrix.Rotation(0.6, 4, "X") @ Matrix.Diagonal((2.0, -1.0, 0.5, 1.0))
    bpy.context.view_layer.update()
    target.rotation_euler, target.scale = (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
    target.parent = parent
    target.delta_location = (0.05, 0.0, 0.0)
    bpy.context.view_layer.update()
    turned, size, before = tuple(target.rotation_euler), tuple(target.scale), rigs.position(target)
    bpy.ops.ik_addon.drag_target(offset=(0.1, 0.2, -0.1))
    assert np.allclose(rigs.position(target), np.add(before, (0.1, 0.2, -0.1)), atol=1e-5)
    assert (tuple(target.rotation_euler), tuple(target.scale)) == (turned, size)


def test_a_target_bone_is_moved_by_its_head() -> None:
    ob, _target = rigs.arm()
    other = rigs.limb([(0.5, 0.4, 1.0), (0.7, 0.6, 1.0)], ["base"], name="Controls")
    rigs.add_bones(other, [(0.6, 0.4, 1.1), (0.7, 0.9, 1.2)], ["hand"], parent="base")
    other.matrix_world = Matrix.Rotation(0.3, 4, "Z") @ Matrix.Diagonal((1.0, 1.5, -1.0, 1.0))
    other.pose.bones["base"].rotation_quaternion = (0.9, 0.1, 0.1, 0.3)
    other.pose.bones["hand"].rotation_quaternion = (0.9, 0.3, 0.1, 0.3)
    chain = ob.pose.bones["lower"].ik_addon
    chain.target, chain.target_bone = other, "hand"
    activate(ob, "lower")
    bpy.context.view_layer.update()
    before = rigs.head(other, "hand")
    bpy.ops.ik_addon.drag_target(offset=(0.1, 0.1, 0.2))
    assert np.allclose(rigs.head(other, "hand"), np.add(before, (0.1, 0.1, 0.2)), atol=1e-5)


def test_cancelling_restores_everything_exactly(addon: Addon, arm: Any) -> None:
    drag = addon.module("targets.drag")
    ob, target = arm
    before, posed, report = everything(ob), rigs.pose(ob), addon.report(ob)
    gesture = drag.Drag(bpy.context, ob.pose.bones["lower"])
    for step in range(1, 6):
        gesture.move(bpy.context, Vector((0.05, -0.03, 0.1)) * step)
        assert reached(ob, target) == addon.report(ob).reached
    assert everything(ob) != before
    gesture.cancel(bpy.context)
    assert everything(ob) == before
    assert np.array_equal(rigs.pose(ob), posed)
    assert addon.report(ob) == report
    if not ob.ik_addon.live:
        bpy.ops.ik_addon.restore_pose()
        assert ob.pose.bones["upper"].rotation_quaternion[:] == pytest.approx((0.9, 0.1, 0.3, -0.2))


def test_cancelling_before_any_solve_leaves_no_fk_store(addon: Addon) -> None:
    ob, _target = rigs.arm()
    bpy.context.view_layer.update()
    before = everything(ob)
    gesture = addon.module("targets.drag").Drag(bpy.context, ob.pose.bones["lower"])
    gesture.move(bpy.context, Vector((0.0, 0.1, 0.0)))
    gesture.cancel(bpy.context)
    assert everything(ob) == before
    assert addon.report(ob) is None


def everything(ob: bpy.types.Object) -> dict[str, Any]:
    """Return what `snapshot` sees, and the FK store of each bone."""
    stores = [bone.ik_addon.base for bone in ob.pose.bones]
    bases = [(s.stored, s.noted, s.rotation_mode, tuple(s.channels), tuple(s.written)) for s in stores]
    return {**snapshot(), "bases": bases}


def test_undraggable_goals_are_refused() -> None:
    ob, target = rigs.arm()
    activate(ob, None)
    with refused("No chain is active. Select a bone of a chain"):
        bpy.ops.ik_addon.drag_target()
    activate(ob, "lower")
    chain = ob.pose.bones["lower"].ik_addon
    chain.enabled = False
    with refused("is disabled"):
        bpy.ops.ik_addon.drag_target()
    chain.enabled, chain.target = True, None
    with refused("no target"):
        bpy.ops.ik_addon.drag_target()
    chain.target = target
    ob.pose.bones["upper"].constraints.new("COPY_ROTATION")
    with refused("Mute it"):
        bpy.ops.ik_addon.drag_target(offset=(0.1, 0.0, 0.0))


def test_g_moves_a_target_only_where_that_takes_the_bone_along(addon: Addon) -> None:
    connected_end = addon.module("ui.operators.drag").connected_end
    ob, _target = rigs.arm()
    ob.ik_addon.live = True
    bpy.ops.object.mode_set(mode="POSE")
    tip = ob.pose.bones["lower"]
    addon.module("core.compat").select_bone(ob, tip)
    assert connected_end(bpy.context) == tip
    tip.ik_addon.influence = 0.5
    assert connected_end(bpy.context) is None


def legs() -> tuple[bpy.types.Object, dict[str, bpy.types.Object]]:
    """Return an armature with two legs on chains, in Pose Mode with the left shin active, and the targets."""
    ob, targets = rigs.armature(), {}
    for side, x in (("L", 1.0), ("R", -1.0)):
        rigs.add_bones(ob, [(x, 0, 1), (x, -0.1, 0.5), (x, 0, 0)], [f"thigh.{side}", f"shin.{side}"])
        targets[side] = rigs.empty(f"Target.{side}", (x, 0.0, 0.2))
        targets[side].rotation_mode = "QUATERNION"
        rigs.chain(ob, f"shin.{side}", targets[side], 2)
    activate(ob, "shin.L")
    bpy.ops.object.mode_set(mode="POSE")
    ob.pose.use_mirror_x = True
    return ob, targets


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("live", [False, True])
def test_x_axis_mirror_takes_the_other_sides_target_along(addon: Addon, live: bool, relative: bool) -> None:
    drag = addon.module("targets.drag")
    ob, targets = legs()
    ob.matrix_world = Matrix.Translation((0.3, 0.2, 0.0)) @ Matrix.Rotation(0.5, 4, "Z")
    for target in targets.values():
        target.location = ob.matrix_world @ target.location
    targets["R"].location += ob.matrix_world.to_3x3() @ Vector((0.0, 0.0, 0.1))
    ob.ik_addon.live, ob.pose.use_mirror_relative = live, relative
    bpy.context.view_layer.update()
    inner = ob.matrix_world.inverted()
    before = {side: target.matrix_world.copy() for side, target in targets.items()}
    gesture = drag.Drag(bpy.context, ob.pose.bones["shin.L"])
    turn = Matrix.Rotation(0.4, 3, Vector((1, 2, 3)).normalized()).to_quaternion()
    gesture.move(bpy.context, Vector((0.1, -0.2, 0.15)), turn)
    gesture.settle(bpy.context)
    places = {side: inner @ target.matrix_world.translation for side, target in targets.items()}
    across = Vector((-1.0, 1.0, 1.0))
    if relative:
        moved = {side: places[side] - inner @ before[side].translation for side in targets}
        assert (moved["L"] * across - moved["R"]).length < 1e-6
    else:
        assert (places["L"] * across - places["R"]).length < 1e-6
    flip = Matrix.Diagonal(across)
    turned = {side: inner.to_3x3() @ target.matrix_world.to_3x3() for side, target in targets.items()}
    started = {side: inner.to_3x3() @ before[side].to_3x3() for side in targets}
    own = {side: turned[side] @ started[side].inverted() for side in targets}
    assert np.allclose(flip @ own["L"] @ flip, own["R"], atol=1e-6)
    for side, target in targets.items():
        assert np.allclose(rigs.tail(ob, f"shin.{side}"), rigs.position(target), atol=1e-4)
    gesture.cancel(bpy.context)
    assert {side: target.matrix_world for side, target in targets.items()} == before


@pytest.mark.parametrize("why", ["object mode", "off", "disabled", "locked", "same target"])
def test_x_axis_mirror_takes_nothing_along_that_it_should_not(addon: Addon, why: str) -> None:
    ob, targets = legs()
    other = ob.pose.bones["shin.R"].ik_addon
    if why == "object mode":
        bpy.ops.object.mode_set(mode="OBJECT")
    elif why == "same target":
        other.target = targets["L"]
    ob.pose.use_mirror_x, other.enabled = why != "off", why != "disabled"
    targets["R"].lock_location = [why == "locked"] * 3
    gesture = addon.module("targets.drag").Drag(bpy.context, ob.pose.bones["shin.L"])
    gesture.move(bpy.context, Vector((0.1, 0.0, 0.1)))
    assert targets["L"].location[:] == pytest.approx((1.1, 0.0, 0.3), abs=1e-6)
    assert targets["R"].location[:] == pytest.approx((-1.0, 0.0, 0.2), abs=1e-6)
