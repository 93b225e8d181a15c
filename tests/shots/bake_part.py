"""`ik_bake` in its own Blender, as on a render farm.

Started by `test_parts.py` in a separate process. Arguments: the zip, a folder for Blender's files, the file to open,
and the arguments of the command.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from tools import blender


def main(package: str, folder: str, file: str, *arguments: str) -> int:
    """Open the file and run the command."""
    blender.prepare(Path(folder))
    import bpy

    blender.install(Path(package))
    bpy.ops.wm.open_mainfile(filepath=file)
    code: int = importlib.import_module(f"{blender.PACKAGE}.ik_addon.shots.command").main(arguments)
    return code


if __name__ == "__main__":
    blender.leave(main(*sys.argv[1:]))
