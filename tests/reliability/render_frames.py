"""Render frames of a file in any order, as a machine of a render farm does, and save their poses.

`test_rendering.py` starts this script in a separate process. Arguments: the zip, the file, a folder, the frames.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools import blender


def main(package: str, file: str, folder: str, *frames: str) -> None:
    """Render each frame as a still and save its pose beside it."""
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
