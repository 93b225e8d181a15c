"""A smooth curve fitted to many values: cubic between a few keys, with key values and slopes by least squares."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from ..solve.problem import Bools, Floats, Ints

LOOSE = 1e-7
"""Weight of the slope between neighboring values, for slopes that no other value determines."""
PINNED = 1e6
"""Weight of a value that a curve should pass through."""


@dataclass(frozen=True)
class Curve:
    """A curve over F frames that is keyed on K of them."""

    keys: Ints
    """(K,) indices of the keyed frames, ascending from the first frame to the last."""
    values: Floats
    """(K,) values on the keys."""
    slopes: Floats
    """(K,) change per frame on the keys. Between keys on successive frames, the curve is a straight line."""

    @property
    def lines(self) -> Bools:
        """Whether (K - 1,) the curve is a straight line from each key to the next."""
        return np.asarray(np.diff(self.keys) == 1)

    def on_frames(self) -> Floats:
        """Return the values (F,) on all frames."""
        own, length, weights = _segments(self.keys)
        start, rising, end, falling = weights
        across = start * self.values[own] + end * self.values[own + 1]
        return np.asarray(across + length * (rising * self.slopes[own] + falling * self.slopes[own + 1]))


def fitted(values: Floats, keys: Ints, pinned: Bools) -> Curve:
    """Return the curve with keys `keys` that is nearest to values (F,) and passes through those on `pinned` keys (K,).

    The unknowns are value and slope of each key in turn. Adjacent segments share them, so each key's pair is coupled to
    the next key's: the normal equations have four bands.
    """
    count, (own, length, weights) = len(keys), _segments(keys)
    weights[1::2] *= length
    parts = np.zeros((3, 2, 2, count))  # couples a key to itself, as start and as end, and to the next one
    wanted = np.zeros((count, 2))
    strength = np.ones(len(values))
    strength[keys[pinned]] = PINNED
    for i in range(2):
        for k in range(2):
            pairs = (weights[i], weights[k]), (weights[2 + i], weights[2 + k]), (weights[i], weights[2 + k])
            for part, (a, b) in zip(parts, pairs, strict=True):
                part[i, k] = np.bincount(own, strength * a * b, count)
        pulls = strength * values
        wanted[:, i] = np.bincount(own, weights[i] * pulls, count) + np.bincount(own + 1, weights[2 + i] * pulls, count)
    itself = parts[0]
    itself[..., 1:] += parts[1][..., :-1]
    after, before = np.minimum(keys + 1, len(values) - 1), np.maximum(keys - 1, 0)
    itself[1, 1] += LOOSE
    wanted[:, 1] += LOOSE * (values[after] - values[before]) / (after - before)
    beside, none = parts[2], np.zeros(count)
    pairs_of_bands = ((itself[0, 0], itself[1, 1]), (itself[0, 1], beside[1, 0]), (beside[0, 0], beside[1, 1]))
    bands = np.array([np.stack(pair, axis=1).ravel() for pair in (*pairs_of_bands, (beside[0, 1], none))])
    found = _solved(bands, wanted.ravel()).reshape(-1, 2)
    found[pinned, 0] = values[keys[pinned]]
    return Curve(keys, found[:, 0], found[:, 1])


def _segments(keys: Ints) -> tuple[Ints, Ints, Floats]:
    """Return, for each frame, its segment (F,), the segment's length (F,), and the weights (4, F) of its ends.

    Weights are of value and slope at the start, then at the end; slopes are per whole segment.
    """
    frames = np.arange(keys[-1] + 1)
    own = np.minimum(np.searchsorted(keys, frames, side="right") - 1, len(keys) - 2)
    length = np.diff(keys)[own]
    t = (frames - keys[own]) / length
    end = t * t * (3.0 - 2.0 * t)
    return own, length, np.stack([1.0 - end, t * (1.0 - t) ** 2, end, -t * t * (1.0 - t)])


def _solved(bands: Floats, wanted: Floats) -> Floats:
    """Solve a symmetric system with four bands (4, n), the diagonal first, by elimination; right-hand side (n,)."""
    rows, sides = bands.T.tolist(), wanted.tolist()
    padding = len(bands) - 1
    rows += [[1.0, 0.0, 0.0, 0.0]] * padding
    sides += [0.0] * padding
    for i in range(len(wanted)):
        size, *ties = rows[i]
        for k, tie in enumerate(ties, start=1):
            if tie:
                share, below = tie / size, rows[i + k]
                rows[i + k] = [own - share * other for own, other in zip_longest(below, ties[k - 1 :], fillvalue=0.0)]
                sides[i + k] -= share * sides[i]
    for i in reversed(range(len(wanted))):
        size, a, b, c = rows[i]
        sides[i] = (sides[i] - a * sides[i + 1] - b * sides[i + 2] - c * sides[i + 3]) / size
    return np.array(sides[:-padding])
