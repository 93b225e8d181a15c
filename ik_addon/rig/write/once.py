"""Methods that compute their result once, and only for one frame where all frames are in the same FK pose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...solve import Limits
from ...solve.problem import Ints
from .skew import Skew

if TYPE_CHECKING:
    from .limb import Limbs

Found = TypeVar("Found")


def once(method: Callable[[Limbs], Found]) -> Callable[[Limbs], Found]:
    """Compute a method's result once, and again only after `remembered` is cleared."""

    @wraps(method)
    def found(self: Limbs) -> Found:
        known = self.remembered
        if method.__name__ not in known:
            known[method.__name__] = method(self) if self.still is None else _of(found(self.still), self.group)
        result: Found = known[method.__name__]
        return result

    return found


def _of(value: Any, group: Ints) -> Any:
    """Return a result for the members of groups (B,)."""
    if isinstance(value, np.ndarray):
        return value[group]
    if isinstance(value, tuple):
        return tuple(_of(part, group) for part in value)
    if isinstance(value, Skew):
        return replace(value, heads=value.heads[group], off=None if value.off is None else value.off[group])
    return value.of(group) if isinstance(value, Limits) else value
