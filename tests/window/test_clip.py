"""Find Foot Contacts and Lock Feet from their buttons: the dialogs, cancelling with Esc, undo."""

from __future__ import annotations

import pytest

from tests.window.driving import ROUNDED, Window, differences

PLANT = "IK_ADDON_OT_plant"


@pytest.fixture
def figure(window: Window) -> Window:
    """The window with a character whose feet follow keyed targets."""
    window.open_sample("character", "shin.L")
    window.inside.key_targets(["shin.L", "shin.R"], 40)
    return window


def confirm(window: Window, operator: str) -> None:
    """Start an operator and confirm its dialog."""
    window.move(*window.middle())
    window.inside.start(operator)
    window.rest()
    window.shot(operator.rpartition(".")[2])
    window.tap("Return")


def do(window: Window, operator: str) -> None:
    """Start an operator, confirm its dialog, and wait until it has finished."""
    before = window.inside.state()
    confirm(window, operator)
    window.wait(lambda: differences(window.inside.state(), before, ROUNDED) and not window.inside.running())


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


def test_planting_cancelled_by_escape_changes_nothing(figure: Window) -> None:
    do(figure, "ik_addon.find_contacts")
    figure.inside.set_frames(1, 20_000)
    before, pose = figure.state("before"), figure.inside.pose()
    confirm(figure, "ik_addon.plant")
    figure.wait(lambda: PLANT in figure.inside.running())
    figure.shot("progress")
    assert PLANT in figure.inside.running(), "it is long enough to be interrupted"
    figure.tap("Escape")
    figure.wait(lambda: PLANT not in figure.inside.running())
    assert not differences(figure.state("cancelled"), before)
    assert not differences(figure.inside.pose(), pose)


def test_the_panel_marks_contacts(figure: Window) -> None:
    figure.inside.open_panel("VIEW3D_PT_ik_addon_clip")
    figure.press("ik_addon.mark_contact")
    assert {path for path in figure.state("marked")["keys"] if "ik_addon.contact" in path}
    figure.key("ctrl+z")
    assert not {path for path in figure.state("undone")["keys"] if "ik_addon.contact" in path}


def test_a_skeleton_is_baked_in_one_step(figure: Window) -> None:
    before = figure.state("before")
    do(figure, "ik_addon.bake_skeleton")
    figure.shot("skeleton")
    assert "which is selected for export" in figure.printed()
    assert differences(figure.state("baked"), before)
    figure.assert_undone(before)
