"""A new user's first steps in the panel and the context menu, each undone and redone."""

from tests.window.driving import ROUNDED, Window, differences

NEARLY = 6
"""Pixels from the middle of a button, 20 high, to points that must also be on it."""


def test_a_chain_is_made_and_used_from_the_panel_alone(window: Window) -> None:
    window.open_metarig()
    bare = window.state("bare")
    assert not bare["chains"]
    window.press("ik_addon.chain_add")
    added = window.state("added")
    assert added["chains"]["forearm.L"]["target"] in added["goals"]
    assert added["live"], "the first chain is live at once"
    assert not differences(added["channels"], bare["channels"], ROUNDED), "nothing moves yet"
    assert window.is_reached()
    window.assert_undone(bare, added)

    window.press("ik_addon.live")
    off = window.state("live-off")
    assert not off["live"]
    assert not differences(off["channels"], bare["channels"])
    window.assert_undone(added, off)
    window.press("ik_addon.live")
    live = window.state("live")
    assert not differences(live, added, ROUNDED)

    window.inside.select_goal("forearm.L")
    window.move(*window.middle())
    window.tap("g")
    window.sweep(-60, -90)
    window.click()
    dragged = window.state("dragged")
    assert dragged["goals"] != live["goals"]
    assert window.is_reached()
    window.assert_undone(live, dragged)

    window.press("ik_addon.live")  # without it, the FK pose is back
    restored = window.state("restored")
    assert not restored["live"]
    assert not differences(restored["channels"], bare["channels"])
    assert not differences(restored["goals"], dragged["goals"])
    window.assert_undone(dragged, restored)

    window.press("bpy.ops.ik_addon.solve")
    solved = window.state("solved")
    assert not differences(solved["channels"], dragged["channels"])
    assert window.is_reached()
    window.assert_undone(restored, solved)
    window.key("ctrl+z")

    sidebar = window.rect("UI")
    window.click_at(*window.find("ik_addon.chain_remove", x=sidebar["x"] + sidebar["w"] - 46))  # beside the list
    assert not differences(window.state("removed"), bare)
    window.assert_undone(restored, bare)


def test_alt_changes_a_setting_of_all_selected_chains(spider: Window) -> None:
    left = spider.rect("UI")["x"]
    with spider.holding("shift"):
        for tip in ("tibia.L.3", "tibia.L.2"):
            spider.click_at(*spider.find(f'chain_select(tip="{tip}")', x=left + 65))
    before = spider.state("before")["chains"]
    _x, y = spider.find("ik_addon.switch_ik_fk", step=6)
    spider.move(left + 49, y - 32)  # the checkbox in the header of Active Chain
    with spider.holding("alt"):
        spider.click()
    after = spider.state("after")["chains"]
    changed = {tip for tip in after if after[tip]["enabled"] != before[tip]["enabled"]}
    assert changed == {"tibia.L.1", "tibia.L.2", "tibia.L.3"}


def test_nothing_moves_under_the_mouse(window: Window) -> None:
    """What is below the list keeps its place while a target is dragged, in reach and out of it."""
    window.open_metarig()

    def stays(operator: str, x: int, y: int) -> bool:
        window.move(*window.middle())  # move off the button first
        return all(window.is_at(operator, x, y + off) for off in (-NEARLY, NEARLY))

    window.press("ik_addon.chain_add")
    window.state("added")
    switch = window.find("ik_addon.switch_ik_fk", step=NEARLY)
    for name, by in (("far", [2.0, 0.0, 0.0]), ("back", [-2.0, 0.0, 0.0])):
        window.inside.move_goal("forearm.L", by)
        window.state(name)
        assert window.is_reached() == (name == "back")
        assert stays("ik_addon.switch_ik_fk", *switch), name


def test_a_row_of_the_list_selects_its_chain(spider: Window) -> None:
    left = spider.rect("UI")["x"]
    for tip, x in (("tibia.L.3", 80), ("tibia.L.2", 150)):  # on its name, and to the right of it
        _x, y = spider.find(f'chain_select(tip="{tip}")', x=left + 80)
        spider.click_at(left + x, y)
        assert spider.inside.active_bone() == tip


def test_the_ik_fk_switch_of_a_chain_keeps_the_pose(arm: Window) -> None:
    arm.inside.go_to(20)
    arm.inside.set_live(True)  # an undo step to return to
    before, pose = arm.state("before"), arm.inside.pose()
    sidebar = arm.rect("UI")
    fk, ik = (sidebar["x"] + share * sidebar["w"] // 8 for share in (2, 5))
    arm.click_at(*arm.find("ik_addon.switch_ik_fk", x=fk))
    assert not differences(arm.inside.pose(), pose, 1e-4)
    switched = arm.state("fk")
    assert switched["chains"]["forearm"]["influence"] == 0.0
    assert switched["keys"]['pose.bones["forearm"].ik_addon.influence[0]'] == [[19.0, 1.0], [20.0, 0.0]]
    arm.assert_undone(before, within=ROUNDED)
    arm.key("ctrl+shift+z")
    arm.inside.go_to(30)
    pose = arm.inside.pose()
    arm.click_at(*arm.find("ik_addon.switch_ik_fk", x=ik))
    assert not differences(arm.inside.pose(), pose, 1e-4)
    assert arm.state("ik")["chains"]["forearm"]["influence"] == 1.0


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


def test_the_context_menu_of_a_bone_has_the_commands_of_its_chain(arm: Window) -> None:
    before = arm.state("before")
    arm.move(*arm.inside.place_of_bone("upper_arm"))
    arm.click(3)
    arm.tap("Escape")
    assert not differences(arm.state("closed"), before)
