"""Snapping a range of frames: the dialog, the progress, cancelling with Esc, undo."""

from __future__ import annotations

import pytest

from tests.window.driving import Window, differences

APPLY = "IK_ADDON_OT_apply_pose"
SNAP = "IK_ADDON_OT_snap_target"


@pytest.fixture
def spider(window: Window) -> Window:
    """The window with the spider sample: eight legs and a keyed body."""
    window.open_sample("spider", "tibia.L.1")
    return window


def confirm(window: Window) -> None:
    """Snap a range of frames and confirm the dialog."""
    window.move(*window.middle())
    window.inside.start("ik_addon.snap_target", {"chains": "ALL", "pose": "SHOWN", "frame_range": "SCENE"})
    window.rest()
    window.shot("dialog")
    window.tap("Return")


def is_snapping(window: Window) -> bool:
    return SNAP in window.inside.running()


def test_snapping_a_range_keeps_the_poses_and_is_one_undo_step(spider: Window) -> None:
    frames = [1, 17, 60]
    shown = spider.inside.poses(frames)
    before = spider.state("before")
    confirm(spider)
    spider.rest()
    spider.wait(lambda: not is_snapping(spider))
    snapped = spider.state("snapped")
    assert all(chain["enabled"] for chain in snapped["chains"].values())
    for frame, pose, again in zip(frames, shown, spider.inside.poses(frames), strict=True):
        assert not differences(again, pose, 1e-4), f"frame {frame}"
    spider.key("ctrl+z")
    assert not differences(spider.state("undone"), before)
    spider.key("ctrl+shift+z")
    assert not differences(spider.state("redone"), snapped)


def test_snapping_cancelled_by_escape_changes_nothing(spider: Window) -> None:
    spider.inside.set_frames(1, 20_000)
    before, pose = spider.state("before"), spider.inside.pose()
    confirm(spider)
    spider.wait(lambda: is_snapping(spider))
    spider.rest()
    spider.shot("progress")
    assert is_snapping(spider), "it is long enough to be interrupted"
    spider.tap("Escape")
    spider.wait(lambda: not is_snapping(spider))
    assert not differences(spider.state("cancelled"), before)
    assert not differences(spider.inside.pose(), pose)
    spider.inside.go_to(50)
    assert spider.is_reached(), "live goes on"


def test_applying_a_range_cancelled_by_escape_changes_nothing(spider: Window) -> None:
    spider.inside.set_frames(1, 20_000)
    before, pose = spider.state("before"), spider.inside.pose()
    spider.move(*spider.middle())
    spider.inside.start("ik_addon.apply_pose", {"chains": "ALL", "frame_range": "SCENE"})
    spider.rest()
    spider.tap("Return")
    spider.wait(lambda: "left" in str(spider.inside.status_text()))
    spider.rest()
    spider.shot("progress")
    assert spider.inside.status_text().startswith("Applying the solved pose: ")
    spider.tap("Escape")
    spider.wait(lambda: APPLY not in spider.inside.running())
    assert not differences(spider.state("cancelled"), before)
    assert not differences(spider.inside.pose(), pose)
