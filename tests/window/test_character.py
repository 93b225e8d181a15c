"""A whole character is set up with one click, undone and redone, and its foot is moved."""

from __future__ import annotations

from tests.window.driving import ROUNDED, Window, differences


def test_a_character_is_set_up_from_the_panel(window: Window) -> None:
    window.open_metarig()
    bare = window.state("bare")
    window.press("ik_addon.character_setup")
    made = window.state("made")
    assert sorted(made["chains"]) == ["forearm.L", "forearm.R", "shin.L", "shin.R", "spine.003", "spine.006"]
    assert made["live"]
    moved = {bone: made["channels"][bone] for bone in bare["channels"]}
    assert not differences(moved, bare["channels"], ROUNDED), "nothing moves"
    assert window.is_reached()

    window.assert_undone(bare, made)

    window.inside.select_goal("shin.L")
    window.move(*window.middle())
    window.tap("g")
    window.sweep(30, -70)
    window.click()
    moved = window.state("moved")
    target = made["chains"]["shin.L"]["target"]
    assert moved["goals"][target][2] > made["goals"][target][2] + 0.05
    assert window.is_reached()
    others = {name: place for name, place in moved["goals"].items() if name != target}
    assert not differences(others, {name: made["goals"][name] for name in others}, ROUNDED)
