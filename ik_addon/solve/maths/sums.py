"""Sums from first to last, with the same bits however many members there are."""

from __future__ import annotations

import numpy as np

from ..problem import Floats

MANY = 64
"""From this many chains on, sums are faster joint by joint than along each chain."""


def add_up(steps: Floats) -> None:
    """Replace steps (3, n, B) by their running sums, in place."""
    if steps.shape[2] < MANY:
        np.cumsum(steps, axis=1, out=steps)
    else:
        for i in range(1, steps.shape[1]):
            steps[:, i] += steps[:, i - 1]


def total(values: Floats) -> Floats:
    """Return the sums (..., B) of values (..., n, B), added from first to last whatever B is."""
    if values.shape[-1] < MANY:
        return np.asarray(np.cumsum(values, axis=-2)[..., -1, :])
    result = values[..., 0, :].copy()
    for i in range(1, values.shape[-2]):
        result += values[..., i, :]
    return result
