"""Who is told when a user or script sets a setting. Blender tells nobody when it pastes or animates one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .untyped import Struct

on_set: list[Callable[[Struct], None]] = []
"""Called with the settings of a bone when any of them is set."""
_unheard = 0


def tell(listeners: list[Callable[[Struct], None]], of: Struct) -> None:
    """Call listeners, unless settings are being put back."""
    if not _unheard:
        for listener in listeners:
            listener(of)


def is_set(group: Struct, _context: object = None) -> None:
    """Tell that a setting in this group was set; as an `update` function, or after `property_unset`."""
    tell(on_set, group)


@contextmanager
def unheard() -> Iterator[None]:
    """Set settings without telling anybody."""
    global _unheard
    _unheard += 1
    try:
        yield
    finally:
        _unheard -= 1
