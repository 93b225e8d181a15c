"""One click puts right what keeps a chain from being solved, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import bpy
import pytest

from tests import rigs
from tests.operators.states import activate, refused

if TYPE_CHECKING:
    from tests.conftest import Addon

Breaks = Callable[[bpy.types.Object, bpy.types.Object], Any]


def rest(ob: bpy.types.Object, _target: bpy.types.Object) -> None:
    ob.data.pose_position = "REST"


def one_constraint(ob: bpy.types.Object, _target: bpy.types.Object) -> None:
    ob.pose.bones["upper"].constraints.new("COPY_ROTATION")


def two_constraints(ob: bpy.types.Object, target: bpy.types.Object) -> None:
    one_constraint(ob, target)
    ob.pose.bones["lower"].constraints.new("IK")


def driver(ob: bpy.types.Object, _target: bpy.types.Object) -> None:
    ob.pose.bones["upper"].driver_add("rotation_quaternion", 1)


def hidden_target(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    target.hide_viewport = True


def collection_of(target: bpy.types.Object) -> Any:
    """A collection that alone holds the target."""
    collection = bpy.data.collections.new("Targets")
    bpy.context.scene.collection.children.link(collection)
    bpy.context.scene.collection.objects.unlink(target)
    collection.objects.link(target)
    return collection


def hidden_collection(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    collection_of(target).hide_viewport = True


def excluded_collection(_ob: bpy.types.Object, target: bpy.types.Object) -> None:
    name = collection_of(target).name
    bpy.context.view_layer.layer_collection.children[name].exclude = True


def lost_pole(ob: bpy.types.Object, _target: bpy.types.Object) -> None:
    pole = rigs.empty("Pole", (0.0, -3.0, 1.0))
    ob.pose.bones["lower"].ik_addon.pole = pole
    bpy.context.scene.collection.objects.unlink(pole)


def lost_bone(ob: bpy.types.Object, _target: bpy.types.Object) -> None:
    other = rigs.armature("Other")
    rigs.add_bones(other, [(0.5, 0.5, 1.0), (0.5, 0.5, 1.5)], ["hand"])
    ob.pose.bones["lower"].ik_addon.target = other
    ob.pose.bones["lower"].ik_addon.target_bone = "renamed since"


def wrong_solver(ob: bpy.types.Object, _target: bpy.types.Object) -> None:
    ob.pose.bones["lower"].ik_addon.chain_length = 1
    ob.pose.bones["lower"].ik_addon.solver = "TWO_BONE"


@pytest.mark.parametrize("live", [True, False], ids=["live", "not live"])
@pytest.mark.parametrize(
    ("breaks", "label"),
    [
        (rest, "Switch to Pose Position"),
        (one_constraint, "Mute 'Copy Rotation'"),
        (two_constraints, "Mute 2 Constraints"),
        (driver, "Mute Drivers"),
        (hidden_target, "Enable Target in Viewports"),
        (hidden_collection, "Enable Target in Viewports"),
        (excluded_collection, "Include 'Targets'"),
        (lost_pole, "Clear Pole"),
        (lost_bone, "Clear Target Bone"),
        (wrong_solver, "Use Automatic Solver"),
    ],
)
def test_what_is_broken_is_mended_by_its_button(addon: Addon, breaks: Breaks, label: str, live: bool) -> None:
    fix, reports = addon.module("operators.fix"), addon.module("live.reports")
    ob, target = rigs.arm()
    activate(ob, "lower")
    breaks(ob, target)
    activate(ob, "lower")
    ob.ik_addon.live = live
    bpy.context.view_layer.update()
    if not live:
        with pytest.raises(RuntimeError, match="Nothing was solved"):
            bpy.ops.ik_addon.solve()
    tip = ob.pose.bones["lower"]
    assert fix.fix_of(tip, reports.get(ob, "lower"), bpy.context.view_layer).label == label
    bpy.ops.ik_addon.chain_fix(tip="lower")
    if not live:
        assert reports.get(ob, "lower") is None
        bpy.ops.ik_addon.solve()
    assert not reports.get(ob, "lower").failed
    with refused("Nothing to fix"):
        bpy.ops.ik_addon.chain_fix(tip="lower")


def test_more_iterations_where_they_ran_out(addon: Addon) -> None:
    fix, reports = addon.module("operators.fix"), addon.module("live.reports")
    ob = rigs.armature()
    rigs.add_bones(ob, [(0.0, 0.0, 0.0), (2.9, -1.5, -0.5), (6.4, -0.4, 0.6), (5.8, -2.5, 0.9)], list("abc"))
    tip = rigs.chain(ob, "c", rigs.empty("Target", (-0.1, -0.9, -0.1)), 3, iterations=1)
    activate(ob, "c")
    bpy.ops.ik_addon.solve()
    before = reports.get(ob, "c")
    assert before.message == "Missed by 4.6% of its length. Increase Iterations"
    assert fix.fix_of(tip, before, bpy.context.view_layer).label == "Increase Iterations to 2"
    bpy.ops.ik_addon.chain_fix(tip="c")
    assert tip.ik_addon.iterations == 2
    bpy.ops.ik_addon.solve()
    assert reports.get(ob, "c").error < 0.1 * before.error


def test_more_iterations_are_not_offered_where_they_change_nothing(addon: Addon) -> None:
    fix, reports = addon.module("operators.fix"), addon.module("live.reports")
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.bent(3), list("abc"))
    ob.pose.bones["a"].scale = (1.8, 0.6, 2.2)
    tip = rigs.chain(ob, "c", rigs.empty("Target", (-0.3, -0.5, 1.2)), 3)
    activate(ob, "c")
    bpy.ops.ik_addon.solve()
    report = reports.get(ob, "c")
    assert report.message == "Missed by 79% of its length. Use uniform bone scale"
    assert fix.fix_of(tip, report, bpy.context.view_layer) is None
    tip.ik_addon.iterations = 1000
    bpy.ops.ik_addon.solve()
    assert reports.get(ob, "c").error == report.error


def test_out_of_reach_has_no_button(addon: Addon) -> None:
    ob, target = rigs.arm()
    activate(ob, "lower")
    target.location = (9.0, 0.0, 0.0)
    bpy.context.view_layer.update()
    bpy.ops.ik_addon.solve()
    report = addon.module("live.reports").get(ob, "lower")
    assert addon.module("operators.fix").fix_of(ob.pose.bones["lower"], report, bpy.context.view_layer) is None


def test_a_chain_of_locked_bones_is_unlocked(addon: Addon) -> None:
    fix, reports = addon.module("operators.fix"), addon.module("live.reports")
    ob, _target = rigs.arm()
    activate(ob, "lower")
    tip = ob.pose.bones["lower"]
    for axis in "xyz":
        setattr(ob.pose.bones["upper"], f"lock_ik_{axis}", True)
    ob.pose.bones["lower"].lock_ik_y = True
    bpy.ops.ik_addon.solve()
    assert fix.fix_of(tip, reports.get(ob, "lower"), bpy.context.view_layer).label == "Unlock 'upper'"
    bpy.ops.ik_addon.chain_fix(tip="lower")
    assert not ob.pose.bones["upper"].lock_ik_x
    assert ob.pose.bones["lower"].lock_ik_y, "a hinge is meant"
    bpy.ops.ik_addon.solve()
    assert reports.get(ob, "lower").reached


@pytest.mark.parametrize("where", ["object", "collection"])
def test_a_target_that_stands_still_in_renders_is_enabled(addon: Addon, where: str) -> None:
    fix, reports = addon.module("operators.fix"), addon.module("live.reports")
    ob, target = rigs.arm()
    off: Any = target if where == "object" else collection_of(target)
    off.hide_render = True
    activate(ob, "lower")
    bpy.ops.ik_addon.solve()
    tip = ob.pose.bones["lower"]
    assert fix.fix_of(tip, reports.get(ob, "lower"), bpy.context.view_layer).label == "Enable Target in Renders"
    bpy.ops.ik_addon.chain_fix(tip="lower")
    assert not off.hide_render
    bpy.ops.ik_addon.solve()
    assert fix.fix_of(tip, reports.get(ob, "lower"), bpy.context.view_layer) is None


def test_lock_interface_is_offered_where_renders_need_it(addon: Addon) -> None:
    fix = addon.module("operators.fix")
    ob, _target = rigs.arm()
    scene = bpy.context.scene
    assert not fix.needs_lock(bpy.context), "nothing is live, and there is no camera"
    ob.ik_addon.live = True
    assert not fix.needs_lock(bpy.context), "nothing can be rendered without a camera"
    scene.camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(scene.camera)
    assert fix.needs_lock(bpy.context)
    ob.pose.bones["lower"].ik_addon.enabled = False
    assert not fix.needs_lock(bpy.context)
    ob.pose.bones["lower"].ik_addon.enabled = True
    scene.frame_end = scene.frame_start
    assert not fix.needs_lock(bpy.context), "a still has no frames to change while it renders"
    scene.frame_end = 250
    assert bpy.ops.ik_addon.lock_interface() == {"FINISHED"}
    assert scene.render.use_lock_interface
    assert not fix.needs_lock(bpy.context)
