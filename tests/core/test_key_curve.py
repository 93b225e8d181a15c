"""Keys of a smooth curve, as Blender plays them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon

VALUES = np.sin(np.arange(41) / 6.0) + 0.1 * np.cos(np.arange(41))
KEYS = [0, 7, 8, 19, 30, 40]


def keyed(addon: Addon, outside: bool = False) -> Any:
    """Return an F-curve with keys on frames 10 to 50, and optionally before and after."""
    ob = rigs.empty("Moved")
    if outside:
        for frame, value in ((1, 3.0), (6, -1.0), (57, 2.0), (70, 0.5)):
            ob.location.x = value
            ob.keyframe_insert("location", index=0, frame=frame)
    for frame, value in enumerate(VALUES, 10):
        ob.location.x = value
        ob.keyframe_insert("location", index=0, frame=frame)
    return addon.module("core.compat").curve_owner(ob).fcurves.find("location", index=0)


def write(addon: Addon, curve: Any) -> Any:
    fitted = addon.module("bake.spline").fitted(VALUES, np.array(KEYS), np.isin(KEYS, [0, 40]))
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
