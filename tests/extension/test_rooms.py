"""Imports go one way: a room knows those before it, and none after it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.environments import ROOT

ROOMS = (
    "translation",
    "solve/maths",
    "solve/free",
    "solve/limb",
    "solve/limited",
    "solve/body",
    "solve",
    "clip",
    "anatomy",
    "pose",
    "data",
    "rig/plan",
    "rig/read",
    "rig/write",
    "controls",
    "live",
    "bake",
    "setup",
    "goals",
    "posing",
    "planting",
    "export",
    "shots",
    "drag",
    "convert",
    "overlay",
    "operators",
    "ui/preferences",
    "ui",
)
"""From the room that knows no other to the one that may know all, in the order of docs/architecture.md."""
ARRAYS = "solve/problem"
"""Input and output of the solvers: all rooms may use this module."""
PRODUCT = ROOT / "ik_addon"


def modules(room: str) -> list[Path]:
    return [path for path in sorted((PRODUCT / room).rglob("*.py")) if path.name != "__init__.py"]


def room_of(path: Path) -> str | None:
    """Return the room of a module or package, or None if it is outside of all."""
    place = path.relative_to(PRODUCT).with_suffix("").as_posix()
    if place == ARRAYS:
        return None
    return next((room for room in ROOMS if place == room or place.startswith(f"{room}/")), None)


def imported(source: Path) -> Iterator[Path]:
    """Yield the product's modules and packages that a module imports."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = source.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for alias in node.names:
                inner = base / alias.name
                yield inner if inner.is_dir() or inner.with_suffix(".py").exists() else base


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_knows_only_those_before_it(room: str) -> None:
    known = {*ROOMS[: ROOMS.index(room) + 1]}
    uses = {(source.name, other) for source in modules(room) for path in imported(source) if (other := room_of(path))}
    assert {(name, other) for name, other in uses if other not in known} == set()


def test_every_module_is_in_a_room() -> None:
    presets = {path.name for path in (PRODUCT / "presets").rglob("*.py")}
    outside = {path.name for path in PRODUCT.rglob("*.py") if room_of(path) is None}
    assert outside == {"__init__.py", "compat.py", "registration.py", "problem.py", *presets}


def test_the_architecture_page_lists_rooms_in_this_order() -> None:
    table = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `ik_addon/(.*)/` \|", table, re.MULTILINE)) == ROOMS


@pytest.mark.parametrize("page", ["architecture", "solvers", "live", "decisions"])
def test_paths_named_on_the_pages_exist(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    homes = (ROOT, PRODUCT, PRODUCT / "solve")
    named = set(re.findall(r"`([a-z_]+/[a-z_/]*)`", text))
    assert named
    for name in named:
        assert any((home / name).exists() or (home / f"{name}.py").exists() for home in homes), name
