"""Random scenes on all ways to their frames; `make fuzz ARGS=sessions` runs many more."""

from __future__ import annotations

import pytest

from .sessions import check_seed


@pytest.mark.parametrize("seed", range(6))
def test_all_ways_to_a_frame_of_a_random_scene_give_the_same_pose(seed: int) -> None:
    check_seed(seed)
