"""Reading a preset of Blender's preset system without running it: it is a list of settings, written as Python.

profile = bpy.context.window_manager.ik_addon_profile
joint = profile.joints.add()
joint.bend = (math.radians(0), math.radians(150))
"""

from __future__ import annotations

import ast
import math
from typing import Any

from .profile import IKAddonProfile

NAME = "profile"


def read(text: str, profile: IKAddonProfile) -> None:
    """Fill in a profile with the settings in the text of a preset.

    Raises:
        ValueError: where the text says anything else, or a setting has no such value; SyntaxError is one.
        TypeError: where the value of a setting is of another kind.
    """
    owners: dict[str, Any] = {NAME: profile}
    for line in ast.parse(text).body:
        match line:
            case ast.Import() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute()) if name == NAME:
                pass
            case ast.Expr(value=ast.Call() as call) if ast.unparse(call) == f"{NAME}.joints.clear()":
                profile.joints.clear()
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if (
                ast.unparse(call) == f"{NAME}.joints.add()"
            ):
                owners[name] = profile.joints.add()
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=name), attr=setting)], value=value) if (
                name in owners and setting in owners[name].bl_rna.properties
            ):
                setattr(owners[name], setting, _literal(value))
            case _:
                raise ValueError(f"line {line.lineno} is no setting of a preset")


def _literal(value: ast.expr) -> Any:
    """What a number, text, truth, tuple or set says, and an angle in degrees."""
    match value:
        case ast.Tuple(elts=parts):
            return tuple(map(_literal, parts))
        case ast.Set(elts=parts):
            return set(map(_literal, parts))
        case ast.Call(func=function, args=[degrees], keywords=[]) if ast.unparse(function) == "math.radians":
            return math.radians(_literal(degrees))
        case ast.Call() if ast.unparse(value) == "set()":
            return set()
    return ast.literal_eval(value)
