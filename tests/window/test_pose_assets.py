"""Pose assets, created from a solved pose, then applied and blended with a real mouse: chains stay, targets follow."""

from __future__ import annotations

from typing import Any

from tests.window.driving import SEEN, Window, differences


def state(window: Window, name: str) -> dict[str, Any]:
    found = window.state(name)
    assert found["live"]
    assert found["chains"]["forearm"]["target"] == "Target"
    assert found["chains"]["forearm"]["pole"] == "Pole"
    assert window.is_reached()
    return found


def assert_is_one_step(window: Window, before: dict[str, Any], after: dict[str, Any]) -> None:
    for _ in range(2):
        window.key("ctrl+z")
        assert not differences(state(window, "undone"), before, SEEN)
        window.key("ctrl+shift+z")
        assert not differences(state(window, "redone"), after, SEEN)
    window.key("ctrl+z")


def test_chains_stay_when_pose_assets_are_used(arm: Window) -> None:
    arm.inside.set_live(True)
    posed = state(arm, "posed")
    arm.inside.create_pose_asset()
    assert not differences(state(arm, "created"), posed), "it changes nothing"
    arm.inside.activate("forearm")
    arm.inside.set_live(True)
    arm.key("g")
    arm.sweep(-60, -50)
    arm.tap("Return")
    arm.inside.select_bones()
    moved = state(arm, "moved")
    assert differences(moved["goals"]["Target"], posed["goals"]["Target"], 0.01)
    x, y = arm.inside.place_of_first_asset()

    arm.click_at(x, y)
    applied = state(arm, "applied")
    assert not differences(applied["goals"]["Target"], posed["goals"]["Target"], 1e-4)
    assert_is_one_step(arm, moved, applied)

    arm.pull((x, y), 120, -30)
    assert arm.inside.running() == ["POSELIB_OT_blend_pose_asset"]
    blending = state(arm, "blending")
    assert differences(blending["goals"]["Target"], moved["goals"]["Target"], 0.01)
    arm.release()
    assert not arm.inside.running()
    blended = state(arm, "blended")
    assert not differences(blended, blending, SEEN)
    assert_is_one_step(arm, moved, blended)

    arm.pull((x, y), 160, -30)
    assert differences(state(arm, "blending-again")["goals"]["Target"], moved["goals"]["Target"], 0.01)
    arm.tap("Escape")
    arm.release()
    assert not arm.inside.running()
    assert not differences(state(arm, "cancelled"), moved, SEEN)
    arm.key("ctrl+z")
    arm.key("ctrl+shift+z")
    assert not differences(state(arm, "cancelled-redone"), moved, SEEN)
    arm.inside.hide_assets()
