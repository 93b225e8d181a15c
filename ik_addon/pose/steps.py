"""Work in steps that yield the share that is done, 0 to 1, so that it can be shown and cancelled between any two."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import TypeVar

Result = TypeVar("Result")


def finished(steps: Generator[float, None, Result], go_on: Callable[[], None] = lambda: None) -> Result:
    """Do all steps at once; what `go_on` raises before one of them cancels the work."""
    with closing(steps):
        while True:
            go_on()
            try:
                next(steps)
            except StopIteration as done:
                result: Result = done.value
                return result


def part(steps: Generator[float, None, Result], first: float, last: float) -> Generator[float, None, Result]:
    """Do steps as the part of a whole from the share `first` to `last`."""
    with closing(steps):
        while True:
            try:
                share = next(steps)
            except StopIteration as done:
                result: Result = done.value
                return result
            yield first + (last - first) * share
