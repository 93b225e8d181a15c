"""Random problems for the solvers; `make fuzz ARGS=solver` runs many more."""

from __future__ import annotations

import pytest

from .verdict import check_seed


@pytest.mark.parametrize("hundred", range(2))
def test_random_problems_are_solved_or_refused(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        try:
            check_seed(seed)
        except Exception as error:
            error.add_note(f"Problem {seed}; alone: make fuzz ARGS='solver --case {seed}'")
            raise
