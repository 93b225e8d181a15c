"""What can be done about something, as a button has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Fix(NamedTuple):
    """Something that can be done."""

    label: str
    """Text of the button."""
    apply: Callable[[], object]
