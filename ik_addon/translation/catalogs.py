"""The catalogs of translations, a file for each language in gettext's format: `de.po` has what German users read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bpy

FOLDER = Path(__file__).with_name("catalogs")
CONTEXTS = ("*", "Operator")
"""Blender looks for the labels of operators in the second one, and for everything else in the first."""


def register() -> None:
    """Have Blender translate what the extension shows."""
    translations: Any = bpy.app.translations
    translations.register(__package__, {path.stem: _in_contexts(read(path)) for path in sorted(FOLDER.glob("*.po"))})


def unregister() -> None:
    """Forget the translations."""
    bpy.app.translations.unregister(__package__)


def read(path: Path) -> dict[str, str]:
    """The translated entries of a catalog.

    Raises:
        ValueError: it is broken; the message says on which line.
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
