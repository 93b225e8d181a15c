"""Whether joints lie on the line from the root of a chain to its tip."""

from __future__ import annotations

import numpy as np

from ..problem import Bools, Floats


def is_straight(joints: Floats, least: float) -> Bools:
    """Which (B,) of chains with joints (B, n+1, 3) leave that line by less than a fraction of their length."""
    length = np.linalg.norm(np.diff(joints, axis=1), axis=2).sum(axis=1)
    line = joints[:, -1] - joints[:, 0]
    size = np.linalg.norm(line, axis=1)
    line = line / np.maximum(size, 1e-300)[:, None]
    seen = joints - joints[:, :1]
    off = seen - (seen * line[:, None]).sum(axis=2)[..., None] * line[:, None]
    widest = np.linalg.norm(off, axis=2).max(axis=1)
    return np.asarray((size > least * length) & (widest < least * length))
