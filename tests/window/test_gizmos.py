"""Targets and poles in Pose Mode, dragged by their rings, arrows and dials with a real mouse."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.window.driving import SAMPLES, Window, differences

MACRO = "IK_ADDON_OT_goal_move"


@pytest.fixture
def tool(arm: Window) -> Iterator[Window]:
    """The window with the arm, with the tool selected."""
    arm.inside.choose_tool("ik_addon.goals")
    yield arm
    arm.inside.choose_tool("builtin.select_box")


def moved(window: Window, before: dict[str, list[float]], name: str) -> list[bool]:
    """For each axis, whether a goal was moved along it."""
    return [abs(a - b) > 1e-6 for a, b in zip(window.state(f"{name}-now")["goals"][name], before[name], strict=True)]


def test_a_target_is_dragged_by_its_ring(arm: Window) -> None:
    before = arm.state("before")
    arm.pull(arm.inside.place_of("Target"), -60, -50)
    assert MACRO in arm.inside.running()
    assert arm.is_reached(), "the tip follows while the mouse moves"
    arm.release()
    assert MACRO not in arm.inside.running()
    after = arm.state("after")
    x, _y, z = (new - old for new, old in zip(after["goals"]["Target"], before["goals"]["Target"], strict=True))
    assert x < 0.0 < z, "to the left and up, as the mouse went"
    assert after["goals"]["Pole"] == before["goals"]["Pole"]
    arm.assert_undone(before)


def test_a_drag_of_a_pole_by_its_ring_is_cancelled(arm: Window) -> None:
    before = arm.state("before")
    arm.pull(arm.inside.place_of("Pole"), -40, 30)
    during = arm.state("during")
    assert during["goals"]["Pole"] != before["goals"]["Pole"]
    assert during["goals"]["Target"] == before["goals"]["Target"]
    arm.tap("Escape")
    arm.release()
    assert not differences(arm.state("cancelled"), before)


def test_dragging_a_ring_makes_its_chain_active(spider: Window) -> None:
    before = spider.state("before")
    name = before["chains"]["tibia.L.3"]["target"]
    spider.drag(spider.inside.place_of(name), -25, -25)
    assert spider.inside.active_bone() == "tibia.L.3"
    after = spider.state("after")
    assert [goal for goal, place in after["goals"].items() if place != before["goals"][goal]] == [name]


def test_rings_of_every_armature_in_pose_mode_can_be_dragged(arm: Window) -> None:
    other, target = arm.inside.add_rig_beside(-0.35)
    before, place = arm.state("before")["goals"], arm.inside.place_of(target)
    arm.pull(place, -20, -30)
    assert MACRO in arm.inside.running()
    arm.release()
    assert arm.inside.active_object() == other
    assert arm.state("after")["goals"] == before, "those of the first armature stay"
    assert arm.inside.place_of(target) != place


def test_arrows_of_the_tool_move_along_an_axis(tool: Window) -> None:
    before = tool.state("before")["goals"]
    x, y = tool.inside.place_of("Target")
    tool.drag((x, y - 45), -60, -50)
    assert moved(tool, before, "Target") == [False, False, True]
    assert tool.is_reached()


def test_arrows_are_gone_once_another_tool_is_active(tool: Window) -> None:
    tool.inside.open_file(str(SAMPLES / "two_bone_arm.blend"), "POSE", True)
    assert tool.inside.active_tool() != "ik_addon.goals", "the file brings its own tool"
    before = tool.state("before")["goals"]
    x, y = tool.inside.place_of("Target")
    tool.pull((x, y - 45), -60, -50)
    assert MACRO not in tool.inside.running()
    tool.release()
    assert tool.state("after")["goals"] == before


HAND = "IK Target forearm.L"
DIAL = 29
"""Offset in pixels, right and down from a target, of a point on its dial that faces the view."""


@pytest.fixture
def turning(tool: Window) -> Window:
    """The window with the tool and a character whose hand takes the active target's orientation."""
    tool.open_sample("character", "forearm.L")
    tool.inside.choose_tool("ik_addon.goals")
    return tool


def turned(window: Window, before: list[float]) -> list[float]:
    """Rotation of the target since `before`: axis times angle in degrees."""
    w, *axis = window.inside.rotation_since(HAND, before)
    size = math.hypot(*axis)
    angle = math.degrees(2.0 * math.atan2(size, w))
    return [angle * part / size for part in axis] if size else [0.0, 0.0, 0.0]


def pull_dial(window: Window, name: str = HAND) -> tuple[Any, list[float]]:
    """Drag the dial of a target that faces the view; return the state and the target's rotation before."""
    before, rotation = window.state("before"), window.inside.goal_rotation(name)
    x, y = window.inside.place_of(name)
    window.pull((x + DIAL, y + DIAL), -2 * DIAL, 0)
    return before, rotation


def test_a_dial_of_the_tool_rotates_the_target_and_the_hand(turning: Window) -> None:
    before, rotation = pull_dial(turning)
    assert "IK_ADDON_OT_goal_turn" in turning.inside.running()
    during = turning.inside.pose()["hand.L"]
    turning.release()
    after = turning.state("after")
    x, y, z = turned(turning, rotation)
    assert abs(y) == pytest.approx(90.0, abs=15.0), "round the dial, as far as the mouse went"
    assert (x, z) == pytest.approx((0.0, 0.0), abs=1e-3)
    assert not differences(after["goals"], before["goals"])
    assert turning.inside.pose()["hand.L"] == pytest.approx(during, abs=1e-4)
    assert turning.is_reached()
    turning.assert_undone(before)
    assert turning.inside.goal_rotation(HAND) == rotation


def test_a_dial_takes_typed_angles_and_axes_and_can_be_cancelled(turning: Window) -> None:
    before, rotation = pull_dial(turning)
    turning.tap("z", "3", "0")
    assert turned(turning, rotation) == pytest.approx([0.0, 0.0, 30.0], abs=1e-3)
    turning.tap("Escape")
    turning.release()
    assert not differences(turning.state("cancelled"), before)
    assert turning.inside.goal_rotation(HAND) == rotation


def test_only_chains_that_take_an_orientation_have_dials(tool: Window) -> None:
    before, rotation = pull_dial(tool, "Target")
    assert not [name for name in tool.inside.running() if name.startswith("IK_ADDON")]
    tool.release()
    assert tool.state("after")["goals"] == before["goals"]
    assert tool.inside.goal_rotation("Target") == rotation


def test_keys_work_while_a_ring_is_dragged(arm: Window) -> None:
    before = arm.state("before")["goals"]
    arm.pull(arm.inside.place_of("Target"), -60, -50)
    arm.tap("x")
    arm.release()
    assert moved(arm, before, "Target") == [True, False, False]


def test_bones_can_be_selected_beside_the_rings(tool: Window) -> None:
    tool.inside.activate("forearm")
    before = tool.state("before")
    tool.click_at(*tool.inside.place_of_bone("upper_arm"))
    assert tool.inside.active_bone() == "upper_arm"
    assert tool.state("after")["goals"] == before["goals"]
