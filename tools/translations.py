"""List which entries a catalog of translations lacks, ready to be pasted into it, and which it has in vain.

`python3 tools/dev.py translations [LANGUAGE ...]`, for example `de`; without any, it counts them in all catalogs.
"""

from __future__ import annotations

import json
import sys

import bpy  # noqa: F401  (before the extension is enabled)

from tools import blender, texts


def entry(text: str) -> str:
    """Return an entry that is not translated yet."""
    return f"\nmsgid {json.dumps(text, ensure_ascii=False)}\nmsgstr {json.dumps('')}"


def main(languages: list[str]) -> None:
    """Count these entries of each catalog, and list those of `languages`."""
    blender.enable()
    shown = texts.everything()
    reader = texts.installed("core.translation.catalogs")
    for path in sorted(reader.FOLDER.glob("*.json")):
        known = {english for _context, english in reader.read(path)} - {"Plural-Forms"}
        missing, unused = sorted(shown - known), sorted(known - shown)
        print(f"{path.stem}.po lacks {len(missing)} of {len(shown)} entries, and has {len(unused)} that nothing shows.")
        if path.stem in languages:
            print("\nLacking:", *map(entry, missing), "\nIn vain:", *map(entry, unused), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
    blender.leave(0)
