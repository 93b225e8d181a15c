"""Solved bones edited with real mouse and keys: targets and poles follow, in one undo step, and Esc restores all."""

from __future__ import annotations

import pytest

from tests.window.driving import SEEN, Window, differences

ANGLE = (212, 50)
"""Where the popup of Adjust Last Operation has its angle, in pixels from the mouse."""


def begin(window: Window, bone: str, key: str, x: int = -60, y: int = -50) -> None:
    """Press a key over the viewport and move the mouse, with one bone selected."""
    window.inside.activate(bone)
    window.inside.set_live(True)  # an undo step, with the selection
    window.key(key)
    window.sweep(x, y)


@pytest.mark.parametrize("key", ["g", "r"])
def test_a_tip_that_is_transformed_takes_its_target_along(arm: Window, key: str) -> None:
    arm.inside.set_live(True)
    before = arm.state("before")
    begin(arm, "forearm", key)
    moving = arm.state("moving")
    assert differences(moving["goals"], before["goals"], 0.01)
    assert arm.is_reached()
    arm.tap("Return")
    after = arm.state("after")
    assert arm.is_reached()
    assert not differences(after["goals"], moving["goals"], SEEN)
    arm.assert_undone(before, after, SEEN, times=2)


def test_a_connected_tip_can_be_moved_along_an_axis(arm: Window) -> None:
    arm.inside.set_live(True)
    before = arm.state("before")
    arm.inside.activate("forearm")
    arm.key("g")
    arm.tap("z", "minus", "period", "2", "Return")
    after = arm.state("after")
    moved = [a - b for a, b in zip(after["goals"]["Target"], before["goals"]["Target"], strict=True)]
    assert moved == pytest.approx([0.0, 0.0, -0.2], abs=SEEN)
    assert arm.is_reached()
    arm.assert_undone(before, within=SEEN)


def adjust(window: Window, angle: int) -> None:
    """Type another angle into the popup of Adjust Last Operation, which is open."""
    x, y = window.middle()
    window.move(x + ANGLE[0], y + ANGLE[1])
    window.tap("Return", "ctrl+a", *str(angle), "Return")


@pytest.mark.parametrize(("bone", "goal"), [("upper_arm", "Pole"), ("forearm", "Target"), ("upper_arm", "")])
def test_an_edit_can_be_adjusted(arm: Window, bone: str, goal: str) -> None:
    arm.inside.set_live(True)
    if not goal:
        arm.inside.clear_pole("forearm")
    fk, before = arm.inside.fk(), arm.state("before")
    begin(arm, bone, "r")
    arm.tap("Return")
    arm.key("F9")
    for angle in (30, 60):
        adjust(arm, angle)
        adjusted = arm.state(f"adjusted-{angle}")
        assert arm.is_reached()
        goals = [name for name, place in adjusted["goals"].items() if differences(place, before["goals"][name], 0.01)]
        assert goals == ([goal] if goal else [])
    arm.tap("Escape")
    arm.assert_undone(before, adjusted, SEEN)
    assert bool(differences(arm.inside.fk()[bone], fk[bone], SEEN)) != bool(goal), "FK changes where nothing follows"


@pytest.mark.parametrize(("bone", "key"), [("forearm", "g"), ("forearm", "r"), ("upper_arm", "r")])
def test_escape_restores_everything(arm: Window, bone: str, key: str) -> None:
    arm.inside.set_live(True)
    before = arm.state("before")
    begin(arm, bone, key)
    assert differences(arm.state("moving")["goals"], before["goals"], 0.01)
    arm.tap("Escape")
    assert not differences(arm.state("cancelled"), before, SEEN)
    arm.key("ctrl+z")
    arm.key("ctrl+shift+z")
    assert not differences(arm.state("redone"), before, SEEN)


@pytest.mark.parametrize("bone", ["forearm", "upper_arm"])
def test_a_limb_between_fk_and_ik_goes_where_the_hand_puts_it(arm: Window, bone: str) -> None:
    arm.inside.set_influence("forearm", 0.5)
    arm.inside.set_live(True)
    fk, before = arm.inside.fk(), arm.state("before")
    assert not arm.is_reached()
    begin(arm, bone, "r")
    assert arm.is_reached()
    arm.tap("Escape")
    assert not differences(arm.state("cancelled"), before, SEEN)
    assert not differences(arm.inside.fk(), fk, SEEN)
    begin(arm, bone, "r")
    arm.tap("Return")
    after = arm.state("after")
    assert arm.is_reached()
    arm.assert_undone(before, after, SEEN, times=2)
    assert differences(arm.inside.fk(), fk, 0.01)
    arm.inside.set_influence("forearm", 0.0)
    assert arm.is_reached(), "FK has followed"


@pytest.mark.parametrize(("ending", "auto"), [("Return", False), ("Return", True), ("Escape", True)])
def test_keys_that_are_moved_in_the_graph_editor_are_fk(arm: Window, ending: str, auto: bool) -> None:
    arm.inside.set_live(True)
    arm.inside.auto_key(auto)
    before = arm.state("before")
    x, y = arm.middle()
    arm.inside.activate("upper_arm")
    arm.inside.edit_curves("upper_arm")
    try:
        keys = arm.inside.keyed("upper_arm")
        arm.move(x, y)
        arm.tap("g", "y")
        for up in (20, 40, 60):
            arm.move(x, y - up)
        moving, moved = arm.state("moving"), arm.inside.keyed("upper_arm")
        arm.tap(ending)
    finally:
        arm.inside.show_viewport()
        arm.inside.auto_key(False)
    after = arm.inside.keyed("upper_arm")
    assert differences(moved, keys, 0.01), "the keys follow the mouse"
    assert not differences(after, moved if ending == "Return" else keys, SEEN)
    for state in (moving, arm.state("after")):
        assert state["goals"] == before["goals"]


def test_typed_numbers_are_one_undo_step(arm: Window) -> None:
    arm.inside.set_live(True)
    before = arm.state("before")
    arm.inside.activate("forearm")
    arm.key("r")
    arm.tap("y", "3", "0", "Return")
    after = arm.state("after")
    assert differences(after["goals"], before["goals"], 0.01)
    assert arm.is_reached()
    for _ in range(3):
        arm.key("a")
    for _ in range(2):
        for _ in range(3):
            arm.assert_undone(after, within=SEEN)
        arm.assert_undone(before, within=SEEN)
        for _ in range(4):
            arm.key("ctrl+shift+z")
            assert not differences(arm.state("redone"), after, SEEN)


def test_insert_keyframe_keys_the_fk_pose(arm: Window) -> None:
    arm.inside.set_live(True)
    shown, fk = arm.inside.pose(), arm.inside.fk()
    arm.inside.activate("forearm")
    arm.key("i")
    arm.rest()
    keys = arm.state("keyed")["keys"]
    assert keys, "something was keyed"
    assert not differences(arm.inside.pose(), shown, SEEN)
    for name, values in arm.inside.keyed("forearm").items():
        assert values == pytest.approx(fk["forearm"][name], abs=SEEN)
    arm.key("ctrl+z")
    assert not arm.state("undone")["keys"]
    arm.key("ctrl+shift+z")
    assert not differences(arm.state("redone")["keys"], keys, SEEN)


def test_auto_keying_keys_fk_and_the_target(arm: Window) -> None:
    arm.inside.set_live(True)
    arm.inside.auto_key(True)
    arm.inside.go_to(7)
    fk = arm.inside.fk()
    before, first = arm.state("before"), arm.inside.keys_of("Target")
    assert all(7.0 not in dict(keys) for keys in first.values())
    begin(arm, "forearm", "r")
    arm.tap("Return")
    after, target = arm.state("after"), arm.inside.keys_of("Target")
    assert arm.is_reached()
    for name, values in arm.inside.keyed("forearm").items():
        assert values == pytest.approx(fk["forearm"][name], abs=SEEN)
    x, _y, z = after["goals"]["Target"]  # along Y, where it did not move, Blender's preferences ask for no key
    assert [dict(target[f"location[{i}]"])[7.0] for i in (0, 2)] == pytest.approx([x, z], abs=SEEN)
    arm.assert_undone(before, within=SEEN)
    assert arm.inside.keys_of("Target") == first
    arm.key("ctrl+shift+z")
    assert not differences(arm.state("redone"), after, SEEN)
    assert not differences(arm.inside.keys_of("Target"), target, SEEN)
    arm.key("ctrl+z")
    begin(arm, "forearm", "r")
    arm.tap("Escape")
    assert not differences(arm.state("cancelled"), before, SEEN)
    assert arm.inside.keys_of("Target") == first
    arm.inside.auto_key(False)
