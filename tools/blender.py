"""What is done inside a process that has Blender as its module `bpy`, with a user folder of its own.

    from tools import blender

    blender.prepare(folder)         # before the first import of bpy
    blender.install(package)        # the zip; or blender.enable() where the user folder has it already
    ...
    blender.leave(0)                # Blender 4.2 to 4.5 crash or hang where a process ends otherwise
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

REPOSITORY = "user_default"
PACKAGE = f"bl_ext.{REPOSITORY}.ik_addon"


def prepare(folder: Path) -> None:
    """Make `folder` the place where Blender keeps a user's files and its temporary files."""
    if "bpy" in sys.modules:
        raise RuntimeError("bpy is imported already: the folder of a user's files can no longer be chosen.")
    for variable, name in (("BLENDER_USER_RESOURCES", "user"), ("TMPDIR", "tmp")):
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        os.environ[variable] = str(place)
    tempfile.tempdir = None


def install(package: Path) -> None:
    """Install the extension's zip and enable it, as a user does."""
    import addon_utils
    import bpy

    addon_utils.enable("bl_pkg")
    bpy.ops.extensions.package_install_files(filepath=str(package), repo=REPOSITORY, enable_on_install=True)
    if not is_enabled():
        raise RuntimeError(f"Blender installed {package.name} but did not enable it: see what it printed.")


def enable() -> None:
    """Enable the installed extension."""
    import addon_utils

    addon_utils.enable(PACKAGE, default_set=True)
    if not is_enabled():
        raise RuntimeError(f"Blender did not enable {PACKAGE}: see what it printed.")


def disable() -> None:
    """Disable the extension where it is enabled."""
    import addon_utils

    if is_enabled():
        addon_utils.disable(PACKAGE, default_set=True)


def is_enabled() -> bool:
    """Whether the extension is installed and enabled."""
    import addon_utils

    return bool(addon_utils.check(PACKAGE)[1])


def leave(code: int) -> NoReturn:
    """End the process with `code`, in the one way that every supported version survives."""
    if "bpy" in sys.modules:
        with contextlib.suppress(Exception):
            disable()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
