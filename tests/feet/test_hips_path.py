"""Hips move as little and as smoothly as possible to let legs reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import Addon

FRAMES = np.arange(240)


def legs_of(addon: Addon, excess: float) -> list[Any]:
    """Return two legs of length 1 that take turns; in contact, their feet are up to `excess` too far away."""
    module, legs = addon.module("feet.hips_path"), []
    for start in (0, 60):
        phase = (FRAMES + start) % 120
        distance = 0.97 + (0.03 + excess) * np.maximum(0.0, np.sin(2.0 * np.pi * phase / 70.0))
        angle = 0.4 * np.sin(FRAMES / 20.0 + start)
        ends = np.stack([0.0 * FRAMES, distance * np.sin(angle), -distance * np.cos(angle)], axis=1)
        legs.append(module.Leg(np.zeros_like(ends), ends, 1.0, phase < 70))
    return legs


def test_legs_reach_with_little_more_than_the_least_hip_movement(addon: Addon) -> None:
    legs = legs_of(addon, 0.02)
    still = np.zeros((len(FRAMES), 3))
    assert max(leg.short(still).max() for leg in legs) == pytest.approx(0.02, rel=0.02)
    found = addon.module("feet.hips_path").help_reach(legs, 0.2, 8.0)
    assert found.short.max() == 0.0
    assert np.linalg.norm(found.offsets, axis=1).max() < 0.025
    assert np.abs(np.diff(found.offsets, 2, axis=0)).max() < 0.001


def test_any_smaller_movement_leaves_a_leg_short(addon: Addon) -> None:
    legs = legs_of(addon, 0.02)
    found = addon.module("feet.hips_path").help_reach(legs, 0.2, 8.0)
    assert max(leg.short(0.98 * found.offsets).max() for leg in legs) > 0.0


def test_smoothing_over_more_frames_is_smoother(addon: Addon) -> None:
    help_reach = addon.module("feet.hips_path").help_reach
    bends = [
        np.square(np.diff(help_reach(legs_of(addon, 0.02), 0.2, smooth).offsets, 2, axis=0)).sum()
        for smooth in (2.0, 8.0, 24.0)
    ]
    assert bends[0] > 2.0 * bends[1] > 4.0 * bends[2]


def test_hips_stay_where_all_legs_reach(addon: Addon) -> None:
    found = addon.module("feet.hips_path").help_reach(legs_of(addon, -0.01), 0.2, 8.0)
    assert not found.offsets.any()
    assert not found.short.any()


def test_the_cap_holds_and_the_shortfall_is_reported(addon: Addon) -> None:
    found = addon.module("feet.hips_path").help_reach(legs_of(addon, 0.05), 0.02, 8.0)
    assert np.linalg.norm(found.offsets, axis=1).max() <= 0.02 + 1e-12
    assert 0.02 < found.short.max() < 0.035
    assert np.abs(np.diff(found.offsets, 2, axis=0)).max() < 0.0005, "they are not just stopped there"


def test_feet_off_the_ground_move_no_hips(addon: Addon) -> None:
    module = addon.module("feet.hips_path")
    far = np.repeat([[0.0, 0.0, -2.0]], 20, axis=0)
    leg = module.Leg(np.zeros((20, 3)), far, 1.0, np.zeros(20, dtype=bool))
    assert not module.help_reach([leg], 0.2, 4.0).offsets.any()


def test_offsets_that_limits_need_are_as_smooth(addon: Addon) -> None:
    legs = legs_of(addon, -0.01)
    asked = np.zeros((len(FRAMES), 3))
    asked[100:110] = [0.0, 0.03, 0.0]
    cut = [legs[0].cut(asked, np.zeros_like(asked)), legs[1]]
    found = addon.module("feet.hips_path").help_reach(cut, 0.2, 8.0)
    assert found.offsets[100:110, 1].min() > 0.03
    assert np.linalg.norm(found.offsets, axis=1).max() < 0.04
    assert np.abs(np.diff(found.offsets, 2, axis=0)).max() < 0.001
    capped = addon.module("feet.hips_path").help_reach(cut, 0.02, 8.0)
    assert np.linalg.norm(capped.offsets, axis=1).max() <= 0.02 + 1e-12


def test_a_search_continues_from_the_previous_one(addon: Addon, monkeypatch: pytest.MonkeyPatch) -> None:
    module, passes = addon.module("feet.hips_path"), 0
    step = module._Balls.into

    def counted(balls: Any, offsets: Any) -> Any:
        nonlocal passes
        passes += 1
        return step(balls, offsets)

    legs = legs_of(addon, 0.02)
    before = module.help_reach(legs, 0.2, 8.0)
    asked = np.zeros((len(FRAMES), 3))
    asked[100:110] = [0.0, 0.003, 0.0]
    more = [legs[0], legs[1].cut(asked, before.offsets)]
    monkeypatch.setattr(module._Balls, "into", counted)
    anew, passes_anew = module.help_reach(more, 0.2, 8.0), passes
    further = module.help_reach(more, 0.2, 8.0, before)
    assert np.abs(further.offsets - anew.offsets).max() < 1e-3
    assert further.short.max() == 0.0
    assert passes - passes_anew < 0.7 * passes_anew


@pytest.mark.parametrize("count", [1, 2, 7, 24])
def test_smoothing_scales_each_wave_by_its_share(addon: Addon, count: int) -> None:
    places, rng = np.arange(count), np.random.default_rng(count)
    waves = np.cos(np.pi * np.outer(places, places + 0.5) / count)
    values, shares = rng.normal(size=(3, count)), rng.random(count)
    expected = values @ np.linalg.inv(waves) * shares @ waves
    assert np.abs(addon.module("feet.hips_path")._smoothing(shares)(values) - expected).max() < 1e-12
