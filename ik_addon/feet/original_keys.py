"""What was keyed before feet were planted, so that planting again starts from there and not from planted feet.

The action stores, for each frame, the channels before planting and the channels that planting keyed. Where keys were
edited since, the edited keys count.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from ..core import compat
from ..core.channels import WIDTH, Row
from ..core.goals import Goal, path_of
from ..core.key_curve import SAME_FRAME
from ..core.untyped import Json, Struct, Versioned
from ..solve.problem import Bools, Floats, Ints
from ..targets.movable import key_goals

PROPERTY = "ik_addon_planted"
SAME = 1e-6
"""Channels that differ by less than this, relative to their size, count as not edited."""


class _Kept(NamedTuple):
    """What is stored about a goal, for F frames."""

    times: Floats
    """(F,) ascending times of the action."""
    before: Row
    """(F, 17) channels before planting."""
    planted: Row
    """(F, 17) channels that planting keyed."""
    along: Floats
    """(F,) 1 where the goal was only moved along with the hips, 0 where it was planted."""

    def some(self, chosen: Bools | Ints) -> _Kept:
        """Return only the chosen frames, in the given order."""
        return _Kept._make(values[chosen] for values in self)


def before(goal: Goal, times: Floats) -> Row:
    """Return the channels (F, 17) of a goal at ascending times (F,), as they were before any planting."""
    return _before(goal, _read(goal), times)[0]


def _before(goal: Goal, kept: _Kept, times: Floats) -> tuple[Row, bool]:
    """Return the channels (F, 17) of a goal as they were where they still are what planting keyed, and if any are."""
    rows = goal.keyed(times)
    if not len(kept.times):
        return rows, False
    at = np.minimum(np.searchsorted(kept.times, times - SAME_FRAME), len(kept.times) - 1)
    same = np.abs(kept.times[at] - times) <= SAME_FRAME
    same &= ~(np.abs(rows - kept.planted[at]) > SAME * (1.0 + np.abs(rows))).any(axis=1)
    found = np.where(same[:, None], kept.before[at], rows)
    return found, not np.array_equal(found, rows)


def is_planted(goal: Goal, times: Floats) -> bool:
    """Return whether planting keyed a goal on some of these frames, not just along with the hips, unedited since."""
    kept = _read(goal)
    return _before(goal, kept.some(kept.along == 0.0), times)[1]


def put_back(goals: Sequence[Goal], times: Floats, undo: ExitStack) -> None:
    """Key goals at ascending times (F,) as they were before planting; `undo` takes that back."""
    for goal in goals:
        rows, differs = _before(goal, _read(goal), times)
        if differs:
            key_goals([goal], rows[:, None], times, undo)


def keep(goal: Goal, rows: Row, times: Floats, undo: ExitStack, *, along: bool = False) -> None:
    """Store channels (F, 17) as those before planting, and the current keys as planted, at ascending times (F,).

    With `along`, planting only moved the goal along with the hips.
    """
    old = _read(goal)
    rest = old.some((old.times < times[0] - SAME_FRAME) | (old.times > times[-1] + SAME_FRAME))
    new = _Kept(times, rows, goal.keyed(times), np.full(len(times), float(along)))
    joined = _Kept._make(np.concatenate([getattr(own, name) for own in (rest, new)]) for name in _Kept._fields)
    undo.callback(_write, goal, old)
    _write(goal, joined.some(np.argsort(joined.times)))


def _read(goal: Goal) -> _Kept:
    """Return what is stored about a goal; no frames if nothing is."""
    action: Struct = compat.action_of(goal.ob)
    kept = {} if action is None else action.get(PROPERTY, {}).get(_key(goal), {})
    before, planted = (
        np.array(kept.get(name, ()), dtype=np.float32).reshape(-1, WIDTH) for name in ("before", "planted")
    )
    at, along = (np.array(kept.get(name, ()), dtype=np.float64) for name in ("times", "along"))
    return _Kept(at, before, planted, along)


def _write(goal: Goal, kept: _Kept) -> None:
    content = {name: values.ravel().tolist() for name, values in kept._asdict().items()}
    note(goal.ob.animation_data.action, _key(goal), content if len(kept.times) else None)


def note(action: Struct, name: str, content: Json | str | None) -> None:
    """Store something about planting in an action under a name; empty content removes it."""
    kept = {own: action[PROPERTY][own] for own in action.get(PROPERTY, ()) if own != name}
    action[PROPERTY] = {**kept, name: content} if content else kept
    if not action[PROPERTY]:
        del action[PROPERTY]


def _key(goal: Goal) -> str:
    """Return the name under which a goal is stored: a hash, as its path may be too long for the name of a property."""
    data: Versioned = goal.ob.animation_data
    slot = data.action_slot_handle if compat.HAS_SLOTS else 0
    return blake2b(f"{slot} {path_of(goal.holder, 'location')}".encode(), digest_size=16).hexdigest()
