"""Drag Target with a real mouse: the tip follows it, and Esc, right click and undo put everything back."""

from __future__ import annotations

import pytest

from tests.window.driving import Window, differences

DRAG = "ik_addon.drag_target"
RIGHT_BUTTON = 3


def is_dragging(window: Window) -> bool:
    return "IK_ADDON_OT_drag_target" in window.inside.running()


@pytest.mark.parametrize("live", [False, True], ids=["solved", "live"])
def test_a_drag_is_cancelled_to_the_bit(arm: Window, live: bool) -> None:
    arm.inside.set_live(live)
    before = arm.state("before")
    for how in ("Escape", "right click"):
        arm.grab(DRAG, -60, -50)
        assert is_dragging(arm)
        moving = arm.state(f"dragging-{how}")
        assert moving["goals"] != before["goals"]
        assert arm.is_reached(), "the tip follows while the mouse moves"
        if how == "Escape":
            arm.session.key("Escape")
        else:
            arm.click(RIGHT_BUTTON)
        assert not differences(arm.state(f"cancelled-{how}"), before)
        assert not is_dragging(arm)


@pytest.mark.parametrize("live", [False, True], ids=["solved", "live"])
def test_a_drag_is_confirmed_by_a_click_and_undone(arm: Window, live: bool) -> None:
    arm.inside.set_live(live)
    before = arm.state("before")
    arm.grab(DRAG, -60, -50)
    arm.click()
    after = arm.state("after")
    assert not is_dragging(arm)
    assert after["goals"]["Pole"] == before["goals"]["Pole"]
    x, _y, z = (new - old for new, old in zip(after["goals"]["Target"], before["goals"]["Target"], strict=True))
    assert x < 0.0 < z, "to the left and up, as the mouse went"
    assert arm.is_reached()
    arm.key("ctrl+z")
    assert not differences(arm.state("undone"), before)
    arm.key("ctrl+shift+z")
    assert not differences(arm.state("redone"), after)


def test_a_drag_goes_along_an_axis(arm: Window) -> None:
    before = arm.state("before")["goals"]["Target"]
    arm.grab(DRAG, -60, -50)
    arm.session.key("x")
    along = arm.state("along-x")["goals"]["Target"]
    assert along[1:] == before[1:]
    assert along[0] < before[0]
    arm.session.key("Escape")


def test_from_its_button_the_target_does_not_jump(arm: Window) -> None:
    before = arm.state("before")
    arm.press(DRAG)
    assert is_dragging(arm)
    assert not differences(arm.state("pressed")["goals"], before["goals"], 1e-6)
    arm.session.key("Escape")
    assert not differences(arm.state("cancelled"), before)
