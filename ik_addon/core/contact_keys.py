"""The contacts of a chain as constant keys in the action of the armature, one wherever a contact begins or ends."""

from collections.abc import Callable, Collection

import numpy as np
from bpy.types import FCurve, PoseBone

from ..solve.maths.runs import runs
from ..solve.problem import Bools, Floats
from . import compat
from .chain_settings import CONTACTS
from .key_curve import SAME_FRAME, read_keys
from .keyframes import Channel, check, write_channels
from .settings import chain_of

SETTING = "ik_addon.contact"
FLAGS = {name: flag for name, _label, _text, flag in CONTACTS}
"""The flag that each contact sets in the keyed value."""


def channel(tip: PoseBone, values: Floats) -> Channel:
    """Return keyed values of the contacts of a chain as a channel."""
    return Channel(tip.name, SETTING, 0, values)


def curve_of(tip: PoseBone) -> FCurve | None:
    """Return the F-curve of the contacts of a chain, or None."""
    return compat.find_curve(tip.id_data, channel(tip, np.zeros(0)).data_path)


def read(tip: PoseBone, times: Floats) -> Bools:
    """Return whether heel and toe (2, F) touch at times of the action."""
    curve = curve_of(tip)
    if curve is None or curve.mute or curve.is_empty:
        values = np.full(len(times), sum(FLAGS[name] for name in chain_of(tip).contact))
    else:
        values = np.array([round(curve.evaluate(time)) for time in times.tolist()])
    return np.array([(values & flag) > 0 for flag in FLAGS.values()])


def write(tip: PoseBone, contacts: Bools, times: Floats, also: Bools | bool = False) -> Callable[[], None]:
    """Key whether heel and toe (2, F) touch at ascending times; replaces the keys between the first and the last time.

    Keys are where anything changes, at the first and the last time, and wherever `also` (F,) is set. Returns what takes
    them back.
    """
    values = np.array(list(FLAGS.values()), dtype=np.float64).dot(contacts)
    kept = np.append(True, np.diff(values) != 0) | also
    kept[-1] = True
    # Constant until the next one, as Blender keys on/off values.
    return write_channels(tip.id_data, [channel(tip, values[kept])], times[kept], holds=True)


def mark(tip: PoseBone, names: Collection[str], span: tuple[float, float], frame: float, *, on: bool) -> None:
    """Key contacts on or off over a span of time; they stay as they were before and after it.

    Args:
        tip: the tip bone of the chain.
        names: the contacts to key.
        span: first time, and the time after the last; either may be infinite.
        frame: the length of a frame, in times of the action.
        on: whether the contacts touch.

    Raises:
        UserError: the contacts can't be keyed; nothing was changed.
    """
    check(tip.id_data, [channel(tip, np.zeros(1))])
    start, end = span
    keyed = _keyed(tip)
    is_first = not (keyed < start - SAME_FRAME).any()  # the first key's value also holds before it
    more = np.array([start, end, *([start - frame] if is_first else [])])
    more = more[np.isfinite(more)] if np.isfinite(more).any() or len(keyed) else np.zeros(1)
    is_new = ~(np.abs(more[:, None] - keyed) <= SAME_FRAME).any(axis=1)
    times = np.sort(np.append(keyed, more[is_new]))
    contacts = read(tip, times)
    during = (times > start - SAME_FRAME) & (times < end - SAME_FRAME)
    for flag, name in enumerate(FLAGS):
        contacts[flag, during] = on if name in names else contacts[flag, during]
    write(tip, contacts, times, also=(times < start - 1.5 * frame) | (times > end + SAME_FRAME))


def whole(tip: PoseBone, time: float) -> tuple[float, float] | None:
    """Return start and end of the contact at a time, of heel and toe together; infinite beyond the first and last key.

    Returns None if nothing touches at this time.
    """
    times = np.unique(np.append(_keyed(tip), time))
    here = int(np.argmin(np.abs(times - time)))
    for start, end in runs(np.asarray(read(tip, times).any(axis=0))):
        if start <= here < end:
            return times[start] if start else -np.inf, times[end] if end < len(times) else np.inf
    return None


def _keyed(tip: PoseBone) -> Floats:
    """Return the times (K,) of all keys of the contacts."""
    curve = curve_of(tip)
    return np.zeros(0) if curve is None else read_keys(curve)["co"][:, 0].astype(np.float64)


def show(tip: PoseBone, time: float) -> None:
    """Set the contacts of a chain to what their keys say at a time."""
    touching = read(tip, np.array([time]))[:, 0].tolist()
    chain_of(tip).contact = {name for name, on in zip(FLAGS, touching, strict=True) if on}
