"""Examples in the documentation: indented blocks of Python, each followed by what it prints."""

import contextlib
import io
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
_BLOCK = re.compile(r"(?:^(?: {4}.*)?\n)+", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """A block of code."""

    title: str
    """The heading above it."""
    code: str
    printed: str
    """The expected output below "prints"; empty if there is none."""

    @property
    def needs_blender(self) -> bool:
        """Return whether the code imports bpy."""
        return "import bpy" in self.code

    def run(self) -> str:
        """Run the code in its own namespace and return what it prints, without the reports of operators."""
        names: dict[str, Any] = {"__name__": "__main__"}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(self.code, self.title, "exec"), names)
        lines = out.getvalue().splitlines()
        return "\n".join(line for line in lines if not line.startswith(("Info: ", "Warning: ", "Error: "))).strip()


def examples(page: str) -> list[Example]:
    """Return all blocks of Python on a page, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = [match for match in _BLOCK.finditer(text) if match.group().strip()]
    found = []
    for i, block in enumerate(blocks):
        code = textwrap.dedent(block.group()).strip()
        if not code.startswith(("import ", "from ")):
            continue
        above = text[: block.start()]
        title = re.findall(r"^#+ (.*)$", above, re.MULTILINE)[-1]
        follows = blocks[i + 1] if i + 1 < len(blocks) else None
        prints = follows is not None and text[block.end() : follows.start()].strip() == "prints"
        found.append(Example(title, code, textwrap.dedent(follows.group()).strip() if follows and prints else ""))
    return found
