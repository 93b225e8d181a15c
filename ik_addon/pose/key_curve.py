"""Replace the keys of an F-curve on a range of frames with those of a smooth curve."""

from __future__ import annotations

import bpy
import numpy as np

from ..solve.problem import Bools, Floats
from .keyframes import FIELDS, SAME_FRAME, Keys, enum_value, read_keys, write_keys


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
