"""Take the pictures of the documentation from the real program: `python3 tools/pictures.py DRIVER`.

DRIVER is the folder of `gui_drive.py`, see `tools/window.py`. ImageMagick must be installed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

# Started as a script, Python looks for imports beside this file; `tools` is one folder up.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import window
from tools.environments import ROOT

PICTURES = ROOT / "docs" / "images"

VIEW = """
from mathutils import Euler, Vector
for collection in bpy.context.object.data.collections_all:
    collection.is_visible = not collection.name.startswith('Face')
view = view3d()[1].spaces.active
view.show_region_toolbar = view.show_region_tool_header = view.show_gizmo_navigate = False
view.overlay.show_cursor = view.overlay.show_floor = view.overlay.show_axis_y = view.overlay.show_axis_x = False
view.region_3d.view_perspective = 'PERSP'
view.region_3d.view_rotation = Euler((1.45, 0.0, 0.35)).to_quaternion()
view.region_3d.view_location = Vector((0.42, 0.0, 1.32))
view.region_3d.view_distance = 1.75
"""

SELECT_TARGET = """
for ob in bpy.context.view_layer.objects:
    ob.select_set(ob.name == 'IK Target forearm.L')
bpy.context.view_layer.objects.active = bpy.data.objects['IK Target forearm.L']
"""


def panel(session: Any) -> None:
    """The panel, with an arm of the metarig that has followed its target."""
    session.call(window.METARIG)
    session.call(VIEW)
    session.idle(1.0)
    session.click_button("ik_addon.chain_add")
    session.click_button("ik_addon.live")
    session.call(SELECT_TARGET)
    window.drag(session, -90, -240)
    view = session.call("result = rects()['WINDOW']")
    save(session, "panel.png", 1000, 640, view["x"] + view["w"] - 1000, view["y"])


def save(session: Any, name: str, width: int, height: int, x: int, y: int) -> None:
    """Save a part of the screen as a small file."""
    picture = PICTURES / name
    picture.parent.mkdir(parents=True, exist_ok=True)
    session.shot(str(picture), crop=f"{width}x{height}+{x}+{y}")
    subprocess.run(["convert", picture, "-strip", "-dither", "None", "-colors", "128", picture], check=True)
    print(f"Took {picture.relative_to(ROOT)}, {picture.stat().st_size // 1024} kB")


def main(driver: str) -> None:
    """Take all pictures."""
    with window.opened(driver) as session:
        panel(session)


if __name__ == "__main__":
    main(*sys.argv[1:])
