"""The documentation: its examples run in Blender, and what it names exists."""

import ast
import dataclasses
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import bpy
import numpy as np
import pytest

from tests import rigs, rigs_named
from tests.conftest import Addon
from tests.documents import DOCS, examples

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


def settings(page: Iterator[list[str]]) -> Iterator[str]:
    """Yield the settings on the page that do not exist, those that it leaves out, and wrong choices of settings."""
    group = bpy.types.PoseBone.bl_rna.properties["ik_addon"].fixed_type
    chain = {p.identifier.removesuffix("_object"): p for p in group.properties}
    described = set()
    for name, text in page:
        if "." in name:
            owner = bpy.types.Object if "object." in name else bpy.types.Scene
            known = owner.bl_rna.properties["ik_addon"].fixed_type.properties
            yield from (each for each in names(name) if each.rpartition(".")[2] not in known)
            continue
        described.update(names(name))
        for setting in names(name):
            if setting in chain and chain[setting].type == "ENUM":
                choices = [item.identifier for item in chain[setting].enum_items]
                yield from (f"{setting}: {choice}" for choice in {*choices} ^ {*names(text)})
    shown = {name for name, p in chain.items() if p.description and not p.is_hidden} - {"rna_type", "name"}
    yield from (described - chain.keys()) | (shown - described)


def operators(page: Iterator[list[str]]) -> Iterator[str]:
    """Yield the operators and their options on the page that do not exist, and the public ones that it leaves out."""
    every, described = set(dir(bpy.ops.ik_addon)), set()
    for cell, options, _text in page:
        for operator in (name for name in names(cell) if not name.endswith(".")):
            described.add(operator)
            known = getattr(bpy.ops.ik_addon, operator).get_rna_type().properties if operator in every else {}
            choices = {item.identifier for p in known if p.type == "ENUM" for item in p.enum_items}
            allowed = {"bake", *choices, *(p.identifier for p in known)}
            yield from (f"{operator}: {name}" for name in names(options) if name not in allowed)
    hidden = {name for name in every if "INTERNAL" in getattr(bpy.types, f"IK_ADDON_OT_{name}").bl_options}
    yield from (described - every) | (every - hidden - described)


def test_settings_and_operators_on_the_page_are_those_of_the_extension(addon: Addon) -> None:
    assert list(settings(rows("scripting.md", "Settings"))) == []
    assert list(operators(rows("scripting.md", "Operators"))) == []
    report = addon.module("bake").BakeReport
    fields = {field.name for field in dataclasses.fields(report)} | set(dir(report))
    found = {name for cell, _text in rows("scripting.md", "The report of a bake") for name in names(cell)}
    assert found - fields == set()


def test_the_page_has_what_a_report_says_of_planted_feet(addon: Addon) -> None:
    fields = {field.name for field in dataclasses.fields(addon.module("feet.plant").Planted)}
    found = {name for cell, _text in rows("command_line.md", "Planting feet") for name in names(cell)}
    assert found == fields | {"message"}


def links(page: Path, text: str) -> Iterator[str]:
    """Yield the links to files, pictures and headings that do not exist."""
    for link in re.findall(r'(?:\]\(|\bsrc=")([^)"]+)', text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if link.startswith(("http", "../../releases")):  # a page of the forge
            continue
        if not target.exists():
            yield link
        elif anchor:
            heads = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            if anchor not in {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}:
                yield link


def paths(text: str) -> Iterator[str]:
    """Yield the folders and modules in backquotes that do not exist."""
    homes = (ROOT, ROOT / "ik_addon", ROOT / "ik_addon" / "solve")
    for name in re.findall(r"`([a-z_]+/[a-z_/]*)`", text):
        if not any((home / name).exists() or (home / f"{name}.py").exists() for home in homes):
            yield name


def test_what_pages_name_exists() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    asked = [sys.executable, "tools/dev.py", "--help"]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tasks = re.findall(r"^  ([a-z-]+)(?: |$)", told, re.MULTILINE)
    wrong = []
    for page in (*PAGES, ROOT / "Makefile", ROOT / ".ci" / "run", *ROOT.glob(".github/workflows/*")):
        text = page.read_text(encoding="utf-8")
        missing = [*links(page, text), *(paths(text) if page.parent == DOCS else ())]
        missing += {*re.findall(r"(?:^ {4}|run: |`)make ([a-z][a-z-]*)", text, re.MULTILINE)} - {*targets}
        missing += {*re.findall(r"tools/dev\.py ([a-z][a-z-]*)", text)} - {*tasks}
        wrong += [f"{page.relative_to(ROOT)}: {name}" for name in missing]
    assert wrong == []


def test_the_guide_names_the_rigs_whose_names_are_known() -> None:
    text = " ".join((DOCS / "guide" / "recipes.md").read_text(encoding="utf-8").split())
    known = {*rigs_named.RIGS, *rigs_named.read("games")} - {"bird", "Second Life Bento"}
    assert [name for name in known if name not in text] == []


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


def test_messages_and_buttons_of_the_guide_are_those_of_the_extension() -> None:
    known = spoken()
    text = (DOCS / "guide" / "messages.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    wrong, count = [], 0
    for message, _meaning, mend in (row for section in sections for row in rows("guide/messages.md", section)):
        count += 1
        longest = max(re.split(r"\.\.\.|\*.*?\*", message), key=len).strip()
        wrong += [each for each in (longest, *re.findall(r"\*\*([^*]+)\*\*", mend)) if each not in known]
    assert count > 20
    assert wrong == []


def test_the_hand_circles_and_the_feet_stay(tmp_path: Path) -> None:
    (script,) = examples("guide/posing.md")
    file = shutil.copy(ROOT / "sample_blends" / "posing_human.blend", tmp_path)
    bpy.ops.wm.open_mainfile(filepath=str(file))
    feet = {name: rigs.head(bpy.data.objects["Figure"], name) for name in ("foot.L", "foot.R")}
    script.run()
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "posed.blend"))
    rig = bpy.data.objects["Figure"]
    for frame in range(1, 49):
        bpy.context.scene.frame_set(frame)
        angle = 2.0 * np.pi * (frame - 1) / 48.0
        place = np.array((0.4 * np.sin(angle), -0.5, 1.1 - 0.4 * np.cos(angle)))
        assert rigs.head(rig, "hand.L") == pytest.approx(place, abs=1e-3), frame
        for name, held in feet.items():
            assert rigs.head(rig, name) == pytest.approx(held, abs=1e-3), frame
