"""The extension works, and leaves nothing behind, after reloading scripts, factory settings, and disabling it."""

from __future__ import annotations

from tests.window.driving import Window


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
    arm.shot("reloaded")


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
    arm.shot("factory")
    assert not arm.inside.is_enabled()
    assert held(arm) == ({}, {}, {})
    arm.inside.enable(True)
    arm.open_sample("two_bone_arm", "forearm")
    assert held(arm) == before
    assert follows(arm)
