"""Random scenes and edits; `make fuzz ARGS=rigs` runs many more."""

from __future__ import annotations

import pytest

from .edits import check_seed


@pytest.mark.parametrize("seed", range(6))
def test_random_scenes_survive_random_edits(seed: int) -> None:
    check_seed(seed)
