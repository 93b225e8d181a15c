"""The first descent of many chains to places, all of them at once: the steps of `descent`, on arrays.

Members end at different steps. They are left out once enough have ended: picking members out takes as long as a step,
and a step takes as long for a few members as for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..problem import Bools, Floats, Ints
from .descent import (
    DAMPING,
    EXACT,
    GAIN,
    HARDEST,
    OUTSIDE,
    PATIENCE,
    PULL,
    SOFTEST,
    State,
    aimed,
    damped,
    slid,
    stepped,
)
from .goals import System
from .skeleton import Angles, arrays_of, rows_of

_CROWD, _FEW = 0.75, 32


def is_crowd(left: int, members: int) -> bool:
    """Return whether to go on with all members although only `left` of them are unfinished."""
    return left >= _CROWD * members or members - left < _FEW


def descend_together(system: System, start: Floats, most: Ints | Floats) -> tuple[Floats, Floats, Ints]:
    """Return where the descents of chains to places end.

    Args:
        system: B chains, with places alone.
        start: (3, n, B) joint angles inside the limits.
        most: (B,) maximum number of steps.

    Returns:
        angles: (3, n, B) inside the limits.
        error: (B,) norm of the residual.
        steps: (B,) number of steps taken.
    """
    members = start.shape[2]
    angles, error, steps = start.copy(), np.empty(members), np.zeros(members, dtype=np.int64)
    index, running = np.arange(members), np.ones(members, dtype=bool)
    now = State.of(system, rows_of(start))
    damping, idle, done = np.full(members, DAMPING), np.zeros(members), 0
    while True:
        ended = ((now.error <= EXACT) | (idle >= PATIENCE) | (done >= most)) & running
        if ended.any():
            where = index[ended]
            angles[..., where] = arrays_of([[part[ended] for part in angle] for angle in now.angles])
            error[where], steps[where] = now.error[ended], done
            running &= ~ended
            left = int(np.count_nonzero(running))
            if not left:
                return angles, error, steps
            if not is_crowd(left, len(running)):
                system, now, damping, idle, most = chosen((system, now, damping, idle, most), running)
                index, running = index[running], np.ones(left, dtype=bool)
        there = State.of(system, stepped(system, now.angles, _step(system, now, damping)))
        before = now.error
        better = there.error < before
        _overwrite(there, now, np.flatnonzero(~better))
        now = there
        damping = np.minimum(np.maximum(damping * np.where(better, 0.2, 6.0), SOFTEST), HARDEST)
        idle = np.where(before - now.error > GAIN * np.minimum(before, PULL), 0.0, idle + 1.0)
        done += 1


def _step(system: System, now: State, damping: Floats) -> Angles:
    rows, wanted = system.rows(now.pose), aimed(system, now, PULL)
    step = damped(system, rows, wanted, damping)
    leaving = np.flatnonzero(_leaving(system, now.angles, step))
    if not len(leaving):
        return step
    if is_crowd(len(leaving), len(damping)):
        return slid(system, now.angles, rows, wanted, damping, step)
    own = slid(*chosen((system, now.angles, rows, wanted, damping, step), leaving))
    for whole, part in zip(step, own, strict=True):
        for old, new in zip(whole, part, strict=True):
            old[leaving] = new
    return step


def _leaving(system: System, angles: Angles, step: Angles) -> Bools:
    """Return which members (B,) a step takes out of the limits of a joint."""
    found: Any = False
    do = system.skeleton.do
    for joint, (old_x, old_z, old), (x, z, twist) in zip(system.skeleton.joints, angles, step, strict=True):
        x, z, twist = old_x + x, old_z + z, old + twist
        near_x, near_z = do.nearest_swing(x, z, joint.low, joint.high)
        found |= np.maximum(abs(x - near_x), abs(z - near_z)) > OUTSIDE
        found |= (twist < joint.twist_low) | (twist > joint.twist_high)
    return np.asarray(found)


def chosen(value: Any, members: Bools | Ints) -> Any:
    """Return the chosen members of all arrays (B,) in nested lists and tuples."""
    return _each_array(value, lambda part: part[members])


def _each_array(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, np.ndarray):
        return function(value)
    if isinstance(value, tuple):
        parts = [_each_array(part, function) for part in value]
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    if isinstance(value, list):
        return [_each_array(part, function) for part in value]
    return value


def _overwrite(value: Any, source: Any, members: Ints) -> None:
    """Copy the chosen members of all arrays (B,) in nested lists and tuples."""
    if not len(members):
        return
    if isinstance(value, np.ndarray):
        value[members] = source[members]
    elif isinstance(value, tuple | list):
        for part, other in zip(value, source, strict=True):
            _overwrite(part, other, members)
