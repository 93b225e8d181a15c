"""Render frames of a file in an order of one's own, as a machine of a render farm does, and write down the poses.

Started by `test_rendering.py` in a process of its own. Arguments: the zip, the file, a folder, the frames.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools import blender


def main(package: str, file: str, folder: str, *frames: str) -> None:
    """Render each frame as a still."""
    blender.prepare(Path(folder) / "blender")
    import bpy

    from tests import rigs

    blender.install(Path(package))
    bpy.ops.wm.open_mainfile(filepath=file)
    for frame in frames:
        bpy.context.scene.frame_set(int(frame))
        bpy.context.scene.render.filepath = str(Path(folder) / f"{frame}.png")
        bpy.ops.render.render(write_still=True)
        Path(folder, f"{frame}.pose").write_bytes(rigs.pose(bpy.data.objects["Rig"]).tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
    blender.leave(0)
