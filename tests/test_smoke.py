"""The extension from end to end, once: `make quick` runs this after every change."""

from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import add

OPERATORS: Any = bpy.ops.ik_addon
NEAR = 1e-4


@pytest.fixture
def arm() -> bpy.types.Object:
    """An arm with a hand and without a chain, in Pose Mode."""
    ob = rigs.limb([(0, 0, 0), (0, -0.2, 1), (0, 0, 2), (0, 0, 2.4)], ["upper", "lower", "hand"])
    ob.data.bones.active = ob.data.bones["lower"]
    bpy.ops.object.mode_set(mode="POSE")
    return ob


@pytest.fixture
def target(arm: bpy.types.Object) -> bpy.types.Object:
    """The target of a new live chain on the arm."""
    options = {"chain_length": 2, "with_pole": True, "controls": "EMPTIES", "live": True}
    found: bpy.types.Object = add(arm, "lower", tip="lower", **options).target
    return found


def test_the_extension_is_installed(addon: Addon) -> None:
    assert addon.package in bpy.context.preferences.addons


def test_a_live_chain_follows_its_target_when_that_is_moved_dragged_and_animated(
    arm: bpy.types.Object, target: bpy.types.Object
) -> None:
    target.location = (0.5, 0.4, 1.2)
    assert rigs.miss(arm) < NEAR
    before = rigs.position(target)
    assert OPERATORS.drag_target(offset=(0.2, 0.0, -0.3)) == {"FINISHED"}
    assert np.allclose(rigs.position(target) - before, (0.2, 0.0, -0.3), atol=NEAR)
    assert rigs.miss(arm) < NEAR
    rigs.key(target, "location", {1: (0.8, 0.4, 1.2), 20: (-0.8, 0.4, 1.2)})
    assert not rigs.missed(arm, (1, 20, 7, 13), NEAR)


def test_a_bake_keeps_the_poses_and_undo_takes_it_back(arm: bpy.types.Object, target: bpy.types.Object) -> None:
    rigs.key(target, "location", {1: (0.8, 0.4, 1.2), 10: (-0.8, 0.4, 1.2)})

    def wrists(ob: bpy.types.Object) -> list[Any]:
        return list(rigs.on_frames(range(1, 11), lambda: rigs.tail(ob, "lower")).values())

    live = wrists(arm)
    bpy.ops.ed.undo_push(message="before")
    assert OPERATORS.bake("EXEC_DEFAULT", True, chains="ALL", frame_start=1, frame_end=10) == {"FINISHED"}
    assert not arm.pose.bones["lower"].ik_addon.enabled
    assert np.allclose(wrists(arm), live, atol=NEAR)
    bpy.ops.ed.undo()
    again = bpy.data.objects["Rig"]
    assert again.pose.bones["lower"].ik_addon.enabled
    assert again.animation_data is None or again.animation_data.action is None
    assert np.allclose(wrists(again), live, atol=NEAR)


def test_pose_body_brings_a_bone_to_a_place(arm: bpy.types.Object) -> None:
    wanted = rigs.head(arm, "hand") + np.array((0.2, 0.3, -0.4))
    assert OPERATORS.pose_body(bone="hand", location=tuple(wanted), without_pins="ROOT") == {"FINISHED"}
    assert np.linalg.norm(rigs.head(arm, "hand") - wanted) < NEAR


def test_a_saved_file_opens_live(arm: bpy.types.Object, target: bpy.types.Object, tmp_path: Path) -> None:
    rigs.change(target, location=(0.5, 0.4, 1.2))
    names = arm.name, target.name
    rigs.save_and_open(tmp_path / "arm.blend")
    again, goal = (bpy.data.objects[name] for name in names)
    assert rigs.miss(again) < NEAR
    goal.location.x -= 0.4
    assert rigs.miss(again) < NEAR
