"""Properties by their data paths, as F-curves and drivers name them."""

from __future__ import annotations

import re
from typing import Any

import bpy

CUSTOM = re.compile(r'(?P<owner>.*)\["(?P<name>(?:[^"\\]|\\.)*)"\]')
"""The data path of a custom property."""
BONE_PATH = re.compile(r'(?:pose\.)?bones\["(?P<name>(?:[^"\\]|\\.)*)"\]\.?(?P<rest>.*)')
"""That of a property of a bone, posed or at rest."""


def value_at(owner: Any, path: str) -> Any:
    """A copy of the value of a property, which can be compared and hashed; None where there is no such property."""
    try:
        value = owner.path_resolve(path)
    except ValueError:
        return None
    if isinstance(value, set):
        return frozenset(value)  # several items of an enumeration
    if hasattr(value, "freeze"):
        return value.copy().freeze()  # a vector or a matrix, which as a tuple would be set with rows for columns
    return tuple(value) if hasattr(value, "__len__") and not isinstance(value, str) else value


def set_at(owner: Any, path: str, value: Any) -> None:
    """Set a property of a data-block.

    Raises:
        ValueError, AttributeError, TypeError, KeyError: it is not there, or cannot be set.
    """
    custom = CUSTOM.fullmatch(path)
    prefix, name = (custom["owner"], custom["name"]) if custom else path.rpartition(".")[::2]
    holder: Any = owner.path_resolve(prefix) if prefix else owner
    value = set(value) if isinstance(value, frozenset) else value
    if custom:
        holder[bpy.utils.unescape_identifier(name)] = value
    else:
        setattr(holder, name, value)
