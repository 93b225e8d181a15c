"""How many clicks common tasks take from a new file with a metarig; the search finds all commands."""

from __future__ import annotations

from tests.window.driving import Window


def begin(window: Window) -> None:
    """Add a metarig to a new file, as the Add menu does; open the sidebar on another tab."""
    window.inside.new_file()
    window.inside.metarig()
    window.inside.leave_pose_mode()
    window.session.call("open_sidebar()")
    window.rest()  # there are no tabs before the sidebar is drawn
    window.inside.show_sidebar("Item")
    window.rest()
    window.clicks = 0


def click_tab(window: Window) -> None:
    """Click the extension's tab, counted as one click: the driver finds it by trying, a user sees it."""
    before = window.clicks
    window.session.click_tab("IK")
    window.rest()
    window.clicks = before + 1


def test_a_whole_character_takes_four_clicks(window: Window) -> None:
    begin(window)
    click_tab(window)
    window.press("ik_addon.character_setup")
    made = window.state("made")
    assert window.clicks <= 4, window.clicks
    assert made["live"]
    assert sorted(made["chains"]) == ["forearm.L", "forearm.R", "shin.L", "shin.R", "spine.003", "spine.006"]
    assert window.is_reached()


def test_a_leg_that_follows_a_dragged_target_takes_five_clicks(window: Window) -> None:
    begin(window)
    window.key("ctrl+Tab")
    window.wait(lambda: window.session.call("result = bpy.context.mode") == "POSE")
    click_tab(window)
    window.click_at(*window.inside.place_of_bone("shin.L"))
    assert window.inside.active_bone() == "shin.L"
    window.press("ik_addon.chain_add")
    before = window.state("added")
    target = before["chains"]["shin.L"]["target"]
    window.rest()
    window.pull(window.inside.place_of(target), 25, -40)
    assert window.is_reached(), "the leg follows while the mouse moves"
    window.release()
    after = window.state("pulled")
    assert window.clicks <= 5, window.clicks
    assert after["goals"][target][2] > before["goals"][target][2] + 0.02
    assert after["channels"]["shin.L"] != before["channels"]["shin.L"]


SAMPLES: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("two_bone_arm", "forearm", "ik_addon.find_contacts", {}),
    ("character", "shin.L", "pose.select_all", {"action": "SELECT"}),
    ("posing_human", "shin.L", "", {}),
    ("converted", "shin.L", "ik_addon.restore_constraints", {}),
    ("converted", "shin.L", "", {}),
)
"""Sample, bone, and operator to run first with its options: each command can be started in one of these."""
REFUSING = {"IK_ADDON_OT_plant"}
"""Commands of the menu that have nothing to do in the samples."""
STARTS = {"IK_ADDON_OT_drag_target": "IK_ADDON_OT_goal_move"}


def open_with(window: Window, sample: str, bone: str, first: str, options: dict[str, str]) -> None:
    """Open a sample and run its first operator."""
    window.open_sample(sample, bone)
    if first:
        window.inside.start(first, options)


def is_started(window: Window, name: str, label: str) -> bool:
    """Whether the search finds a command by its label and starts it."""
    before = window.inside.started()
    window.key("F3")
    window.paste(label)
    window.tap("Return")
    window.tap("Return")  # in a dialog
    after = window.inside.started()  # Blender remembers only the last operators
    window.tap("Escape")
    return after != before and STARTS.get(name, name) in after[-3:]


def test_the_search_finds_every_command(window: Window) -> None:
    lost = {name: label for name, label in window.inside.commands(True).items() if name not in REFUSING}
    for sample in SAMPLES:
        refused: set[str] = set()
        open_with(window, *sample)
        is_new = True
        while True:
            names = [name for name in window.inside.commands() if name in lost and name not in refused]
            if names and is_started(window, names[0], lost[names[0]]):
                del lost[names[0]]
                is_new = False
            elif not is_new:  # leftovers of other commands may be in the way
                open_with(window, *sample)
                is_new = True
            elif names:
                refused.add(names[0])
                is_new = False
            else:
                break
    assert not lost
