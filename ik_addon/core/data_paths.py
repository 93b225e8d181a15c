"""Access properties by data path, as F-curves and drivers name them."""

import re
from functools import lru_cache

import bpy

from .untyped import Struct, Value

CUSTOM = re.compile(r'(?P<owner>.*)\["(?P<name>(?:[^"\\]|\\.)*)"\]')
"""The data path of a custom property."""
BONE_PATH = re.compile(r'(?:pose\.)?bones\["(?P<name>(?:[^"\\]|\\.)*)"\]\.?(?P<rest>.*)')
"""The data path of a property of a bone, posed or at rest."""


@lru_cache(maxsize=2**16)
def below_bone(path: str) -> tuple[str, str]:
    """Return the bone to which a data path leads, and the part of the path below it; empty if it leads to none."""
    match = BONE_PATH.fullmatch(path)
    return ("", "") if match is None else (bpy.utils.unescape_identifier(match["name"]), match["rest"])


def value_at(owner: Struct, path: str) -> Value:
    """Return a hashable copy of the value of a property; None if there is no such property."""
    try:
        value = owner.path_resolve(path)
    except ValueError:
        return None
    if isinstance(value, set):
        return frozenset(value)  # several items of an enumeration
    if hasattr(value, "freeze"):
        return value.copy().freeze()  # a vector or matrix; a matrix set from a tuple would be transposed
    return tuple(value) if hasattr(value, "__len__") and not isinstance(value, str) else value


def set_at(owner: Struct, path: str, value: Value) -> None:
    """Set a property of a data-block.

    Raises:
        ValueError, AttributeError, TypeError, KeyError: if it does not exist, or can't be set.
    """
    custom = CUSTOM.fullmatch(path)
    prefix, name = (custom["owner"], custom["name"]) if custom else path.rpartition(".")[::2]
    holder = owner.path_resolve(prefix) if prefix else owner
    value = set(value) if isinstance(value, frozenset) else value
    if custom:
        holder[bpy.utils.unescape_identifier(name)] = value
    else:
        setattr(holder, name, value)
