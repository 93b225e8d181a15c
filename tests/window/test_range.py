"""Drags that reach over a range of frames, with a real mouse."""

from typing import Any

import pytest

from tests.window.driving import Window, differences
from tests.window.test_drag import DRAG
from tests.window.test_edits import begin
from tests.window.test_posing import GRAB, WHEEL_DOWN, WHEEL_UP, human, wheel

__all__ = ["human"]
LAST = 40
NOW = LAST // 2
TAIL = "tentacle.08"
"""A bone in the middle of a tail: an edit of it becomes FK."""


def moved(before: dict[str, list[list[float]]], after: dict[str, list[list[float]]]) -> list[int]:
    """Return the frames of keys that differ."""
    return sorted({round(key[0]) for name, own in after.items() for key in own if key not in before[name]})


def shift_wheel(window: Window, button: int, times: int) -> None:
    with window.holding("shift"):
        wheel(window, button, times)


def assert_keys_undone(window: Window, before: Any, after: Any) -> None:
    """Assert that undo and redo lead to these keys of the target."""
    window.key("ctrl+z")
    assert window.inside.keys_of("Target") == before
    window.key("ctrl+shift+z")
    assert window.inside.keys_of("Target") == after


@pytest.fixture
def clip(arm: Window) -> Window:
    """The window with a live arm whose target has keys on frames 1 to 40, on frame 20."""
    arm.inside.set_range(4)
    arm.inside.set_live(True)
    arm.inside.key_targets(["forearm"], LAST)
    return arm


def test_a_dragged_target_takes_its_keys_along(clip: Window) -> None:
    before, state = clip.inside.keys_of("Target"), clip.state("before")
    clip.grab(DRAG, -60, -50)
    clip.tap("Escape")
    assert clip.inside.keys_of("Target") == before
    assert not differences(clip.state("cancelled"), state)
    clip.grab(DRAG, -60, -50)
    shift_wheel(clip, WHEEL_DOWN, 3)
    clip.tap("Return")
    after = clip.inside.keys_of("Target")
    assert moved(before, after) == list(range(NOW - 6, NOW + 7)), "the wheel made it 7"
    assert_keys_undone(clip, before, after)
    clip.grab(DRAG, 30, 40)
    clip.tap("Return")
    clip.inside.adjust_range(3)
    assert moved(after, clip.inside.keys_of("Target")) == list(range(NOW - 2, NOW + 3))


@pytest.mark.parametrize("key", ["g", "r"])
def test_a_solved_tip_moved_by_hand_takes_the_keys_along(clip: Window, key: str) -> None:
    before = clip.inside.keys_of("Target")
    begin(clip, "forearm", key)
    clip.tap("Escape")
    assert clip.inside.keys_of("Target") == before
    begin(clip, "forearm", key)
    clip.tap("Return")
    after = clip.inside.keys_of("Target")
    assert moved(before, after) == list(range(NOW - 3, NOW + 4))
    for _ in range(2):
        assert_keys_undone(clip, before, after)


@pytest.mark.parametrize("key", ["g", "r"])
def test_the_range_of_a_transform_can_be_adjusted(clip: Window, key: str) -> None:
    before = clip.inside.keys_of("Target")
    begin(clip, "forearm", key)
    clip.tap("Return")
    first = clip.inside.keys_of("Target")
    assert moved(before, first) == list(range(NOW - 3, NOW + 4))
    clip.inside.adjust_range(6, "LINEAR")
    clip.wait(lambda: moved(before, clip.inside.keys_of("Target")) == list(range(NOW - 5, NOW + 6)))
    after = clip.inside.keys_of("Target")
    at = {frame: [round(key[0]) for key in before["location[0]"]].index(frame) for frame in (NOW, NOW + 3)}
    values = [[keys["location[0]"][place][1] for place in at.values()] for keys in (before, first, after)]
    whole, half = (values[2][i] - values[0][i] for i in range(2))
    assert whole == pytest.approx(values[1][0] - values[0][0], abs=1e-5), "the current frame stays as dragged"
    assert half == pytest.approx(0.5 * whole, rel=0.01), "with the falloff that was chosen"


def test_a_dragged_body_takes_its_keys_along(human: Window) -> None:
    human.inside.set_range(0)
    human.inside.key_pose(LAST)
    before = human.inside.keys_of()
    human.pull(human.inside.place_of_bone("forearm.L"), 60, -90)
    shift_wheel(human, WHEEL_DOWN, 5)
    shift_wheel(human, WHEEL_UP, 1)
    human.release()
    assert human.inside.tool_setting(GRAB, "length") == 0, "Shift and the wheel leave the number of bones alone"
    assert moved(before, human.inside.keys_of()) == list(range(NOW - 3, NOW + 4))
    human.key("ctrl+z")
    assert human.inside.keys_of() == before
    human.pull(human.inside.place_of_bone("forearm.L"), 60, -90)
    human.tap("Escape")
    human.release()
    assert human.inside.keys_of() == before
    human.drag(human.inside.place_of_bone("forearm.L"), 60, -90)
    human.inside.adjust_range(2)
    assert moved(before, human.inside.keys_of()) == list(range(NOW - 1, NOW + 2))


@pytest.fixture
def tail(window: Window) -> Window:
    """The window with a live tail whose bones have keys on frames 1 to 40, on frame 20."""
    window.open_sample("tentacle", TAIL)
    window.inside.set_live(False)
    window.inside.key_pose(LAST)
    window.inside.set_range(4)
    window.inside.set_live(True)
    return window


@pytest.mark.parametrize("key", ["g", "r"])
def test_escape_restores_an_edit_that_becomes_fk(tail: Window, key: str) -> None:
    before = tail.state("before")
    begin(tail, TAIL, key)
    assert moved(before["keys"], tail.inside.keys_of()) == list(range(NOW - 3, NOW + 4))
    tail.tap("Escape")
    assert not differences(tail.state("cancelled"), before)
    begin(tail, TAIL, key)
    tail.tap("Return")
    after = tail.inside.keys_of()
    assert moved(before["keys"], after) == list(range(NOW - 3, NOW + 4))
    tail.key("ctrl+z")
    assert tail.inside.keys_of() == before["keys"]
