"""Common behavior of operators in the Tools sub-panel: one undo step, and reasons for disabled buttons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.operators.states import activate, refused, snapshot

OPERATORS = ("snap_target", "apply_pose", "mirror_chain", "convert_constraints", "restore_constraints")


def chain() -> None:
    """Set up a live arm named for its side, and one on the other side without a chain."""
    ob = rigs.armature()
    for side, x in (("L", 1.0), ("R", -1.0)):
        points = [(x, 0, 0), (1.2 * x, -0.2, 1), (x, 0, 2)]
        rigs.add_bones(ob, points, [f"upper.{side}", f"lower.{side}"])
    activate(ob, "lower.L")
    bpy.ops.ik_addon.chain_add()
    ob.pose.bones["lower.L"].ik_addon.target.location = (1.4, 0.6, 1.1)
    ob.ik_addon.live = True
    bpy.context.view_layer.update()


def constrained() -> None:
    """Set up an arm with a constraint without a pole, whose chain would find another pose."""
    ob = rigs.armature()
    rigs.add_bones(ob, [(0, 0, 0), (0.2, -0.2, 1), (0, 0, 2)], ["upper", "lower"])
    made: Any = ob.pose.bones["lower"].constraints.new("IK")
    made.target, made.chain_count = rigs.empty("Target", (0.9, -0.3, 0.8)), 2
    bpy.context.view_layer.update()


def converted() -> None:
    """Set up the same arm after conversion."""
    constrained()
    bpy.ops.ik_addon.convert_constraints()
    bpy.context.view_layer.update()


def muted() -> list[bool]:
    return [c.mute for bone in bpy.data.objects["Rig"].pose.bones for c in bone.constraints]


def assert_same(now: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert {key: value for key, value in now.items() if key != "Rig"} == {
        key: value for key, value in wanted.items() if key != "Rig"
    }
    assert now["Rig"][1:] == wanted["Rig"][1:]


@pytest.mark.parametrize(
    ("before", "operator", "options"),
    [
        (chain, "snap_target", {}),
        (chain, "snap_target", {"frame_range": "CUSTOM", "frame_start": 1, "frame_end": 3}),
        (chain, "apply_pose", {"frame_range": "CUSTOM", "frame_start": 1, "frame_end": 3}),
        (chain, "mirror_chain", {}),
        (constrained, "convert_constraints", {}),
        (converted, "restore_constraints", {}),
    ],
)
def test_operators_are_one_undo_step(before: Callable[[], None], operator: str, options: dict[str, Any]) -> None:
    before()
    start, switched = snapshot(), muted()
    actions = len(bpy.data.actions)
    bpy.ops.ed.undo_push(message="before")
    assert getattr(bpy.ops.ik_addon, operator)("EXEC_DEFAULT", True, **options) == {"FINISHED"}
    end, switched_after = snapshot(), muted()
    assert end != start or len(bpy.data.actions) > actions
    bpy.ops.ed.undo()
    bpy.context.view_layer.update()
    assert_same(snapshot(), start)
    assert muted() == switched
    assert len(bpy.data.actions) == actions
    bpy.ops.ed.redo()
    bpy.context.view_layer.update()
    assert_same(snapshot(), end)
    assert muted() == switched_after


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_have_tooltips_and_options(name: str) -> None:
    operator: Any = getattr(bpy.types, f"IK_ADDON_OT_{name}")
    assert operator.bl_options == {"REGISTER", "UNDO"}
    assert operator.bl_description
    assert not operator.bl_description.endswith(".")
    assert operator.bl_label == operator.bl_label.title().replace(" To ", " to ").replace("Ik ", "IK ")


@pytest.mark.parametrize("name", OPERATORS)
def test_disabled_buttons_say_why(name: str) -> None:
    operator = getattr(bpy.ops.ik_addon, name)
    bpy.context.view_layer.objects.active = None
    with refused("Select an armature"):
        operator()
    constrained()
    bpy.ops.object.mode_set(mode="EDIT")
    with refused("Switch to Pose Mode or Object Mode"):
        operator()


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("mode", ["OBJECT", "POSE"])
def test_operators_work_in_object_and_pose_mode(name: str, mode: str) -> None:
    {"convert_constraints": constrained, "restore_constraints": converted}.get(name, chain)()
    bpy.ops.object.mode_set(mode=mode)
    assert getattr(bpy.ops.ik_addon, name)() == {"FINISHED"}
    assert bpy.context.object.mode == mode
