"""Drag Target with real mouse and keys: Blender moves the target, the tip follows, Esc and undo restore everything."""

import math
from pathlib import Path

import pytest

from tests.window.driving import SEEN, Window, differences
from tests.window.test_edits import begin

DRAG = "ik_addon.drag_target"
RIGHT_BUTTON = 3


def is_dragging(window: Window) -> bool:
    return "IK_ADDON_OT_goal_move" in window.inside.running()


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
    x, _y, z = offset(arm, before["goals"]["Target"], "moved")
    assert x < 0.0 < z, "to the left and up, as the mouse went"
    assert arm.is_reached()
    arm.assert_undone(before, after)


def offset(window: Window, before: list[float], name: str) -> list[float]:
    """How far the target has moved from `before`."""
    return [a - b for a, b in zip(window.state(name)["goals"]["Target"], before, strict=True)]


KEYS = {
    "x": (None, 0.0, 0.0),
    "shift+y": (None, 0.0, None),
    "z": (0.0, 0.0, None),
    "z minus period 1": (0.0, 0.0, -0.1),
}
"""Keys that are pressed while a target is dragged, and how far it goes along each axis; None: anywhere."""


@pytest.mark.parametrize("keys", KEYS)
def test_keys_keep_a_drag_on_an_axis_or_a_plane_or_give_the_distance(arm: Window, keys: str) -> None:
    before = arm.state("before")["goals"]["Target"]
    arm.grab(DRAG, -60, -50)
    arm.tap(*keys.split())
    for went, wanted in zip(offset(arm, before, "dragged"), KEYS[keys], strict=True):
        assert abs(went) > 1e-6 if wanted is None else went == pytest.approx(wanted, abs=1e-6)
    arm.tap("Return")
    assert arm.is_reached()


@pytest.mark.parametrize("angle", [30.0, 50.0], ids=["typed", "adjusted"])
def test_a_target_can_be_rotated_in_the_same_drag_and_adjusted(arm: Window, angle: float) -> None:
    before, pose = arm.state("before"), arm.inside.pose()
    turned = arm.inside.goal_rotation("Target")
    arm.grab(DRAG, -60, -50)
    arm.tap("r", "y", "3", "0", "Return")
    if angle != 30.0:
        arm.inside.adjust(math.radians(angle))
        arm.rest()
    assert not differences(arm.state("turned")["goals"], before["goals"], 1e-6)
    w, _x, y, _z = arm.inside.rotation_since("Target", turned)
    assert 2.0 * math.atan2(abs(y), abs(w)) == pytest.approx(math.radians(angle), abs=1e-4)
    if angle != 30.0:
        assert not differences(arm.inside.pose(), pose, 1e-5), "the bones are where they were"
    else:
        arm.assert_undone(before)
        assert arm.inside.goal_rotation("Target") == turned


def test_a_move_can_be_adjusted(arm: Window) -> None:
    before = arm.state("before")["goals"]["Target"]
    arm.grab(DRAG, -60, -50)
    arm.tap("Return")
    arm.inside.adjust([0.05, 0.0, 0.1])
    assert offset(arm, before, "adjusted") == pytest.approx([0.05, 0.0, 0.1], abs=1e-6)
    assert arm.is_reached()


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
    assert arm.inside.cursor() == pytest.approx(cursor, abs=1e-6)
    assert not differences(arm.state("saved"), before)
    arm.inside.open_file(path)
    assert arm.inside.cursor() == pytest.approx(cursor, abs=1e-6)
    assert not differences(arm.state("opened")["goals"], before["goals"])


def over_the_sidebar(window: Window) -> None:
    """Start a drag from the menu beside the list, which opens over the sidebar."""
    sidebar = window.rect("UI")
    window.move(sidebar["x"] + 100, sidebar["y"] + 100)
    window.inside.start(DRAG)
    window.rest()


def test_a_drag_from_the_menu_starts_without_a_jump_and_takes_the_target_to_the_mouse(arm: Window) -> None:
    arm.inside.draw_quickly(True)  # as Blender has it by default
    before = arm.state("before")
    over_the_sidebar(arm)
    assert is_dragging(arm)
    assert not differences(arm.state("pressed")["goals"], before["goals"], 1e-6)
    arm.tap("Escape")
    assert not differences(arm.state("cancelled"), before)
    over_the_sidebar(arm)
    x, y = arm.middle()
    place = (x + 30, y - 20)
    arm.move(*place)
    assert arm.inside.place_of("Target") == pytest.approx(place, abs=2)
    arm.click()
    assert not is_dragging(arm)
    assert arm.inside.place_of("Target") == pytest.approx(place, abs=2)
    assert arm.is_reached()


@pytest.mark.parametrize("key", ["shift", "ctrl"])
def test_shift_moves_precisely_and_ctrl_snaps(arm: Window, key: str) -> None:
    before = arm.state("before")["goals"]["Target"]
    sweep = (-60, 0) if key == "shift" else (300, -20)
    arm.grab(DRAG, *sweep)
    plain = offset(arm, before, "plain")[0]
    arm.tap("Escape")
    arm.move(*arm.middle())
    arm.inside.start(DRAG)
    with arm.holding(key):
        arm.sweep(*sweep)
        went = offset(arm, before, key)
    arm.tap("Escape")
    if key == "shift":
        assert went[0] == pytest.approx(plain / 10.0, rel=0.1)
    else:
        assert went == pytest.approx([1.0, 0.0, 0.0], abs=1e-5), "steps of the grid"
