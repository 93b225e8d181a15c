"""Keys that a curve is fitted by, and keys that an edit is added to, as Blender plays them; how an edit falls off."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon

VALUES = np.sin(np.arange(41) / 6.0) + 0.1 * np.cos(np.arange(41))
KEYS = [0, 7, 8, 19, 30, 40]


def keyed(addon: Addon, outside: bool = False) -> Any:
    """Return an F-curve with keys on frames 10 to 50, and optionally before and after."""
    around = ((1, 3.0), (6, -1.0), (57, 2.0), (70, 0.5)) if outside else ()
    return curve_of(addon, (*around, *enumerate(VALUES, 10)))


def curve_of(addon: Addon, keys: Iterable[tuple[int, float]], interpolation: str = "BEZIER") -> Any:
    """Return an F-curve with these keys."""
    ob = rigs.empty("Moved")
    for frame, value in keys:
        ob.location.x = value
        ob.keyframe_insert("location", index=0, frame=frame)
    curve = addon.module("core.compat").find_curve(ob, "location", 0)
    for key in curve.keyframe_points:
        key.interpolation = interpolation
    return curve


def write(addon: Addon, curve: Any) -> Any:
    fitted = addon.module("bake.reducing").fitted(VALUES, np.array(KEYS), np.isin(KEYS, [0, 40]))
    times = 10.0 + fitted.keys
    addon.module("core.key_curve").write_curve(curve, times, fitted.values, fitted.slopes, fitted.lines)
    return fitted


def played(curve: Any, frames: Any) -> Any:
    return np.array([curve.evaluate(frame) for frame in frames])


def test_keys_play_the_fitted_curve(addon: Addon) -> None:
    curve = keyed(addon)
    fitted = write(addon, curve)
    assert [key.co[0] - 10.0 for key in curve.keyframe_points] == KEYS
    assert np.abs(played(curve, range(10, 51)) - fitted.on_frames()).max() < 1e-5
    assert np.isclose(curve.evaluate(17.5), 0.5 * (curve.evaluate(17.0) + curve.evaluate(18.0)), atol=1e-6), "a line"


@pytest.mark.parametrize("outside", [False, True])
def test_blenders_update_moves_no_handle(addon: Addon, outside: bool) -> None:
    curve = keyed(addon, outside)
    write(addon, curve)
    before = played(curve, np.arange(10.0, 50.0, 0.25))
    curve.update()
    assert np.abs(played(curve, np.arange(10.0, 50.0, 0.25)) - before).max() < 1e-5


@pytest.mark.parametrize("kind", ["BEZIER", "CONSTANT", "LINEAR"])
def test_the_curve_outside_the_range_stays(addon: Addon, kind: str) -> None:
    curve = keyed(addon, outside=True)
    for key in curve.keyframe_points:
        if key.co[0] < 10.0 or key.co[0] >= 50.0:
            key.interpolation = kind
    frames = [*np.arange(1.0, 10.0, 0.5), *np.arange(50.5, 75.0, 0.5)]
    before, keys = played(curve, frames), len(curve.keyframe_points)
    write(addon, curve)
    assert (played(curve, frames) == before).all()
    assert len(curve.keyframe_points) == keys - 41 + len(KEYS)


# ---- edits


EVERY_EIGHTH = ((1, 0.0), (9, 2.0), (17, -1.0), (25, 0.5), (33, 0.0), (41, 3.0))
FINE = np.arange(1.0, 41.25, 0.25)
AT_HALF = {"SMOOTH": 0.5, "SPHERE": 0.75**0.5, "ROOT": 0.5**0.5, "INVERSE_SQUARE": 0.75, "SHARP": 0.25, "LINEAR": 0.5}


@pytest.mark.parametrize("interpolation", ["BEZIER", "LINEAR", "CONSTANT"])
def test_the_curve_outside_an_edited_range_stays(addon: Addon, interpolation: str) -> None:
    curve = curve_of(addon, EVERY_EIGHTH, interpolation)
    before, frames = played(curve, FINE), np.array([12.0, 17.0, 20.0, 25.0, 28.0])
    values = np.array([curve.evaluate(frame) for frame in frames])
    values += np.array([0.0, 0.5, 1.0, 0.4, 0.0])
    addon.module("core.key_curve").put_values(curve, frames, values)
    outside = (FINE <= 12.0) | (FINE >= 28.0)
    assert np.allclose(played(curve, FINE)[outside], before[outside], atol=1e-6)
    assert [curve.evaluate(frame) for frame in frames] == pytest.approx(values, abs=1e-6)
    assert [key.co.x for key in curve.keyframe_points] == [1, 9, 12, 17, 20, 25, 28, 33, 41]


def test_keys_that_keep_their_values_change_nothing(addon: Addon) -> None:
    curve = curve_of(addon, EVERY_EIGHTH)
    before, frames = played(curve, FINE), np.array([3.0, 9.0, 14.5, 17.0])
    addon.module("core.key_curve").put_values(curve, frames, np.array([curve.evaluate(frame) for frame in frames]))
    curve.update()
    assert np.allclose(played(curve, FINE), before, atol=1e-5)


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
