"""A new user's first steps in the panel, each of them undone and redone."""

from __future__ import annotations

from typing import Any

from tests.window.driving import ROUNDED, Window, differences


def test_a_chain_from_the_panel_alone(window: Window) -> None:
    window.inside.new_file()
    window.inside.metarig()
    window.show_tab()
    bare = window.state("bare")
    assert not bare["chains"]

    def undone_and_redone(name: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        window.key("ctrl+z")
        assert not differences(window.state(f"{name}-undone"), before)
        window.key("ctrl+shift+z")
        assert not differences(window.state(f"{name}-redone"), after)

    window.press("ik_addon.chain_add")
    added = window.state("added")
    assert added["chains"]["forearm.L"]["target"] in added["goals"]
    assert added["live"], "the first chain is live at once"
    assert not differences(added["channels"], bare["channels"], ROUNDED), "nothing moves yet"
    assert window.is_reached()
    undone_and_redone("add", bare, added)

    window.press("ik_addon.live")
    off = window.state("live-off")
    assert not off["live"]
    assert not differences(off["channels"], bare["channels"])
    undone_and_redone("live-off", added, off)
    window.press("ik_addon.live")
    live = window.state("live")
    assert not differences(live, added, ROUNDED)

    window.inside.select_goal("forearm.L")
    window.session.move(*window.middle())
    window.session.key("g")
    window.sweep(-60, -90)
    window.click()
    dragged = window.state("dragged")
    assert dragged["goals"] != live["goals"]
    assert window.is_reached()
    undone_and_redone("drag", live, dragged)

    window.press("ik_addon.restore_pose")
    restored = window.state("restored")
    assert not restored["live"]
    assert not differences(restored["channels"], bare["channels"])
    assert not differences(restored["goals"], dragged["goals"])
    undone_and_redone("restore", dragged, restored)

    window.press("bpy.ops.ik_addon.solve")
    solved = window.state("solved")
    assert not differences(solved["channels"], dragged["channels"])
    assert window.is_reached()
    undone_and_redone("solve", restored, solved)
    window.key("ctrl+z")

    sidebar = window.session.call("result = rects()['UI']")
    window.click_at(*window.find("ik_addon.chain_remove", x=sidebar["x"] + 2 * sidebar["w"] // 3))
    assert not differences(window.state("removed"), bare)
    undone_and_redone("remove", restored, bare)


def test_solve_ik_on_a_sample(arm: Window) -> None:
    arm.inside.set_live(False)
    before = arm.state("before")
    assert not arm.is_reached(), "it stands in its FK pose"
    arm.press("bpy.ops.ik_addon.solve")
    assert arm.is_reached()
    after = arm.state("after")
    arm.key("ctrl+z")
    assert not differences(arm.state("undone"), before)
    arm.key("ctrl+shift+z")
    assert not differences(arm.state("redone"), after)


def test_alt_changes_a_setting_of_all_selected_chains(window: Window) -> None:
    window.open_sample("spider", "tibia.L.1")
    window.rest()
    left = window.session.call("result = rects()['UI']")["x"]
    window.session.x("keydown", "shift")
    for tip in ("tibia.L.3", "tibia.L.2"):
        window.click_at(*window.find(f'chain_select(tip="{tip}")', x=left + 65))
    window.session.x("keyup", "shift")
    before = window.state("before")["chains"]
    # Blender tells of no setting in a group of settings that it is under the mouse: Limits is two rows below Flip Bend.
    x, y = window.find("ik_addon.flip_bend")
    window.session.move(x - 15, y + 47, settle=0.3)
    window.session.x("keydown", "alt")
    window.click()
    window.session.x("keyup", "alt")
    after = window.state("after")["chains"]
    changed = {tip for tip in after if after[tip]["use_limits"] != before[tip]["use_limits"]}
    assert changed == {"tibia.L.1", "tibia.L.2", "tibia.L.3"}
