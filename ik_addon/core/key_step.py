"""Key a sudden change of channels at a frame, without changing their curves before it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import bpy
import numpy as np

from ..solve.problem import Floats
from . import compat
from .key_curve import FIELDS, SAME_FRAME, Keys, enum_value, new_keys, read_keys, split, write_keys
from .keyframes import Channel, curves_of, write_channels


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
    """Return the keys of a curve with a step added; the first value is that of the curve."""
    points = np.array([frames, values]).T
    new = new_keys(points, "CONSTANT")
    reach = np.array([(frames[1] - frames[0]) / 3.0, 0.0])
    new["handle_left"][:], new["handle_right"][:] = points - reach, points + reach
    if not held:
        new["interpolation"][1] = enum_value("interpolation", "BEZIER")
    if old is None:
        return new
    is_keyed = (np.abs(old["co"][:, 0] - frames[0]) <= SAME_FRAME).any()
    keys = old if is_keyed else split(old, *points[0].tolist())
    times = keys["co"][:, 0]
    begin, later = (
        {name: own[chosen] for name, own in keys.items()}
        for chosen in (times < frames[0] + SAME_FRAME, times > frames[1] + SAME_FRAME)
    )
    has_earlier = len(begin["co"]) > 1
    if has_earlier and not is_keyed:  # automatic handles would adapt to the new key and bend the curve before it
        for name in ("handle_left_type", "handle_right_type"):
            begin[name][-2:] = enum_value(name, "FREE")
    if len(later["co"]):
        new["handle_right"][1, 0] = frames[1] + (later["co"][0, 0] - frames[1]) / 3.0
        if has_earlier and not held:
            new["interpolation"][1] = begin["interpolation"][-2]
    begin["interpolation"][-1] = enum_value("interpolation", "CONSTANT")
    return {name: np.concatenate([begin[name], new[name][1:], later[name]]) for name in FIELDS}
