"""Take the documentation's pictures of the window: `python3 tools/window_pictures.py [NAME ...]`.

`make pictures` does it too. Each NAME is one of the functions at the end; without any, all pictures are taken. Needs
the Blender of `python3 tools/dev.py window-setup`. Look at every picture: what looks wrong there looks wrong to the
user.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# A script finds imports only beside itself; the package `tools` is one folder up.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import extension, window
from tools.environments import ROOT
from tools.window.session import Session

PICTURES = ROOT / "docs" / "images"
SCREEN = "1600x1000x24"
WIDTH = 1000
FIRST = ("Active Chain",)
"""The panels that a new user finds open."""
ARM_VIEW = (1.45, 0.0, 0.35), (0.42, 0.0, 1.32), 1.75
"""Rotation, center and distance of the view of the metarig's left arm."""
FIGURE_VIEW = (1.35, 0.0, 0.9), (0.3, 0.5, 0.85), 3.4
RECIPE_VIEW = (1.35, 0.0, 0.9), (0.15, 0.3, 0.72), 2.8
"""Rotation, center and distance of the views of a whole figure."""


class Studio:
    """A Blender in a window, with the steps that lead to a picture."""

    def __init__(self, session: Session) -> None:
        """Take over a session."""
        self.session = session
        self.inside = window.Inside(session, Path(__file__).with_name("picture_scenes.py"))

    def begin(self, panels: Sequence[str] = FIRST) -> None:
        """Open an empty file, with the extension's tab in front and these of its panels open."""
        self.inside.begin(list(panels))
        self.session.idle(1.0)
        self.session.click_tab("IK")

    def sample(
        self,
        name: str,
        bone: str,
        frame: int,
        view: tuple[Sequence[float], Sequence[float], float],
        panels: Sequence[str] = FIRST,
    ) -> None:
        """Open a sample, seen from close up."""
        self.begin(panels)
        self.inside.open_sample(str(ROOT / "sample_blends" / f"{name}.blend"), bone, frame, "POSE")
        self.inside.look(*view)
        self.session.idle(1.5)

    def arm(self) -> None:
        """Add the metarig with its left forearm active, seen from close up."""
        self.begin()
        self.inside.metarig()
        self.inside.hide_face()
        self.inside.look(*ARM_VIEW)
        self.session.idle(1.0)

    def view(self) -> dict[str, int]:
        """Return the rectangle of the viewport."""
        found: dict[str, int] = self.session.call("result = rects()['WINDOW']")
        return found

    def press(self, operator: str) -> None:
        """Click a button in the tab."""
        self.session.move(*self.session.find_button(operator), settle=0.3)
        self.click()
        self.session.idle(1.0)

    def click(self) -> None:
        """Click at the mouse position, slowly enough for a program that takes long to draw."""
        self.session.x("mousedown", 1)
        time.sleep(0.1)
        self.session.x("mouseup", 1)

    def drag(self, x: int, y: int) -> None:
        """Move the selection with the mouse, by this many pixels from the middle of the viewport."""
        view = self.view()
        start = view["x"] + view["w"] // 2, view["y"] + view["h"] // 2
        self.session.move(*start)
        self.session.key("g")
        for step in range(1, 11):
            self.session.move(start[0] + x * step // 10, start[1] + y * step // 10, settle=0.15)
        self.click()
        self.session.idle(1.0)

    def rest_mouse(self) -> None:
        """Move the mouse out of the sidebar, so that nothing is highlighted under it."""
        view = self.view()
        self.session.move(view["x"] + view["w"] - WIDTH - 100, view["y"] + view["h"] - 40, settle=0.5)
        self.session.idle(0.5)

    def take(self, name: str, height: int) -> None:
        """Save the upper right part of the viewport."""
        view = self.view()
        self.save(name, WIDTH, height, view["x"] + view["w"] - WIDTH, view["y"])

    def save(self, name: str, width: int, height: int, x: int, y: int) -> None:
        """Save a part of the screen as a small file."""
        picture = PICTURES / f"{name}.png"
        self.session.shot(str(picture), crop=f"{width}x{height}+{x}+{y}")
        subprocess.run(["convert", picture, "-strip", "-dither", "None", "-colors", "128", picture], check=True)
        print(f"Took {picture.relative_to(ROOT)}, {picture.stat().st_size // 1024} kB", flush=True)


# ---- the pictures


def panel(studio: Studio) -> None:
    """The panel of a metarig arm that has followed its target."""
    studio.arm()
    studio.press("ik_addon.chain_add")
    studio.inside.select_goal("forearm.L")
    studio.drag(-90, -240)
    studio.rest_mouse()
    studio.take("panel", 820)


def overlay(studio: Studio) -> None:
    """The drawing over the viewport."""
    studio.arm()
    studio.inside.look((1.3, 0.0, 0.5), (0.0, 0.0, 1.2), 2.05)
    studio.inside.four_chains()
    studio.rest_mouse()
    view = studio.view()
    studio.save("overlay", 880, 640, view["x"] + 60, view["y"] + 70)


def add(studio: Studio) -> None:
    """The state before the first chain: a metarig with its left forearm active."""
    studio.arm()
    studio.rest_mouse()
    studio.take("guide-add", 490)


def tool(studio: Studio) -> None:
    """The tool on a figure's hand: arrows and dials."""
    studio.sample("character", "forearm.L", 30, ((1.3, 0.0, 0.6), (0.92, -0.1, 0.68), 1.6))
    studio.inside.choose_tool("ik_addon.goals")
    studio.rest_mouse()
    view = studio.view()
    studio.save("guide-tool", 700, 460, view["x"], view["y"] + 60)
    studio.inside.choose_tool("builtin.select_box")


def limb(studio: Studio) -> None:
    """A limb whose target is out of reach."""
    studio.sample("two_bone_arm", "forearm", 60, ((1.3, 0.0, 0.35), (0.95, 0.0, 1.0), 3.6))
    studio.rest_mouse()
    studio.take("guide-limb", 840)


def tail(studio: Studio) -> None:
    """A tail: the tentacle."""
    studio.sample("tentacle", "tentacle.24", 36, ((1.35, 0.0, 0.3), (0.6, 0.0, 0.6), 3.6))
    studio.rest_mouse()
    studio.take("guide-tail", 840)


def limits(studio: Studio) -> None:
    """A finger with its limits, and the Joint Limits panel."""
    view = (1.25, 0.0, 0.9), (0.3, 0.55, 0.3), 2.6
    studio.sample("finger_limits", "finger.1", 40, view, ("Limits",))
    studio.rest_mouse()
    studio.take("guide-limits", 720)


def tree(studio: Studio) -> None:
    """Three chains that share a spine."""
    studio.sample("torso_tree", "forearm.L", 30, ((1.35, 0.0, 0.2), (0.6, 0.0, 1.3), 3.2))
    studio.rest_mouse()
    studio.take("guide-tree", 840)


def tools(studio: Studio) -> None:
    """The Tools panel, with a converted rig."""
    view = (1.3, 0.0, 0.5), (0.5, 0.0, 0.6), 3.0
    studio.sample("converted", "shin.L", 58, view, ("Active Chain",))
    studio.rest_mouse()
    studio.take("guide-tools", 720)


def small_arm(studio: Studio) -> None:
    """The two-bone arm reaching its target."""
    studio.sample("two_bone_arm", "forearm", 30, ((1.3, 0.0, 0.35), (0.85, 0.0, 0.3), 3.2))


def bake(studio: Studio) -> None:
    """The dialog of Bake IK."""
    small_arm(studio)
    studio.press("bpy.ops.ik_addon.bake")
    studio.session.idle(1.0)
    studio.take("guide-bake", 460)
    studio.session.key("Escape")


def pie(studio: Studio) -> None:
    """The pie menu."""
    small_arm(studio)
    view = studio.view()
    studio.session.move(view["x"] + view["w"] - 640, view["y"] + 260, settle=0.5)
    studio.session.key("shift+alt+i", settle=1.5)
    studio.take("guide-pie", 500)
    studio.session.key("Escape")


def fault(studio: Studio) -> None:
    """A chain that cannot be solved, with the button that fixes it."""
    small_arm(studio)
    studio.inside.hinder()
    studio.rest_mouse()
    studio.take("guide-fault", 560)


def figure(studio: Studio, *panels: str) -> None:
    """A metarig that was set up, taking a step."""
    studio.begin(panels)
    studio.inside.metarig()
    studio.inside.hide_face()
    studio.inside.look(*FIGURE_VIEW)
    studio.session.idle(1.0)
    studio.inside.set_up()
    studio.inside.stride()


def character(studio: Studio) -> None:
    """A character after Set Up Character, with all its controls, and what the panel says about its parts."""
    figure(studio, "Character Setup")
    studio.rest_mouse()
    studio.take("guide-character", 820)


def body(studio: Studio) -> None:
    """The panel Whole Body, with the tool Pose Body in hand."""
    figure(studio, "Whole Body")
    studio.inside.choose_tool("ik_addon.body")
    studio.inside.pin_feet()
    studio.rest_mouse()
    studio.take("guide-body", 820)
    studio.inside.choose_tool("builtin.select_box")


def clip(studio: Studio) -> None:
    """The panel Motion Clip of a figure with a recorded motion."""
    view = (1.3, 0.0, 0.6), (0.62, 0.0, 0.75), 3.0
    studio.sample("character", "shin.L", 30, view, ("Motion Clip",))
    studio.press("ik_addon.mark_contact")
    studio.rest_mouse()
    studio.take("guide-clip", 820)


def rigify(studio: Studio) -> None:
    """A human that Rigify generated, with its IK converted and two of its controls moved."""
    studio.begin()
    studio.inside.metarig()
    studio.inside.generated()
    studio.inside.look(*RECIPE_VIEW)
    studio.inside.run("ik_addon.convert_constraints")
    studio.inside.move("torso", (0.0, 0.0, -0.12))
    studio.inside.move("hand_ik.R", (0.1, -0.3, 0.2))
    studio.inside.move("foot_ik.L", (0.0, -0.3, 0.1))
    studio.rest_mouse()
    studio.take("recipe-rigify", 720)


def mixamo(studio: Studio) -> None:
    """An animated character from Mixamo after Set Up Character: the panel lists its animated parts."""
    studio.begin(("Character Setup",))
    studio.inside.named_rig("Mixamo")
    both = [[f"mixamorig:{side}{part}" for side in ("Left", "Right")] for part in ("UpLeg", "Leg", "Arm")]
    studio.inside.walk(*both, "mixamorig:Hips")
    studio.inside.look(*RECIPE_VIEW)
    studio.inside.run("ik_addon.character_setup")
    studio.rest_mouse()
    studio.take("recipe-mixamo", 720)


def vrm(studio: Studio) -> None:
    """A VRoid character with its hips lowered: the feet stay and the knees bend forward."""
    studio.begin()
    studio.inside.named_rig("VRM")
    studio.inside.look(*RECIPE_VIEW)
    studio.inside.run("ik_addon.character_setup")
    studio.inside.lower_hands(["J_Bip_L_Hand", "J_Bip_R_Hand"])
    studio.inside.move("J_Bip_C_Hips", (0.0, -0.1, 0.0))
    studio.rest_mouse()
    studio.take("recipe-vrm", 720)


def mmd(studio: Studio) -> None:
    """A character from MMD whose legs were converted, with its center lowered."""
    studio.begin()
    studio.inside.named_rig("MMD")
    studio.inside.mmd_legs()
    studio.inside.look(*RECIPE_VIEW)
    studio.inside.run("ik_addon.convert_constraints")
    studio.inside.run("ik_addon.character_setup")
    studio.inside.lower_hands(["左手首", "右手首"])
    studio.inside.move("センター", (0.0, -0.1, 0.0))
    studio.rest_mouse()
    studio.take("recipe-mmd", 720)


ALL: tuple[Callable[[Studio], None], ...] = (
    panel,
    overlay,
    add,
    tool,
    limb,
    tail,
    limits,
    tree,
    tools,
    bake,
    pie,
    fault,
    character,
    body,
    clip,
    rigify,
    mixamo,
    vrm,
    mmd,
)


@contextmanager
def opened(screen: str = SCREEN) -> Iterator[Studio]:
    """Open a Blender with the extension, as a new user has it, on a screen of a width, height and depth."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pictures-", dir=ROOT / "build") as name:
        folder = Path(name)
        package = extension.build(folder)
        with window.program().opened(folder / "user", screen) as session:
            studio = Studio(session)
            studio.inside.install(str(package))
            yield studio


def main(*chosen: str) -> None:
    """Take the named pictures, or all of them."""
    known = {take.__name__: take for take in ALL}
    with opened() as studio:
        for name in chosen or known:
            known[name](studio)


if __name__ == "__main__":
    main(*sys.argv[1:])
