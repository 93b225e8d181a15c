"""Commands as users find them: in the search and in the context menu of a bone."""

from __future__ import annotations

from tests.window.driving import Window, differences

RIGHT_BUTTON = 3


def test_the_search_finds_a_command(arm: Window) -> None:
    before = arm.state("before")
    arm.key("F3")
    arm.session.x("type", "--delay", "60", "flip bend")
    arm.rest()
    arm.shot("found")
    arm.tap("Return")
    after = arm.state("after")
    assert after["chains"]["forearm"]["bend_side"] != before["chains"]["forearm"]["bend_side"]
    arm.key("ctrl+z")
    assert not differences(arm.state("undone"), before)


def test_the_context_menu_of_a_bone_has_the_commands_of_its_chain(arm: Window) -> None:
    before = arm.state("before")
    arm.move(*arm.inside.place_of_bone("upper_arm"))
    arm.click(RIGHT_BUTTON)
    arm.rest()
    arm.shot("menu")
    arm.tap("Escape")
    assert not differences(arm.state("closed"), before)
