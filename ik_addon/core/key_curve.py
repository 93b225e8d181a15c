"""The keyframes of one F-curve as arrays: replaced, split, or with new values on a range of frames."""

from collections.abc import Iterable
from functools import lru_cache

import bpy
import numpy as np
from bpy.types import FCurve

from ..solve.problem import Bools, Floats
from .untyped import Column

Keys = dict[str, Column]
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
LEAVING = ("interpolation", "easing", "back", "amplitude", "period")
"""Attributes of a keyframe that shape the curve from it to the next one."""
HALVINGS = 60
"""After this many halvings, the parameter on a curve is as exact as a double."""
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


def read_keys(curve: FCurve, fields: Iterable[str] = FIELDS) -> Keys:
    """Read all keyframes of an F-curve."""
    points = curve.keyframe_points
    keys = {}
    for name in fields:
        kind, width = FIELDS[name]
        values: Column = np.empty(len(points) * width, dtype=kind)
        points.foreach_get(name, values)
        keys[name] = values.reshape(-1, width)
    return keys


def write_keys(curve: FCurve, keys: Keys) -> None:
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


def write_curve(curve: FCurve, frames: Floats, values: Floats, slopes: Floats, lines: Bools) -> None:
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
    first, last = np.flatnonzero(keyed_within(old, frames[0], frames[-1]))[[0, -1]]
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


def split(keys: Keys, frame: float, value: float) -> Keys:
    """Return keys (K of them, at least one) with one more at a frame, where the curve has this value and keeps it.

    Blender's own `keyframe_points.insert` does the same in single precision: now and then it is off by 1e-4.
    """
    after = int(np.searchsorted(keys["co"][:, 0], frame))
    before = max(after - 1, 0)
    new = new_keys(np.array([[frame, value]]), "BEZIER")
    for name in LEAVING:
        new[name][:] = keys[name][before]
    keys = {name: own.copy() for name, own in keys.items()}
    if after == len(keys["co"]):  # beyond the last key the curve is straight
        start, end = keys["co"][before].astype(np.float64), new["co"][0].astype(np.float64)
        keys["handle_right"][before], new["handle_left"][0] = start + (end - start) / 3.0, end - (end - start) / 3.0
    elif after and keys["interpolation"][before, 0] == enum_value("interpolation", "BEZIER"):
        corners = (("co", before), ("handle_right", before), ("handle_left", after), ("co", after))
        start, leaving, arriving, end = (keys[name][key].astype(np.float64) for name, key in corners)
        lengths = leaving[0] - start[0], end[0] - arriving[0]
        if sum(lengths) > end[0] - start[0]:  # Blender shortens handles that overlap
            part = (end[0] - start[0]) / sum(lengths)
            leaving, arriving = start + part * (leaving - start), end + part * (arriving - end)
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            share = 0.5 * (low + high)
            a, b, c = (p + share * (q - p) for p, q in ((start, leaving), (leaving, arriving), (arriving, end)))
            left, right = a + share * (b - a), b + share * (c - b)
            low, high = (share, high) if (left + share * (right - left))[0] < frame else (low, share)
        keys["handle_right"][before], keys["handle_left"][after] = a, c
        new["handle_left"][0], new["handle_right"][0] = left, right
        new["handle_left_type"][:] = new["handle_right_type"][:] = enum_value("handle_left_type", "ALIGNED")
    return {name: np.insert(own, after, new[name][0], axis=0) for name, own in keys.items()}


def keyed_within(keys: Keys, first: float, last: float) -> Bools:
    """Which keys (K,) are within a range of frames."""
    frames = keys["co"][:, 0]
    return np.asarray((frames >= first - SAME_FRAME) & (frames <= last + SAME_FRAME))


MOVED = ("co", "handle_left", "handle_right", "handle_left_type", "handle_right_type")
"""What new values change of the keys that are there."""


def put_values(curve: FCurve, frames: Floats, values: Floats) -> None:
    """Give an F-curve keys with these values.

    Keys that are there keep their kind and take their handles along. The curve before the first frame and after the
    last one stays as it is where its values there stay.

    Args:
        curve: the F-curve, which has keys.
        frames: (K,) ascending frames; the curve has no other keys between the first and the last one.
        values: (K,) the values of keys there.
    """
    keys = read_keys(curve, MOVED)
    place = np.searchsorted(keys["co"][:, 0], frames - SAME_FRAME)
    missing = np.append(keys["co"][:, 0], np.inf)[place] > frames + SAME_FRAME
    if missing.any():
        keys = read_keys(curve)
        for frame in frames[missing].tolist():
            keys = split(keys, frame, curve.evaluate(frame))
        write_keys(curve, keys)
        place = np.searchsorted(keys["co"][:, 0], frames - SAME_FRAME)
    shift = values - keys["co"][place, 1]
    if not (missing.any() or shift.any()):
        return
    for name in MOVED[:3]:
        keys[name][place, 1] += shift
    keys["co"][place, 1] = values
    first, last = int(place[0]), int(place[-1])
    free, *automatic = (enum_value("handle_left_type", name) for name in ("FREE", "AUTO", "AUTO_CLAMPED"))
    # The handles that lead out of the range, and those of the neighbors outside.
    before = (("handle_left", first), ("handle_right", first - 1)) if first else ()
    after = (("handle_right", last), ("handle_left", last + 1)) if last + 1 < len(keys["co"]) else ()
    for name, key in (*before, *after):
        if keys[f"{name}_type"][key, 0] in automatic:
            keys[f"{name}_type"][key] = free
    points = curve.keyframe_points
    for name in MOVED:
        points.foreach_set(name, keys[name].ravel())
    points.handles_recalc()
    # Automatic handles outside would adapt to the keys in the range, and bend the curve there.
    for name, own in read_keys(curve, MOVED[1:3]).items():
        inner = slice(first + (name == "handle_left"), last + (name == "handle_left"))
        keys[name][inner] = own[inner]
        points.foreach_set(name, keys[name].ravel())
