"""Playback, the pie menu, the overlay, and saving and opening files in the window."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.window.driving import Window, differences, pixels


def test_playback_shows_the_poses_of_the_frames(window: Window) -> None:
    window.open_sample("spider", "tibia.L.1")
    window.inside.record_playback()
    first = window.inside.state()["frame"]
    window.key("space")
    window.wait(lambda: len(window.inside.played()) > 8)
    window.shot("playing")
    window.key("space")
    window.wait(lambda: not window.inside.is_playing())
    played = window.inside.stop_recording()
    frames = [frame for frame, _pose in played]
    assert len(set(frames)) > 5
    assert frames != [first]
    for (frame, pose), again in zip(played, window.inside.channels_on(frames), strict=True):
        assert not differences(pose, again), f"frame {frame}"
    window.inside.go_to(frames[-1])
    assert window.is_reached()


def test_the_pie_menu_opens_by_its_shortcut_and_works(arm: Window) -> None:
    assert arm.inside.keys_taken() == []
    before = arm.state("before")
    arm.key("shift+alt+i")
    arm.shot("pie")
    arm.tap("1")  # by its place on the numpad
    assert arm.state("switched")["chains"]["forearm"]["influence"] == 0.0
    arm.assert_undone(before)


def test_the_overlay_is_shown_and_turned_off(arm: Window) -> None:
    assert green(arm, "shown") > 300, "a line through the arm"
    assert arm.inside.overlay()
    arm.inside.set_overlay(False)
    arm.rest()
    assert green(arm, "hidden") < 30
    arm.inside.set_overlay(True)
    arm.rest()
    assert green(arm, "shown-again") > 300


def green(window: Window, name: str) -> int:
    """Number of pixels in the left half of the viewport in the color of a chain that reached its target."""
    window.move(*window.middle())
    view = window.session.call("result = rects()['WINDOW']")
    picture = pixels(window.shot(name, f"{view['w'] // 2}x{view['h']}+{view['x']}+{view['y']}"))
    red, greens, blue = picture.T
    return int(np.count_nonzero((greens > red + 60) & (greens > blue + 60)))


def test_a_saved_file_opens_unchanged_and_stays_live(arm: Window, scratch: Path) -> None:
    saved = str(scratch / "saved.blend")
    arm.inside.move_goal("forearm", [-0.1, 0.0, 0.1])
    before, pose = arm.state("before"), arm.inside.pose()
    arm.inside.save_file(saved)
    arm.inside.new_file()
    arm.rest()
    arm.inside.open_file(saved)
    arm.show_tab()
    assert not differences(arm.state("opened"), before, 1e-6)
    assert not differences(arm.inside.pose(), pose, 1e-5)
    arm.inside.move_goal("forearm", [0.0, 0.1, 0.0])
    assert arm.is_reached(), "live goes on"
