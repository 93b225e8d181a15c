"""What is known on some frames of a clip, eased in and out on the others."""

from __future__ import annotations

import numpy as np

from ..solve.problem import Bools, Floats, Ints


def runs(flags: Bools) -> list[tuple[int, int]]:
    """The start and the end, behind its last frame, of each run of set flags (F,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def numbered(flags: Bools) -> Ints:
    """Which run of set flags each frame (F,) is in; -1: in none."""
    begun = np.cumsum(np.diff(np.concatenate([[False], flags]).astype(np.int64)) == 1) - 1
    return np.asarray(np.where(flags, begun, -1))


def eased(values: Floats, known: Bools, length: int) -> Floats:
    """Values (F, k) as they are where they are known (F,), eased from there to zero over so many frames.

    Where the clip begins or ends within these, they go on beyond it.
    Between two runs of known values nothing overshoots: what comes out is a mean of both and zero, with weights that
    go one way.
    """
    out = np.where(known[:, None], values, 0.0)
    for start, end in runs(~known):
        count = end - start
        places = np.arange(1, count + 1)
        is_between = start > 0 and end < len(values)
        reach = (min(length, count) if is_between else length) + 1
        if start:
            out[start:end] += (1.0 - _smooth(places / reach))[:, None] * values[start - 1]
        if end < len(values):
            out[start:end] += (1.0 - _smooth((count + 1 - places) / reach))[:, None] * values[end]
    return out


def faded(known: Bools, length: int) -> Floats:
    """Weights (F,) that are 1 where something is known (F,), and fade from there to zero over so many frames."""
    return eased(np.ones((len(known), 1)), known, length)[:, 0]


def bridged(values: Floats, known: Bools) -> Floats:
    """Values (F, k) as they are where they are known (F,), going smoothly from one to the next in between."""
    at = np.flatnonzero(known)
    frames = np.arange(len(values))
    after = np.searchsorted(at, frames)
    before, after = at[np.maximum(np.searchsorted(at, frames, "right") - 1, 0)], at[np.minimum(after, len(at) - 1)]
    share = _smooth((frames - before) / np.maximum(after - before, 1))[:, None]
    return np.asarray((1.0 - share) * values[before] + share * values[after])


def window(length: int) -> Floats:
    """Weights (2 length + 1,) that sum up to 1, the less the farther away from the middle."""
    weights = 1.0 + np.cos(np.pi * np.arange(-length, length + 1) / (length + 1))
    return np.asarray(weights / weights.sum())


def smoothed(values: Floats, length: int) -> Floats:
    """Values (F,), each the mean of those around it, weighted by `window`."""
    return np.convolve(np.pad(values, length, mode="edge"), window(length), mode="valid")


def _smooth(share: Floats) -> Floats:
    share = np.clip(share, 0.0, 1.0)
    return np.asarray(share * share * (3.0 - 2.0 * share))
