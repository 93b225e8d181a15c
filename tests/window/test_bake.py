"""Work on ranges of frames, such as Bake IK: the dialogs, the progress, cancelling with Esc, undo."""

from pathlib import Path
from typing import Any

import pytest

from tests.window.driving import ROUNDED, Window, differences

FRAMES = [1, 17, 60]


def is_running(window: Window, operator: str = "ik_addon.bake") -> bool:
    return operator.replace("ik_addon.", "IK_ADDON_OT_") in window.inside.running()


def assert_plays(window: Window, poses: list[Any], within: float) -> None:
    """Assert that `FRAMES` show these poses."""
    for frame, pose, again in zip(FRAMES, poses, window.inside.poses(FRAMES), strict=True):
        assert not differences(again, pose, within), f"frame {frame}"


def test_bake_writes_keys_that_play_like_live_solving(spider: Window) -> None:
    shown, before = spider.inside.poses(FRAMES), spider.state("before")
    spider.press("bpy.ops.ik_addon.bake")
    spider.shot("dialog")
    spider.tap("Return")
    spider.wait(lambda: spider.inside.state()["keys"] != before["keys"] and not is_running(spider))
    baked = spider.state("baked")
    assert not any(chain["enabled"] for chain in baked["chains"].values())
    legs = {path for path in baked["keys"] if "tibia" in path or "femur" in path}
    assert len(legs) == 2 * 8 * 4, "a quaternion for both bones of eight legs"
    assert all(len(baked["keys"][path]) == 120 for path in legs)
    assert not differences({p: k for p, k in baked["keys"].items() if p not in legs}, before["keys"]), "as they were"
    assert_plays(spider, shown, 1e-5)
    spider.assert_undone(before, baked)


def test_snapping_a_range_keeps_the_poses_and_is_one_undo_step(spider: Window) -> None:
    shown, before = spider.inside.poses(FRAMES), spider.state("before")
    spider.confirm("ik_addon.snap_target", chains="ALL", frame_range="SCENE", pose="SHOWN")
    spider.wait(lambda: not is_running(spider, "ik_addon.snap_target"))
    snapped = spider.state("snapped")
    assert all(chain["enabled"] for chain in snapped["chains"].values())
    assert_plays(spider, shown, 1e-4)
    spider.assert_undone(before, snapped)


def begin(window: Window, operator: str, frames: int = 60_000, **options: str) -> tuple[Any, Any]:
    """Begin work that takes long; return the state and the pose before."""
    window.inside.set_frames(1, frames)
    before, pose = window.state("before"), window.inside.pose()
    window.confirm(operator, **options)
    window.wait(lambda: is_running(window, operator) and "left" in str(window.inside.status_text()))
    return before, pose


@pytest.fixture
def figure(window: Window) -> Window:
    """The window with a character whose feet follow keyed targets."""
    window.open_sample("character", "shin.L")
    window.inside.key_targets(["shin.L", "shin.R"], 40)
    return window


def do(window: Window, operator: str) -> None:
    """Start an operator, confirm its dialog, and wait until it has finished."""
    before = window.inside.state()
    window.confirm(operator)
    window.wait(lambda: differences(window.inside.state(), before, ROUNDED) and not window.inside.running())


WORK = {
    "ik_addon.bake": "Baking IK: ",
    "ik_addon.snap_target": "Snapping targets: ",
    "ik_addon.apply_pose": "Applying the solved pose: ",
    "ik_addon.plant": "Locking feet: ",
}
"""What the status bar says by operator."""


@pytest.mark.parametrize("operator", WORK)
def test_escape_during_the_work_changes_nothing(request: pytest.FixtureRequest, window: Window, operator: str) -> None:
    if operator == "ik_addon.plant":
        request.getfixturevalue("figure")
        do(window, "ik_addon.find_contacts")
        before, pose = begin(window, operator, 20_000)
    else:
        request.getfixturevalue("spider")
        ranges = {} if operator == "ik_addon.bake" else {"chains": "ALL", "frame_range": "SCENE"}
        before, pose = begin(window, operator, **ranges)
    assert window.inside.status_text().startswith(WORK[operator])
    assert window.inside.state()["keys"] == before["keys"]
    window.shot("progress")
    assert is_running(window, operator), "it is long enough to be interrupted"
    window.tap("Escape")
    window.wait(lambda: not is_running(window, operator))
    assert not differences(window.state("cancelled"), before)
    assert not differences(window.inside.pose(), pose)
    assert window.inside.status_text() is None
    if operator != "ik_addon.plant":
        window.inside.go_to(50)
        assert window.is_reached(), "live goes on"


@pytest.mark.parametrize("how", ["saved", "disabled"])
def test_saving_or_disabling_during_a_bake_puts_it_back(spider: Window, scratch: Path, how: str) -> None:
    before, pose = begin(spider, "ik_addon.bake")
    path = str(scratch / "baked.blend")
    if how == "saved":
        spider.inside.save_file(path)
    else:
        spider.inside.enable(False)
        spider.inside.enable(True)
        spider.inside.show_sidebar("IK")
    spider.move(*spider.middle())
    spider.wait(lambda: not is_running(spider))
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
    before = spider.session.call("result = rects().get('UI')")
    spider.confirm("ik_addon.bake", frame_range="CUSTOM", frame_start=1, frame_end=20)
    spider.wait(lambda: not any(chain["enabled"] for chain in spider.inside.state()["chains"].values()))
    spider.wait(lambda: not is_running(spider))
    spider.rest()
    assert spider.session.call("result = rects().get('UI')") == before
    assert not spider.inside.has_tab_in_front("IK")


# ---- feet


def test_contacts_are_found_and_planted_in_one_step_each(figure: Window) -> None:
    before = figure.state("before")
    do(figure, "ik_addon.find_contacts")
    found = figure.state("found")
    assert {path for path in found["keys"] if "ik_addon.contact" in path}
    do(figure, "ik_addon.plant")
    planted = figure.state("planted")
    assert "Locked" in figure.printed()
    figure.assert_undone(found)
    figure.assert_undone(before)
    figure.key("ctrl+shift+z")
    figure.key("ctrl+shift+z")
    assert not differences(figure.state("redone"), planted)


def test_the_panel_marks_contacts(figure: Window) -> None:
    figure.inside.open_panel("VIEW3D_PT_ik_addon_clip")
    figure.press("ik_addon.mark_contact")
    assert {path for path in figure.state("marked")["keys"] if "ik_addon.contact" in path}
    figure.key("ctrl+z")
    assert not {path for path in figure.state("undone")["keys"] if "ik_addon.contact" in path}


def test_a_skeleton_is_baked_in_one_step(figure: Window) -> None:
    before = figure.state("before")
    do(figure, "ik_addon.bake_skeleton")
    assert "which is selected for export" in figure.printed()
    assert differences(figure.state("baked"), before)
    figure.assert_undone(before)
