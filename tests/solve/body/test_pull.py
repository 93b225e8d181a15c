"""The pull on a grab is no stronger than allowed, and soon comes to rest."""

from __future__ import annotations

import numpy as np
import pytest

from ik_addon.solve.body.ends import pull_of
from ik_addon.solve.body.problem import STRENGTH
from tests.solve.chains import for_each

PULLED = np.array([STRENGTH])


def passes(way: float, *, near: bool) -> int:
    """Count the passes until an end rests; `way` is its target's distance, in lengths of a spring at maximum force."""
    gap, force = np.array([[way, 0.0, 0.0]]), np.zeros((1, 3))
    for count in range(1, 1000):
        pull = pull_of(gap, force, PULLED, np.zeros(1), near=near)
        if 0 in pull.thrusts:
            force = STRENGTH * np.array(pull.thrusts[0][0])[None]
        else:
            force = np.array([[way, 0.0, 0.0]]) / (1.0 / STRENGTH + pull.yields)
        gap = np.array([[way, 0.0, 0.0]]) - force / STRENGTH
        if abs(gap[0, 0] - max(way - 1.0, 0.0)) < 1e-4:
            return count
    raise AssertionError


@for_each(way=(0.5, 0.9, 0.999, 1.001, 1.05, 1.3))
def test_near_the_end_a_few_passes_bring_it_to_rest(way: float) -> None:
    assert passes(way, near=True) <= 3


def test_far_from_the_end_a_target_just_out_of_reach_takes_many_passes() -> None:
    assert passes(1.05, near=False) > 50


def test_the_force_is_greatest_when_the_target_is_out_of_reach() -> None:
    pull = pull_of(np.array([[0.0, 0.3, 0.4]]), np.array([[0.0, 60.0, 80.0]]), PULLED, np.zeros(1), near=True)
    assert pull.thrusts[0][0] == pytest.approx((0.0, 0.6, 0.8))
    assert pull.thrusts[0][1] == STRENGTH
    assert pull.yields[0] == pytest.approx(0.5 / STRENGTH), "as across the way to its target"


def test_what_is_not_dragged_does_not_yield() -> None:
    gaps, forces = np.ones((2, 3)), np.zeros((2, 3))
    for near in (False, True):
        pull = pull_of(gaps, forces, np.array([np.inf, STRENGTH]), np.zeros(2), near=near)
        assert pull.yields[0] == 0.0
        assert pull.yields[1] > 0.0
        assert 0 not in pull.thrusts
