"""Set up and end a process that has Blender as its module `bpy`, with its own user folder.

Call these in order: `prepare` before the first import of bpy, `install` (or `enable` if the user folder already has the
extension), and `leave` at the end.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

REPOSITORY = "user_default"
PACKAGE = f"bl_ext.{REPOSITORY}.ik_addon"


def prepare(folder: Path) -> None:
    """Make Blender keep the user's files and its temporary files in `folder`."""
    if "bpy" in sys.modules:
        raise RuntimeError("bpy is imported already: the folder of a user's files can no longer be chosen.")
    os.environ.update(variables(folder))
    # Python has cached the folder for temporary files.
    tempfile.tempdir = None


def variables(folder: Path) -> dict[str, str]:
    """Return the environment variables that make Blender keep user files and temporary files below `folder`."""
    places = {"BLENDER_USER_RESOURCES": folder / "user", "TMPDIR": folder / "tmp"}
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    return {name: str(place) for name, place in places.items()}


def install(package: Path) -> None:
    """Install the extension's zip and enable it, as a user would."""
    import bpy

    _addon_utils().enable("bl_pkg")
    bpy.ops.extensions.package_install_files(filepath=str(package), repo=REPOSITORY, enable_on_install=True)
    if not is_enabled():
        raise RuntimeError(f"Blender installed {package.name} but did not enable it: see what it printed.")


def enable() -> None:
    """Enable the installed extension."""
    _addon_utils().enable(PACKAGE, default_set=True)
    if not is_enabled():
        raise RuntimeError(f"Blender did not enable {PACKAGE}: see what it printed.")


def disable() -> None:
    """Disable the extension if it is enabled."""
    if is_enabled():
        _addon_utils().disable(PACKAGE, default_set=True)


def is_enabled() -> bool:
    """Whether the extension is installed and enabled."""
    return bool(_addon_utils().check(PACKAGE)[1])


def _addon_utils() -> Any:
    """Return Blender's module for enabling add-ons, which can be imported only after bpy."""
    import bpy  # noqa: F401

    return importlib.import_module("addon_utils")


def leave(code: int) -> NoReturn:
    """End the process with `code`, in the only way that works in every supported version."""
    if "bpy" in sys.modules:
        with contextlib.suppress(Exception):
            disable()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
