"""How an edit falls off over the frames around it: its settings, weights, and weighted changes of channels."""

from collections.abc import Callable
from functools import partial

import numpy as np
from bpy.props import EnumProperty, IntProperty

from ..solve.maths.products import times, times_back
from ..solve.problem import Bools, Floats
from .channels import FIELDS, Row, rotation_field, slerp, with_rotation
from .transforms import rotations
from .untyped import Declared

FALLOFFS: dict[str, tuple[str, str, str, Callable[[Floats], Floats]]] = {
    "SMOOTH": ("Smooth", "Begins and ends gently", "SMOOTHCURVE", lambda x: x * x * (3.0 - 2.0 * x)),
    "SPHERE": ("Sphere", "Begins gently and ends steeply", "SPHERECURVE", lambda x: np.sqrt(x * (2.0 - x))),
    "ROOT": ("Root", "Ends steeply", "ROOTCURVE", np.sqrt),
    "INVERSE_SQUARE": ("Inverse Square", "Begins gently", "INVERSESQUARECURVE", lambda x: x * (2.0 - x)),
    "SHARP": ("Sharp", "Begins steeply and ends gently", "SHARPCURVE", np.square),
    "LINEAR": ("Linear", "Changes by the same amount on each frame", "LINCURVE", np.positive),
    "CONSTANT": ("Constant", "The whole range takes the whole edit", "NOCURVE", np.ones_like),
}
"""Blender's proportional falloffs as the interface shows them, each with its shape: from nearness, 1 at the edit and 0
at the end of its range, to weights."""


range_setting: Callable[[], Declared] = partial(
    IntProperty,
    name="Range",
    description="How many frames before and after the current one an edit reaches: it is added to the keys there, "
    "less and less. What is pinned or planted holds. If 0, it reaches no other frame",
    min=0,
    soft_max=100,
    options={"SKIP_SAVE"},
)
"""Makes a property for how many frames an edit reaches."""
falloff_setting: Callable[[], Declared] = partial(
    EnumProperty,
    name="Falloff",
    description="How an edit falls off to the ends of its range",
    items=[(name, *own[:3], i) for i, (name, own) in enumerate(FALLOFFS.items())],
    options={"SKIP_SAVE"},
)
"""Makes a property for how an edit falls off over its range."""


def weights(frames: Floats, now: float, falloff: str, still: Bools | None = None) -> Floats:
    """Return how much (F,) of an edit each frame takes.

    Args:
        frames: (F,) ascending, from the first frame that the edit reaches to the last one.
        now: the frame of the edit.
        falloff: one of `FALLOFFS`.
        still: (F,) frames on which the edited thing stands still; time stops there, so that neighbors among them take
            the same.
    """
    steps = np.diff(frames)
    if still is not None:
        steps = np.where(still[1:] & still[:-1], 0.0, steps)
    clock = np.append(0.0, np.cumsum(steps))
    clock -= np.interp(now, frames, clock)
    ends = np.where(clock < 0.0, -clock[0], clock[-1])
    near = 1.0 - np.abs(clock) / np.where(ends > 0.0, ends, 1.0)
    *_shown, shape = FALLOFFS[falloff]
    return shape(np.clip(near, 0.0, 1.0))


def changed(rows: Row, before: Row, after: Row, shares: Floats, mode: str | None) -> Row:
    """Return channels after a share of a change: of the location, and of the rotation, along the shortest way.

    Args:
        rows: (F, 17) the channels.
        before: (F or 1, 17) the channels from which the change was made.
        after: (F or 1, 17) the channels that it led to.
        shares: (F,) how much of the change is made.
        mode: the rotation mode; None: rotations stay.
    """
    found, place = rows.copy(), FIELDS["location"]
    found[:, place] += shares[:, None] * (after[:, place].astype(np.float64) - before[:, place])
    if mode is None:
        return found
    turn = FIELDS[rotation_field(mode)]
    whole = times_back(*(rotations(row[:, turn], mode) for row in (after, before)))
    turns = slerp(np.eye(3)[None], whole, shares)
    turned = with_rotation(found, times(turns, rotations(rows[:, turn], mode)), np.full(len(rows), mode))
    return np.where(shares[:, None] > 0.0, turned, rows)
