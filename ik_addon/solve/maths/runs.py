"""Runs of set flags in a row of frames."""

import numpy as np

from ..problem import Bools


def runs(flags: Bools) -> list[tuple[int, int]]:
    """Return start and end of each run of set flags (F,); the end is the index after the last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
