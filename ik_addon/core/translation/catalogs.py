"""The catalogs of translations, one file per language, as `tools.catalogs` makes them from gettext's format."""

import json
from pathlib import Path

import bpy

FOLDER = Path(__file__).with_name("catalogs")


def register() -> None:
    """Register the translations with Blender."""
    translations = bpy.app.translations
    translations.register(__package__, {path.stem: read(path) for path in sorted(FOLDER.glob("*.json"))})


def unregister() -> None:
    """Unregister the translations."""
    bpy.app.translations.unregister(__package__)


def read(path: Path) -> dict[tuple[str, str], str]:
    """Return the translations of a catalog by context and original."""
    return {(context, english): other for context, english, other in json.loads(path.read_text(encoding="utf-8"))}
