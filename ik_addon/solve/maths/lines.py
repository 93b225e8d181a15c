"""Test whether joints lie on the line from the root of a chain to its tip."""

from __future__ import annotations

import numpy as np

from ..problem import Bools, Floats
from .rotations import norm, reject


def is_straight(joints: Floats, least: float) -> Bools:
    """Return which chains (B,) of joints (B, n+1, 3) leave that line by less than a fraction of their length."""
    points = joints.T  # components first, as `norm` wants it
    length = norm(points[:, 1:] - points[:, :-1]).sum(axis=-2)
    line = points[:, -1] - points[:, 0]
    size = norm(line)
    seen = points - points[:, :1]
    widest = norm(reject(seen, (line / np.maximum(size, 1e-300))[:, None])).max(axis=0)
    return np.asarray((size > least * length) & (widest < least * length))
