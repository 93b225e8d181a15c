"""New values for the keys of one F-curve within a range of frames, while the curve outside stays as it is."""

from __future__ import annotations

import bpy
import numpy as np

from ..solve.problem import Floats
from .key_curve import SAME_FRAME, Keys, enum_value, new_keys, read_keys, write_keys

MOVED = ("co", "handle_left", "handle_right", "handle_left_type", "handle_right_type")
"""What new values change of the keys that are there."""
SIDES = (("handle_left", "handle_right"), ("handle_right", "handle_left"))
"""The handles of the first and the last key of a range: the outer one, and that of the neighbor outside."""


def put_values(curve: bpy.types.FCurve, frames: Floats, values: Floats) -> None:
    """Give an F-curve keys with these values.

    Keys that are there keep their kind and take their handles along. The curve before the first frame and after the
    last one stays as it is where its values there stay.

    Args:
        curve: the F-curve, which has keys.
        frames: (K,) ascending frames; the curve has no other keys between the first and the last one.
        values: (K,) the values of keys there.
    """
    keys = read_keys(curve, MOVED)
    missing = np.abs(keys["co"][:, :1] - frames).min(axis=0) > SAME_FRAME
    if missing.any():
        keys = read_keys(curve)
        for frame in frames[missing].tolist():
            keys = _split(curve, keys, frame)
        write_keys(curve, keys)
    place = np.abs(keys["co"][:, :1] - frames).argmin(axis=0)
    shift = values - keys["co"][place, 1]
    for name in MOVED[:3]:
        keys[name][place, 1] += shift
    keys["co"][place, 1] = values
    first, last = int(place[0]), int(place[-1])
    free, *automatic = (enum_value("handle_left_type", name) for name in ("FREE", "AUTO", "AUTO_CLAMPED"))
    for (outer, facing), end, beyond in zip(SIDES, (first, last), (first - 1, last + 1), strict=True):
        for name, key in ((outer, end), (facing, beyond)) if 0 <= beyond < len(keys["co"]) else ():
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


def _split(curve: bpy.types.FCurve, keys: Keys, frame: float) -> Keys:
    """Return keys with one more, which leaves the curve as it is."""
    after = int(np.searchsorted(keys["co"][:, 0], frame))
    before = max(after - 1, 0)
    new = new_keys(np.array([[frame, curve.evaluate(frame)]]), "BEZIER")
    for name in ("interpolation", "easing", "back", "amplitude", "period"):
        new[name][:] = keys[name][before]
    keys = {name: own.copy() for name, own in keys.items()}
    if 0 < after < len(keys["co"]) and keys["interpolation"][before, 0] == enum_value("interpolation", "BEZIER"):
        corners = (("co", before), ("handle_right", before), ("handle_left", after), ("co", after))
        start, leaving, arriving, end = (keys[name][key].astype(np.float64) for name, key in corners)
        lengths = leaving[0] - start[0], end[0] - arriving[0]
        if sum(lengths) > end[0] - start[0]:  # Blender shortens handles that overlap
            part = (end[0] - start[0]) / sum(lengths)
            leaving, arriving = start + part * (leaving - start), end + part * (arriving - end)
        low, high = 0.0, 1.0
        for _ in range(50):
            share = 0.5 * (low + high)
            a, b, c = (p + share * (q - p) for p, q in ((start, leaving), (leaving, arriving), (arriving, end)))
            left, right = a + share * (b - a), b + share * (c - b)
            low, high = (share, high) if (left + share * (right - left))[0] < frame else (low, share)
        keys["handle_right"][before], keys["handle_left"][after] = a, c
        new["handle_left"][0], new["handle_right"][0] = left, right
        new["handle_left_type"][:] = new["handle_right_type"][:] = enum_value("handle_left_type", "ALIGNED")
    return {name: np.insert(own, after, new[name][0], axis=0) for name, own in keys.items()}
