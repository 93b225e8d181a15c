"""The contacts of a chain as keys: constant ones, one where anything changes, in the action of the armature."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack

import bpy
import numpy as np

from .. import compat
from ..clip.filling import runs
from ..data.contact_settings import CONTACTS
from ..data.settings import chain_of
from ..pose import keyframes
from ..pose.keyframes import SAME_FRAME, Channel, enum_value, read_keys, write_channels, write_keys
from ..solve.problem import Bools, Floats

SETTING = "ik_addon.contact"
FLAGS = {name: flag for name, _label, _text, flag in CONTACTS}
"""What keys hold, by contact."""


def channel(tip: bpy.types.PoseBone, values: Floats) -> Channel:
    """What is keyed of a chain."""
    return Channel(tip.name, SETTING, 0, values)


def curve_of(tip: bpy.types.PoseBone) -> bpy.types.FCurve | None:
    """The F-curve that holds the contacts of a chain."""
    owner = compat.curve_owner(tip.id_data)
    return None if owner is None else owner.fcurves.find(channel(tip, np.zeros(0)).data_path)


def read(tip: bpy.types.PoseBone, times: Floats) -> Bools:
    """Whether heel and toe (2, F) touch at times of the action."""
    curve = curve_of(tip)
    if curve is None or curve.mute or curve.is_empty:
        held = sum(FLAGS[name] for name in chain_of(tip).contact)
        values = np.full(len(times), held)
    else:
        values = np.array([round(curve.evaluate(time)) for time in times.tolist()])
    return np.array([(values & flag) > 0 for flag in FLAGS.values()])


def write(tip: bpy.types.PoseBone, contacts: Bools, times: Floats, undo: ExitStack) -> int:
    """Key whether heel and toe (2, F) touch at ascending times, in place of the keys between the first and the last.

    Returns:
        How many keys these are. `undo` takes them back.
    """
    values = np.array(list(FLAGS.values())).dot(contacts)
    changes = np.append(0, 1 + np.flatnonzero(np.diff(values)))
    last = len(times) - 1
    places = np.unique(np.append(changes, last))
    undo.callback(write_channels(tip.id_data, [channel(tip, values[places].astype(np.float64))], times[places]))
    hold(tip, times[places])
    return len(places)


def hold(tip: bpy.types.PoseBone, times: Sequence[float] | Floats) -> None:
    """Make keys at times constant, as whatever is on or off is keyed."""
    curve = curve_of(tip)
    assert curve is not None, "it has keys"
    keys = read_keys(curve)
    at = np.abs(keys["co"][:, :1] - np.array(times)[None]).min(axis=1) <= SAME_FRAME
    keys["interpolation"][at] = enum_value("interpolation", "CONSTANT")
    write_keys(curve, keys)


def mark(
    tip: bpy.types.PoseBone,
    names: Collection[str],
    span: tuple[float, float],
    frame: float,
    undo: ExitStack,
    *,
    on: bool,
) -> None:
    """Key that contacts touch from one time to another, or don't; before and after that they do as they did.

    Args:
        tip: of the chain.
        names: of the contacts.
        span: begins with the first time and ends before the other one; either may be infinite.
        frame: how long a frame is.
        undo: takes it back.
        on: they touch.

    Raises:
        KeysError: it can't be keyed; nothing was changed.
    """
    keyframes.check(tip.id_data, [channel(tip, np.zeros(1))])
    start, end = span
    keyed = _keyed(tip)
    is_first = not (keyed < start - SAME_FRAME).any()  # before the first key its value holds as well
    more = np.array([start, end, *([start - frame] if is_first else [])])
    more = more[np.isfinite(more)] if np.isfinite(more).any() or len(keyed) else np.zeros(1)
    is_new = ~(np.abs(more[:, None] - keyed) <= SAME_FRAME).any(axis=1)
    times = np.sort(np.append(keyed, more[is_new]))
    contacts = read(tip, times)
    during = (times > start - SAME_FRAME) & (times < end - SAME_FRAME)
    for flag, name in enumerate(FLAGS):
        contacts[flag, during] = on if name in names else contacts[flag, during]
    values = np.array(list(FLAGS.values())).dot(contacts)
    kept = np.append(True, np.diff(values) != 0) | (times < start - 1.5 * frame) | (times > end + SAME_FRAME)
    kept[-1] = True
    undo.callback(write_channels(tip.id_data, [channel(tip, values[kept].astype(np.float64))], times[kept]))
    hold(tip, times[kept])


def whole(tip: bpy.types.PoseBone, time: float) -> tuple[float, float] | None:
    """From when to when the contact at a time lasts, of heel and toe together; infinite beyond the keys.

    None: there is none.
    """
    times = np.unique(np.append(_keyed(tip), time))
    here = int(np.argmin(np.abs(times - time)))
    for start, end in runs(np.asarray(read(tip, times).any(axis=0))):
        if start <= here < end:
            return times[start] if start else -np.inf, times[end] if end < len(times) else np.inf
    return None


def _keyed(tip: bpy.types.PoseBone) -> Floats:
    """When (K,) something is keyed."""
    curve = curve_of(tip)
    return np.zeros(0) if curve is None else read_keys(curve)["co"][:, 0].astype(np.float64)


def show(tip: bpy.types.PoseBone, time: float) -> None:
    """Set the contacts of a chain to their keys at a time."""
    touching = read(tip, np.array([time]))[:, 0].tolist()
    chain_of(tip).contact = {name for name, on in zip(FLAGS, touching, strict=True) if on}
