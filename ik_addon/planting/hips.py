"""The hips moved so that legs reach where their feet are planted: as far as their lengths and limits let them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import bpy
import numpy as np

from ..bake.baking import part
from ..clip.filling import smoothed
from ..clip.foot import Foot
from ..clip.hips import Leg, help_reach
from ..data.settings import chain_of
from ..goals.movable import MovableGoal, channels_of, key_goals, parents_of
from ..pose import keyframes
from ..pose.channels import Row
from ..pose.skeleton import inverse
from ..rig.plan.chain import posed_bones, tips
from ..rig.read.orientation import orientation
from ..solve.maths.products import applied, lengths_of
from ..solve.maths.rotations import inverse as opposite
from ..solve.maths.rotations import multiply, quaternions, vectors_of
from ..solve.problem import Floats
from ..translation.sentences import say
from . import memory, proof
from .feet import Feet
from .proof import Reached

BENT = 1e-4
"""A leg is held this fraction of its length from straight, where a target's rounding would move the knee."""
ROUNDS = 6
"""So often, at most, hips are moved on because joint limits still keep a leg from its foot."""
LEFT = 0.3
"""Of the progress to be shown, each of them leaves this part to those that may follow."""
FLIP = np.radians(300.0)
"""A bone of a leg that turns by so much more in a second than recorded has gone over to another side of its limits, or
the leg was straightened in a moment."""
STRAIGHT = 0.95
"""A leg that is stretched farther than this fraction of its length turns much where its foot moves little."""
CALMER = 0.9
"""It is asked to bend so far that it turns by this fraction of what would be a flip."""
BEND = 0.002, 0.005
"""For that the hips move towards its foot by at least and at most these fractions of the way at a time: what limits
make of a leg comes back at once."""
CLOSE = 2e-5
"""A leg that misses its foot by less than this fraction of its length reaches it."""


@dataclass(frozen=True)
class Helped:
    """What came of it."""

    moved: Floats
    """(F, 3) how the hips were moved, in world space."""
    reached: Reached
    goals: list[MovableGoal]
    """What was keyed."""
    remarks: list[str]
    """Why the hips were left alone."""


def why_fixed(feet: Feet) -> str:
    """Why the hips can't be moved; empty where they can."""
    if feet.hips is None:
        return say("No bone carries all of these limbs, so the hips were left alone")
    ob = feet.snap.ob
    hips = ob.pose.bones[feet.hips]
    if hips.bone.use_connect and hips.parent is not None:
        return say("'{bone}' is connected to its parent, so the hips were left alone", bone=hips.name)
    if any(hips in posed_bones(tip) for tip in tips(ob) if chain_of(tip).enabled):
        return say("A chain poses '{bone}', so the hips were left alone", bone=hips.name)
    below = {hips.name, *(bone.name for bone in hips.children_recursive)}
    for goal in feet.snap.goals:
        if any(above == ob and bone in below for above, bone in parents_of(goal.ob, goal.bone)):
            return say("Target '{name}' is attached to the hips, so the hips were left alone", name=goal.name)
    return ""


def rise_of(heights: Sequence[Floats], smooth: int) -> Floats:
    """How far up (F,) the ground takes the hips where it takes feet by (F,) each."""
    return smoothed(np.min(heights, axis=0), 2 * smooth)


def steps(
    view_layer: bpy.types.ViewLayer,
    feet: Feet,
    frames: Sequence[int],
    at: Floats,
    planted: Sequence[Foot],
    wanted: Floats,
    along: Floats | None,
    cap: float,
    smooth: float,
    rate: float,
    undo: ExitStack,
) -> Generator[float, None, Helped]:
    """Move and key the hips; yields the share that is done.

    Args:
        view_layer: where the keys of targets play already.
        feet: as they were sampled.
        frames: F.
        at: (F,) when these are in the action.
        planted: the feet as they are planted, one for each chain.
        wanted: (F, g, 3) where their targets are in world space.
        along: (F, 3) how the ground takes the hips along; None: they must not be moved.
        cap: by at most this they are moved beyond that.
        smooth: seconds over which such a movement begins and ends.
        rate: frames per second.
        undo: takes the keys back.
    """
    reason = "" if along is None else why_fixed(feet)
    moved = np.zeros((len(frames), 3)) if along is None or reason else along
    ends = [wanted[:, chain.target] for chain in feet.snap.chains]
    legs = []
    for chain, foot, end in zip(feet.snap.chains, planted, ends, strict=True):
        length = feet.length(chain)
        reach = (1.0 - max(chain_of(feet.tip(chain)).softness, BENT)) * length
        legs.append(Leg(feet.roots(chain) + moved, end, reach, foot.touches))
    if along is None or reason:
        reached = yield from proof.steps(view_layer, feet, frames)
        is_short = any(leg.short(moved).any() for leg in legs)
        return Helped(moved, reached, [], [reason] if reason and is_short else [])
    assert feet.hips is not None, "there are some"
    goal = MovableGoal(feet.snap.ob, feet.snap.ob.pose.bones[feet.hips].name)
    old = memory.before(goal, at)
    found: Helped | None = None
    worst = (np.inf, np.inf)
    for turn in range(ROUNDS):
        offsets = help_reach(legs, cap, smooth * rate).offsets
        moved = along + offsets
        goals = [goal] if moved.any() or found is not None else []
        if goals:
            _key(feet, goal, moved, at, undo)
        solving = proof.steps(view_layer, feet, frames)
        reached = yield from part(solving, 1.0 - LEFT**turn, 1.0 - LEFT ** (turn + 1))
        asked, left = _asked(feet, legs, ends, offsets, reached, FLIP / rate)
        if left < worst:
            found, worst = Helped(moved, reached, goals, []), left
        if not any(gap.any() for gap in asked):
            break
        legs = [leg.cut(gap, offsets) for leg, gap in zip(legs, asked, strict=True)]
    assert found is not None, "there is a first round"
    if found.moved is not moved:
        _key(feet, goal, found.moved, at, undo)
    if found.goals:
        memory.keep(goal, old, at, undo)
    return found


def _asked(
    feet: Feet, legs: Sequence[Leg], ends: Sequence[Floats], offsets: Floats, reached: Reached, flip: float
) -> tuple[list[Floats], tuple[float, float]]:
    """How (F, 3) each leg wants the hips, moved by (F, 3), to be moved on because of its joint limits.

    Returns:
        The same, and how bad it is: how far a leg misses its foot, and by how many radians a bone flips.
    """
    asked, misses, flips = [], [0.0], [0.0]
    may_bend = not any(leg.short(offsets).any() for leg in legs)  # else the hips are as low as they may go
    for i, (chain, leg, end) in enumerate(zip(feet.snap.chains, legs, ends, strict=True)):
        wanted, missed = np.zeros_like(offsets), end - _in_world(feet, reached.feet[i].places)
        far, towards = lengths_of(missed), end - leg.roots - offsets
        is_free = leg.short(offsets) == 0.0
        is_short = leg.held & (far > CLOSE * leg.reach) & is_free
        wanted[is_short] = missed[is_short]
        misses += far[is_short].tolist()
        before = feet.sampled.poses[:, feet.snap.sampler.rows(chain.bones)]
        turns = (_steps(reached.bones[i]) - _steps(before)).max(axis=1)
        straight = may_bend & (lengths_of(towards) > STRAIGHT * leg.reach)
        fast = (turns > flip) & (straight[1:] | straight[:-1])
        flips += turns[fast].tolist()
        turns = np.where(fast, turns, 0.0)
        turns = np.maximum(np.append(turns, 0.0), np.append(0.0, turns))
        bend = (turns > 0.0) & ~is_short
        wanted[bend] = (
            _bent(lengths_of(towards[bend]) / leg.reach, turns[bend] / (CALMER * flip))[:, None] * towards[bend]
        )
        asked.append(wanted)
    return asked, (max(misses), max(flips))


def _bent(chords: Floats, times: Floats) -> Floats:
    """By which fraction (n,) legs as long as (n,) of their reach should be shorter, to turn so many times slower.

    The nearer a leg is to straight, the more its bones turn: as one over the sine of half the angle of its knee.
    """
    sines = np.sqrt(np.maximum(1.0 - chords * chords, 0.0)) * times
    shorter = 1.0 - np.sqrt(np.maximum(1.0 - sines * sines, 0.0)) / np.maximum(chords, STRAIGHT)
    return np.clip(shorter, *BEND)


def _steps(poses: Floats) -> Floats:
    """By how many radians (F - 1, n) bones posed as (F, n, 4, 4) turn from frame to frame."""
    turns = quaternions(np.moveaxis(orientation(poses), (0, 1), (-2, -1)))
    away = vectors_of(multiply(turns[:, 1:], opposite(turns[:, :-1])))
    return np.asarray(np.sqrt((away * away).sum(axis=0)))


def _in_world(feet: Feet, places: Floats) -> Floats:
    return np.asarray(applied(feet.support[:, :3, :3], places) + feet.support[:, :3, 3])


def _key(feet: Feet, goal: MovableGoal, moved: Floats, at: Floats, undo: ExitStack) -> None:
    """Key the hips, moved by (F, 3) in world space, at times (F,) of the action."""
    ob, sampler, skeleton = feet.snap.ob, feet.snap.sampler, feet.snap.skeleton
    assert feet.hips is not None, "there are some"
    keyframes.check(ob, channels_of(goal, goal.row()[None]))
    poses = feet.sampled.poses[:, sampler.rows([feet.hips])[0]].copy()
    poses[:, :3, 3] += applied(inverse(feet.sampled.world)[:, :3, :3], moved)
    parent = skeleton.parents[feet.hips]
    above = None if parent < 0 else feet.sampled.poses[:, sampler.rows([parent])[0]]
    rows: Row = goal.rows(skeleton.to_basis(ob, feet.hips, poses, above))
    undo.callback(goal.set_row, goal.row())
    key_goals([goal], rows[:, None], at, undo)
