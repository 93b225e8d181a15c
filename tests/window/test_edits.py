"""Solved bones edited with real mouse and keys: targets and poles follow, in one undo step, and Esc restores all."""

from typing import Any

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
def test_a_tip_that_is_transformed_takes_its_target_along(live: Window, key: str) -> None:
    before = live.state("before")
    begin(live, "forearm", key)
    moving = live.state("moving")
    assert differences(moving["goals"], before["goals"], 0.01)
    assert live.is_reached()
    live.tap("Return")
    after = live.state("after")
    assert live.is_reached()
    assert not differences(after["goals"], moving["goals"], SEEN)
    live.assert_undone(before, after, SEEN, times=2)


def test_a_connected_tip_can_be_moved_along_an_axis(live: Window) -> None:
    before = live.state("before")
    live.inside.activate("forearm")
    live.key("g")
    live.tap("z", "minus", "period", "2", "Return")
    after = live.state("after")
    moved = [a - b for a, b in zip(after["goals"]["Target"], before["goals"]["Target"], strict=True)]
    assert moved == pytest.approx([0.0, 0.0, -0.2], abs=SEEN)
    assert live.is_reached()
    live.assert_undone(before, within=SEEN)


def adjust(window: Window, angle: int) -> None:
    """Type another angle into the popup of Adjust Last Operation, which is open."""
    x, y = window.middle()
    window.move(x + ANGLE[0], y + ANGLE[1])
    window.tap("Return", "ctrl+a", *str(angle), "Return")


@pytest.mark.parametrize(("bone", "goal"), [("upper_arm", "Pole"), ("forearm", "Target"), ("upper_arm", "")])
def test_an_edit_can_be_adjusted(live: Window, bone: str, goal: str) -> None:
    if not goal:
        live.inside.clear_pole("forearm")
    fk, before = live.inside.fk(), live.state("before")
    begin(live, bone, "r")
    live.tap("Return")
    live.key("F9")
    for angle in (30, 60):
        adjust(live, angle)
        adjusted = live.state(f"adjusted-{angle}")
        assert live.is_reached()
        goals = [name for name, place in adjusted["goals"].items() if differences(place, before["goals"][name], 0.01)]
        assert goals == ([goal] if goal else [])
    live.tap("Escape")
    live.assert_undone(before, adjusted, SEEN)
    assert bool(differences(live.inside.fk()[bone], fk[bone], SEEN)) != bool(goal), "FK changes where nothing follows"


@pytest.mark.parametrize(("bone", "key"), [("forearm", "g"), ("forearm", "r"), ("upper_arm", "r")])
def test_escape_restores_everything(live: Window, bone: str, key: str) -> None:
    before = live.state("before")
    begin(live, bone, key)
    assert differences(live.state("moving")["goals"], before["goals"], 0.01)
    live.tap("Escape")
    assert not differences(live.state("cancelled"), before, SEEN)
    live.key("ctrl+z")
    live.key("ctrl+shift+z")
    assert not differences(live.state("redone"), before, SEEN)


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
def test_keys_that_are_moved_in_the_graph_editor_are_fk(live: Window, ending: str, auto: bool) -> None:
    live.inside.auto_key(auto)
    before = live.state("before")
    x, y = live.middle()
    live.inside.activate("upper_arm")
    live.inside.edit_curves("upper_arm")
    try:
        keys = live.inside.keyed("upper_arm")
        live.move(x, y)
        live.tap("g", "y")
        for up in (20, 40, 60):
            live.move(x, y - up)
        moving, moved = live.state("moving"), live.inside.keyed("upper_arm")
        live.tap(ending)
    finally:
        live.inside.show_viewport()
        live.inside.auto_key(False)
    after = live.inside.keyed("upper_arm")
    assert differences(moved, keys, 0.01), "the keys follow the mouse"
    assert not differences(after, moved if ending == "Return" else keys, SEEN)
    for state in (moving, live.state("after")):
        assert state["goals"] == before["goals"]


def test_typed_numbers_are_one_undo_step(live: Window) -> None:
    before = live.state("before")
    live.inside.activate("forearm")
    live.key("r")
    live.tap("y", "3", "0", "Return")
    after = live.state("after")
    assert differences(after["goals"], before["goals"], 0.01)
    assert live.is_reached()
    for _ in range(3):
        live.key("a")
    for _ in range(2):
        for state in (after, after, after, before):
            live.assert_undone(state, within=SEEN)
        for _ in range(4):
            live.key("ctrl+shift+z")
            assert not differences(live.state("redone"), after, SEEN)


def test_auto_keying_keys_fk_and_the_target(live: Window) -> None:
    live.inside.auto_key(True)
    live.inside.go_to(7)
    fk = live.inside.fk()
    before, first = live.state("before"), live.inside.keys_of("Target")
    assert all(7.0 not in dict(keys) for keys in first.values())
    begin(live, "forearm", "r")
    live.tap("Return")
    after, target = live.state("after"), live.inside.keys_of("Target")
    assert live.is_reached()
    for name, values in live.inside.keyed("forearm").items():
        assert values == pytest.approx(fk["forearm"][name], abs=SEEN)
    x, _y, z = after["goals"]["Target"]  # along Y, where it did not move, Blender's preferences ask for no key
    assert [dict(target[f"location[{i}]"])[7.0] for i in (0, 2)] == pytest.approx([x, z], abs=SEEN)
    live.assert_undone(before, within=SEEN)
    assert live.inside.keys_of("Target") == first
    live.key("ctrl+shift+z")
    assert not differences(live.state("redone"), after, SEEN)
    assert not differences(live.inside.keys_of("Target"), target, SEEN)
    live.key("ctrl+z")
    begin(live, "forearm", "r")
    live.tap("Escape")
    assert not differences(live.state("cancelled"), before, SEEN)
    assert live.inside.keys_of("Target") == first
    live.inside.auto_key(False)


# ---- pose assets, created from a solved pose, applied and blended


def chained(window: Window, name: str) -> dict[str, Any]:
    found = window.state(name)
    assert found["live"]
    assert found["chains"]["forearm"]["target"] == "Target"
    assert found["chains"]["forearm"]["pole"] == "Pole"
    assert window.is_reached()
    return found


def assert_is_one_step(window: Window, before: dict[str, Any], after: dict[str, Any]) -> None:
    for _ in range(2):
        window.key("ctrl+z")
        assert not differences(chained(window, "undone"), before, SEEN)
        window.key("ctrl+shift+z")
        assert not differences(chained(window, "redone"), after, SEEN)
    window.key("ctrl+z")


def test_chains_stay_when_pose_assets_are_used(live: Window) -> None:
    posed = chained(live, "posed")
    live.inside.create_pose_asset()
    assert not differences(chained(live, "created"), posed), "it changes nothing"
    live.inside.activate("forearm")
    live.inside.set_live(True)
    live.key("g")
    live.sweep(-60, -50)
    live.tap("Return")
    live.inside.select_bones()
    moved = chained(live, "moved")
    assert differences(moved["goals"]["Target"], posed["goals"]["Target"], 0.01)
    x, y = live.inside.place_of_first_asset()

    live.click_at(x, y)
    applied = chained(live, "applied")
    assert not differences(applied["goals"]["Target"], posed["goals"]["Target"], 1e-4)
    assert_is_one_step(live, moved, applied)

    live.pull((x, y), 120, -30)
    assert live.inside.running() == ["POSELIB_OT_blend_pose_asset"]
    blending = chained(live, "blending")
    assert differences(blending["goals"]["Target"], moved["goals"]["Target"], 0.01)
    live.release()
    assert not live.inside.running()
    blended = chained(live, "blended")
    assert not differences(blended, blending, SEEN)
    assert_is_one_step(live, moved, blended)

    live.pull((x, y), 160, -30)
    assert differences(chained(live, "blending-again")["goals"]["Target"], moved["goals"]["Target"], 0.01)
    live.tap("Escape")
    live.release()
    assert not live.inside.running()
    assert not differences(chained(live, "cancelled"), moved, SEEN)
    live.key("ctrl+z")
    live.key("ctrl+shift+z")
    assert not differences(chained(live, "cancelled-redone"), moved, SEEN)
    live.inside.hide_assets()
