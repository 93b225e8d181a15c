"""Commands as users find them in the context menu of a bone; the search is in `test_clicks`."""

from __future__ import annotations

from tests.window.driving import Window, differences

RIGHT_BUTTON = 3


def test_the_context_menu_of_a_bone_has_the_commands_of_its_chain(arm: Window) -> None:
    before = arm.state("before")
    arm.move(*arm.inside.place_of_bone("upper_arm"))
    arm.click(RIGHT_BUTTON)
    arm.rest()
    arm.shot("menu")
    arm.tap("Escape")
    assert not differences(arm.state("closed"), before)
