"""Bodies are solved by one thread: several would wait for each other where other programs keep the cores busy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks.cases import degrees, tree_y
from ik_addon.solve import polish, solve, threads


@pytest.fixture
def two() -> Iterator[Any]:
    """What tells the number of threads, which is two for the test."""
    functions = threads._functions()
    if functions is None:
        pytest.skip("numpy shares its linear algebra out among no threads here")
    tell, set_ = functions
    before = tell()
    set_(2)
    yield tell
    set_(before)


def test_a_tree_is_solved_by_one_thread(two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    step = polish._step

    def noted(*arguments: Any) -> Any:
        seen.add(two())
        return step(*arguments)

    monkeypatch.setattr(polish, "_step", noted)
    rig = tree_y(degrees((-60, 60), (-60, 60), (-60, 60)))
    solve(rig.problem(rig.at_rest(1), np.array([[[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]]])))
    assert seen == {1}
    assert two() == 2


def test_the_number_of_threads_is_put_back_after_an_error(two: Any) -> None:
    seen = []

    def fail() -> None:
        with threads.one_thread():
            seen.append(two())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (seen, two()) == ([1], 2)
