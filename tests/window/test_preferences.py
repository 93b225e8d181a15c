"""The preferences as users see and use them, and the extension in other languages."""

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
    fresh.inside.prefer({"use_theme": False})
    fresh.rest()
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
    fresh.click()
    assert fresh.state("dragged")["goals"] != before["goals"]


# ---- other languages


@pytest.fixture
def german(window: Window) -> Iterator[Window]:
    """The window with a metarig, in German."""
    window.open_metarig()
    if not window.inside.speak("de"):
        pytest.skip("this Blender knows English alone")
    window.rest()
    yield window
    window.inside.speak("en_US")


def test_buttons_messages_and_reports_are_german(german: Window) -> None:
    german.press("ik_addon.chain_add")
    assert german.inside.label("ik_addon.chain_add") == "Kette hinzufügen"
    assert german.inside.label("ik_addon.bake") == "IK backen"
    too_far = german.inside.said("Too far by {error} of its length", {"error": "12%"})
    assert too_far == "Um 12% ihrer Länge zu weit"
    german.inside.move_goal("forearm.L", [0.0, -2.0, 0.0])
    german.rest()
    german.inside.show_preferences()
    german.rest()
    german.inside.reset_preferences()


def test_words_that_blender_translates_in_another_sense(german: Window) -> None:
    assert [german.inside.said(word, {}) for word in ("Bend", "Straighten")] == ["Beugen", "Strecken"]
    names = german.inside.names_of_setting("out_of_reach")
    assert names == ["Unerreichbar", "Strecken", "Wurzel schieben", "Dehnen"]
    assert german.inside.names_of_setting("iterations") == ["Iterationen"], "Blender's word is cut off in the sidebar"


def test_the_panel_clip_is_no_command_in_french(window: Window) -> None:
    if not window.inside.speak("fr"):
        pytest.skip("this Blender knows English alone")
    assert window.inside.title("folded", "VIEW3D_PT_ik_addon_clip") == "Motion Clip"
    window.inside.speak("en_US")


def test_an_incomplete_translation_falls_back_to_english(german: Window) -> None:
    german.inside.speak("fr")
    german.rest()
    assert german.inside.label("ik_addon.chain_add") == "Ajouter une chaîne"
    assert german.inside.said("Nothing was solved", {}) == "Nothing was solved"
