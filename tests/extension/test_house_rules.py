"""What all of the product's code keeps to: each test lists the places that do not."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools import texts
from tools.environments import ROOT

PRODUCT = ROOT / "ik_addon"
ROOMS = re.findall(
    r"^\| `ik_addon/(.*)/` \|", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"), re.MULTILINE
)
"""From the room that knows no other to the one that may know all."""
NO_ROOM = {"__init__", "registration", "rig/__init__", "solve/problem"}
"""Modules in no room, or for all of them: `solve/problem` is what the solvers take and return."""
OUTSIDE = {"numpy", *sys.stdlib_module_names}
BLENDER = {
    *("aud", "bl_math", "bl_operators", "bl_ui", "blf", "bmesh", "bpy", "bpy_extras", "gpu", "gpu_extras", "idprop"),
    *("imbuf", "mathutils", "rna_keymap_ui"),
}
IN_PIECES = {
    "chains/make_controls.py": "names of meshes",
    "registration.py": "the console",
    "chains/new_chain.py": "names of objects",
    "chains/profile.py": "tooltips that nobody sees",
}
"""Modules that put texts together, and which."""


def modules() -> Iterator[tuple[str, Path, ast.Module]]:
    """Yield the name, the path and the code of each module, but the presets, which Blender runs as scripts."""
    for path in sorted(PRODUCT.rglob("*.py")):
        name = path.relative_to(PRODUCT).with_suffix("").as_posix()
        if not name.startswith("core/presets/"):
            yield name, path, ast.parse(path.read_text(encoding="utf-8"))


def room_of(name: str) -> str | None:
    return next((room for room in ROOMS if name == room or name.startswith(f"{room}/")), None)


def imported(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the product's modules and packages that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for alias in node.names:
                inner = base / alias.name
                found = inner if inner.is_dir() or inner.with_suffix(".py").exists() else base
                yield found.relative_to(PRODUCT).as_posix()


def foreign(tree: ast.Module) -> Iterator[str]:
    """Yield the modules that are not the product's own, which it imports relatively, under any name of its package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def test_imports_go_one_way_between_rooms() -> None:
    wrong = []
    for name, path, tree in modules():
        own = room_of(name)
        if own is None:
            if name not in NO_ROOM:
                wrong.append(f"{name} is in no room of docs/architecture.md")
            continue
        for other in imported(path, tree):
            room = room_of(other)
            if room and other not in NO_ROOM and ROOMS.index(room) > ROOMS.index(own):
                wrong.append(f"{name} imports {other} from a later room")
    assert wrong == []


def test_solvers_import_numpy_alone_and_nothing_imports_more_than_blender() -> None:
    wrong = []
    for name, _path, tree in modules():
        allowed = OUTSIDE if name.startswith("solve/") else OUTSIDE | BLENDER
        wrong += [f"{name} imports {other}" for other in foreign(tree) if other not in allowed]
    assert wrong == []


def test_texts_can_be_translated() -> None:
    """A sentence is a literal, given whole and with named fields to `say`, `count`, `marked` or an error."""
    wrong = []
    for name, tree in texts.modules():
        if name not in IN_PIECES:
            wrong += [f"{name}:{line}" for line in texts.untranslatable(tree)]
    assert wrong == []


def test_a_setting_touches_the_places_that_contributing_lists() -> None:
    """`bend_lead` is the model there; presets hold it as well."""
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\d\. `(\S+)`:", guide.split("### A setting of a chain")[1].split("###")[0], re.MULTILINE)
    assert len(steps) <= 6
    mentions = {
        path.relative_to(ROOT).as_posix()
        for folder in ("ik_addon", "docs")
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in {".py", ".md"} and "bend_lead" in path.read_text(encoding="utf-8")
    } - {"ik_addon/chains/profile.py"}
    assert {step for step in steps if not step.endswith(".po")} == {
        next((step for step in steps if path.startswith(step)), path) for path in mentions if "/lab/" not in path
    }
