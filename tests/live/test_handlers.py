"""Live solving, as the depsgraph evaluates it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
import pytest

from tests import rigs

if TYPE_CHECKING:
    from tests.conftest import Addon


def test_follows_a_targets_parent_and_driver() -> None:
    ob, target = rigs.arm()
    parent = rigs.empty("Parent")
    target.parent = parent
    curve = target.driver_add("location", 1)
    curve.driver.type = "SUM"
    variable = curve.driver.variables.new()
    variable.type = "TRANSFORMS"
    variable.targets[0].id = rigs.empty("Driver", (0.4, 0, 0))
    variable.targets[0].transform_type = "LOC_X"
    rigs.go_live(ob)
    parent.location = (-0.3, 0.1, 0.2)
    bpy.context.view_layer.update()
    assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5
    bpy.data.objects["Driver"].location.x = -0.5
    bpy.context.view_layer.update()
    assert abs(rigs.position(target)[1] - (-0.5 + 0.1)) < 1e-5
    assert np.linalg.norm(rigs.tail(ob, "lower") - rigs.position(target)) < 1e-5


def test_a_cancelled_gesture_leaves_the_fk_pose_unchanged() -> None:
    ob, _target = rigs.arm()
    before = rigs.channels(ob)
    rigs.go_live(ob)
    lower = ob.pose.bones["lower"]
    solved = lower.rotation_quaternion.copy()
    for step in (0.1, 0.2, 0.3):
        lower.rotation_quaternion = (1.0, 0.0, step, 0.0)
        bpy.context.view_layer.update()
    lower.rotation_quaternion = solved  # what Esc restores
    bpy.context.view_layer.update()
    ob.ik_addon.live = False
    assert np.array_equal(rigs.channels(ob), before)


def test_does_nothing_on_frames_where_nothing_moves(addon: Addon, monkeypatch: pytest.MonkeyPatch) -> None:
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 10: (0.6, 0.5, 1.0), 20: (-0.5, 0.9, 0.8)})
    ob.ik_addon.live = True
    expected = rigs.poses_at(ob, range(1, 21))
    written = []
    rig = addon.module("live.rig").Rig
    put = rig.put

    def noted(*arguments: object, **options: object) -> bool:
        is_written: bool = put(*arguments, **options)
        if is_written:
            written.append(bpy.context.scene.frame_current)
        return is_written

    monkeypatch.setattr(rig, "put", noted)
    assert not rigs.apart(rigs.poses_at(ob, range(1, 21)), expected)
    # The target does not move up to frame 10, nor after the last key.
    assert written == [1, *range(11, 21)]


def test_a_pole_bends_only_its_own_chain() -> None:
    ob = rigs.armature()
    for x, name in ((0.0, "a"), (1.0, "b")):
        rigs.add_bones(ob, [(x, 0, 0), (x, -0.2, 1), (x, 0, 2)], [f"{name}0", f"{name}1"])
        rigs.chain(ob, f"{name}1", rigs.empty(f"Target {name}", (x, 0, 1.5)), 2)
    ob.pose.bones["a1"].ik_addon.pole = rigs.empty("Pole", (5, 0, 1))
    rigs.go_live(ob)
    assert rigs.tail(ob, "a0")[0] > 0.5
    assert abs(rigs.tail(ob, "a0")[1]) < 1e-6
    assert rigs.tail(ob, "b0")[0] == pytest.approx(1.0)
    assert rigs.tail(ob, "b0")[1] < -0.5


def report(addon: Addon, ob: bpy.types.Object, tip: str = "lower") -> Any:
    """The report of a chain, as the panel shows it."""
    return addon.module("live.reports").get(ob, tip)


@pytest.mark.expects_traceback
def test_an_unexpected_error_is_logged_once_and_shown_in_the_panel(
    addon: Addon, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ob, target = rigs.arm()
    rigs.go_live(ob)

    def broken(*_args: object, **_named: object) -> None:
        raise ZeroDivisionError("broken on purpose")

    monkeypatch.setattr(addon.module("live.rig"), "pose", broken)
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 9: (0.3, 0.5, 1.0)})
    for frame in range(2, 9):
        bpy.context.scene.frame_set(frame)
    assert report(addon, ob).failed
    assert "broken on purpose" in report(addon, ob).message
    assert len(caplog.records) == 1
    monkeypatch.undo()
    ob.pose.bones["lower"].ik_addon.softness = 0.0
    ob.pose.bones["lower"].ik_addon.enabled = True
    bpy.context.view_layer.update()
    assert report(addon, ob).reached


def test_a_target_disabled_in_renders_gets_a_remark(addon: Addon) -> None:
    ob, target = rigs.arm()
    target.hide_render = True
    rigs.go_live(ob)
    assert report(addon, ob).reached
    assert "disabled in renders" in report(addon, ob).remarks[0]
