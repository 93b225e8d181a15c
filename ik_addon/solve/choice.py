"""Which of several poses to take."""

from __future__ import annotations

import numpy as np

from .problem import Floats, Ints

ARRIVED = 3e-7
"""What may be missing, in chain lengths, in a pose that counts as arrived."""
SAME = 2e-4
"""Poses that miss by not more than this, in chain lengths, beyond the best are as good as it."""
_TIE = 1e-3
"""Poses whose squared distances from FK differ by no more than this fraction are equally near to it."""


def nearest_to_fk(tried: Floats, missing: Floats, fk: Floats) -> Ints:
    """Return which of the poses (B, k, n, 3) to take, (B,): the one nearest to FK (B, n, 3) of those that do best.

    The first one, which changes smoothly with the target, is taken before all others: where many poses do best, it
    depends on details which of them a restart ends in.

    Args:
        tried: joint angles.
        missing: (B, k) what is missing in the poses, in chain lengths; infinite: not one to take.
        fk: joint angles of the FK pose.
    """
    least = missing.min(axis=1, keepdims=True)
    good = missing <= np.where(least <= ARRIVED, ARRIVED, least + SAME)
    away = ((tried - fk[:, None]) * [2.0, 2.0, 1.0]) ** 2
    away = np.where(good, np.cumsum(away.reshape(*missing.shape, -1), axis=-1)[..., -1], np.inf)
    away[:, 0] = np.where(good[:, 0], 0.0, away[:, 0])
    # Mirror images are equally near; rounding must not choose between them.
    return np.asarray(np.argmax(away <= away.min(axis=1, keepdims=True) * (1.0 + _TIE), axis=1))
