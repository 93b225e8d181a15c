"""One undo step reverts one click."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.operators.states import activate, snapshot


def solved_arm() -> None:
    """Set up an arm with a chain from Add Chain, posed by hand, then solved."""
    ob = rigs.armature()
    rigs.add_bones(ob, rigs.bent(2), ["upper", "lower"])
    ob.pose.bones["upper"].rotation_quaternion = (0.9, 0.1, 0.3, -0.2)
    activate(ob, "lower")
    bpy.ops.ik_addon.chain_add()
    ob.pose.bones["lower"].ik_addon.target.location = (0.4, 0.6, 1.1)
    bpy.context.view_layer.update()
    bpy.ops.ik_addon.solve()


def unsolved_arm() -> None:
    """Set up the same arm before it is solved."""
    solved_arm()
    bpy.ops.ik_addon.restore_pose()


def bare_arm() -> None:
    """Set up the same arm without a chain."""
    solved_arm()
    bpy.ops.ik_addon.chain_remove()


def live_arm() -> None:
    """Set up the same arm, solved live."""
    unsolved_arm()
    bpy.data.objects["Rig"].ik_addon.live = True
    bpy.context.view_layer.update()


@pytest.mark.parametrize(
    ("before", "operator"),
    [
        (bare_arm, "chain_add"),
        (solved_arm, "chain_remove"),
        (live_arm, "chain_remove"),
        (unsolved_arm, "solve"),
        (solved_arm, "restore_pose"),
        (live_arm, "restore_pose"),
    ],
)
def test_operators_are_one_undo_step(before: Callable[[], None], operator: str) -> None:
    before()
    start = snapshot()
    bpy.ops.ed.undo_push(message="before")
    getattr(bpy.ops.ik_addon, operator)("EXEC_DEFAULT", True)
    end = snapshot()
    assert end != start
    bpy.ops.ed.undo()
    assert_same(snapshot(), start)
    bpy.ops.ed.redo()
    assert_same(snapshot(), end)


def test_live_is_one_undo_step() -> None:
    unsolved_arm()
    start = snapshot()
    bpy.ops.ed.undo_push(message="before")
    bpy.data.objects["Rig"].ik_addon.live = True
    bpy.ops.ed.undo_push(message="Live")  # as the button does
    bpy.context.view_layer.update()
    end = snapshot()
    assert end != start
    bpy.ops.ed.undo()
    assert_same(snapshot(), start)
    bpy.ops.ed.redo()
    bpy.context.view_layer.update()
    assert_same(snapshot(), end)


def test_undo_of_a_moved_target_moves_the_live_limb_back() -> None:
    live_arm()
    bpy.ops.ed.undo_push(message="before")
    start = snapshot()
    bpy.data.objects["IK Target lower"].location.z -= 0.4
    bpy.context.view_layer.update()
    bpy.ops.ed.undo_push(message="Move")
    end = snapshot()
    bpy.ops.ed.undo()
    bpy.context.view_layer.update()
    assert_same(snapshot(), start)
    bpy.ops.ed.redo()
    bpy.context.view_layer.update()
    assert_same(snapshot(), end)


def assert_same(now: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert {key: value for key, value in now.items() if key != "Rig"} == {
        key: value for key, value in wanted.items() if key != "Rig"
    }
    assert now["Rig"][1:] == wanted["Rig"][1:]
    channels = [np.frombuffer(state["Rig"][0], dtype=np.float32) for state in (now, wanted)]
    assert np.abs(channels[0] - channels[1]).max() < 1e-6
