"""Key a sudden change of channels at a frame, without changing their curves before it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import bpy
import numpy as np

from ..solve.problem import Floats
from . import compat
from .key_curve import FIELDS, SAME_FRAME, Keys, enum_value, new_keys, read_keys, write_keys
from .keyframes import Channel, curves_of, write_channels

HALVINGS = 60
"""After this many halvings, the parameter on a curve is as exact as a double."""


def key_step(
    ob: bpy.types.Object, channels: Sequence[Channel], frames: tuple[float, float], undo: ExitStack, *, held: bool
) -> None:
    """Key channels on two frames of the action: with their old values on the first, with new ones on the second.

    Args:
        ob: the animated object.
        channels: with two values each. The first value is for channels without a curve; others keep their own.
        frames: the last frame before the step, and the frame of the step.
        undo: gets a callback that restores the curves.
        held: also hold the second key until the next one.

    Raises:
        UserError: if the channels can't be keyed; nothing is changed then.
    """
    found = curves_of(ob)
    places = [(channel.data_path, channel.index) for channel in channels]
    old = {place: read_keys(found[place]) for place in places if place in found and found[place].keyframe_points}
    before = {place: found[place].evaluate(frames[0]) for place in old}
    wanted = [
        replace(channel, values=np.array([before.get(place, channel.values[0]), channel.values[1]]))
        for channel, place in zip(channels, places, strict=True)
    ]
    undo.callback(write_channels(ob, wanted, np.array(frames)))
    found = curves_of(ob)
    for channel, place in zip(wanted, places, strict=True):
        write_keys(found[place], _stepped(old.get(place), frames, channel.values, held))
    compat.tag(ob)


def _stepped(old: Keys | None, frames: tuple[float, float], values: Floats, held: bool) -> Keys:
    """Return the keys of a curve with a step added."""
    points = np.array([frames, values]).T
    new = new_keys(points, "CONSTANT")
    reach = np.array([(frames[1] - frames[0]) / 3.0, 0.0])
    new["handle_left"][:], new["handle_right"][:] = points - reach, points + reach
    if not held:
        new["interpolation"][1] = enum_value("interpolation", "BEZIER")
    if old is None:
        return new
    times = old["co"][:, 0]
    earlier, later = (np.flatnonzero(own) for own in (times < frames[0] - SAME_FRAME, times > frames[1] + SAME_FRAME))
    same = np.flatnonzero(np.abs(times - frames[0]) <= SAME_FRAME)
    if len(same):
        for name in ("co", "handle_left", "handle_left_type"):
            new[name][0] = old[name][same[-1]]
    elif len(earlier):
        _split(old, int(earlier[-1]), new)
    if len(later):
        new["handle_right"][1, 0] = frames[1] + (times[later[0]] - frames[1]) / 3.0
        if not held and len(earlier):
            new["interpolation"][1] = old["interpolation"][earlier[-1]]
    return {name: np.concatenate([old[name][earlier], new[name], old[name][later]]) for name in FIELDS}


def _split(old: Keys, last: int, new: Keys) -> None:
    """Set handles so that the curve from key `last` to the first new key keeps its shape."""
    bezier, free = enum_value("interpolation", "BEZIER"), enum_value("handle_left_type", "FREE")
    start, end = old["co"][last].astype(np.float64), new["co"][0].astype(np.float64)
    if last + 1 == len(old["co"]):
        handles = start + (end - start) / 3.0, end - (end - start) / 3.0
    elif old["interpolation"][last, 0] == bezier:
        handles = _halves(old, last, float(end[0]))
    else:
        return
    old["handle_right"][last], new["handle_left"][0] = handles
    # Automatic handles would adapt to the new key and bend the curve before it.
    old["handle_left_type"][last] = old["handle_right_type"][last] = new["handle_left_type"][0] = free
    new["handle_right_type"][0] = free


def _halves(old: Keys, last: int, frame: float) -> tuple[Any, Any]:
    """Return the right handle of key `last` and the left one of a new key, so that the curve keeps its shape."""
    points = np.array(
        [old["co"][last], old["handle_right"][last], old["handle_left"][last + 1], old["co"][last + 1]], np.float64
    )
    # Blender shortens handles that would make the curve run backward.
    span = points[3, 0] - points[0, 0]
    reach = abs(points[1, 0] - points[0, 0]) + abs(points[3, 0] - points[2, 0])
    if reach > span:
        points[1] = points[0] + (points[1] - points[0]) * span / reach
        points[2] = points[3] + (points[2] - points[3]) * span / reach
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        share = 0.5 * (low + high)
        first = points[:-1] + share * np.diff(points, axis=0)
        second = first[:-1] + share * np.diff(first, axis=0)
        place = second[0] + share * (second[1] - second[0])
        low, high = (share, high) if place[0] < frame else (low, share)
    return first[0], second[0]
