"""Drag Target with real mouse and keys: Blender moves the target, the tip follows, Esc and undo restore everything."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.window.driving import SEEN, Window, differences
from tests.window.test_edits import begin

DRAG = "ik_addon.drag_target"
RIGHT_BUTTON = 3


def is_dragging(window: Window) -> bool:
    return "IK_ADDON_OT_goal_move" in window.inside.running()


@pytest.mark.parametrize("live", [False, True], ids=["solved", "live"])
def test_cancelling_a_drag_restores_everything_exactly(arm: Window, live: bool) -> None:
    arm.inside.set_live(live)
    before = arm.state("before")
    for how in ("Escape", "right click"):
        arm.grab(DRAG, -60, -50)
        assert is_dragging(arm)
        moving = arm.state(f"dragging-{how}")
        assert moving["goals"] != before["goals"]
        assert arm.is_reached(), "the tip follows while the mouse moves"
        if how == "Escape":
            arm.tap("Escape")
        else:
            arm.click(RIGHT_BUTTON)
        assert not differences(arm.state(f"cancelled-{how}"), before)
        assert not is_dragging(arm)


@pytest.mark.parametrize(
    ("bone", "keys"),
    [("", ""), ("forearm", "g"), ("forearm", "r"), ("upper_arm", "r")],
    ids=["drag", "g", "tip", "pole"],
)
def test_disabling_the_extension_during_a_drag_restores_everything(arm: Window, bone: str, keys: str) -> None:
    arm.inside.set_live(True)
    cursor, before = arm.inside.cursor(), arm.state("before")
    if bone:
        begin(arm, bone, keys)
    else:
        arm.grab(DRAG, -60, -50)
    assert differences(arm.state("dragging")["goals"], before["goals"], 0.01)
    arm.inside.enable(False)
    arm.rest()
    running = ["TRANSFORM_OT_rotate"] if keys == "r" else []
    assert arm.inside.running() == running, "Blender's own operators go on, and none of the extension's"
    arm.sweep(-90, 10)
    arm.tap("Escape")
    arm.inside.enable(True)
    assert not differences(arm.state("restored"), before, SEEN)
    assert arm.inside.cursor() == cursor
    arm.grab(DRAG, -60, -50)
    assert is_dragging(arm)
    assert arm.is_reached()
    arm.tap("Escape")
    assert not differences(arm.state("cancelled"), before, SEEN)


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
    arm.assert_undone(before, after)


@pytest.mark.parametrize(
    ("keys", "still"), [(["x"], (1, 2)), (["shift+y"], (1,)), (["z"], (0, 1))], ids=["axis", "plane", "up"]
)
def test_a_drag_stays_on_an_axis_or_a_plane(arm: Window, keys: list[str], still: tuple[int, ...]) -> None:
    before = arm.state("before")["goals"]["Target"]
    arm.grab(DRAG, -60, -50)
    arm.tap(*keys)
    along = arm.state("-".join(keys))["goals"]["Target"]
    moved = [abs(a - b) > 1e-6 for a, b in zip(along, before, strict=True)]
    assert moved == [i not in still for i in range(3)]
    arm.tap("Escape")


def test_a_distance_can_be_typed_during_a_drag(arm: Window) -> None:
    before = arm.state("before")["goals"]["Target"]
    arm.grab(DRAG, -60, -50)
    arm.tap("z", "minus", "period", "1")
    arm.tap("Return")
    after = arm.state("typed")["goals"]["Target"]
    assert [a - b for a, b in zip(after, before, strict=True)] == pytest.approx([0.0, 0.0, -0.1], abs=1e-6)
    assert arm.is_reached()


def test_a_target_can_be_rotated_in_the_same_drag(arm: Window) -> None:
    before = arm.state("before")
    turned = arm.inside.goal_rotation("Target")
    arm.grab(DRAG, -60, -50)
    arm.tap("r", "y", "3", "0")
    arm.tap("Return")
    assert not differences(arm.state("turned")["goals"], before["goals"], 1e-6)
    along = sum(a * b for a, b in zip(arm.inside.goal_rotation("Target"), turned, strict=True))
    assert 2.0 * math.acos(abs(along)) == pytest.approx(math.radians(30.0), abs=1e-4)
    arm.assert_undone(before)
    assert arm.inside.goal_rotation("Target") == turned


def test_a_move_can_be_adjusted(arm: Window) -> None:
    before = arm.state("before")["goals"]["Target"]
    arm.grab(DRAG, -60, -50)
    arm.tap("Return")
    arm.inside.adjust([0.05, 0.0, 0.1])
    arm.rest()
    after = arm.state("adjusted")["goals"]["Target"]
    assert [a - b for a, b in zip(after, before, strict=True)] == pytest.approx([0.05, 0.0, 0.1], abs=1e-6)
    assert arm.is_reached()


def test_a_rotation_can_be_adjusted(arm: Window) -> None:
    before, turned = arm.state("before"), arm.inside.goal_rotation("Target")
    pose = arm.inside.pose()
    arm.grab(DRAG, -60, -50)
    arm.tap("r", "y", "3", "0")
    arm.tap("Return")
    arm.inside.adjust(math.radians(50.0))
    arm.rest()
    assert not differences(arm.state("adjusted")["goals"], before["goals"], 1e-6)
    w, _x, y, _z = arm.inside.rotation_since("Target", turned)
    assert 2.0 * math.atan2(y, w) == pytest.approx(math.radians(50.0), abs=1e-4)
    assert not differences(arm.inside.pose(), pose, 1e-5), "the bones are where they were"


def test_the_3d_cursor_is_restored(arm: Window) -> None:
    before = arm.inside.cursor()
    for end in ("Escape", "Return"):
        arm.grab(DRAG, -60, -50)
        assert arm.inside.cursor() != before
        arm.tap(end)
        assert arm.inside.cursor() == before


@pytest.mark.parametrize("live", [False, True], ids=["solved", "live"])
def test_saving_during_a_drag_leaves_cursor_and_target_in_place(arm: Window, scratch: Path, live: bool) -> None:
    arm.inside.set_live(live)
    cursor, before = arm.inside.cursor(), arm.state("before")
    path = str(scratch / f"dragged-{live}.blend")
    arm.grab(DRAG, -60, -50)
    assert arm.state("dragging")["goals"] != before["goals"]
    arm.inside.save_file(path)
    arm.move(*(place + 20 for place in arm.middle()))
    arm.click()
    arm.rest()
    assert arm.inside.cursor() == pytest.approx(cursor, abs=1e-6)
    assert not differences(arm.state("saved"), before)
    arm.inside.open_file(path)
    assert arm.inside.cursor() == pytest.approx(cursor, abs=1e-6)
    assert not differences(arm.state("opened")["goals"], before["goals"])


def over_the_sidebar(window: Window) -> None:
    """Start a drag from the menu beside the list, which opens over the sidebar."""
    sidebar = window.session.call("result = rects()['UI']")
    window.move(sidebar["x"] + 100, sidebar["y"] + 100)
    window.inside.start(DRAG)
    window.rest()


def test_a_drag_from_the_menu_starts_without_a_jump(arm: Window) -> None:
    arm.inside.draw_quickly(True)  # as Blender has it by default
    before = arm.state("before")
    over_the_sidebar(arm)
    assert is_dragging(arm)
    assert not differences(arm.state("pressed")["goals"], before["goals"], 1e-6)
    arm.tap("Escape")
    assert not differences(arm.state("cancelled"), before)


def test_a_drag_from_the_menu_takes_the_target_to_the_mouse(arm: Window) -> None:
    over_the_sidebar(arm)
    x, y = arm.middle()
    place = (x + 30, y - 20)
    arm.move(*place)
    assert arm.inside.place_of("Target") == pytest.approx(place, abs=2)
    arm.click()
    assert not is_dragging(arm)
    assert arm.inside.place_of("Target") == pytest.approx(place, abs=2)
    assert arm.is_reached()


def offset(window: Window, before: list[float], name: str) -> list[float]:
    """How far the target has moved from `before`."""
    return [a - b for a, b in zip(window.state(name)["goals"]["Target"], before, strict=True)]


def test_shift_moves_precisely(arm: Window) -> None:
    before = arm.state("before")["goals"]["Target"]
    arm.grab(DRAG, -60, 0)
    plain = offset(arm, before, "plain")[0]
    arm.tap("Escape")
    arm.move(*arm.middle())
    arm.inside.start(DRAG)
    arm.session.x("keydown", "shift")
    arm.sweep(-60, 0)
    precise = offset(arm, before, "precise")[0]
    arm.session.x("keyup", "shift")
    arm.tap("Escape")
    assert precise == pytest.approx(plain / 10.0, rel=0.1)


def test_ctrl_snaps(arm: Window) -> None:
    before = arm.state("before")["goals"]["Target"]
    arm.move(*arm.middle())
    arm.inside.start(DRAG)
    arm.session.x("keydown", "ctrl")
    arm.sweep(300, -20)
    snapped = offset(arm, before, "snapped")
    arm.session.x("keyup", "ctrl")
    arm.tap("Escape")
    assert snapped == pytest.approx([1.0, 0.0, 0.0], abs=1e-5), "steps of the grid"
