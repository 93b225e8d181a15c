"""Methods that compute their result once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar


class Remembering(Protocol):
    """An object with such methods."""

    @property
    def remembered(self) -> dict[str | bytes, Any]:
        """Results by name; cleared when they become outdated."""


Owner = TypeVar("Owner", bound=Remembering)
Found = TypeVar("Found")


def once(method: Callable[[Owner], Found]) -> Callable[[Owner], Found]:
    """Compute a method's result once, and again only after `remembered` is cleared."""

    @wraps(method)
    def found(self: Owner) -> Found:
        known = self.remembered
        if method.__name__ not in known:
            known[method.__name__] = method(self)
        result: Found = known[method.__name__]
        return result

    return found
