"""Random problems for the solvers; `make fuzz ARGS=solver` runs many more."""

from __future__ import annotations

from .verdict import check_seed


def test_random_problems_are_solved_or_refused() -> None:
    for seed in range(100):
        try:
            check_seed(seed)
        except Exception as error:
            error.add_note(f"Problem {seed}; alone: make fuzz ARGS='solver --case {seed}'")
            raise
