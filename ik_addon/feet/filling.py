"""Filling in the frames of a clip on which a value is not known: eased out, bridged or smoothed."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..core.untyped import Column
from ..solve.maths.runs import runs
from ..solve.problem import Bools, Floats, Ints


def numbered(flags: Bools) -> Ints:
    """Return the index of the run of set flags that each frame (F,) is in, or -1."""
    begun = np.cumsum(np.diff(np.concatenate([[False], flags]).astype(np.int64)) == 1) - 1
    return np.asarray(np.where(flags, begun, -1))


def eased(values: Floats, known: Bools, length: int) -> Floats:
    """Return values (F, k) as they are where `known` (F,), eased from there to zero over `length` frames.

    Near the start or the end of the clip, easing continues beyond the clip.
    Between two known runs nothing overshoots: the result is a mean of both runs and zero, with monotonic weights.
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
    """Return weights (F,) that are 1 where `known` (F,), and fade from there to zero over `length` frames."""
    return eased(np.ones((len(known), 1)), known, length)[:, 0]


def bridged(values: Floats, known: Bools) -> Floats:
    """Return values (F, k) as they are where `known` (F,), interpolated smoothly from one to the next in between."""
    frames, (before, after) = np.arange(len(values)), beside(known)
    share = _smooth((frames - before) / np.maximum(after - before, 1))[:, None]
    return np.asarray((1.0 - share) * values[before] + share * values[after])


def beside(known: Bools) -> tuple[Ints, Ints]:
    """Return the last known frame up to each frame (F,), and the first one from there on; at the ends, the only one."""
    at, frames = np.flatnonzero(known), np.arange(len(known))
    before, after = np.searchsorted(at, frames, "right") - 1, np.searchsorted(at, frames)
    return at[np.maximum(before, 0)], at[np.minimum(after, len(at) - 1)]


def widened(values: Column, before: int, after: int) -> Column:
    """Return the largest of values (F,), or flags, from so many frames before each frame to so many after it."""
    return sliding_window_view(np.pad(values, (before, after)), before + after + 1).max(axis=1)


def window(length: int) -> Floats:
    """Return weights (2 length + 1,) with a sum of 1, falling off from the middle."""
    weights = 1.0 + np.cos(np.pi * np.arange(-length, length + 1) / (length + 1))
    return np.asarray(weights / weights.sum())


def smoothed(values: Floats, length: int) -> Floats:
    """Return values (F,), each replaced with the mean of its neighbors, weighted by `window`."""
    return np.convolve(np.pad(values, length, mode="edge"), window(length), mode="valid")


def _smooth(share: Floats) -> Floats:
    share = np.clip(share, 0.0, 1.0)
    return np.asarray(share * share * (3.0 - 2.0 * share))
