"""The extension in other languages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.window.driving import Window


@pytest.fixture
def german(window: Window) -> Iterator[Window]:
    """The window with a metarig, in German."""
    window.open_metarig()
    if not window.inside.speak("de"):
        pytest.skip("this Blender knows English alone")
    window.rest()
    yield window
    window.inside.speak_english()


def test_buttons_messages_and_reports_are_german(german: Window) -> None:
    german.shot("start")
    german.press("ik_addon.chain_add")
    german.shot("added")
    assert german.inside.label("ik_addon.chain_add") == "Kette hinzufügen"
    assert german.inside.label("ik_addon.bake") == "IK backen"
    too_far = german.inside.said("Too far by {error} of its length", {"error": "12%"})
    assert too_far == "Um 12% ihrer Länge zu weit"
    german.inside.move_goal("forearm.L", [0.0, -2.0, 0.0])
    german.rest()
    german.shot("missed")
    german.inside.show_preferences()
    german.rest()
    german.shot("preferences")
    german.inside.reset_preferences()


def test_words_that_blender_translates_in_another_sense(german: Window) -> None:
    assert [german.inside.said(word, {}) for word in ("Bend", "Straighten")] == ["Beugen", "Strecken"]
    names = german.inside.names_of_setting("out_of_reach")
    assert names == ["Unerreichbar", "Strecken", "Wurzel schieben", "Dehnen"]
    assert german.inside.names_of_setting("iterations") == ["Iterationen"], "Blender's word is cut off in the sidebar"


def test_the_panel_clip_is_no_command_in_french(window: Window) -> None:
    if not window.inside.speak("fr"):
        pytest.skip("this Blender knows English alone")
    assert window.inside.title("clip", "VIEW3D_PT_ik_addon_clip") == "Motion Clip"
    window.inside.speak_english()


def test_an_incomplete_translation_falls_back_to_english(german: Window) -> None:
    german.inside.speak("fr")
    german.rest()
    german.shot("french")
    assert german.inside.label("ik_addon.chain_add") == "Ajouter une chaîne"
    assert german.inside.said("Nothing was solved", {}) == "Nothing was solved"
