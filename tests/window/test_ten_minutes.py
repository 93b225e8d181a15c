"""The guide's page "Ten minutes with a character", step by step: each step is a click, a drag or a key."""

from __future__ import annotations

import re

import pytest

from tests.window.driving import Window, differences
from tools.environments import ROOT

PAGE = ROOT / "docs" / "guide" / "ten_minutes.md"
FLIPPED = {"foot.L": "foot.R", "foot.R": "foot.L", "hand.L": "hand.R", "hand.R": "hand.L", "spine": "spine"}
"""Feet, hands and hips, and where they are in a flipped pose."""
MOST = 25
"""Steps from a fresh file with a character in Pose Mode to a baked walk."""
SEEN = 2e-3
"""Rounding allowed in places, in meters."""


class Steps:
    """The hands of somebody who follows the page; counts what they do."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.taken = 0

    def press(self, button: str, across: float = 0.5) -> None:
        """Click a button in the sidebar, at a share of its width."""
        self.taken += 1
        sidebar = self.window.session.call("result = rects()['UI']")
        self.window.click_at(*self.window.find(button, x=sidebar["x"] + round(across * sidebar["w"])))

    def key(self, keys: str) -> None:
        self.taken += 1
        self.window.key(keys)

    def look(self, keys: str, x: float) -> None:
        """Look along the X axis of the world, or against it."""
        self.key(keys)
        self.window.wait(lambda: self.window.inside.looks_along(x, 0.0, 0.0))
        self.window.rest()

    def drag(self, bone: str, share: float, x: int, y: int) -> None:
        self.taken += 1
        self.window.pull(self.window.inside.place_of_bone(bone, share), x, y)
        self.window.release()

    def go_to(self, frame: int) -> None:
        self.taken += 1
        self.window.click_at(*self.window.inside.place_of_frame(frame))


def places(window: Window) -> dict[str, list[float]]:
    heads = window.inside.heads()
    return {bone: list(heads[bone]) for bone in FLIPPED}


def flipped(found: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return places mirrored from left to right."""
    return {FLIPPED[bone]: [-x, y, z] for bone, (x, y, z) in found.items()}


@pytest.fixture
def character(window: Window) -> Window:
    """The window with a fresh file and a human metarig in Pose Mode."""
    window.inside.new_file()
    window.inside.draw_quickly()
    window.inside.metarig()
    window.show_tab()
    return window


def test_a_walk_from_a_fresh_file(character: Window) -> None:
    window, steps = character, Steps(character)
    steps.press("ik_addon.body_tool")
    steps.press("ik_addon.character_setup")
    rest = places(window)

    steps.look("KP_3", -1.0)
    steps.drag("foot.L", 0.25, -55, -8)
    steps.drag("forearm.L", 0.75, 22, 14)
    steps.look("ctrl+KP_3", 1.0)
    steps.drag("foot.R", 0.25, -55, -12)
    steps.drag("forearm.R", 0.75, 14, 14)
    steps.drag("spine", 0.35, 0, 10)
    window.shot("contact")
    contact = places(window)
    assert contact["foot.L"][1] < rest["foot.L"][1] - 0.1, "a step forward"
    assert contact["foot.R"][1] > rest["foot.R"][1] + 0.1, "the other foot is behind"
    hands = [window.inside.heads()[f"hand.{side}"] for side in "LR"]
    assert hands[0][1] > hands[1][1] + 0.05, "arms swing the other way"
    assert contact["spine"][2] < rest["spine"][2] - 0.02, "the hips sink"

    steps.press("ik_addon.select_controls", 0.25)
    steps.press("ik_addon.key_controls", 0.7)
    steps.key("ctrl+c")
    steps.go_to(13)
    assert window.inside.state()["frame"] == 13
    steps.key("ctrl+shift+v")
    assert not differences(places(window), flipped(contact), SEEN)
    steps.press("ik_addon.key_controls", 0.7)
    steps.go_to(25)
    steps.key("ctrl+v")
    steps.press("ik_addon.key_controls", 0.7)
    window.shot("walk")

    steps.press('chain_select(tip="forearm.L")', 0.3)
    steps.press("ik_addon.switch_ik_fk", 0.25)
    assert "from frame 25 on" in window.printed()
    before = window.state("keyed")
    steps.press("bpy.ops.ik_addon.bake")
    steps.key("Return")
    window.wait(lambda: not any(chain["enabled"] for chain in window.inside.state()["chains"].values()))
    window.wait(lambda: not window.inside.running())
    assert len(window.state("baked")["keys"]) > len(before["keys"])

    assert steps.taken == len(re.findall(r"^\d+\. ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) <= MOST
    for frame, pose in ((1, contact), (13, flipped(contact)), (25, contact)):
        window.inside.go_to(frame)
        window.rest()
        assert not differences(places(window), pose, SEEN), f"frame {frame}"
