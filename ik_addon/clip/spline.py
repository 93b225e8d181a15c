"""A smooth curve through a few of many values: cubic between its keys, with the slopes that fit the others best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..solve.problem import Bools, Floats, Ints

LOOSE = 1e-3
"""What a slope counts that is the one between neighbouring values, where other values do not decide it."""


@dataclass(frozen=True)
class Curve:
    """A curve over F frames that is keyed on K of them."""

    keys: Ints
    """(K,) indices of frames, which ascend from the first to the last."""
    values: Floats
    """(K, c) on the keys."""
    slopes: Floats
    """(K, c) change per frame on the keys. There is a straight line between keys on frames that follow each other."""

    @property
    def lines(self) -> Bools:
        """Between which keys (K - 1,) and the next there is a straight line."""
        return np.asarray(np.diff(self.keys) == 1)

    def on_frames(self) -> Floats:
        """The values (F, c) on all frames."""
        keys, values, slopes = self.keys, self.values, self.slopes
        frames = np.arange(keys[-1] + 1)
        own = np.clip(np.searchsorted(keys, frames, side="right") - 1, 0, len(keys) - 2)
        length = np.diff(keys)[own]
        start, end, rising, falling = _weights((frames - keys[own]) / length)
        through = start * values[own] + end * values[own + 1]
        return np.asarray(through + length[:, None] * (rising * slopes[own] + falling * slopes[own + 1]))


def fitted(values: Floats, keys: Ints) -> Curve:
    """Return the curve that has the values (F, c) on the keys (K,), and on the other frames the nearest to them.

    Where neighbouring segments meet they have the same slope; which slopes fit best is a system of equations of which
    each has three unknowns.
    """
    count, frames = len(keys), np.arange(len(values))
    own = np.clip(np.searchsorted(keys, frames, side="right") - 1, 0, count - 2)
    length = np.diff(keys)[own]
    start, end, rising, falling = _weights((frames - keys[own]) / length)
    left = values - start * values[keys[own]] - end * values[keys[own + 1]]
    before, after = rising[:, 0] * length, falling[:, 0] * length
    diagonal = LOOSE + np.bincount(own, before**2, count) + np.bincount(own + 1, after**2, count)
    beside = np.bincount(own, before * after, count)
    neighbours = np.clip(keys + 1, None, len(values) - 1), np.clip(keys - 1, 0, None)
    wanted = LOOSE * (values[neighbours[0]] - values[neighbours[1]]) / (neighbours[0] - neighbours[1])[:, None]
    for column in range(values.shape[1]):
        wanted[:, column] += np.bincount(own, before * left[:, column], count)
        wanted[:, column] += np.bincount(own + 1, after * left[:, column], count)
    return Curve(keys, values[keys], _solved(diagonal, beside, wanted))


def _weights(share: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """What the values on two keys and the slopes there count (F, 1) at shares (F,) of the way between them."""
    t = share[:, None]
    end = t * t * (3.0 - 2.0 * t)
    return 1.0 - end, end, t * (1.0 - t) ** 2, -t * t * (1.0 - t)


def _solved(diagonal: Floats, beside: Floats, wanted: Floats) -> Floats:
    """Solve a symmetric system by its diagonal (K,), what is beside it (K,), and the right-hand sides (K, c)."""
    diagonal, out = diagonal.copy(), wanted.copy()
    for i in range(1, len(out)):
        share = beside[i - 1] / diagonal[i - 1]
        diagonal[i] -= share * beside[i - 1]
        out[i] -= share * out[i - 1]
    out[-1] /= diagonal[-1]
    for i in range(len(out) - 2, -1, -1):
        out[i] = (out[i] - beside[i] * out[i + 1]) / diagonal[i]
    return out
