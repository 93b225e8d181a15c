"""All English texts that the product shows to its users, in its code (found without Blender) and in its classes."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from tools import blender
from tools.environments import ROOT

PRODUCT = ROOT / "ik_addon"
SPEAKING = {"say", "marked", "count"}
"""Functions whose arguments are sentences; the first arguments of errors for users are sentences too."""
DRAWING = {"draw_message": 2, "draw_button": 4}
"""Functions that draw a text, with the position of that argument."""
DRAWN = {"text", "confirm_text", "heading"}
"""Arguments of Blender's layouts and dialogs that are shown."""
UNSEEN = {"IKAddonFKStore", "IKAddonJoint", "IKAddonProfile"}
"""Settings that no panel shows."""
SILENT = ("solve/", "core/presets/", "anatomy/", "core/translation/", "rig/read/fcurves.py", "cli/")
"""Modules that show nothing to users of a window; the command line in `cli/` speaks English."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules that contain texts, with their paths."""
    for path in sorted(PRODUCT.rglob("*.py")):
        name = path.relative_to(PRODUCT).as_posix()
        if not name.startswith(SILENT):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def said(tree: ast.Module) -> Iterator[str]:
    """Yield the sentences and labels in the code of a module."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in SPEAKING:
            first = node.args[1:] if name == "count" else node.args[:1]
        elif name.endswith("Error") and not hasattr(builtins, name):
            first = node.args[:1]
        elif name in DRAWING:
            place = DRAWING[name]
            first = node.args[place : place + 1]
        else:
            first = []
        for value in (*first, *(keyword.value for keyword in node.keywords if keyword.arg in DRAWN)):
            yield from (text for text in literals(value, tree) if any(map(str.isalpha, text)))


def returned(tree: ast.Module) -> Iterator[str]:
    """Yield the labels that a panel's functions return, with or without icons."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            for value in node.value.elts:
                yield from (text for text in literals(value, tree) if not text.isupper())


def literals(value: ast.expr, tree: ast.Module) -> Iterator[str]:
    """Yield the strings that an expression can be, as far as its module shows."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.IfExp):
        yield from literals(value.body, tree)
        yield from literals(value.orelse, tree)
    elif isinstance(value, ast.Dict):
        for item in value.values:
            yield from literals(item, tree)
    elif isinstance(value, ast.Subscript):
        yield from literals(value.value, tree)
    elif isinstance(value, ast.Name):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == value.id for t in node.targets):
                yield from literals(node.value, tree)


def untranslatable(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of a module with sentences that are put together from pieces, or shown as they stand."""
    formats = {
        id(node) for outer in ast.walk(tree) if isinstance(outer, ast.FormattedValue) for node in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in formats:
            words = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
            if " " in words.strip() and sum(map(str.isalpha, words)) > 3:
                yield node.lineno
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in SPEAKING and any(isinstance(value, ast.BinOp) for value in node.args):
                yield node.lineno
            if name == "report" and any(isinstance(value, ast.BinOp | ast.Constant) for value in node.args[1:]):
                yield node.lineno


def installed(module: str) -> Any:
    """Return a module of the installed extension."""
    return importlib.import_module(f"{blender.PACKAGE}.ik_addon.{module}")


def known_to_blender() -> Iterator[str]:
    """Yield the labels and tooltips of all classes, of their settings, and of the choices of these settings."""
    import bpy

    for cls in installed("registration").CLASSES:
        if cls.__name__ in UNSEEN:
            continue
        yield from (label(cls), getattr(cls, "bl_description", ""))
        rna = cls.bl_rna
        if issubclass(cls, bpy.types.Operator):
            operators: Any = bpy.ops
            rna = getattr(operators.ik_addon, cls.bl_idname.split(".")[1]).get_rna_type()
        own = {name for base in cls.__mro__ if base.__module__.startswith(blender.PACKAGE) for name in annotated(base)}
        for setting in rna.properties:
            if setting.identifier in own and not setting.is_hidden and setting.description:
                yield from (setting.name, setting.description)
                for item in getattr(setting, "enum_items", ()):
                    yield from (item.name, item.description)
    toolbar = installed("ui.toolbar")
    for tool in (toolbar.IKAddonTool, toolbar.IKAddonPoseTool):
        yield from (tool.bl_label, tool.bl_description)


def label(cls: Any) -> str:
    """Return the label of a class in its source: Blender renames a panel of presets after the preset applied last."""
    if not hasattr(cls, "preset_subdir"):
        return str(getattr(cls, "bl_label", ""))
    (tree,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(tree, ast.ClassDef)
    assigned = (node for node in tree.body if isinstance(node, ast.Assign))
    return str(next(ast.literal_eval(node.value) for node in assigned if ast.unparse(node.targets[0]) == "bl_label"))


def annotated(cls: Any) -> list[str]:
    """Return the names of the settings that a class itself declares."""
    return list(vars(cls).get("__annotations__", ()))


def parts_of_a_body() -> Iterator[str]:
    """Yield the parts of a body for which Set Up Character makes chains."""
    members = installed("anatomy.body")
    for region in members.Region:
        yield region.value
        if region in members.LIMBS:
            yield f"{region.value}s"
            yield from (members.Member(region, (), side, False).words for side in (-1, 1))
    yield from (members.Member(members.Region.LEG, (), side, True).words for side in (-1, 0, 1))
    yield from (members.Member(region, ()).label for region in members.Region)
    yield from (members.Member(region, (), side).label for region in members.LIMBS for side in (-1, 1))
    yield from (members.Member(members.Region.LEG, (), side, True).label for side in (-1, 0, 1))


def everything() -> set[str]:
    """Return all texts; needs a Blender with the extension enabled."""
    texts = {text for _name, tree in modules() for text in said(tree)}
    texts |= {text for name, tree in modules() if name.startswith("ui/") for text in returned(tree)}
    texts |= {*known_to_blender(), *parts_of_a_body()}
    return {text for text in texts if text.strip()}
