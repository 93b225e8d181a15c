"""Work done in steps that yield progress (0 to 1), so that it can be shown, and cancelled between any two steps."""

from collections.abc import Callable, Generator
from contextlib import closing
from typing import TypeVar

Result = TypeVar("Result")


def finished(steps: Generator[float, None, Result], go_on: Callable[[], None] = lambda: None) -> Result:
    """Run all steps and return their result; if `go_on`, called before each, raises an error, the work is cancelled."""
    with closing(steps):
        while True:
            go_on()
            try:
                next(steps)
            except StopIteration as done:
                return done.value


def part(steps: Generator[float, None, Result], first: float, last: float) -> Generator[float, None, Result]:
    """Run steps as the part of a larger task from progress `first` to `last`."""
    with closing(steps):
        while True:
            try:
                share = next(steps)
            except StopIteration as done:
                return done.value
            yield first + (last - first) * share
