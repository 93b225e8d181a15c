"""Rules for the manifest that Blender's own `validate` does not check."""

from __future__ import annotations

import re
import tomllib

from tools.environments import OLDEST, ROOT

MANIFEST = tomllib.loads((ROOT / "blender_manifest.toml").read_text(encoding="utf-8"))


def test_license_is_gpl_3_or_later_and_its_text_is_included() -> None:
    assert MANIFEST["license"] == ["SPDX:GPL-3.0-or-later"]
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "GNU GENERAL PUBLIC LICENSE" in text
    assert "Version 3, 29 June 2007" in text
    assert "How to Apply These Terms to Your New Programs" in text


def test_tags_are_those_blender_knows() -> None:
    assert MANIFEST["tags"] == ["Animation", "Rigging"]


def test_tagline_fits() -> None:
    assert 0 < len(MANIFEST["tagline"]) <= 64
    assert re.search(r"[0-9A-Za-z)]$", MANIFEST["tagline"]), "it must not end in a punctuation mark"


def test_id_is_the_package_name_of_public_names() -> None:
    assert MANIFEST["id"] == "ik_addon"
    assert MANIFEST["type"] == "add-on"


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
