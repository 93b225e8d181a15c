"""A smooth curve fitted to many values: cubic between a few keys, with key values and slopes by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

    Adjacent segments share value and slope, so each key's pair of unknowns is coupled to the next key's: the normal
    equations are block tridiagonal, with blocks of two by two.
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
    found = _solved(itself.transpose(2, 0, 1), parts[2].transpose(2, 0, 1), wanted)
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


def _solved(itself: Floats, beside: Floats, wanted: Floats) -> Floats:
    """Solve a symmetric block tridiagonal system: diagonal and upper blocks (K, 2, 2), right-hand sides (K, 2)."""
    blocks, ties, sides = itself.tolist(), beside.tolist(), wanted.tolist()
    for i in range(1, len(sides)):
        # Eliminate the previous key's unknowns from this key's equations.
        share = _times(_turned(ties[i - 1]), _inverse(blocks[i - 1]))
        blocks[i] = _minus(blocks[i], _times(share, ties[i - 1]))
        sides[i] = _less(sides[i], share, sides[i - 1])
    found: list[Pair] = [(0.0, 0.0)]
    for block, tie, side in zip(blocks[::-1], ties[::-1], sides[::-1], strict=True):
        found.append(_on(_inverse(block), _less(side, tie, found[-1])))
    return np.array(found[:0:-1])


Block = Sequence[Sequence[float]]
Pair = Sequence[float]


def _turned(a: Block) -> Block:
    return (a[0][0], a[1][0]), (a[0][1], a[1][1])


def _times(a: Block, b: Block) -> Block:
    (p, q), (r, s) = a
    (t, u), (v, w) = b
    return (p * t + q * v, p * u + q * w), (r * t + s * v, r * u + s * w)


def _minus(a: Block, b: Block) -> Block:
    return (a[0][0] - b[0][0], a[0][1] - b[0][1]), (a[1][0] - b[1][0], a[1][1] - b[1][1])


def _on(a: Block, v: Pair) -> tuple[float, float]:
    return a[0][0] * v[0] + a[0][1] * v[1], a[1][0] * v[0] + a[1][1] * v[1]


def _less(v: Pair, a: Block, w: Pair) -> Pair:
    """Return a pair minus a block times another pair."""
    moved = _on(a, w)
    return v[0] - moved[0], v[1] - moved[1]


def _inverse(a: Block) -> Block:
    (p, q), (r, s) = a
    size = p * s - q * r
    return (s / size, -q / size), (-r / size, p / size)
