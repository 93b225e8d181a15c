"""Curves through a few keys: how close they are to the values, and that they have no corners."""

from __future__ import annotations

import numpy as np

from ik_addon.bake.spline import Curve, fitted
from ik_addon.solve.problem import Floats, Ints


def fit(values: Floats, *keys: int) -> Curve:
    every: Ints = np.array([0, *keys, len(values) - 1])
    return fitted(values, every, np.isin(every, [0, len(values) - 1]))


def test_a_cubic_needs_no_inner_keys() -> None:
    frames = np.arange(60) / 59.0
    values = 2.0 - frames + 3.0 * frames**2 - 5.0 * frames**3
    assert np.abs(fit(values).on_frames() - values).max() < 1e-4


def test_slopes_are_the_least_squares_fit() -> None:
    rng = np.random.default_rng(2)
    values = np.cumsum(rng.normal(size=80))
    curve = fit(values, 20, 50)
    squares = ((curve.on_frames() - values) ** 2).sum()
    for _ in range(200):
        slopes = curve.slopes + rng.normal(scale=0.01, size=4)
        middle = curve.values + np.array([0.0, *rng.normal(scale=0.01, size=2), 0.0])
        assert ((Curve(curve.keys, middle, slopes).on_frames() - values) ** 2).sum() > squares - 1e-3


def test_keys_on_every_frame_reproduce_the_values() -> None:
    values = np.random.default_rng(3).normal(size=40)
    curve = fit(values, *range(1, 39))
    assert np.abs(curve.on_frames() - values).max() < 1e-9
    assert curve.lines.all()


def test_a_pinned_key_has_the_exact_value() -> None:
    values = np.random.default_rng(4).normal(size=50)
    curve = fitted(values, np.array([0, 17, 30, 49]), np.array([True, True, False, True]))
    assert (curve.values[[0, 1, 3]] == values[[0, 17, 49]]).all()
    assert curve.values[2] != values[30]


def test_a_jump_between_two_keys_does_not_disturb_other_frames() -> None:
    values = np.where(np.arange(60) < 30, 1.0, 5.0)
    assert np.abs(fit(values, 29, 30).on_frames() - values).max() < 1e-6
