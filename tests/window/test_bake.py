"""Bake IK from its button: the dialog, the progress, cancelling with Esc, undo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.window.driving import Window, differences

BAKE = "IK_ADDON_OT_bake"


def confirm(window: Window) -> None:
    """Press Bake IK, and Bake in its dialog."""
    window.press("bpy.ops.ik_addon.bake")
    window.rest()
    window.shot("dialog")
    window.tap("Return")


def test_bake_writes_keys_that_play_like_live_solving(spider: Window) -> None:
    frames = [1, 17, 60]
    shown = spider.inside.poses(frames)
    before = spider.state("before")
    confirm(spider)
    spider.wait(lambda: spider.inside.state()["keys"] != before["keys"] and not is_baking(spider))
    baked = spider.state("baked")
    assert not any(chain["enabled"] for chain in baked["chains"].values())
    legs = {path for path in baked["keys"] if "tibia" in path or "femur" in path}
    assert len(legs) == 2 * 8 * 4, "a quaternion for both bones of eight legs"
    assert all(len(baked["keys"][path]) == 120 for path in legs)
    assert not differences({p: k for p, k in baked["keys"].items() if p not in legs}, before["keys"]), "as they were"
    for frame, pose, again in zip(frames, shown, spider.inside.poses(frames), strict=True):
        assert not differences(again, pose, 1e-5), f"frame {frame}"
    spider.assert_undone(before, baked)


def is_baking(window: Window) -> bool:
    return BAKE in window.inside.running()


def begin(spider: Window) -> tuple[Any, Any]:
    """Begin a bake that takes long; return the state and the pose before."""
    spider.inside.set_frames(1, 60_000)
    before, pose = spider.state("before"), spider.inside.pose()
    confirm(spider)
    spider.wait(lambda: is_baking(spider) and "left" in str(spider.inside.status_text()))
    return before, pose


def test_bake_cancelled_by_escape_changes_nothing(spider: Window) -> None:
    before, pose = begin(spider)
    assert spider.inside.status_text().startswith("Baking IK: ")
    assert spider.inside.state()["keys"] == before["keys"]
    spider.shot("progress")
    assert is_baking(spider), "it is long enough to be interrupted"
    spider.tap("Escape")
    spider.wait(lambda: not is_baking(spider))
    assert not differences(spider.state("cancelled"), before)
    assert not differences(spider.inside.pose(), pose)
    assert spider.inside.status_text() is None
    spider.inside.go_to(50)
    assert spider.is_reached(), "live goes on"


@pytest.mark.parametrize("how", ["saved", "disabled"])
def test_saving_or_disabling_during_a_bake_puts_it_back(spider: Window, scratch: Path, how: str) -> None:
    before, pose = begin(spider)
    path = str(scratch / "baked.blend")
    if how == "saved":
        spider.inside.save_file(path)
    else:
        spider.inside.enable(False)
        spider.inside.enable(True)
        spider.inside.show_sidebar("IK")
    spider.move(*spider.middle())
    spider.wait(lambda: not is_baking(spider))
    assert spider.inside.status_text() is None
    assert not differences(spider.state(how), before)
    assert not differences(spider.inside.pose(), pose, 1e-5)
    if how == "saved":
        spider.inside.open_file(path)
        assert not differences(spider.state("opened"), before)


@pytest.mark.parametrize("tab", ["Item", ""])
def test_a_bake_leaves_the_sidebar_as_it_is(spider: Window, tab: str) -> None:
    spider.inside.show_sidebar(tab)
    spider.rest()
    spider.move(*spider.middle())
    before = spider.session.call("result = rects().get('UI')")
    spider.inside.start("ik_addon.bake", {"frame_range": "CUSTOM", "frame_start": 1, "frame_end": 20})
    spider.rest()
    spider.tap("Return")
    spider.wait(
        lambda: not is_baking(spider) and not any(c["enabled"] for c in spider.inside.state()["chains"].values())
    )
    spider.rest()
    spider.shot("baked")
    assert spider.session.call("result = rects().get('UI')") == before
    assert not spider.inside.has_tab_in_front("IK")
