"""The bone under the mouse, on lines as they are on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import Addon

NEAR = 10.0


def found(addon: Addon, lines: Any, place: tuple[float, float]) -> int | None:
    index: int | None = addon.module("posing.pick").nearest(np.array(lines, dtype=float), np.array(place), NEAR)
    return index


ARM = [[(0, 0, 0.5), (50, 0, 0.5)], [(50, 0, 0.5), (100, 0, 0.5)]]


@pytest.mark.parametrize(
    ("place", "index"),
    [
        ((20, 5), 0),
        ((80, -5), 1),
        ((50, 3), 1),  # the joint belongs to the child
        ((20, 11), None),
        ((-9, 0), 0),
        ((-11, 0), None),
    ],
)
def test_the_nearest_is_found_within_some_pixels(addon: Addon, place: tuple[float, float], index: int | None) -> None:
    assert found(addon, ARM, place) == index


def test_a_long_bone_is_as_fat_as_it_is_drawn(addon: Addon) -> None:
    assert found(addon, [[(0, 0, 0.5), (500, 0, 0.5)]], (250, 40)) == 0


def test_of_two_in_one_place_the_nearer_to_the_viewer_is_taken(addon: Addon) -> None:
    behind, before = [(0, 0, 0.7), (50, 0, 0.7)], [(0, 0, 0.3), (50, 0, 0.3)]
    assert found(addon, [behind, before], (20, 0)) == 1
    assert found(addon, [before, behind], (20, 0)) == 0


def test_what_is_behind_the_viewer_or_of_no_length(addon: Addon) -> None:
    nan = float("nan")
    assert found(addon, [[(nan, nan, nan), (50, 0, 0.5)]], (20, 0)) is None
    assert found(addon, [[(20, 0, 0.5), (20, 0, 0.5)]], (25, 0)) == 0
