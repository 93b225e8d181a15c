"""The shortest path through layers of candidates, by dynamic programming."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ..solve.problem import Floats, Ints


def shortest(layers: Sequence[Ints], cost: Callable[[Ints, Ints], Floats]) -> Ints:
    """Return the candidate of each layer on the path whose steps have the least total cost.

    Args:
        layers: the candidates' numbers, one array (K,) per layer, none of them empty.
        cost: the cost (K, L) of the steps between candidates (K,) and those (L,) of the next layer.
    """
    total, came_from = np.zeros(len(layers[0])), []
    for before, after in pairwise(layers):
        sums = total[:, None] + cost(before, after)
        best = sums.argmin(axis=0)
        came_from.append(best)
        total = sums[best, np.arange(len(after))]
    place = int(total.argmin())
    path = [int(layers[-1][place])]
    for layer, best in zip(layers[-2::-1], came_from[::-1], strict=True):
        place = int(best[place])
        path.append(int(layer[place]))
    return np.array(path[::-1], dtype=np.int64)
