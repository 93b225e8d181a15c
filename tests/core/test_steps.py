"""Steps of work are cancelled, and clean up, as soon as somebody interrupts them."""

from collections.abc import Generator

import pytest

from tests.conftest import Addon

ended: list[str] = []


def work() -> Generator[float, None, str]:
    """Note how a task of three steps ended."""
    ended.append("cancelled")
    try:
        yield from (0.0, 0.5, 1.0)
        ended.clear()
    finally:
        ended.append("over")
    return "result"


def test_an_interrupt_cancels_the_steps(addon: Addon) -> None:
    ended.clear()
    asked = iter(range(2))

    def go_on() -> None:
        if next(asked, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupt:
        addon.module("core.steps").finished(work(), go_on)
    assert ended == ["cancelled", "over"], interrupt


def test_a_part_yields_progress_of_the_whole_and_is_cancelled_with_it(addon: Addon) -> None:
    ended.clear()
    part = addon.module("core.steps").part
    assert list(part(work(), 0.2, 0.6)) == pytest.approx([0.2, 0.4, 0.6])
    assert ended == ["over"]
    ended.clear()
    steps = part(work(), 0.0, 1.0)
    next(steps)
    steps.close()
    assert ended == ["cancelled", "over"]
