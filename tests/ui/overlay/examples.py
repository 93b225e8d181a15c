"""Chains and joints to draw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

FREE = (-math.inf, math.inf)


def radians(*degrees: float) -> tuple[float, ...]:
    return tuple(math.radians(angle) for angle in degrees)


def chains(shown: Any, **changes: Any) -> Any:
    """Return two chains, of two bones and of one."""
    values = {
        "joints": np.array([[0, 0, 0], [0, 0, 1], [0, 0, 2], [5, 0, 0], [5, 0, 1]], dtype=float),
        "ends": np.array([2, 4]),
        "targets": np.array([[1, 0, 2], [5, 0, 3]], dtype=float),
        "poles": np.array([[0, 4, 1], [np.nan] * 3]),
        "states": np.array([shown.State.REACHED, shown.State.FAILED]),
        "at_limit": np.array([False, True, False, False, False]),
        "active": np.array([True, False]),
    }
    return shown.Chains(**{**values, **changes})


def joint(shown: Any, **changes: Any) -> Any:
    values: dict[str, Any] = {
        "head": np.array([1.0, 2.0, 3.0]),
        "length": 2.0,
        "rest": np.eye(3),
        "frame": np.eye(3),
        "cone": (*radians(-30, 60), *radians(-20, 80)),
        "twist": radians(-45, 90),
        "at_limit": False,
        "has_arc": False,
    }
    return shown.Joint(**{**values, **changes})


def active(shown: Any, **changes: Any) -> Any:
    """Return an active chain with nothing shown."""
    values: dict[str, Any] = {"world": np.eye(4), "limits": (), "state": shown.State.REACHED}
    return shown.Active(**{**values, "reach": None, "bend": None, "end": None, "plane": None, **changes})
