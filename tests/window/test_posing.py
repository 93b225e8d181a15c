"""The Pose Body tool: bones of a body dragged with a real mouse."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.window.driving import WHEEL_DOWN, WHEEL_UP, Window, changed, differences, pixels

MACRO = "IK_ADDON_OT_body_move"
GRAB = "ik_addon.body_grab"


@pytest.fixture
def human(window: Window) -> Iterator[Window]:
    """The window with the human metarig from the front, with the tool selected."""
    window.open_metarig()
    window.inside.choose_tool("ik_addon.body")
    window.inside.tool_setting(GRAB, "length", 0)
    window.inside.tool_setting(GRAB, "without_pins", "FEET")
    yield window
    window.inside.choose_tool("builtin.select_box")


def heads(window: Window) -> dict[str, list[float]]:
    """World positions of the bones' heads."""
    window.rest()
    return dict(window.inside.heads())


def along(one: list[float], other: list[float]) -> float:
    """Similarity of two rotations (quaternions), from 0 to 1."""
    return abs(sum(a * b for a, b in zip(one, other, strict=True)))


def wheel(window: Window, button: int, times: int) -> None:
    for _ in range(times):
        window.session.x("click", button)
        window.rest()


def far(one: list[float], other: list[float]) -> float:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5


def test_dragging_a_hand_keeps_the_feet_in_place(human: Window) -> None:
    before, state = heads(human), human.state("before")
    human.pull(human.inside.place_of_bone("forearm.L"), 60, -90)
    assert MACRO in human.inside.running()
    human.release()
    assert MACRO not in human.inside.running()
    after = heads(human)
    assert human.inside.active_bone() == "forearm.L"
    assert after["hand.L"][2] - before["hand.L"][2] > 0.1, "up, as the mouse went"
    for foot in ("foot.L", "foot.R"):
        assert far(after[foot], before[foot]) < 1e-3
    human.key("ctrl+z")
    assert all(far(place, before[bone]) < 1e-5 for bone, place in heads(human).items())
    assert not differences(human.state("undone")["goals"], state["goals"])


def test_escape_restores_everything(human: Window) -> None:
    before = heads(human)
    human.pull(human.inside.place_of_bone("forearm.L"), 60, -90)
    assert far(heads(human)["hand.L"], before["hand.L"]) > 0.05
    human.tap("Escape")
    human.release()
    assert all(far(place, before[bone]) < 1e-6 for bone, place in heads(human).items())


def test_at_the_end_of_a_chain_the_hand_or_foot_is_in_hand(human: Window) -> None:
    human.press("ik_addon.character_setup")
    for bone, end in (("shin.L", "foot.L"), ("forearm.R", "hand.R")):
        for share in (0.96, 1.0):
            human.drag(human.inside.place_of_bone(bone, share), 12, -20)
            assert human.inside.active_bone() == end, (bone, share)
            human.key("ctrl+z")


def test_a_pole_is_dragged_alone(human: Window) -> None:
    human.press("ik_addon.character_setup")
    before = heads(human)
    human.drag(human.inside.place_of_bone("IK Pole forearm.L", 0.0), 30, -40)
    after = heads(human)
    assert human.inside.active_bone() == "IK Pole forearm.L"
    assert far(after["IK Pole forearm.L"], before["IK Pole forearm.L"]) > 0.1
    assert far(after["forearm.L"], before["forearm.L"]) > 1e-3, "the elbow turns to its pole"
    assert far(after["spine"], before["spine"]) < 1e-5
    human.key("ctrl+z")


def test_copying_controls_that_are_empties_says_what_is_left_out(human: Window) -> None:
    human.inside.start("ik_addon.character_setup", {"controls": "EMPTIES"})
    human.press("ik_addon.select_controls")
    human.printed()
    human.key("ctrl+c")
    assert "Left out 10 controls" in human.printed()
    human.key("a")
    human.key("ctrl+c")
    assert "Left out" not in human.printed(), "the limbs are copied as a whole"


def test_the_status_bar_tells_of_the_wheel_during_a_drag(human: Window) -> None:
    usual = human.inside.status_bar()
    human.pull(human.inside.place_of_bone("forearm.L"), 60, -90)
    assert human.inside.status_bar().endswith("ui.operators.body")
    human.release()
    human.move(*human.middle())
    assert human.inside.status_bar() == usual


def test_axis_keys_work_during_a_drag(human: Window) -> None:
    before = heads(human)
    human.pull(human.inside.place_of_bone("forearm.L"), 40, -60)
    human.tap("z")
    human.release()
    after = heads(human)
    # The mouse drags the head or the tail of the forearm, whichever is nearer.
    steps = [[b - a for a, b in zip(before[end], after[end], strict=True)] for end in ("forearm.L", "hand.L")]
    aside, _forward, up = min(steps, key=lambda step: abs(step[0]))
    assert abs(aside) < 2e-3
    assert up > 0.05


def test_p_pins_the_selected_bone_which_then_stays_in_place(human: Window) -> None:
    human.click_at(*human.inside.place_of_bone("forearm.R"))
    assert human.inside.active_bone() == "forearm.R"
    human.tap("p")
    before = heads(human)
    human.drag(human.inside.place_of_bone("forearm.L"), 50, -50)
    after = heads(human)
    assert far(after["forearm.R"], before["forearm.R"]) < 1e-3
    assert far(after["hand.L"], before["hand.L"]) > 0.05


def test_the_joint_under_the_mouse_is_highlighted(human: Window) -> None:
    x, y = human.inside.place_of_bone("forearm.L")

    def seen(at_x: int, at_y: int, name: str) -> Any:
        human.session.move(at_x, at_y, settle=0.3)
        human.rest()
        return pixels(human.shot(name))

    without = seen(x + 120, y - 80, "beside")
    assert changed(seen(x, y, "over"), without) > 50
    assert changed(seen(x + 120, y - 80, "beside-again"), without) < 20


def test_the_wheel_sets_how_much_of_the_body_follows(human: Window) -> None:
    human.pull(human.inside.place_of_bone("forearm.L"), 25, -45)
    assert "spine" in human.inside.turned_bones()
    wheel(human, WHEEL_UP, 8)
    few = human.inside.turned_bones()
    assert few in (["forearm.L"], ["upper_arm.L"])
    wheel(human, WHEEL_DOWN, 1)
    assert set(human.inside.turned_bones()) > set(few)
    human.release()
    assert MACRO not in human.inside.running()
    assert human.inside.tool_setting(GRAB, "length") == 2
    human.rest()
    after = human.inside.turned_bones()
    assert len(after) == 2
    human.inside.adjust([0.0, 0.0, -0.05])
    assert human.inside.turned_bones() == after, "repeated with as many bones"


def test_the_wheel_zooms_beside_a_drag(human: Window) -> None:
    before = human.inside.place_of_bone("hand.R")
    human.drag(human.inside.place_of_bone("forearm.L"), 25, -45)
    human.session.move(*human.middle())
    wheel(human, WHEEL_UP, 2)
    assert human.inside.tool_setting(GRAB, "length") == 0
    assert human.inside.place_of_bone("hand.R") != before


def test_r_rotates_the_dragged_bone_in_place(human: Window) -> None:
    place = human.inside.place_of_bone("hand.L")
    human.pull((place[0], place[1] - 2), 40, -60)
    bone = human.inside.active_bone()
    before, turns = heads(human), human.inside.turns()
    human.tap("r", "y", "4", "0", "Return")
    human.release()
    after = heads(human)
    assert far(after[bone], before[bone]) < 2e-3
    assert along(human.inside.turns()[bone], turns[bone]) == pytest.approx(math.cos(math.radians(20.0)), abs=1e-3)
    human.inside.adjust()
    assert far(heads(human)[bone], after[bone]) < 1e-6, "a rotation can't be repeated"


def test_the_tool_can_move_the_chain_alone(human: Window) -> None:
    human.inside.tool_setting(GRAB, "without_pins", "CHAIN")
    human.drag(human.inside.place_of_bone("forearm.L"), 25, -45)
    assert set(human.inside.turned_bones()) <= {"upper_arm.L", "forearm.L"}
    assert human.inside.turned_bones()


def test_the_panel_pins_lists_shows_and_releases_feet(human: Window) -> None:
    view = "760x700+10+80"
    human.inside.open_panel("VIEW3D_PT_ik_addon_body")
    human.move(*human.middle())
    without = pixels(human.shot("without", crop=view))
    human.click_at(*human.find("which='FEET'", x=human.find("ik_addon.character_setup")[0] - 50))
    assert human.inside.pins() == {"foot.L": ["LOCATION", "ROTATION"], "foot.R": ["LOCATION", "ROTATION"]}
    human.session.move(*human.middle(), settle=0.3)
    human.rest()
    assert changed(pixels(human.shot("with", crop=view)), without) > 50
    human.click_at(*human.find_right("ik_addon.pin_release(bone="))
    assert set(human.inside.pins()) == {"foot.R"}, "the first of the list"
    human.key("ctrl+z")
    assert set(human.inside.pins()) == {"foot.L", "foot.R"}
