"""Everyday edits in random order; `make fuzz ARGS=everyday` runs many more."""

from __future__ import annotations

import pytest

from .everyday import check_seed


@pytest.mark.parametrize("seed", range(6))
def test_chains_are_where_they_belong_after_everyday_edits(seed: int) -> None:
    check_seed(seed)
