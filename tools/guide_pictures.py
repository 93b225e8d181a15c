"""Take the pictures of the user guide from the real program: `python3 tools/guide_pictures.py [NAME ...]`.

Each NAME is one of the functions below, without them all pictures are taken.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# Started as a script, Python looks for imports beside this file; `tools` is one folder up.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.environments import ROOT
from tools.pictures import METARIG, VIEW, opened, save

WIDTH, HEIGHT = 1000, 640

OPEN = """
bpy.ops.wm.open_mainfile(filepath={path!r}, load_ui=False)
"""
SHOW = """
from mathutils import Euler, Vector
bpy.context.scene.frame_set({frame})
view = view3d()[1].spaces.active
view.show_region_toolbar = view.show_region_tool_header = view.show_gizmo_navigate = False
view.overlay.show_cursor = view.overlay.show_floor = view.overlay.show_axis_y = view.overlay.show_axis_x = False
view.overlay.show_text = False
view.overlay.show_extras = True
view.shading.type = 'SOLID'
view.shading.color_type = 'MATERIAL'
view.region_3d.view_perspective = 'PERSP'
view.region_3d.view_rotation = Euler({turn}).to_quaternion()
view.region_3d.view_location = Vector({place})
view.region_3d.view_distance = {distance}
for ob in bpy.context.scene.objects:
    ob.hide_set(ob.type in {{'CAMERA', 'LIGHT'}} or ob.name in {hidden!r})
rig = next(ob for ob in bpy.context.scene.objects if ob.type == 'ARMATURE')
bpy.context.view_layer.objects.active = rig
for ob in bpy.context.scene.objects:
    ob.select_set(ob == rig)
rig.data.bones.active = rig.data.bones[{bone!r}]
with bpy.context.temp_override(window=view3d()[0], area=view3d()[1]):
    bpy.ops.object.mode_set(mode={mode!r})
"""

FAULT = """
import math
rig = bpy.context.object
bone = rig.pose.bones['upper_arm']
bone.constraints.new('COPY_ROTATION').target = bpy.data.objects['Pole']
bpy.context.view_layer.update()
"""


def sample(
    session: Any,
    name: str,
    bone: str,
    frame: int,
    turn: tuple[float, float, float],
    place: tuple[float, float, float],
    distance: float,
    mode: str = "POSE",
    hidden: tuple[str, ...] = ("Floor",),
) -> None:
    """Open a sample in the window, looked at from near."""
    session.call(OPEN.format(path=str(ROOT / "sample_blends" / f"{name}.blend")))
    session.idle(1.5)
    session.call(
        SHOW.format(frame=frame, turn=turn, place=place, distance=distance, bone=bone, mode=mode, hidden=hidden)
    )
    session.click_tab("IK")
    session.idle(1.5)


def shot(session: Any, name: str, width: int = WIDTH, height: int = HEIGHT) -> None:
    """Save the right upper part of the viewport."""
    view = session.call("result = rects()['WINDOW']")
    save(session, f"{name}.png", width, height, view["x"] + view["w"] - width, view["y"])


def click_header(session: Any, down: int) -> None:
    """Open or close the panel whose header is so many pixels below the top of the sidebar."""
    view = session.call("result = rects()['WINDOW']")
    session.click(view["x"] + view["w"] - 160, view["y"] + down, settle=1.0)


def rest_mouse(session: Any) -> None:
    """Take the mouse out of the sidebar, so that nothing is lit under it."""
    view = session.call("result = rects()['WINDOW']")
    session.move(view["x"] + view["w"] - 600, view["y"] + 30, settle=0.5)


def add(session: Any) -> None:
    """Before the first chain: a metarig with its left forearm active."""
    session.call(METARIG)
    session.call(VIEW)
    session.call("bpy.ops.object.mode_set(mode='POSE')")
    session.click_tab("IK")
    rest_mouse(session)
    shot(session, "guide-add", height=500)


def limb(session: Any) -> None:
    """A limb whose target is out of reach."""
    sample(session, "two_bone_arm", "forearm", 60, (1.3, 0.0, 0.35), (0.95, 0.0, 1.0), 3.6)
    rest_mouse(session)
    shot(session, "guide-limb", height=700)


def tail(session: Any) -> None:
    """A tail: the tentacle."""
    sample(session, "tentacle", "tentacle.24", 36, (1.35, 0.0, 0.3), (0.6, 0.0, 0.6), 3.6)
    rest_mouse(session)
    shot(session, "guide-tail", height=600)


def limits(session: Any) -> None:
    """A finger with its limits, and the panel Joint Limits."""
    sample(session, "finger_limits", "finger.1", 40, (1.25, 0.0, 0.9), (0.3, 0.55, 0.3), 2.6)
    click_header(session, 612)
    click_header(session, 275)
    rest_mouse(session)
    shot(session, "guide-limits", height=720)


def tree(session: Any) -> None:
    """Three chains that share a spine."""
    sample(session, "torso_tree", "forearm.L", 30, (1.35, 0.0, 0.2), (0.6, 0.0, 1.3), 3.2)
    rest_mouse(session)
    shot(session, "guide-tree", height=660)


def tools(session: Any) -> None:
    """The panel Tools, with a rig that was converted."""
    sample(session, "converted", "shin.L", 58, (1.3, 0.0, 0.5), (0.5, 0.0, 0.6), 3.0)
    click_header(session, 321)
    click_header(session, 346)
    rest_mouse(session)
    shot(session, "guide-tools", height=720)


def bake(session: Any) -> None:
    """The dialog of Bake IK."""
    sample(session, "two_bone_arm", "forearm", 30, (1.3, 0.0, 0.35), (0.85, 0.0, 0.45), 3.2)
    session.click_button("ik_addon.bake")
    session.idle(1.0)
    shot(session, "guide-bake", height=420)
    session.key("Escape")


def pie(session: Any) -> None:
    """The pie menu."""
    sample(session, "two_bone_arm", "forearm", 30, (1.3, 0.0, 0.35), (0.85, 0.0, 0.45), 3.2)
    view = session.call("result = rects()['WINDOW']")
    session.move(view["x"] + view["w"] - 640, view["y"] + 260, settle=0.5)
    session.key("shift+alt+i", settle=1.5)
    shot(session, "guide-pie", height=500)
    session.key("Escape")


def fault(session: Any) -> None:
    """A chain that cannot be solved, with the button that puts it right."""
    sample(session, "two_bone_arm", "forearm", 30, (1.3, 0.0, 0.35), (0.85, 0.0, 0.45), 3.2)
    session.call(FAULT)
    session.idle(1.0)
    rest_mouse(session)
    shot(session, "guide-fault", height=420)


def main(*chosen: str) -> None:
    """Take the pictures."""
    known = {take.__name__: take for take in (add, limb, tail, tree, bake, pie, fault, limits, tools)}
    with opened() as session:
        for name in chosen or known:
            known[name](session)


if __name__ == "__main__":
    main(*sys.argv[1:])
