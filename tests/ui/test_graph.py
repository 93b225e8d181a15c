"""The small graph in the Last Bake panel."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import Addon


@pytest.mark.parametrize("values", [[3.0, 12.0, 0.5, 6.0], [1.0], list(range(96)), [0.0, 0.0]])
def test_the_height_of_each_part_shows_its_value(addon: Addon, values: list[float]) -> None:
    graph = addon.module("ui.panels.bake_report")
    pixels = graph.pixels(values)
    assert pixels.shape == (graph.HEIGHT, graph.WIDTH, 4)
    # The middle of each part is not affected by the steps between parts.
    middles = ((np.arange(len(values)) + 0.5) * graph.WIDTH / len(values)).astype(int)
    heights = [np.flatnonzero(pixels[:, column, 3])[-1] / (graph.HEIGHT - 1) for column in middles]
    assert np.allclose(heights, np.array(values) / (max(values) or 1.0), atol=0.03)
