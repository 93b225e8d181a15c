"""While the animation plays, panels find out little, however large the rig: Blender draws them on every frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy
import pytest

from tests import rigs
from tests.panels import drawn, sidebar
from tests.reliability.states import activate

if TYPE_CHECKING:
    from tests.conftest import Addon

__all__ = ["sidebar"]


def play(on: bool) -> None:
    if bpy.context.screen.is_animation_playing != on:
        bpy.ops.screen.animation_play()
    assert bpy.context.screen.is_animation_playing == on


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
    return ob


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
    monkeypatch.setattr(addon.module("ui.panel"), "PATIENCE", -1.0)
    assert fault in " ".join(drawn())
    monkeypatch.undo()
    with_chain = len(drawn())
    activate(ob, "x0")
    assert len(drawn()) < with_chain, "no chain is active"
    play(False)
