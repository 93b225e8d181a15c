"""New values for the keys of one F-curve within a range of frames, while the curve outside stays as it is."""

from __future__ import annotations

import bpy
import numpy as np

from ..solve.problem import Floats
from .key_curve import SAME_FRAME, enum_value, read_keys, split, write_keys

MOVED = ("co", "handle_left", "handle_right", "handle_left_type", "handle_right_type")
"""What new values change of the keys that are there."""
SIDES = ("handle_left", "handle_right")
"""The handle that leads out of a range at its first key, and that of the neighbor outside; at its last key reversed."""


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
            keys = split(keys, frame, curve.evaluate(frame))
        write_keys(curve, keys)
    place = np.abs(keys["co"][:, :1] - frames).argmin(axis=0)
    shift = values - keys["co"][place, 1]
    for name in MOVED[:3]:
        keys[name][place, 1] += shift
    keys["co"][place, 1] = values
    first, last = int(place[0]), int(place[-1])
    free, *automatic = (enum_value("handle_left_type", name) for name in ("FREE", "AUTO", "AUTO_CLAMPED"))
    for outer, facing, end, beyond in ((*SIDES, first, first - 1), (*SIDES[::-1], last, last + 1)):
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
