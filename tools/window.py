"""A Blender with a window that is driven from outside, with this checkout's extension installed.

The driver is not part of the project: a folder with `gui_drive.py`, whose `Session` opens a Blender in a virtual
screen, moves its mouse, types, takes screenshots, and runs Python inside of it.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools import blender, extension
from tools.environments import OLDEST, ROOT, ensure

SET_UP = """
import addon_utils
addon_utils.enable('bl_pkg')
bpy.ops.extensions.package_install_files(filepath={package!r}, repo={repository!r}, enable_on_install=True)
bpy.ops.preferences.addon_enable(module='rigify')
for ob in list(bpy.data.objects):
    bpy.data.objects.remove(ob)
"""

METARIG = """
window, area, region, _sidebar = view3d()
with bpy.context.temp_override(window=window, area=area, region=region):
    bpy.ops.object.armature_human_metarig_add()
    bpy.ops.view3d.view_axis(type='FRONT')
    bpy.ops.view3d.view_selected()
bpy.context.object.data.bones.active = bpy.context.object.data.bones['forearm.L']
bpy.ops.ed.undo_push(message='Metarig')
"""
"""A human metarig, seen from the front, its left forearm active."""


@contextmanager
def opened(driver: str) -> Iterator[Any]:
    """Open a Blender as a new user who installed the extension, with an empty scene and the extension's tab."""
    sys.path.insert(0, driver)
    gui_drive = importlib.import_module("gui_drive")
    (ROOT / "build").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="window-", dir=ROOT / "build"))
    try:
        package = extension.build(ensure(OLDEST.environment), folder)
        with gui_drive.Session(str(ROOT), user=str(folder)) as session:
            session.idle(3.0)
            session.call(SET_UP.format(package=str(package), repository=blender.REPOSITORY))
            session.click_tab("IK")
            yield session
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
