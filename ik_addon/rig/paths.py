"""Properties by their data paths, as F-curves and drivers name them."""

from __future__ import annotations

import re
from typing import Any

import bpy

CUSTOM = re.compile(r'(?P<owner>.*)\["(?P<name>(?:[^"\\]|\\.)*)"\]')
"""The data path of a custom property."""


def value_at(owner: Any, path: str) -> Any:
    """What a property of a data-block holds, several numbers as a tuple; None where there is no such property."""
    try:
        value = owner.path_resolve(path)
    except ValueError:
        return None
    return value if isinstance(value, str) or not hasattr(value, "__len__") else tuple(value)


def set_at(owner: Any, path: str, value: Any) -> None:
    """Set a property of a data-block.

    Raises:
        ValueError, AttributeError, TypeError, KeyError: it is not there, or cannot be set.
    """
    custom = CUSTOM.fullmatch(path)
    prefix, name = (custom["owner"], custom["name"]) if custom else path.rpartition(".")[::2]
    holder: Any = owner.path_resolve(prefix) if prefix else owner
    if custom:
        holder[bpy.utils.unescape_identifier(name)] = value
    else:
        setattr(holder, name, value)
