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
        (lost_pole, "Clear Pole"),
        (lost_bone, "Clear Target Bone"),
        (wrong_solver, "Use Automatic Solver"),
    ],
)
def test_what_is_broken_is_mended_by_its_button(addon: Addon, breaks: Breaks, label: str, live: bool) -> None:
    fix, reports = addon.module("operators.fix"), addon.module("reports")
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
    with refused("nothing to fix"):
        bpy.ops.ik_addon.chain_fix(tip="lower")


def test_more_iterations_where_they_ran_out(addon: Addon) -> None:
    reports, status = addon.module("reports"), addon.module("solve").Status
    ob, _target = rigs.arm()
    activate(ob, "lower")
    chain = ob.pose.bones["lower"].ik_addon
    message = "Missed by 3 % of its length; allow more iterations"
    reports.put(ob, "lower", reports.Report(False, False, message, status=status.NOT_CONVERGED))
    bpy.ops.ik_addon.chain_fix(tip="lower")
    assert chain.iterations == 200


def test_out_of_reach_has_no_button(addon: Addon) -> None:
    ob, target = rigs.arm()
    activate(ob, "lower")
    target.location = (9.0, 0.0, 0.0)
    bpy.context.view_layer.update()
    bpy.ops.ik_addon.solve()
    report = addon.module("reports").get(ob, "lower")
    assert addon.module("operators.fix").fix_of(ob.pose.bones["lower"], report, bpy.context.view_layer) is None
