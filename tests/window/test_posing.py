"""The Pose Body tool: bones of a figure dragged with a real mouse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.window.driving import Window, differences

MACRO = "IK_ADDON_OT_body_move"


@pytest.fixture
def human(window: Window) -> Iterator[Window]:
    """The window with the human metarig from the front, in which the tool is chosen."""
    window.inside.new_file()
    window.inside.metarig()
    window.show_tab()
    window.inside.choose_tool("ik_addon.body")
    yield window
    window.inside.choose_tool("builtin.select_box")


def heads(window: Window) -> dict[str, list[float]]:
    """Where bones are in the world."""
    window.rest()
    return dict(window.inside.heads())


def far(one: list[float], other: list[float]) -> float:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5


def test_a_hand_is_pulled_and_the_feet_stay(human: Window) -> None:
    before, state = heads(human), human.state("before")
    human.pull(human.inside.place_of_bone("forearm.L"), 60, -90)
    assert MACRO in human.inside.running()
    human.shot("during")
    human.release()
    assert MACRO not in human.inside.running()
    after = heads(human)
    human.shot("after")
    assert human.inside.active_bone() == "forearm.L"
    assert after["hand.L"][2] - before["hand.L"][2] > 0.1, "up, as the mouse went"
    for foot in ("foot.L", "foot.R"):
        assert far(after[foot], before[foot]) < 1e-3
    human.key("ctrl+z")
    assert all(far(place, before[bone]) < 1e-5 for bone, place in heads(human).items())
    assert not differences(human.state("undone")["goals"], state["goals"])


def test_escape_puts_everything_back(human: Window) -> None:
    before = heads(human)
    human.pull(human.inside.place_of_bone("forearm.L"), 60, -90)
    assert far(heads(human)["hand.L"], before["hand.L"]) > 0.05
    human.tap("Escape")
    human.release()
    assert all(far(place, before[bone]) < 1e-6 for bone, place in heads(human).items())


def test_keys_of_axes_work_in_it(human: Window) -> None:
    before = heads(human)
    human.pull(human.inside.place_of_bone("forearm.L"), 40, -60)
    human.tap("z")
    human.release()
    after = heads(human)
    # The head or the tail of the forearm, whichever was nearer to the mouse.
    steps = [[b - a for a, b in zip(before[end], after[end], strict=True)] for end in ("forearm.L", "hand.L")]
    aside, _forward, up = min(steps, key=lambda step: abs(step[0]))
    assert abs(aside) < 2e-3
    assert up > 0.05


def test_p_pins_the_selected_bone_and_it_holds(human: Window) -> None:
    human.click_at(*human.inside.place_of_bone("forearm.R"))
    assert human.inside.active_bone() == "forearm.R"
    human.tap("p")
    before = heads(human)
    human.pull(human.inside.place_of_bone("forearm.L"), 50, -50)
    human.release()
    after = heads(human)
    assert far(after["forearm.R"], before["forearm.R"]) < 1e-3
    assert far(after["hand.L"], before["hand.L"]) > 0.05
