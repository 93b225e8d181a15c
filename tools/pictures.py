"""Take the pictures of the documentation from the real program: `python3 tools/pictures.py`.

Needs a driver, see `tools/window.py`, and ImageMagick.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Started as a script, Python looks for imports beside this file; `tools` is one folder up.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import extension, window
from tools.environments import OLDEST, ROOT, ensure

PICTURES = ROOT / "docs" / "images"

METARIG = "import inside\ninside.metarig()\nbpy.ops.object.mode_set(mode='OBJECT')"
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

CHAINS = """
import math
rig = bpy.context.object
bpy.ops.object.mode_set(mode='POSE')
offsets = {
    'shin.R': (-0.05, -0.35, 0.3), 'forearm.R': (-0.3, -0.2, 0.25), 'shin.L': (0.0, 0.0, 0.0),
    'forearm.L': (-0.22, -0.16, 0.1),
}
for tip, offset in offsets.items():
    rig.data.bones.active = rig.data.bones[tip]
    bpy.ops.ik_addon.chain_add()
    target = rig.pose.bones[tip].ik_addon.target
    target.location = [a + b for a, b in zip(target.location, offset)]
limits = {
    'upper_arm.L': {'x': (-80, 60), 'z': (-40, 70), 'y': (-45, 60)},
    'forearm.L': {'x': (0, 130), 'z': (0, 0), 'y': (-60, 20)},
}
for name, axes in limits.items():
    bone = rig.pose.bones[name]
    for axis, (low, high) in axes.items():
        setattr(bone, f'lock_ik_{axis}', low == high)
        setattr(bone, f'use_ik_limit_{axis}', True)
        setattr(bone, f'ik_min_{axis}', math.radians(low))
        setattr(bone, f'ik_max_{axis}', math.radians(high))
rig.ik_addon.live = True
bpy.ops.pose.select_all(action='DESELECT')
rig.data.bones.active = rig.data.bones['forearm.L']
"""
"""Four chains on a metarig, that of the left arm with limits, that of the right arm out of reach."""

CLOSER = """
view = view3d()[1].spaces.active
view.region_3d.view_rotation = Euler((1.3, 0.0, 0.5)).to_quaternion()
view.region_3d.view_location = Vector((0.0, 0.0, 1.2))
view.region_3d.view_distance = 2.05
"""


def panel(session: Any) -> None:
    """The panel, with an arm of the metarig that has followed its target."""
    session.call(METARIG)
    session.call(VIEW)
    session.idle(1.0)
    session.click_button("ik_addon.chain_add")  # which switches Live on
    session.idle(1.0)
    session.call(SELECT_TARGET)
    drag(session, -90, -240)
    view = session.call("result = rects()['WINDOW']")
    save(session, "panel.png", 1000, 640, view["x"] + view["w"] - 1000, view["y"])


def overlay(session: Any) -> None:
    """What is drawn over the viewport."""
    session.call("for ob in list(bpy.data.objects):\n    bpy.data.objects.remove(ob)")
    session.call(METARIG)
    session.call(VIEW + CLOSER)
    session.call(CHAINS)
    session.idle(2.0)
    view = session.call("result = rects()['WINDOW']")
    save(session, "overlay.png", 880, 640, view["x"] + 60, view["y"] + 70)


def drag(session: Any, x: int, y: int) -> None:
    """Move what is selected by the mouse, from the middle of the viewport by so many pixels."""
    view = session.call("result = rects()['WINDOW']")
    start = view["x"] + view["w"] // 2, view["y"] + view["h"] // 2
    session.move(*start)
    session.key("g")
    for step in range(1, 11):
        session.move(start[0] + x * step // 10, start[1] + y * step // 10, settle=0.15)
    session.x("click", 1)
    session.idle(1.0)


@contextmanager
def opened() -> Iterator[Any]:
    """A Blender with the extension, an empty scene and the extension's tab."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pictures-", dir=ROOT / "build") as name:
        folder = Path(name)
        package = extension.build(ensure(OLDEST.environment), folder)
        program = window.program(folder / "user")
        with program.opened(folder / "user", "1600x1000x24") as session:
            inside = window.Inside(session, Path(__file__).with_name("inside.py"))
            inside.install(str(package))
            inside.new_file()
            session.idle(1.0)
            session.click_tab("IK")
            yield session


def save(session: Any, name: str, width: int, height: int, x: int, y: int) -> None:
    """Save a part of the screen as a small file."""
    picture = PICTURES / name
    picture.parent.mkdir(parents=True, exist_ok=True)
    session.shot(str(picture), crop=f"{width}x{height}+{x}+{y}")
    subprocess.run(["convert", picture, "-strip", "-dither", "None", "-colors", "128", picture], check=True)
    print(f"Took {picture.relative_to(ROOT)}, {picture.stat().st_size // 1024} kB")


def main() -> None:
    """Take all pictures."""
    with opened() as session:
        panel(session)
        overlay(session)


if __name__ == "__main__":
    main()
