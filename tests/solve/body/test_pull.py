"""What is dragged gives way by so much that no force is greater than allowed, and soon comes to rest."""

from __future__ import annotations

import numpy as np
import pytest

from ik_addon.solve.body.pull import STRENGTH, Pulls


def passes(way: float, *, foretold: bool) -> int:
    """Count the passes until an end rests; its target is so far away, in ways of a spring under the greatest force."""
    dragged = np.ones(1, dtype=bool)
    pulls, gap = Pulls.none(1), np.full(1, way)
    for count in range(1, 1000):
        yields = 1e-7 + pulls.yields(gap, dragged, foretold=foretold)
        force = way / (1.0 / STRENGTH + yields)
        pulls, gap = pulls.then(gap, force), way - force / STRENGTH
        if abs(gap[0] - max(way - 1.0, 0.0)) < 5e-3:
            return count
    raise AssertionError


@pytest.mark.parametrize("way", [0.5, 0.9, 1.001, 1.05, 1.3])
def test_what_closes_slowly_comes_to_rest_in_few_passes(way: float) -> None:
    assert passes(way, foretold=True) <= min(passes(way, foretold=False), 12)


def test_what_hardly_reaches_would_creep() -> None:
    assert passes(1.001, foretold=False) > 50


def test_what_is_not_dragged_does_not_give_way() -> None:
    assert Pulls.none(2).yields(np.ones(2), np.array([False, True]), foretold=True).tolist() == [0.0, 1.0 / STRENGTH]
