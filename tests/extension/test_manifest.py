"""Rules for the manifest that Blender's own `validate` does not check."""

from __future__ import annotations

import re
import tomllib

from tools.environments import OLDEST, ROOT

MANIFEST = tomllib.loads((ROOT / "blender_manifest.toml").read_text(encoding="utf-8"))


def test_says_what_blender_asks_for() -> None:
    wanted = {
        "id": "ik_addon",
        "type": "add-on",
        "license": ["SPDX:GPL-3.0-or-later"],
        "tags": ["Animation", "Rigging"],
    }
    assert {key: MANIFEST[key] for key in wanted} == wanted
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    for part in (
        "GNU GENERAL PUBLIC LICENSE",
        "Version 3, 29 June 2007",
        "How to Apply These Terms to Your New Programs",
    ):
        assert part in text


def test_tagline_fits() -> None:
    assert 0 < len(MANIFEST["tagline"]) <= 64
    assert re.search(r"[0-9A-Za-z)]$", MANIFEST["tagline"]), "it must not end in a punctuation mark"


def test_minimum_blender_version_is_the_oldest_tested() -> None:
    assert MANIFEST["blender_version_min"] == ".".join(OLDEST.version.split(".")[:2]) + ".0"
    assert "blender_version_max" not in MANIFEST, "a newer Blender must not lock its users out"


def test_has_no_unknown_key_and_asks_for_files_alone() -> None:
    """Blender brings numpy, and there is nothing to load."""
    known = {
        *("schema_version", "id", "version", "name", "tagline", "maintainer", "type", "license", "tags", "build"),
        *("blender_version_min", "website", "copyright", "permissions"),
    }
    assert set(MANIFEST) <= known
    assert list(MANIFEST["permissions"]) == ["files"]
    assert re.fullmatch(r".{1,63}[0-9A-Za-z)]", MANIFEST["permissions"]["files"])
