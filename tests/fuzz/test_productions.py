"""Random bodies as productions have them; `make fuzz ARGS=productions` runs many more."""

from __future__ import annotations

import pytest

from .productions import check_seed


@pytest.mark.parametrize("seed", range(24))
def test_a_body_with_a_history_looks_like_its_twin_and_its_reports_are_true(seed: int) -> None:
    check_seed(seed)
