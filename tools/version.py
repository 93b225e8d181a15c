"""The extension's version, in every place that names it.

`python3 tools/dev.py version` prints it. `version 0.3.0` begins a version: writes it everywhere, and adds a section
headed "Unreleased" to CHANGELOG.md. `version 0.3.0 2027-01-31` dates that section: the version is then released.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from pathlib import Path

from tools.environments import ROOT, ToolError

SEMANTIC = r"\d+\.\d+\.\d+"
KEY = rf'^version = "({SEMANTIC})"$'
ZIP = rf"\bik_addon-({SEMANTIC})\.zip\b"
PLACES = (
    ("blender_manifest.toml", KEY),
    ("pyproject.toml", KEY),
    ("README.md", ZIP),
    ("docs/command_line.md", ZIP),
)
"""Files that name the current version, with patterns whose first group is the number."""
CHANGELOG = "CHANGELOG.md"
UNRELEASED = "Unreleased"
SECTION = rf"^## \[({SEMANTIC})\] - (\d{{4}}-\d{{2}}-\d{{2}}|{UNRELEASED})$"
"""Number and date of a changelog section."""


def current(root: Path = ROOT) -> str:
    """Return the version in the manifest.

    Raises:
        ToolError: the manifest has none.
    """
    # Not every Python that may start the tools has tomllib.
    path, pattern = PLACES[0]
    found = re.search(pattern, _read(root / path), re.MULTILINE)
    if not found:
        raise ToolError(f'{path} has no line `version = "1.2.3"`; give it one.')
    return found[1]


def sections(root: Path = ROOT) -> list[tuple[str, str]]:
    """Return the number and date, or "Unreleased", of each version in the changelog, newest first."""
    return re.findall(SECTION, _read(root / CHANGELOG), re.MULTILINE)


def released(root: Path = ROOT) -> list[str]:
    """Return the versions that have a date in the changelog, newest first."""
    return [number for number, date in sections(root) if date != UNRELEASED]


def write(number: str, date: str = UNRELEASED, root: Path = ROOT) -> list[str]:
    """Make `number` the current version, released on `date`; return the changed files.

    Raises:
        ToolError: number or date are malformed, the version has been released already, or a file does not name a
            version. Nothing is changed then.
    """
    _check(number, date, root)
    texts = {}
    for path, pattern in PLACES:
        texts[path], count = re.subn(pattern, lambda found: _with_number(found, number), _read(root / path), flags=re.M)
        if not count:
            raise ToolError(f"{path} names no version any more; let tools/version.py know.")
    texts[CHANGELOG] = _with_section(_read(root / CHANGELOG), number, date)
    changed = [path for path, text in texts.items() if text != _read(root / path)]
    for path in changed:
        (root / path).write_text(texts[path], encoding="utf-8", newline="\n")
    return changed


def main(arguments: Sequence[str]) -> int:
    """Print the version, or write the one in `arguments`."""
    if not arguments:
        print(current())
        return 0
    if len(arguments) > 2:
        raise ToolError("`version` takes a number, and a date when it is released: version 0.3.0 2027-01-31")
    changed = write(arguments[0], arguments[1] if len(arguments) == 2 else UNRELEASED)
    print(f"Changed {', '.join(changed)}" if changed else "Nothing to change")
    return 0


def _check(number: str, date: str, root: Path) -> None:
    if not re.fullmatch(SEMANTIC, number):
        raise ToolError(f"{number} is not a version: it takes three numbers, for example 0.3.0.")
    if date != UNRELEASED:
        try:
            datetime.datetime.strptime(date, "%Y-%m-%d")
        except ValueError:
            raise ToolError(f"{date} is not a date: write it like 2027-01-31.") from None
    if number in released(root):
        raise ToolError(f"{number} was released before; choose a higher number.")


def _with_number(found: re.Match[str], number: str) -> str:
    start, end = (place - found.start() for place in found.span(1))
    return found[0][:start] + number + found[0][end:]


def _with_section(text: str, number: str, date: str) -> str:
    """Return the changelog with a section for `number`, dated `date`."""
    heading = f"## [{number}] - {date}"
    own = re.compile(rf"^## \[{re.escape(number)}\] - .*$", re.MULTILINE)
    if own.search(text):
        return own.sub(heading, text)
    first = re.search(SECTION, text, re.MULTILINE)
    if not first:
        raise ToolError(f"{CHANGELOG} has no section like `{heading}`.")
    return f"{text[: first.start()]}{heading}\n\n{text[first.start() :]}"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
