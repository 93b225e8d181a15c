"""Take the pictures of the documentation from the real program: `python3 tools/pictures.py DRIVER`.

DRIVER is the folder of `gui_drive.py`, which opens a Blender in a virtual screen, moves its mouse and looks at it. The
extension is built from this checkout and installed into a fresh user folder.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# Started as a script, Python looks for imports beside this file; `tools` is one folder up.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import extension
from tools.environments import OLDEST, ROOT, ensure

PICTURES = ROOT / "docs" / "images"

SET_UP = """
import addon_utils
addon_utils.enable('bl_pkg')
bpy.ops.extensions.package_install_files(filepath={package!r}, repo='user_default', enable_on_install=True)
bpy.ops.preferences.addon_enable(module='rigify')
bpy.context.preferences.view.show_splash = False
for ob in list(bpy.data.objects):
    bpy.data.objects.remove(ob)
"""

METARIG = """
from mathutils import Euler, Vector
window, area, region, _sidebar = view3d()
with bpy.context.temp_override(window=window, area=area, region=region):
    bpy.ops.object.armature_human_metarig_add()
rig = bpy.context.object
for collection in rig.data.collections_all:
    collection.is_visible = not collection.name.startswith('Face')
rig.data.bones.active = rig.data.bones['forearm.L']
view = area.spaces.active
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


def panel(session: Any, picture: Path) -> None:
    """The panel, with an arm of the metarig that follows its target while that is dragged."""
    session.click_tab("IK")
    session.call(METARIG)
    session.idle(1.0)
    session.click_button("ik_addon.chain_add")
    session.click_button("ik_addon.live")
    session.call(SELECT_TARGET)
    view = session.call("result = rects()['WINDOW']")
    x, y = view["x"] + view["w"] // 2, view["y"] + view["h"] // 2
    session.move(x, y)
    session.key("g")
    for step in range(1, 11):
        session.move(x - 9 * step, y - 24 * step, settle=0.15)
    session.x("click", 1)
    session.idle(1.0)
    width, height = 1000, 640
    session.shot(str(picture), crop=f"{width}x{height}+{view['x'] + view['w'] - width}+{view['y']}")


def main(driver: str) -> int:
    """Take all pictures."""
    sys.path.insert(0, driver)
    gui_drive = importlib.import_module("gui_drive")
    PICTURES.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="pictures-", dir=ROOT / "build"))
    try:
        package = extension.build(ensure(OLDEST.environment), folder)
        with gui_drive.Session(str(ROOT), user=str(folder)) as session:
            session.idle(3.0)
            session.call(SET_UP.format(package=str(package)))
            session.idle(1.0)
            panel(session, PICTURES / "panel.png")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for picture in PICTURES.glob("*.png"):
        subprocess.run(["convert", picture, "-strip", "-dither", "None", "-colors", "128", picture], check=True)
        print(f"Took {picture.relative_to(ROOT)}, {picture.stat().st_size // 1024} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
