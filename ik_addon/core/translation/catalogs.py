"""The catalogs of translations, one gettext file per language, such as `de.po` for German."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bpy

from .sentences import CONTEXT

FOLDER = Path(__file__).with_name("catalogs")
CONTEXTS = ("*", "Operator", CONTEXT)
"""Blender's translation contexts: the second is for labels of operators, the first for everything else. In these two,
Blender's own catalogs come first."""


def register() -> None:
    """Register the translations with Blender."""
    translations: Any = bpy.app.translations
    translations.register(__package__, {path.stem: _in_contexts(read(path)) for path in sorted(FOLDER.glob("*.po"))})


def unregister() -> None:
    """Unregister the translations."""
    bpy.app.translations.unregister(__package__)


def read(path: Path) -> dict[str, str]:
    """Return the translated entries of a catalog.

    Raises:
        ValueError: the file is malformed (the message names the line), or it has an entry twice.
    """
    entries: list[tuple[list[str], list[str]]] = []
    parts: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        keyword, quote, rest = line.partition('"')
        try:
            text = str(json.loads(quote + rest))
            if keyword == "msgid ":
                entries.append(([], []))
                parts = entries[-1][0]
            elif keyword == "msgstr " and parts is entries[-1][0]:
                parts = entries[-1][1]
            elif keyword or not parts:
                raise ValueError("neither msgid nor msgstr")
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path.name}, line {number}: {error}") from None
        parts.append(text)
    found: dict[str, str] = {}
    for original, translation in entries:
        english, other = "".join(original), "".join(translation)
        if english in found:
            raise ValueError(f"{path.name} has two entries for {english!r}")
        if english and other:
            found[english] = other
    return found


def _in_contexts(entries: dict[str, str]) -> dict[tuple[str, str], str]:
    return {(context, english): other for english, other in entries.items() for context in CONTEXTS}
