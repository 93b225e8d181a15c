"""Keying hands, the head and other goals so that they move with the hips, unless something holds them."""

from collections.abc import Collection, Generator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace

import bpy
import numpy as np

from ..anatomy.figure import Figure
from ..core import contact_keys, keyframes
from ..core.goals import Goal
from ..core.settings import chain_of
from ..core.translation.sentences import UserError
from ..live import registry
from ..rig.plan.chain import tips
from ..solve.problem import Floats
from ..targets.limb_frames import Sampler
from ..targets.movable import channels_of, key_goals, parents_of, pole_of, target_of
from ..targets.snapped import rows_of
from . import original_keys
from .filling import eased
from .pivots import is_of_leg


def followers(
    ob: bpy.types.Object, planted: Collection[bpy.types.PoseBone], hips: bpy.types.PoseBone
) -> list[tuple[bpy.types.PoseBone, Goal]]:
    """Return what follows the hips of an armature when some of its chains are planted, each with the tip of its chain.

    That is never a goal of a leg. Planting itself places the targets of the planted chains. Goals without keys, and
    goals that a constraint, a lock or another object holds, stay where they are. Goals attached to the body follow it
    by themselves.
    """
    figure, found = Figure.of(ob), []
    carrying = {*parents_of(ob, ""), Goal(ob), *(Goal(ob, bone.name) for bone in hips.parent_recursive)}
    for tip in tips(ob):
        target, pole = target_of(tip), pole_of(tip)
        if chain_of(tip).enabled and target is not None and not is_of_leg(figure, tip):
            both = (None if tip in planted else target, pole)
            found += [(tip, goal) for goal in both if goal is not None and _is_free(goal, carrying)]
    return found


def _is_free(goal: Goal, carrying: set[Goal]) -> bool:
    """Return whether only keys move a target or pole, apart from parents that move the hips as well."""
    is_attached = not carrying.issuperset(parents_of(goal.ob, goal.bone))
    if not goal.is_keyed or is_attached or any(not own.mute for own in goal.holder.constraints):
        return False
    try:
        keyframes.check(goal.ob, channels_of(goal, goal.row()[None]))
    except UserError:
        return False
    return True


def follow(
    view_layer: bpy.types.ViewLayer,
    ob: bpy.types.Object,
    going: Sequence[tuple[bpy.types.PoseBone, Goal]],
    frames: Sequence[int],
    at: Floats,
    moved: Floats,
    blend: int,
    undo: ExitStack,
) -> Generator[float, None, list[Goal]]:
    """Key the goals that follow the hips; yields progress (0 to 1).

    Args:
        view_layer: the view layer to evaluate.
        ob: the armature object.
        going: the goals to key, each with the tip of its chain.
        frames: F frames.
        at: (F,) times of these frames in the action.
        moved: (F, 3) how far the hips were moved, in world space.
        blend: frames over which the movement fades out towards a contact; during contacts the goal stays.
        undo: takes the keys back.

    Returns:
        The goals that were keyed.
    """
    goals = [goal for _tip, goal in going]
    if not goals or not moved.any():
        return []
    places = [replace(goal, turns=False) for goal in goals]
    sampler = Sampler.of(ob, [], places, shown=False)
    with nullcontext() if sampler.is_solved else registry.paused(ob):
        sampled = yield from sampler.sample(view_layer, frames)
    wanted = sampled.goals[:, :, :3, 3].copy()
    for g, (tip, _goal) in enumerate(going):
        wanted[:, g] += moved - eased(moved, np.asarray(contact_keys.read(tip, at).any(axis=0)), blend)
    rows = rows_of(places, sampled, wanted, {})
    old = [original_keys.before(goal, at) for goal in goals]
    for goal in goals:
        undo.callback(goal.set_row, goal.row())
    key_goals(places, rows, at, undo)
    for goal, keys in zip(goals, old, strict=True):
        original_keys.keep(goal, keys, at, undo, along=True)
    return goals
