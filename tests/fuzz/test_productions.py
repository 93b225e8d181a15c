"""Random bodies as productions have them; `make fuzz ARGS=productions` runs many more."""

from __future__ import annotations

import pytest

from .productions import check_seed

FAILING = (1, 6, 8, 9, 12, 14, 15, 16, 18, 19, 20, 21)
"""Cases in which a target is carried, or moved by others, in a way that is not followed today."""


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=pytest.mark.xfail(strict=True, reason="missed, and said to be reached"))
        if seed in FAILING
        else seed
        for seed in range(24)
    ],
)
def test_a_body_with_a_history_looks_like_its_twin_and_its_reports_are_true(seed: int) -> None:
    check_seed(seed)
