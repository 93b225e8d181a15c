"""Steps are run at once, run as a part of larger work, or cancelled."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.conftest import Addon


class Work:
    """A task of three steps that records how it ended."""

    ended = ""

    def steps(self) -> Generator[float, None, str]:
        try:
            yield from (0.0, 0.5, 1.0)
            self.ended = "done"
        finally:
            self.ended = self.ended or "cancelled"
        return "result"


def test_finished_runs_all_steps(addon: Addon) -> None:
    work = Work()
    asked: list[int] = []
    assert addon.module("core.steps").finished(work.steps(), lambda: asked.append(1)) == "result"
    assert (work.ended, len(asked)) == ("done", 4)


def test_an_interrupt_cancels_the_steps(addon: Addon) -> None:
    work = Work()
    asked: list[int] = []

    def go_on() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        addon.module("core.steps").finished(work.steps(), go_on)
    assert work.ended == "cancelled"


def test_a_part_yields_progress_of_the_whole(addon: Addon) -> None:
    work = Work()
    steps = addon.module("core.steps").part(work.steps(), 0.2, 0.6)
    assert [next(steps) for _ in range(3)] == pytest.approx([0.2, 0.4, 0.6])
    with pytest.raises(StopIteration) as done:
        next(steps)
    assert (done.value.value, work.ended) == ("result", "done")


def test_a_part_is_cancelled_with_the_whole(addon: Addon) -> None:
    work = Work()
    steps = addon.module("core.steps").part(work.steps(), 0.0, 1.0)
    next(steps)
    steps.close()
    assert work.ended == "cancelled"
