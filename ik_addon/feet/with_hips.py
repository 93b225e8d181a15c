"""Keying hands, the head and other goals so that they move with the hips, unless something holds them."""

from collections.abc import Generator
from contextlib import ExitStack, nullcontext
from dataclasses import replace

import numpy as np

from ..core import contact_keys
from ..core.goals import Goal
from ..live import registry
from ..solve.problem import Floats
from ..targets.limb_frames import Sampler
from ..targets.movable import key_goals
from ..targets.snapped import rows_of
from . import original_keys
from .filling import eased
from .sampled_feet import Feet


def follow(feet: Feet, moved: Floats, blend: int, undo: ExitStack) -> Generator[float, None, list[Goal]]:
    """Key the goals that go along with the hips; yields progress (0 to 1).

    Args:
        feet: the planted feet.
        moved: (F, 3) how far the hips were moved, in world space.
        blend: frames over which the movement fades out towards a contact; during contacts the goal stays.
        undo: takes the keys back.

    Returns:
        The goals that were keyed.
    """
    ob, frames, at = feet.snap.ob, feet.frames, feet.times
    goals = [goal for _tip, goal in feet.along]
    if not goals or not moved.any():
        return []
    places = [replace(goal, turns=False) for goal in goals]
    sampler = Sampler.of(ob, [], places, shown=False)
    with nullcontext() if sampler.is_solved else registry.paused(ob):
        sampled = yield from sampler.sample(feet.view_layer, frames)
    wanted = sampled.goals[:, :, :3, 3].copy()
    for g, (tip, _goal) in enumerate(feet.along):
        wanted[:, g] += moved - eased(moved, np.asarray(contact_keys.read(tip, at).any(axis=0)), blend)
    rows = rows_of(places, sampled, wanted, {})
    old = [original_keys.before(goal, at) for goal in goals]
    for goal in goals:
        undo.callback(goal.set_row, goal.row())
    key_goals(places, rows, at, undo)
    for goal, keys in zip(goals, old, strict=True):
        original_keys.keep(goal, keys, at, undo, along=True)
    return goals
