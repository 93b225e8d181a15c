"""The zip that users install."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tools.environments import ROOT


def test_holds_what_runs_and_nothing_else(package: Path) -> None:
    code = {path.relative_to(ROOT).as_posix() for path in (ROOT / "ik_addon").rglob("*.py")}
    with zipfile.ZipFile(package) as archive:
        held = {name for name in archive.namelist() if not name.endswith("/")}
    assert held == {"LICENSE", "__init__.py", "blender_manifest.toml"} | code
