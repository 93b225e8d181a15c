"""The small graph in Last Bake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import Addon


@pytest.mark.parametrize("values", [[3.0, 12.0, 0.5, 6.0], [1.0], list(range(96)), [0.0, 0.0]])
def test_each_part_of_the_range_is_as_high_as_its_number(addon: Addon, values: list[float]) -> None:
    graph = addon.module("ui.graph")
    pixels = graph.pixels(values)
    assert pixels.shape == (graph.HEIGHT, graph.WIDTH, 4)
    # The middle of each part, which a step to the next one doesn't touch.
    middles = ((np.arange(len(values)) + 0.5) * graph.WIDTH / len(values)).astype(int)
    heights = [np.flatnonzero(pixels[:, column, 3])[-1] / (graph.HEIGHT - 1) for column in middles]
    assert np.allclose(heights, np.array(values) / (max(values) or 1.0), atol=0.03)
