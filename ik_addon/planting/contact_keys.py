"""The contacts of a chain as keys: constant ones, one where anything changes, in the action of the armature."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import bpy
import numpy as np

from .. import compat
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


def toggle(tip: bpy.types.PoseBone, name: str, time: float, undo: ExitStack) -> bool:
    """Add a contact at a time, to the next key, or remove the one that is there, as a whole; return whether it is on.

    Raises:
        KeysError: it can't be keyed; nothing was changed.
    """
    keyframes.check(tip.id_data, [channel(tip, np.zeros(1))])
    curve = curve_of(tip)
    keyed = np.zeros(0) if curve is None else read_keys(curve)["co"][:, 0].astype(np.float64)
    flag = list(FLAGS).index(name)
    # Before the first key its value holds as well.
    times = np.unique(np.append(keyed, time))
    contacts = read(tip, times)
    here = int(np.argmin(np.abs(times - time)))
    is_on = not contacts[flag, here]
    if is_on:
        contacts[flag, here] = True
    else:
        start = end = here
        while start > 0 and contacts[flag, start - 1]:
            start -= 1
        while end < len(times) and contacts[flag, end]:
            end += 1
        contacts[flag, start:end] = False
    values = np.array(list(FLAGS.values())).dot(contacts).astype(np.float64)
    undo.callback(write_channels(tip.id_data, [channel(tip, values)], times))
    hold(tip, times)
    return is_on


def show(tip: bpy.types.PoseBone, time: float) -> None:
    """Set the contacts of a chain to their keys at a time."""
    touching = read(tip, np.array([time]))[:, 0].tolist()
    chain_of(tip).contact = {name for name, on in zip(FLAGS, touching, strict=True) if on}
