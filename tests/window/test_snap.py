"""Snapping a range of frames: the dialog, the progress, cancelling with Esc, undo."""

from __future__ import annotations

import pytest

from tests.window.driving import Window, differences

SNAP = "IK_ADDON_OT_snap_target"


def confirm(window: Window, operator: str, **options: str) -> None:
    """Start an operator for a range of frames and confirm its dialog."""
    window.move(*window.middle())
    window.inside.start(operator, {"chains": "ALL", "frame_range": "SCENE", **options})
    window.rest()
    window.shot("dialog")
    window.tap("Return")


def test_snapping_a_range_keeps_the_poses_and_is_one_undo_step(spider: Window) -> None:
    frames = [1, 17, 60]
    shown = spider.inside.poses(frames)
    before = spider.state("before")
    confirm(spider, "ik_addon.snap_target", pose="SHOWN")
    spider.rest()
    spider.wait(lambda: SNAP not in spider.inside.running())
    snapped = spider.state("snapped")
    assert all(chain["enabled"] for chain in snapped["chains"].values())
    for frame, pose, again in zip(frames, shown, spider.inside.poses(frames), strict=True):
        assert not differences(again, pose, 1e-4), f"frame {frame}"
    spider.assert_undone(before, snapped)


@pytest.mark.parametrize(
    ("operator", "doing"),
    [(SNAP, "Snapping targets: "), ("IK_ADDON_OT_apply_pose", "Applying the solved pose: ")],
    ids=["snap", "apply"],
)
def test_escape_during_the_work_changes_nothing(spider: Window, operator: str, doing: str) -> None:
    spider.inside.set_frames(1, 60_000)
    before, pose = spider.state("before"), spider.inside.pose()
    confirm(spider, operator.replace("IK_ADDON_OT_", "ik_addon."))
    spider.wait(lambda: "left" in str(spider.inside.status_text()))
    spider.rest()
    spider.shot("progress")
    assert operator in spider.inside.running(), "it is long enough to be interrupted"
    assert spider.inside.status_text().startswith(doing)
    spider.tap("Escape")
    spider.wait(lambda: operator not in spider.inside.running())
    assert not differences(spider.state("cancelled"), before)
    assert not differences(spider.inside.pose(), pose)
    spider.inside.go_to(50)
    assert spider.is_reached(), "live goes on"
