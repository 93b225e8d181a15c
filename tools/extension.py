"""Build the extension's zip with Python alone, and install it in a Blender."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from tools import blender, catalogs, guide, version
from tools.environments import ROOT, ToolError
from tools.processes import run

TOP_LEVEL = ("LICENSE", "__init__.py", "blender_manifest.toml")
"""What the zip contains besides the folder `ik_addon`."""
OLDEST_TIME = (1980, 1, 1, 0, 0, 0)
"""The timestamp of every file in the zip, the earliest the format allows: the same sources give the same bytes."""


def build(folder: Path) -> Path:
    """Build the extension's zip in `folder`; a test compares it with Blender's own build."""
    catalogs.write()
    guide.write()
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
    """Install the extension's zip in a user folder below `folder`; return the variables that a Blender needs to use it.

    That Blender still starts with factory settings: call `tools.blender.enable` to enable the extension.
    """
    variables = {"PYTHONPATH": str(ROOT), **blender.variables(folder)}
    code = (
        "import pathlib, sys; from tools import blender; blender.install(pathlib.Path(sys.argv[1])); blender.leave(0)"
    )
    if run([str(interpreter), "-c", code, str(package)], variables):
        raise ToolError(f"Blender could not install {package.name}. The reason stands above.")
    return variables


def _sources() -> Iterator[Path]:
    """Yield the files that the zip contains."""
    yield from (ROOT / name for name in TOP_LEVEL)
    for path in (ROOT / "ik_addon").rglob("*"):
        if path.is_file() and path.suffix != ".po" and "__pycache__" not in path.parts:
            yield path
