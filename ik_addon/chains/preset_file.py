"""Read a preset of Blender's preset system without running it: it is a list of settings, written as Python.

profile = bpy.context.window_manager.ik_addon_profile
joint = profile.joints.add()
joint.bend = (math.radians(0), math.radians(150))
"""

from __future__ import annotations

import ast
import math
from pathlib import Path

from ..core.translation.sentences import UserError
from ..core.untyped import Struct, Value
from .profile import IKAddonProfile

NAME = "profile"
LARGEST = 1_000_000
"""Bytes: larger than a preset for a chain of a thousand bones."""
SHOWN = 30
"""Maximum number of characters of an invalid value that a message shows."""
WRONG = (ValueError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError)
"""Exceptions raised for invalid values; the last two come from values that are nested too deeply."""


def read_file(path: Path, profile: IKAddonProfile) -> None:
    """Set a profile from a preset file.

    Raises:
        UserError: if the file can't be read.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise UserError("it is larger than {size} MB", size=LARGEST // 1_000_000)
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError("it is not text") from None
    except OSError as error:
        raise UserError(str(error.strerror)) from None
    read(text, profile)


def read(text: str, profile: IKAddonProfile) -> None:
    """Set a profile from the text of a preset.

    Raises:
        UserError: if the text holds anything but settings, or a value is invalid.
    """
    try:
        lines = ast.parse(text).body
    except SyntaxError as error:
        raise UserError("line {line} is not a setting of a preset", line=error.lineno or 1) from None
    except WRONG:
        raise UserError("it is nested too deeply") from None
    owners: dict[str, Struct] = {NAME: profile}
    for line in lines:
        match line:
            case ast.Import() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute()) if name == NAME:
                pass
            case ast.Expr(value=ast.Call() as call) if _is_call(call, "clear"):
                profile.joints.clear()
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if _is_call(call, "add"):
                owners[name] = profile.joints.add()
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=name), attr=setting)], value=value) if (
                name in owners and setting in owners[name].bl_rna.properties
            ):
                try:
                    setattr(owners[name], setting, _literal(value))
                except WRONG:
                    source = (ast.get_source_segment(text, value) or "").partition("\n")[0]
                    shown = source if len(source) <= SHOWN else f"{source[:SHOWN]}…"
                    raise UserError(
                        "line {line}: '{setting}' can't be {value}", line=line.lineno, setting=setting, value=shown
                    ) from None
            case _:
                raise UserError("line {line} is not a setting of a preset", line=line.lineno)


def _is_call(call: ast.Call, method: str) -> bool:
    """Return whether a call is `profile.joints.METHOD()`."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr="joints"), attr=found),
            args=[],
            keywords=[],
        ):
            return (name, found) == (NAME, method)
    return False


def _literal(value: ast.expr) -> Value:
    """Evaluate a finite number, text, boolean, tuple, set, or an angle given in degrees."""
    match value:
        case ast.Tuple(elts=parts):
            return tuple(map(_literal, parts))
        case ast.Set(elts=parts):
            return set(map(_literal, parts))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr="radians"), args=[degrees], keywords=[]):
            return math.radians(_literal(degrees))
        case ast.Call(func=ast.Name(id="set"), args=[], keywords=[]):
            return set()
    found = ast.literal_eval(value)
    if isinstance(found, int | float) and not math.isfinite(found):
        raise ValueError
    return found
