"""Make the icon and the featured picture for extensions.blender.org: `python3 tools/store_pictures.py`.

The icon is that of the tool Pose Body; the featured picture is taken from a window. Needs ImageMagick, and the Blender
of `python3 tools/dev.py window-setup`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# A script finds imports only beside itself; the package `tools` is one folder up.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import tool_icon, window_pictures

ICON, FEATURED = (window_pictures.PICTURES / f"store-{name}.png" for name in ("icon", "featured"))
SIZE = 256
"""Width and height of the icon, in pixels."""
SCREEN = "1920x1080x24"
BACKGROUND = "#2f2a3a"


def icon() -> None:
    """Draw the icon."""
    body, held = tool_icon.shape()
    draw = [f"fill {BACKGROUND} roundrectangle 0,0 {SIZE - 1},{SIZE - 1} 48,48"]
    for triangles, color in ((body, tool_icon.LIGHT), (held, tool_icon.ACCENT)):
        for triangle in triangles:
            corners = " ".join(f"{x:.1f},{SIZE - y:.1f}" for x, y in triangle)
            draw.append(f"fill rgb({color[0]},{color[1]},{color[2]}) polygon {corners}")
    scale = ["-size", f"{4 * SIZE}x{4 * SIZE}", "xc:none", "-draw", "scale 4,4 " + " ".join(draw)]
    subprocess.run(["convert", *scale, "-resize", f"{SIZE}x{SIZE}", "-strip", str(ICON)], check=True)


def featured() -> None:
    """Take the featured picture: the sample of a character in a whole window, with the tool in hand."""
    with window_pictures.opened(SCREEN) as studio:
        studio.sample("character", "forearm.L", 30, ((1.3, 0.0, 0.6), (0.6, 0.1, 0.72), 2.1))
        studio.inside.choose_tool("ik_addon.goals")
        studio.rest_mouse()
        studio.session.shot(str(FEATURED))
    subprocess.run(["convert", FEATURED, "-strip", "-dither", "None", "-colors", "192", FEATURED], check=True)


if __name__ == "__main__":
    icon()
    featured()
