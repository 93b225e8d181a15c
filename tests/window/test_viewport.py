"""Playback, the pie menu, the overlay, and saving and opening files in the window."""

from pathlib import Path

import numpy as np

from tests.window.driving import Window, differences, pixels


def test_playback_shows_the_poses_of_the_frames(spider: Window) -> None:
    spider.inside.record_playback()
    first = spider.inside.state()["frame"]
    spider.key("space")
    spider.wait(lambda: len(spider.inside.played()) > 8)
    spider.key("space")
    spider.wait(lambda: not spider.inside.is_playing())
    played = spider.inside.stop_recording()
    frames = [frame for frame, _pose in played]
    assert len(set(frames)) > 5
    assert frames != [first]
    for (frame, pose), again in zip(played, spider.inside.channels_on(frames), strict=True):
        assert not differences(pose, again), f"frame {frame}"
    spider.inside.go_to(frames[-1])
    assert spider.is_reached()


def test_the_pie_menu_opens_by_its_shortcut_and_works(arm: Window) -> None:
    before = arm.state("before")
    arm.key("shift+alt+i")
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
    view = window.rect("WINDOW")
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


# ---- nothing is left behind after reloading scripts, factory settings, and disabling the extension


def held(window: Window) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """The extension's handlers, and Blender's calls into it for a redraw and for a frame change."""
    window.rest()
    return window.inside.handlers(), window.inside.entries(False), window.inside.entries(True)


def follows(window: Window) -> bool:
    """Whether the arm follows its target on another frame and when it is moved."""
    window.inside.go_to(20)
    reached = window.is_reached()
    window.inside.move_goal("forearm", [-0.05, 0.0, 0.05])
    return reached and window.is_reached()


def test_reloading_scripts_duplicates_no_handlers(arm: Window) -> None:
    before = held(arm)
    handlers, drawn, framed = before
    assert handlers["frame_change_post"] > 0
    assert handlers["depsgraph_update_post"] > 0
    assert drawn["draw.py:draw_viewport"] == 1
    assert framed["handlers.py:_frame_change_post"] == 1
    for _ in range(2):
        arm.inside.start("script.reload")
        arm.rest()
        assert held(arm) == before
    assert follows(arm)
    arm.inside.start("ik_addon.solve")


def test_disabling_and_enabling_while_live_leaves_nothing_behind(arm: Window) -> None:
    before = held(arm)
    arm.inside.enable(False)
    assert held(arm) == ({}, {}, {})
    arm.inside.enable(True)
    assert held(arm) == before
    assert follows(arm)


def test_factory_settings_leave_nothing_behind(arm: Window) -> None:
    before = held(arm)
    arm.inside.factory_settings()
    arm.rest()
    assert not arm.inside.is_enabled()
    assert held(arm) == ({}, {}, {})
    arm.inside.enable(True)
    arm.open_sample("two_bone_arm", "forearm")
    assert held(arm) == before
    assert follows(arm)
