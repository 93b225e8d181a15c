"""How many clicks common tasks take from a new file with a metarig; the search finds all commands."""

import re

from tests.window.driving import Window, differences
from tools.environments import ROOT


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


# ---- the guide's page "Ten minutes with a character", step by step: each step is a click, a drag or a key


PAGE = ROOT / "docs" / "guide" / "ten_minutes.md"
FLIPPED = {"foot.L": "foot.R", "foot.R": "foot.L", "hand.L": "hand.R", "hand.R": "hand.L", "spine": "spine"}
"""Feet, hands and hips, and where they are in a flipped pose."""
MOST = 25
"""Steps from a fresh file with a character in Pose Mode to a baked walk."""
SEEN = 2e-3
"""Rounding allowed in places, in meters."""


class Steps:
    """The hands of somebody who follows the page; counts what they do."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.taken = 0

    def press(self, button: str, across: float = 0.5) -> None:
        """Click a button in the sidebar, at a share of its width."""
        self.taken += 1
        sidebar = self.window.rect("UI")
        self.window.click_at(*self.window.find(button, x=sidebar["x"] + round(across * sidebar["w"])))

    def key(self, keys: str) -> None:
        self.taken += 1
        self.window.key(keys)

    def look(self, keys: str, x: float) -> None:
        """Look along the X axis of the world, or against it."""
        self.key(keys)
        self.window.wait(lambda: self.window.inside.looks_along(x, 0.0, 0.0))
        self.window.rest()

    def drag(self, bone: str, share: float, x: int, y: int) -> None:
        self.taken += 1
        self.window.drag(self.window.inside.place_of_bone(bone, share), x, y)

    def go_to(self, frame: int) -> None:
        self.taken += 1
        self.window.click_at(*self.window.inside.place_of_frame(frame))


def places(window: Window) -> dict[str, list[float]]:
    heads = window.inside.heads()
    return {bone: list(heads[bone]) for bone in FLIPPED}


def flipped(found: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return places mirrored from left to right."""
    return {FLIPPED[bone]: [-x, y, z] for bone, (x, y, z) in found.items()}


def test_a_walk_from_a_fresh_file(window: Window) -> None:
    window.open_metarig()
    window.inside.draw_quickly()
    steps = Steps(window)
    steps.press("ik_addon.body_tool")
    steps.press("ik_addon.character_setup")
    rest = places(window)

    steps.look("KP_3", -1.0)
    steps.drag("foot.L", 0.25, -55, -8)
    steps.drag("forearm.L", 0.75, 22, 14)
    steps.look("ctrl+KP_3", 1.0)
    steps.drag("foot.R", 0.25, -55, -12)
    steps.drag("forearm.R", 0.75, 14, 14)
    steps.drag("spine", 0.35, 0, 10)
    window.shot("contact")
    contact = places(window)
    assert contact["foot.L"][1] < rest["foot.L"][1] - 0.1, "a step forward"
    assert contact["foot.R"][1] > rest["foot.R"][1] + 0.1, "the other foot is behind"
    hands = [window.inside.heads()[f"hand.{side}"] for side in "LR"]
    assert hands[0][1] > hands[1][1] + 0.05, "arms swing the other way"
    assert contact["spine"][2] < rest["spine"][2] - 0.02, "the hips sink"

    steps.press("ik_addon.select_controls", 0.25)
    steps.press("ik_addon.key_controls", 0.7)
    steps.key("ctrl+c")
    steps.go_to(13)
    assert window.inside.state()["frame"] == 13
    steps.key("ctrl+shift+v")
    assert not differences(places(window), flipped(contact), SEEN)
    steps.press("ik_addon.key_controls", 0.7)
    steps.go_to(25)
    steps.key("ctrl+v")
    steps.press("ik_addon.key_controls", 0.7)
    window.shot("walk")

    steps.press('chain_select(tip="forearm.L")', 0.3)
    steps.press("ik_addon.switch_ik_fk", 0.25)
    assert "from frame 25 on" in window.printed()
    before = window.state("keyed")
    steps.press("bpy.ops.ik_addon.bake")
    steps.key("Return")
    window.wait(lambda: not any(chain["enabled"] for chain in window.inside.state()["chains"].values()))
    window.wait(lambda: not window.inside.running())
    assert len(window.state("baked")["keys"]) > len(before["keys"])

    assert steps.taken == len(re.findall(r"^\d+\. ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) <= MOST
    for frame, pose in ((1, contact), (13, flipped(contact)), (25, contact)):
        window.inside.go_to(frame)
        window.rest()
        assert not differences(places(window), pose, SEEN), f"frame {frame}"
    window.inside.choose_tool("builtin.select_box")  # for the tests after it
