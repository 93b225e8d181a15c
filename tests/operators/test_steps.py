"""The progress of long work and the time left; its display and Esc are tested in a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Addon


def test_the_time_left_is_estimated_from_the_progress(addon: Addon) -> None:
    progress = addon.module("operators.steps").Progress("Baking IK", 100.0)
    assert progress.text == "Baking IK: 0%"
    progress.reach(0.1, 100.5)
    assert progress.text == "Baking IK: 10%", "half a second is too short to tell"
    progress.reach(0.25, 110.0)
    assert progress.text == "Baking IK: 25%, 30 s left"
    progress.reach(0.5, 300.0)
    assert progress.text == "Baking IK: 50%, 3 min 20 s left"
    progress.reach(1.0, 400.0)
    assert progress.text == "Baking IK: 100%, 0 s left"


def test_work_that_restarts_is_measured_again(addon: Addon) -> None:
    """A bake falls back to a slower way if a faster one turns out not to be possible."""
    progress = addon.module("operators.steps").Progress("Baking IK", 0.0)
    progress.reach(0.8, 2.0)
    progress.reach(0.0, 10.0)
    assert progress.left is None
    progress.reach(0.1, 20.0)
    assert progress.left is not None
    assert abs(progress.left - 90.0) < 1e-9


def test_no_work_is_running_in_a_script(addon: Addon) -> None:
    assert addon.module("operators.steps").running() is None
