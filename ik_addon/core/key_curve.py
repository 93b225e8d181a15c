"""The keyframes of one F-curve as arrays, and a smooth curve in place of those on a range of frames."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..solve.problem import Bools, Floats

Keys = dict[str, NDArray[Any]]
"""The keyframes of one F-curve as Blender stores them: an array per attribute."""
FIELDS: dict[str, tuple[type, int]] = {
    "co": (np.float32, 2),
    "handle_left": (np.float32, 2),
    "handle_right": (np.float32, 2),
    "handle_left_type": (np.int32, 1),
    "handle_right_type": (np.int32, 1),
    "interpolation": (np.int32, 1),
    "easing": (np.int32, 1),
    "back": (np.float32, 1),
    "amplitude": (np.float32, 1),
    "period": (np.float32, 1),
    "type": (np.int32, 1),
    "select_control_point": (np.bool_, 1),
    "select_left_handle": (np.bool_, 1),
    "select_right_handle": (np.bool_, 1),
}
"""Type and width of each attribute of a keyframe."""
SAME_FRAME = 0.01
"""Blender merges keys that are closer together than this, in frames."""


def new_keys(points: Floats, interpolation: str) -> Keys:
    """Return keys at points (K, 2) with automatic handles, which are at the keys, and Blender's values otherwise."""
    keys: Keys = {name: np.zeros((len(points), width), dtype=kind) for name, (kind, width) in FIELDS.items()}
    keys["co"][:] = keys["handle_left"][:] = keys["handle_right"][:] = points
    keys["interpolation"][:] = enum_value("interpolation", interpolation)
    keys["handle_left_type"][:] = keys["handle_right_type"][:] = enum_value("handle_left_type", "AUTO_CLAMPED")
    keys["back"][:], keys["amplitude"][:], keys["period"][:] = 1.70158, 0.8, 4.1
    return keys


def read_keys(curve: bpy.types.FCurve, fields: Iterable[str] = FIELDS) -> Keys:
    """Read all keyframes of an F-curve."""
    points = curve.keyframe_points
    keys = {}
    for name in fields:
        kind, width = FIELDS[name]
        values: NDArray[Any] = np.empty(len(points) * width, dtype=kind)
        points.foreach_get(name, values)
        keys[name] = values.reshape(-1, width)
    return keys


def write_keys(curve: bpy.types.FCurve, keys: Keys) -> None:
    """Replace all keyframes of an F-curve without recalculating handles."""
    points = curve.keyframe_points
    points.clear()
    points.add(len(keys["co"]))
    for name, values in keys.items():
        points.foreach_set(name, values.ravel())


@lru_cache
def enum_value(field: str, name: str) -> int:
    """Return the number of an enumeration item; arrays of keyframes hold numbers."""
    return int(bpy.types.Keyframe.bl_rna.properties[field].enum_items[name].value)  # type: ignore[attr-defined]


def write_curve(curve: bpy.types.FCurve, frames: Floats, values: Floats, slopes: Floats, lines: Bools) -> None:
    """Replace all keys from the first to the last of some frames; the curve must have keys in that range.

    The curve before and after the range stays as it is.

    Args:
        curve: the F-curve.
        frames: (K,) frames of the new keys.
        values: (K,) their values.
        slopes: (K,) change of the value per frame.
        lines: (K - 1,) whether a straight line connects a key to the next one.
    """
    old = read_keys(curve)
    inside = keyed_within(old, frames[0], frames[-1])
    first, last = np.flatnonzero(inside)[[0, -1]]
    # The last key's interpolation and right handle lead out of the range, the first key's left handle leads into it.
    new = {name: keys[np.full(len(frames), last)] for name, keys in old.items()}
    new["co"][:] = np.stack([frames, values], axis=1)
    reach = np.diff(frames) / 3.0
    new["handle_left"][1:] = np.stack([frames[1:] - reach, values[1:] - reach * slopes[1:]], axis=1)
    new["handle_right"][:-1] = np.stack([frames[:-1] + reach, values[:-1] + reach * slopes[:-1]], axis=1)
    new["handle_left"][0] = old["handle_left"][first]
    new["handle_left_type"][:] = new["handle_right_type"][:] = enum_value("handle_left_type", "ALIGNED")
    for ends in (0, -1):
        new["handle_left_type"][ends] = new["handle_right_type"][ends] = enum_value("handle_left_type", "FREE")
    for name in ("interpolation", "easing"):
        new[name][:-1] = old[name][first]
    kinds = enum_value("interpolation", "LINEAR"), enum_value("interpolation", "BEZIER")
    new["interpolation"][:-1, 0] = np.where(lines, *kinds)
    where = int(first)
    write_keys(curve, {name: np.concatenate([old[name][:where], new[name], old[name][last + 1 :]]) for name in FIELDS})


def keyed_within(keys: Keys, first: float, last: float) -> Bools:
    """Which keys (K,) are within a range of frames."""
    frames = keys["co"][:, 0]
    return np.asarray((frames >= first - SAME_FRAME) & (frames <= last + SAME_FRAME))
