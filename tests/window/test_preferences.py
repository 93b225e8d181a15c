"""The preferences as users see and use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.window.driving import Window


@pytest.fixture
def fresh(window: Window) -> Iterator[Window]:
    """The window with a metarig; preferences are reset afterwards."""
    window.open_metarig()
    yield window
    window.inside.reset_preferences()


def test_the_preferences_show_all_shortcuts(fresh: Window) -> None:
    fresh.inside.show_preferences()
    fresh.rest()
    fresh.shot("theme")
    fresh.inside.prefer({"use_theme": False})
    fresh.rest()
    fresh.shot("colors")
    assert fresh.inside.keys_shown() == [
        "wm.call_menu_pie",
        "ik_addon.grab",
        "ik_addon.copy_pose",
        "ik_addon.chain_add",
        "ik_addon.drag_target",
        "ik_addon.solve",
        "ik_addon.snap_target",
        "ik_addon.bake",
    ]


def test_a_removed_shortcut_can_be_restored(fresh: Window) -> None:
    assert fresh.inside.has_all_keys()
    fresh.inside.remove_key("ik_addon.bake")
    assert not fresh.inside.has_all_keys()
    fresh.inside.show_preferences()
    fresh.rest()
    fresh.shot("removed")
    fresh.inside.restore_keys()
    fresh.rest()
    assert fresh.inside.has_all_keys()
    assert "ik_addon.bake" in fresh.inside.keys_shown()


def test_the_tab_has_the_chosen_name(fresh: Window) -> None:
    fresh.inside.prefer({"tab": "Animation"})
    fresh.rest()
    fresh.session.click_tab("Animation")
    fresh.press("ik_addon.chain_add")
    assert fresh.state("added")["chains"]


def test_the_first_chain_does_not_go_live_if_that_is_turned_off(fresh: Window) -> None:
    fresh.inside.prefer({"live": False, "controls": "BONES"})
    fresh.press("ik_addon.chain_add")
    added = fresh.state("added")
    assert not added["live"]
    assert added["chains"]["forearm.L"]["target"] == "IK Target forearm.L"


def test_a_shortcut_assigned_by_the_user_works(fresh: Window) -> None:
    fresh.press("ik_addon.chain_add")
    fresh.inside.assign_key("ik_addon.drag_target", "F6")
    before = fresh.state("before")
    fresh.key("F6")
    fresh.sweep(-40, -60)
    fresh.shot("dragging")
    fresh.click()
    assert fresh.state("dragged")["goals"] != before["goals"]
