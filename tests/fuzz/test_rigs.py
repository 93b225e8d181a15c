"""Random scenes and edits of them; `make fuzz ARGS=rigs` does many more."""

from __future__ import annotations

import pytest

from .edits import check_seed


@pytest.mark.parametrize("seed", range(6))
def test_random_scenes(seed: int) -> None:
    check_seed(seed)
