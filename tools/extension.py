"""Building the extension's zip with Python alone, and installing it into a Blender."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from tools import blender, version
from tools.environments import ROOT, ToolError
from tools.processes import run

TOP_LEVEL = ("LICENSE", "__init__.py", "blender_manifest.toml")
"""What the zip holds beside the folder `ik_addon`."""
OLDEST_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the zip, the first that the format knows: the same sources make the same bytes."""


def build(folder: Path) -> Path:
    """Build the extension's zip in `folder`; a test compares it with the one that Blender builds."""
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / f"ik_addon-{version.current()}.zip"
    with zipfile.ZipFile(package, "w") as archive:
        for path in sorted(_sources()):
            entry = zipfile.ZipInfo(path.relative_to(ROOT).as_posix(), OLDEST_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
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


def _sources() -> Iterator[Path]:
    """The files that the zip holds."""
    yield from (ROOT / name for name in TOP_LEVEL)
    for path in (ROOT / "ik_addon").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path
