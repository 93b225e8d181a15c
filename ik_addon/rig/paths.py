"""Properties by their data paths, as F-curves and drivers name them."""

from __future__ import annotations

import re
from typing import Any

import bpy

CUSTOM = re.compile(r'(?P<owner>.*)\["(?P<name>(?:[^"\\]|\\.)*)"\]')
"""The data path of a custom property."""


def value_at(owner: Any, path: str) -> Any:
    """What a property of a data-block holds, several numbers as tuples; None where there is no such property."""
    try:
        return _plain(owner.path_resolve(path))
    except ValueError:
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, set):
        return tuple(sorted(value))  # several items of an enumeration
    return tuple(map(_plain, value)) if hasattr(value, "__len__") and not isinstance(value, str) else value


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
