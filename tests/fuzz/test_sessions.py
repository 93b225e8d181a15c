"""Random scenes on all ways to their frames; `make fuzz ARGS=sessions` does many more."""

from __future__ import annotations

import pytest

from .sessions import check_seed


@pytest.mark.parametrize("seed", range(6))
def test_random_sessions(seed: int) -> None:
    check_seed(seed)
