"""Runs inside the Blender of a `Session` and does what that asks: `blender --python agent.py -- PORT`.

The session sends lines of JSON, `{"code": "..."}`, over a socket. The code runs in Blender's main loop and sees the
functions of this module; what it assigns to `result` is sent back. If the session ends, Blender ends too.

Places are pixels of the screen, counted from its top left corner.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import traceback
from functools import partial
from typing import Any

import bpy

EVERY = 0.02
"""Seconds between two looks for requests."""


def viewport() -> tuple[Any, Any, dict[str, Any]]:
    """Return the window and the area of the largest 3D viewport, and its regions by type."""
    manager: Any = bpy.context.window_manager
    found = [
        (area.width * area.height, index, window, area)
        for index, window in enumerate(manager.windows)
        for area in window.screen.areas
        if area.type == "VIEW_3D"
    ]
    _size, _index, window, area = max(found, key=lambda entry: entry[:2])
    return window, area, {region.type: region for region in area.regions}


def rects() -> dict[str, dict[str, int]]:
    """Return the place `x`, `y` and the size `w`, `h` of the regions of the viewport that are shown."""
    window, _area, regions = viewport()
    return {
        kind: {"x": part.x, "y": window.height - part.y - part.height, "w": part.width, "h": part.height}
        for kind, part in regions.items()
        if part.width > 1 and part.height > 1
    }


def open_sidebar() -> None:
    """Show the sidebar; it has tabs once it is drawn."""
    _window, area, _regions = viewport()
    area.spaces.active.show_region_ui = True
    area.tag_redraw()


def tab() -> str:
    """Return the name of the tab at the front of the sidebar."""
    return str(viewport()[2]["UI"].active_panel_category)


def hovered() -> str | None:
    """Return the call of the operator, or the path of the setting, whose button in the sidebar is under the mouse.

    It is what Copy Python Command and Copy Full Data Path in the button's menu put on the clipboard.
    """
    window, area, regions = viewport()
    buttons: Any = bpy.ops.ui
    manager: Any = bpy.context.window_manager
    before = manager.clipboard
    try:
        with bpy.context.temp_override(window=window, area=area, region=regions["UI"]):
            for copy in (buttons.copy_python_command_button, partial(buttons.copy_data_path_button, full_path=True)):
                # It raises an error where there is no button of its kind.
                with contextlib.suppress(RuntimeError):
                    if "FINISHED" in copy():
                        return str(manager.clipboard)
    finally:
        manager.clipboard = before
    return None


def answer(request: bytes) -> bytes:
    """Run the code of a request and return the reply."""
    names = dict(globals())
    try:
        exec(compile(json.loads(request)["code"], "<session>", "exec"), names)
        return json.dumps({"result": names.get("result")}).encode() + b"\n"
    except Exception:
        return json.dumps({"error": traceback.format_exc()}).encode() + b"\n"


def serve(port: int) -> None:
    """Do what the session at a port asks, from now on."""
    link = socket.create_connection(("127.0.0.1", port))
    link.setblocking(False)
    unread = bytearray()

    def look() -> float:
        try:
            while news := link.recv(65536):
                unread.extend(news)
            os._exit(0)
        except BlockingIOError:
            pass
        except OSError:
            os._exit(0)
        while b"\n" in unread:
            request, _, rest = bytes(unread).partition(b"\n")
            unread[:] = rest
            reply = answer(request)
            link.setblocking(True)
            link.sendall(reply)
            link.setblocking(False)
        return EVERY

    bpy.app.timers.register(look, persistent=True)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    preferences: Any = bpy.context.preferences
    preferences.view.show_splash = False
    preferences.use_preferences_save = False
    serve(int(sys.argv[-1]))
