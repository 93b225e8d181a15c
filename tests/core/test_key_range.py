"""How an edit is added to the keys around it, and falls off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon

KEYS = ((1, 0.0), (9, 2.0), (17, -1.0), (25, 0.5), (33, 0.0), (41, 3.0))
FINE = np.arange(1.0, 41.25, 0.25)
AT_HALF = {"SMOOTH": 0.5, "SPHERE": 0.75**0.5, "ROOT": 0.5**0.5, "INVERSE_SQUARE": 0.75, "SHARP": 0.25, "LINEAR": 0.5}


def curve_of(addon: Addon, interpolation: str) -> Any:
    """Return an F-curve with keys every eight frames."""
    ob = rigs.empty("Moved")
    for frame, value in KEYS:
        ob.location.x = value
        ob.keyframe_insert("location", index=0, frame=frame)
    curve = addon.module("core.compat").find_curve(ob, "location", 0)
    for key in curve.keyframe_points:
        key.interpolation = interpolation
    return curve


def played(curve: Any) -> Any:
    return np.array([curve.evaluate(frame) for frame in FINE])


@pytest.mark.parametrize("interpolation", ["BEZIER", "LINEAR", "CONSTANT"])
def test_the_curve_outside_the_range_stays(addon: Addon, interpolation: str) -> None:
    curve = curve_of(addon, interpolation)
    before, frames = played(curve), np.array([12.0, 17.0, 20.0, 25.0, 28.0])
    values = np.array([curve.evaluate(frame) for frame in frames])
    values += np.array([0.0, 0.5, 1.0, 0.4, 0.0])
    addon.module("core.key_range").put_values(curve, frames, values)
    outside = (FINE <= 12.0) | (FINE >= 28.0)
    assert np.allclose(played(curve)[outside], before[outside], atol=1e-6)
    assert [curve.evaluate(frame) for frame in frames] == pytest.approx(values, abs=1e-6)
    assert [key.co.x for key in curve.keyframe_points] == [1, 9, 12, 17, 20, 25, 28, 33, 41]


def test_keys_that_keep_their_values_change_nothing(addon: Addon) -> None:
    curve = curve_of(addon, "BEZIER")
    before, frames = played(curve), np.array([3.0, 9.0, 14.5, 17.0])
    addon.module("core.key_range").put_values(curve, frames, np.array([curve.evaluate(frame) for frame in frames]))
    curve.update()
    assert np.allclose(played(curve), before, atol=1e-5)


@pytest.mark.parametrize("falloff", AT_HALF)
def test_falloffs_are_blenders(addon: Addon, falloff: str) -> None:
    found = addon.module("core.falloff").weights(np.arange(-20.0, 21.0), 0.0, falloff)
    assert found[[0, 20, 40]] == pytest.approx([0.0, 1.0, 0.0])
    assert found[[10, 30]] == pytest.approx([AT_HALF[falloff]] * 2)
    assert (np.diff(found[:21]) > 0.0).all()


def test_time_stands_still_in_contacts(addon: Addon) -> None:
    frames = np.arange(0.0, 41.0)
    still = ((frames >= 18) & (frames <= 24)) | ((frames >= 30) & (frames <= 34)) | (frames <= 4)
    found = addon.module("core.falloff").weights(frames, 20.0, "LINEAR", still)
    assert (found[18:25] == 1.0).all(), "the one at the edit moves as a whole"
    assert np.ptp(found[30:35]) < 1e-9
    assert 0.0 < found[30] < 1.0
    assert np.abs(found[:5]).max() < 1e-9, "the one that continues outside stays"
    assert np.abs(np.diff(found)).max() < 0.11, "frames between them share the way"
