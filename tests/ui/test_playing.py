"""While the animation plays, panels find out little, however large the rig: Blender draws them on every frame."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import bpy
import pytest

from tests import rigs
from tests.reliability.states import activate
from tools import blender

if TYPE_CHECKING:
    from tests.conftest import Addon

PANELS = ("VIEW3D_PT_ik_addon", "VIEW3D_PT_ik_addon_chain", "VIEW3D_PT_ik_addon_bend")


class Layout:
    """Takes what panels draw, and notes the texts: without a window there is no other layout."""

    def __init__(self, texts: list[str]) -> None:
        self.__dict__["texts"] = texts

    def __getattr__(self, _name: str) -> Any:
        def draw(*_positional: object, text: str = "", **_named: object) -> Layout:
            if text:
                self.texts.append(text)
            return Layout(self.texts)

        return draw

    def __setattr__(self, name: str, value: object) -> None:
        pass


class Panel:
    """Stands for an instance of a panel, which only Blender makes."""

    def __init__(self, cls: Any, texts: list[str]) -> None:
        self._cls, self.layout = cls, Layout(texts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cls, name).__get__(self)


@pytest.fixture
def sidebar() -> Iterator[None]:
    """Run the test in the sidebar of a viewport."""
    window = bpy.context.window_manager.windows[0]
    area = window.screen.areas[0]
    area.type = "VIEW_3D"
    region = next(region for region in area.regions if region.type == "UI")
    with bpy.context.temp_override(window=window, area=area, region=region):
        yield


def play(on: bool) -> None:
    if bpy.context.screen.is_animation_playing != on:
        bpy.ops.screen.animation_play()
    assert bpy.context.screen.is_animation_playing == on


def drawn() -> list[str]:
    """Draw the panels as on a frame, and return their texts."""
    texts: list[str] = []
    for name in PANELS:
        cls: Any = getattr(bpy.types, name)
        if not hasattr(cls, "poll") or cls.poll(bpy.context):
            Panel(cls, texts).draw(bpy.context)
    return texts


def body(bones: int) -> bpy.types.Object:
    """Return a live arm in an armature with more bones, active in Pose Mode."""
    ob, target = rigs.arm()
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 50: (-0.5, 0.9, 0.8)})
    with rigs.edit_mode(ob) as made:
        for number in range(bones):
            bone = made.new(f"x{number}")
            bone.head, bone.tail = (0.1 * number, 3.0, 0.0), (0.1 * number, 3.0, 0.5)
    for bone in list(ob.pose.bones)[2:]:
        bone.keyframe_insert("rotation_quaternion", frame=1)
    rigs.go_live(ob)
    activate(ob, "lower")
    return ob


def calls(addon: Addon) -> int:
    """Return how many functions of the extension are called to draw the panels on the next frame."""
    bpy.context.scene.frame_set(bpy.context.scene.frame_current + 1)
    count = 0

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call" and str(frame.f_globals.get("__name__", "")).startswith(addon.package)

    sys.setprofile(note)
    try:
        drawn()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.usefixtures("sidebar")
def test_in_playback_a_large_rig_is_drawn_with_as_little_work_as_a_small_one(addon: Addon) -> None:
    found = []
    for bones in (2, 400):
        bpy.context.scene.frame_set(1)
        body(bones)
        play(False)
        still = calls(addon)
        play(True)
        calls(addon)  # finds out what is kept from here on
        found.append(calls(addon))
        assert found[-1] < still / 2
    assert found[0] == found[1]
    play(False)


@pytest.mark.usefixtures("sidebar")
def test_a_verdict_never_outlives_its_frame(addon: Addon) -> None:
    ob = body(2)
    assert "Reached" in drawn()
    play(True)
    bpy.data.objects["Target"].animation_data_clear()
    bpy.data.objects["Target"].location = (0.0, 0.0, 9.0)
    bpy.context.scene.frame_set(3)
    assert not any("Reached" in text or "%" in text for text in drawn())
    play(False)
    assert any(text.endswith(("%", "too far", "of its length")) for text in drawn())
    assert ob.ik_addon.live


@pytest.mark.usefixtures("sidebar")
def test_in_playback_a_fault_shows_soon_and_another_chain_at_once(
    addon: Addon, monkeypatch: pytest.MonkeyPatch
) -> None:
    ob = body(2)
    fault = "No target. Pick an object for the tip to follow"
    play(True)
    drawn()
    ob.pose.bones["lower"].ik_addon.target = None
    assert fault not in " ".join(drawn())
    monkeypatch.setattr(addon.module("ui.playing"), "PATIENCE", -1.0)
    assert fault in " ".join(drawn())
    monkeypatch.undo()
    with_chain = len(drawn())
    activate(ob, "x0")
    assert len(drawn()) < with_chain, "no chain is active"
    play(False)


@pytest.mark.usefixtures("sidebar")
def test_what_takes_long_is_found_once_while_a_target_is_dragged_and_anew_after_that(
    addon: Addon, monkeypatch: pytest.MonkeyPatch
) -> None:
    ob, bend_side, playing = body(2), addon.module("chains.bend_side"), addon.module("ui.playing")
    bpy.ops.ik_addon.find_bend_side()
    asked: list[str] = []

    def count(name: str) -> None:
        ask: Any = getattr(bend_side, name)

        def asks(*about: object) -> object:
            asked.append(name)
            return ask(*about)

        monkeypatch.setattr(bend_side, name, asks)

    count("hyperextension")
    count("is_from_roll")
    monkeypatch.setattr(playing, "_kept", {})
    for _ in range(3):
        bpy.data.objects["Target"].location.x += 0.01
        bpy.context.view_layer.update()
        drawn()
    assert sorted(asked) == ["hyperextension", "is_from_roll"]
    assert bpy.app.timers.is_registered(playing._draw_again), "the sidebar is drawn once more"
    ob.pose.bones["lower"].ik_addon.bend_side = (0.0, 0.0, 1.0)
    drawn()
    assert len(asked) == 4, "another side is looked at at once"
    monkeypatch.setattr(playing, "PATIENCE", -1.0)
    drawn()
    assert len(asked) == 6
    blender.disable()
    try:
        assert not bpy.app.timers.is_registered(playing._draw_again)
    finally:
        blender.enable()
