"""A fix that a button applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import bpy

from ....core.translation.sentences import say


class Fix(NamedTuple):
    """A fix for one problem."""

    label: str
    """Text of the button, in the language of the interface."""
    apply: Callable[[], object]


def set_all(owners: Iterable[Any], names: Iterable[str], value: object) -> None:
    """Set properties of all owners to a value."""
    for owner in owners:
        for name in names:
            setattr(owner, name, value)


def mute_label(constraints: Sequence[bpy.types.Constraint]) -> str:
    """Return the label of a button that mutes one or more constraints."""
    if len(constraints) == 1:
        return say("Mute '{constraint}'", constraint=constraints[0].name)
    return say("Mute {count} Constraints", count=len(constraints))
