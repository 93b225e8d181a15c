"""What can be done about something, as a button has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import bpy

from ...translation.sentences import say


class Fix(NamedTuple):
    """Something that can be done."""

    label: str
    """Text of the button, in the language of the interface."""
    apply: Callable[[], object]


def set_all(owners: Iterable[Any], names: Iterable[str], value: object) -> None:
    """Set these properties of all of them."""
    for owner in owners:
        for name in names:
            setattr(owner, name, value)


def mute_label(constraints: Sequence[bpy.types.Constraint]) -> str:
    """Text of a button that mutes constraints, of which there is at least one."""
    if len(constraints) == 1:
        return say("Mute '{constraint}'", constraint=constraints[0].name)
    return say("Mute {count} Constraints", count=len(constraints))
