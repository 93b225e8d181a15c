"""Building and installing the extension from outside of Blender, with Blender's own tools."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tools import blender
from tools.environments import ROOT, ToolError
from tools.processes import run


def build(interpreter: Path, folder: Path) -> Path:
    """Build the extension's zip in `folder` with the tool of the Blender that `interpreter` has, and validate it."""
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / f"ik_addon-{version()}.zip"
    package.unlink(missing_ok=True)
    _blender_ext(interpreter, "build", "--source-dir", str(ROOT), "--output-filepath", str(package))
    _blender_ext(interpreter, "validate", str(package))
    return package


def install(interpreter: Path, package: Path, folder: Path) -> dict[str, str]:
    """Install the extension's zip into a user folder below `folder`; return the variables that a Blender needs for it.

    Such a Blender starts with factory settings all the same: `tools.blender.enable` switches the extension on.
    """
    variables = {"PYTHONPATH": str(ROOT), **blender.variables(folder)}
    code = (
        "import pathlib, sys; from tools import blender; blender.install(pathlib.Path(sys.argv[1])); blender.leave(0)"
    )
    if run([str(interpreter), "-c", code, str(package)], variables):
        raise ToolError(f"Blender could not install {package.name}. The reason stands above.")
    return variables


def version() -> str:
    """The extension's version, as its manifest says."""
    # tomllib is not in every Python that may start the tools.
    found = re.search(r'^version = "(.+)"$', (ROOT / "blender_manifest.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if not found:
        raise ToolError('blender_manifest.toml has no line `version = "..."`; give it one.')
    return found[1]


def _blender_ext(interpreter: Path, *arguments: str) -> None:
    """Run the command line of Blender's extension system."""
    where = "import importlib.util; print(importlib.util.find_spec('bpy').origin)"
    module = subprocess.run([str(interpreter), "-c", where], capture_output=True, text=True, check=True).stdout
    found = sorted(Path(module.strip()).parent.glob("*/scripts/addons_core/bl_pkg/cli/blender_ext.py"))
    if not found:
        raise ToolError(f"{interpreter} has a bpy without blender_ext.py; delete the environment and run this again.")
    answer = subprocess.run([str(interpreter), str(found[-1]), *arguments], capture_output=True, text=True, check=False)
    if answer.returncode:
        raise ToolError(f"The extension could not pass `{arguments[0]}`:\n{answer.stdout}{answer.stderr}")
