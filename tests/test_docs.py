"""The documentation: its examples run in Blender, and the names in it are those of the extension."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import bpy
import pytest

from tests.documents import DOCS, examples

if TYPE_CHECKING:
    from tests.conftest import Addon

ROOT = DOCS.parent
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def test_examples_print_what_the_page_says() -> None:
    """All examples of a page run in one scene, in order."""
    found = [example for example in examples("scripting.md") if example.needs_blender]
    assert len(found) >= 5
    for example in found:
        assert example.run() == example.printed, example.title


def rows(page: str, heading: str) -> Iterator[list[str]]:
    """Yield the cells of the tables in a section of a page, without the header rows."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = re.split(r"^## ", text.split(f"## {heading}\n", 1)[1], flags=re.MULTILINE)[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert tables, f"no table in '{heading}' of {page}"
    for table in tables:
        for line in table.splitlines()[2:]:
            yield [cell.strip() for cell in line.strip("|").split("|")]


def names(cell: str) -> list[str]:
    """Return the names in backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def test_settings_on_the_page_match_the_extension() -> None:
    chain = {p.identifier: p for p in bpy.types.PoseBone.bl_rna.properties["ik_addon"].fixed_type.properties}
    described = set()
    for name, text in rows("scripting.md", "Settings"):
        if "." in name:
            owner = bpy.types.Object if "object." in name else bpy.types.Scene
            settings = owner.bl_rna.properties["ik_addon"].fixed_type.properties
            assert {n.rpartition(".")[2] for n in names(name)} <= set(settings.keys()), name
            continue
        for setting in names(name):
            assert setting in chain
            described.add(setting)
            if chain[setting].type == "ENUM":
                assert names(text) == [item.identifier for item in chain[setting].enum_items]
    hidden = {"rna_type", "name", "base", "resting", "stamp", "stiff_as_limited"}
    assert set(chain) - hidden == described


def test_operators_on_the_page_match_the_extension() -> None:
    described = set()
    for operators, properties, _text in rows("scripting.md", "Operators"):
        for operator in names(operators):
            if operator.endswith("."):
                continue
            described.add(operator)
            known = getattr(bpy.ops.ik_addon, operator).get_rna_type().properties
            for name in names(properties):
                choices = {item.identifier for p in known if p.type == "ENUM" for item in p.enum_items}
                assert name in known or name in choices or name == "bake", f"{operator}: {name}"
    hidden = {n for n in dir(bpy.ops.ik_addon) if "INTERNAL" in getattr(bpy.types, f"IK_ADDON_OT_{n}").bl_options}
    assert set(dir(bpy.ops.ik_addon)) - hidden <= described


def test_fields_of_the_report_on_the_page_match_the_extension(addon: Addon) -> None:
    report = addon.module("bake").BakeReport
    known = {field.name for field in dataclasses.fields(report)} | set(vars(report))
    for fields, _text in rows("scripting.md", "The report of a bake"):
        assert set(names(fields)) <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r'(?:\]\(|\bsrc=")([^)"]+)', text):
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            heads = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}, link


def spoken() -> str:
    """Return all texts of the extension, with a gap for each inserted value."""
    texts = []
    for path in (ROOT / "ik_addon").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values]
                texts.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


MESSAGES = (
    "The chain was solved",
    "The chain cannot be solved",
    "Nothing can be worked on",
    "A space could not be switched",
    "A chain could not be switched or keyed",
    "A chain could not be added",
    "A target or pole could not be dragged",
    "Remarks",
    "A character was set up",
)
"""The sections of the guide that list messages."""


def message_rows() -> list[list[str]]:
    return [row for section in MESSAGES for row in rows("guide/messages.md", section)]


def test_messages_of_the_guide_are_those_of_the_extension() -> None:
    known = spoken()
    text = (DOCS / "guide" / "messages.md").read_text(encoding="utf-8")
    messages = [row[0] for row in message_rows()]
    assert len(messages) > 20
    assert text.count("\n| ") == len(messages) + len(MESSAGES)
    for message in messages:
        longest = max(re.split(r"\.\.\.|\*.*?\*", message), key=len).strip()
        assert longest in known, message


def test_every_message_has_a_button_that_fixes_it_or_a_reason_why_not() -> None:
    known = spoken()
    for message, _meaning, mend in message_rows():
        labels = re.findall(r"\*\*([^*]+)\*\*", mend)
        assert labels or re.match(r"none: \w+ ", mend), message
        assert [label for label in labels if label not in known] == [], message


ERRORS = ("ChainError", "SpaceError", "KeysError")


def raised() -> Iterator[str]:
    """Yield the messages for chains that can't be solved, added or keyed, and for spaces that can't be switched."""
    for path in (ROOT / "ik_addon").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS and node.args:
                yield from (
                    part.value
                    for part in ast.walk(node.args[0])
                    if isinstance(part, ast.Constant) and isinstance(part.value, str) and " " in part.value
                )


def test_the_guide_lists_every_refusal() -> None:
    known = [re.split(r"\.\.\.|\*.*?\*", message) for message, *_rest in message_rows()]

    def matches(parts: list[str], message: str) -> bool:
        pattern = ".*".join(re.escape(part.strip().removesuffix(".")) for part in parts)
        return re.match(pattern, message.replace("The pole", "The target")) is not None

    lost = sorted({message for message in raised() if not any(matches(parts, message) for parts in known)})
    assert not lost, "\n".join(lost)
