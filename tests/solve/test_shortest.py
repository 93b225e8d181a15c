"""The shortest path through layers is found, checked against all paths."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

from ik_addon.solve.problem import Floats, Ints
from ik_addon.solve.smooth import shortest


def test_no_other_path_costs_less() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        sizes = rng.integers(1, 5, size=6)
        layers = [np.arange(size) + 10 * k for k, size in enumerate(sizes.tolist())]
        places = rng.normal(size=100)

        def cost(before: Ints, after: Ints, places: Floats = places) -> Floats:
            return np.asarray((places[before][:, None] - places[after]) ** 2)

        found = shortest(layers, cost)
        assert all(chosen in layer for chosen, layer in zip(found, layers, strict=True))
        lengths = {
            path: sum((places[a] - places[b]) ** 2 for a, b in pairwise(path))
            for path in product(*(layer.tolist() for layer in layers))
        }
        assert np.isclose(lengths[tuple(found.tolist())], min(lengths.values()))
