"""Methods that compute something once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar


class Remembering(Protocol):
    """What has such methods."""

    @property
    def remembered(self) -> dict[str | bytes, Any]:
        """What was computed; cleared where it no longer holds."""


Owner = TypeVar("Owner", bound=Remembering)
Found = TypeVar("Found")


def once(method: Callable[[Owner], Found]) -> Callable[[Owner], Found]:
    """A method whose result is computed once, until what is remembered is cleared."""

    @wraps(method)
    def found(self: Owner) -> Found:
        known = self.remembered
        if method.__name__ not in known:
            known[method.__name__] = method(self)
        result: Found = known[method.__name__]
        return result

    return found
