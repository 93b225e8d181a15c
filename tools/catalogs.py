"""Turn catalogs of translations, in gettext's format, into what the extension ships: one JSON file per language.

Entries marked fuzzy, obsolete or empty are left out. `python -m tools.catalogs SOURCE TARGET` needs polib.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.environments import ROOT, Environment, ToolError, ensure
from tools.processes import run

FOLDER = ROOT / "ik_addon" / "core" / "translation" / "catalogs"
OWN = "IK Chains"
"""The context of `say`, for words that Blender itself translates in another sense, such as Extend."""
CONTEXTS = ("*", "Operator", OWN)
"""Where an entry without a context belongs: to Blender's labels, its labels of operators, and our sentences."""
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
BUILDER = Environment(
    f"build-{_VERSION}", _VERSION, ("polib==1.2.0", "markdown-it-py==4.3.0", "mdit-py-plugins==0.7.0")
)
"""Reads what is written by hand, and makes what is shipped."""


def write(source: Path = FOLDER, target: Path = FOLDER) -> None:
    """Write the catalogs in the folder `source` into `target`, where they differ from what is there.

    Raises:
        ToolError: a catalog is malformed.
    """
    if run([str(ensure(BUILDER)), "-m", "tools.catalogs", str(source), str(target)], {"PYTHONPATH": str(ROOT)}):
        raise ToolError("A catalog of translations can't be read. The reason stands above.")


def main(source: Path, target: Path) -> None:
    """Write all catalogs, with this Python."""
    import polib  # type: ignore[import-untyped]

    for path in sorted(source.glob("*.po")):
        try:
            catalog = polib.pofile(str(path), check_for_duplicates=True)
        except (OSError, ValueError) as error:
            sys.exit(f"{path.name}: {error}")
        text = json.dumps(list(_entries(catalog)), ensure_ascii=False, indent=0)
        put(target / f"{path.stem}.json", text.encode())


def put(file: Path, content: bytes) -> None:
    """Write a file if it differs from what is there; other processes may do the same, and see the one or the other."""
    if not file.exists() or file.read_bytes() != content:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(content)
        part.replace(file)


def _entries(catalog: Any) -> Iterator[tuple[str, str, str]]:
    """Yield context, original and translation; form N of a plural has the context "IK Chains N"."""
    rule = re.search(r"plural=([^;]+)", catalog.metadata.get("Plural-Forms", ""))
    if rule:
        yield OWN, "Plural-Forms", rule[1].strip()
    for entry in catalog.translated_entries():
        if entry.msgid_plural:
            for number, text in sorted(entry.msgstr_plural.items()):
                yield from ((f"{OWN} {number}", english, text) for english in (entry.msgid, entry.msgid_plural))
        else:
            contexts = (entry.msgctxt,) if entry.msgctxt else CONTEXTS
            yield from ((context, entry.msgid, entry.msgstr) for context in contexts)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
