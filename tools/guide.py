"""Turn the user guide into web pages, which the extension ships: `python -m tools.guide` needs markdown-it-py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any

from tools.catalogs import BUILDER, put
from tools.environments import ROOT, ToolError, ensure
from tools.processes import run

SOURCE, TARGET = ROOT / "docs", ROOT / "ik_addon" / "docs"
PAGES = ("guide.md", "guide/*.md", "command_line.md", "glossary.md", "scripting.md")
"""What is for users. Links to other pages become plain text."""
FRAME = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>
  :root {{ color-scheme: light dark }}
  body {{ max-width: 46em; margin: 2em auto; padding: 0 1em; font: 1rem/1.5 system-ui, sans-serif }}
  img {{ max-width: 100% }}
  table {{ border-collapse: collapse }}
  th, td {{ border: 1px solid #8888; padding: .3em .6em; text-align: left; vertical-align: top }}
  pre {{ overflow-x: auto }}
</style>
<p><a href="{home}">User guide</a></p>
{body}</html>
"""


def write() -> None:
    """Write the pages and their pictures, where they differ from what is there."""
    if run([str(ensure(BUILDER)), "-m", "tools.guide"], {"PYTHONPATH": str(ROOT)}):
        raise ToolError("The guide can't be turned into web pages. The reason stands above.")


def main() -> None:
    """Write them with this Python."""
    from markdown_it import MarkdownIt  # type: ignore[import-not-found]
    from mdit_py_plugins.anchors import anchors_plugin  # type: ignore[import-not-found]

    reader = MarkdownIt("commonmark").enable("table").use(anchors_plugin, max_level=4)
    sources = {path for pattern in PAGES for path in SOURCE.glob(pattern)}
    made = {}
    for path in sources:
        tokens = reader.parse(path.read_text(encoding="utf-8"))
        for token in _inside(tokens):
            if token.type == "link_open" and "://" not in str(token.attrs["href"]):
                place, mark, heading = str(token.attrs["href"]).partition("#")
                is_page = not place or (path.parent / place).resolve() in sources
                token.attrs = {"href": place.replace(".md", ".html") + mark + heading} if is_page else {}
        page = TARGET / path.relative_to(SOURCE).with_suffix(".html")
        home = "../" * (len(path.relative_to(SOURCE).parts) - 1) + "guide.html"
        body = reader.renderer.render(tokens, reader.options, {})
        for shown in re.findall(r'<img src="([^"]+)"', body):
            picture = (path.parent / shown).resolve()
            made[TARGET / picture.relative_to(SOURCE)] = picture.read_bytes()
        made[page] = FRAME.format(title=escape(tokens[1].content), home=home, body=body).encode()
    for file, content in made.items():
        put(file, content)
    for old in TARGET.rglob("*.*"):
        if old.suffix in {".html", ".png", ".jpg"} and old not in made:
            old.unlink(missing_ok=True)


def _inside(tokens: list[Any]) -> Iterator[Any]:
    """Yield tokens and those in them."""
    for token in tokens:
        yield token
        yield from _inside(token.children or [])


if __name__ == "__main__":
    main()
