"""The hips moved so that legs reach where their feet are planted: as far as their lengths and limits let them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import bpy
import numpy as np

from ..clip.filling import smoothed
from ..clip.foot import Foot
from ..clip.hips import Leg, help_reach
from ..data.settings import chain_of
from ..goals.movable import MovableGoal, channels_of, key_goals, parents_of
from ..pose import keyframes
from ..pose.channels import Row
from ..pose.skeleton import inverse
from ..pose.steps import part
from ..rig.plan.chain import posed_bones, tips
from ..rig.read.orientation import orientation
from ..solve.maths.products import applied, lengths_of
from ..solve.maths.rotations import inverse as opposite
from ..solve.maths.rotations import multiply, quaternions, vectors_of
from ..solve.problem import Bools, Floats
from ..translation.sentences import say
from . import memory
from .feet import Feet
from .proof import Proof, Reached

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
TAUT = 0.98
"""Frames on which a leg is stretched farther than this are looked at first: others seldom ask for something."""
BESIDE = 3
"""So many frames beside those that are in doubt are looked at with them."""


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
    for goal in feet.snap.goals:
        if is_carried(goal, hips):
            return say("Target '{name}' is attached to the hips, so the hips were left alone", name=goal.name)
    return ""


def is_carried(goal: MovableGoal, hips: bpy.types.PoseBone) -> bool:
    """Whether a target goes along with the hips, or with a bone below them."""
    ob, below = hips.id_data, {hips.name, *(bone.name for bone in hips.children_recursive)}
    return any(above == ob and bone in below for above, bone in parents_of(goal.ob, goal.bone))


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
    recorded: Sequence[Floats],
    along: Floats | None,
    cap: float,
    smooth: float,
    rate: float,
    carry: Callable[[Floats], None],
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
        recorded: (F, n, 4, 4) poses of the bones of each chain before anything was planted, in pose space.
        along: (F, 3) how the ground takes the hips along; None: they must not be moved.
        cap: by at most this they are moved beyond that.
        smooth: seconds over which such a movement begins and ends.
        rate: frames per second.
        carry: keys what goes along with the hips when they are keyed as moved by (F, 3).
        undo: takes the keys back.
    """
    reason = "" if along is None else why_fixed(feet)
    moved = np.zeros((len(frames), 3)) if along is None or reason else along
    legs = []
    for chain, foot in zip(feet.snap.chains, planted, strict=True):
        length = feet.length(chain)
        reach = (1.0 - max(chain_of(feet.tip(chain)).softness, BENT)) * length
        legs.append(Leg(feet.roots(chain) + moved, wanted[:, chain.target], reach, foot.touches))
    if along is None or reason:
        reached = Reached.nowhere(len(frames), feet.snap.chains)
        yield from Proof.of(view_layer, feet, frames).solve(reached, np.ones(len(frames), dtype=bool))
        is_short = any(leg.short(moved).any() for leg in legs)
        return Helped(moved, reached, [], [reason] if reason and is_short else [])
    assert feet.hips is not None, "there are some"
    goal = MovableGoal(feet.snap.ob, feet.snap.ob.pose.bones[feet.hips].name)
    old = memory.before(goal, at)
    turns = list(map(_steps, recorded))
    search = _Search(view_layer, feet, frames, at, goal, legs, along, turns, FLIP / rate, carry, undo)
    asked, found = np.zeros(len(frames), dtype=bool), None
    for turn in range(ROUNDS):
        found = help_reach(legs, cap, smooth * rate, found)
        own = search.begin(found.offsets)
        doubtful = _beside(asked if asked.any() else search.is_taut(found.offsets))
        first, last = 1.0 - LEFT**turn, 1.0 - LEFT ** (turn + 1)
        yield from part(search.look(own, doubtful), first, 0.5 * (first + last))
        if own.asks_nothing:
            yield from part(search.look(own, ~doubtful), 0.5 * (first + last), last)
        if own.asks_nothing:
            break
        asked |= own.asked.any(axis=(0, 2))
        legs = [leg.cut(gap, found.offsets) for leg, gap in zip(legs, own.asked, strict=True)]
    best = search.best
    while not best.seen.all():
        yield from part(search.look(best, ~best.seen), 1.0, 1.0)
        best = search.best
    search.show(best.offsets)
    if search.goals:
        memory.keep(goal, old, at, undo)
    return Helped(along + best.offsets, best.reached, search.goals, [])


@dataclass
class _Try:
    """Hips that were moved, and what is known of it."""

    offsets: Floats
    """(F, 3) beyond what the ground takes them along."""
    reached: Reached
    seen: Bools
    """(F,) which frames were looked at."""
    asked: Floats
    """(C, F, 3) where each leg wants the hips to be moved on because of its joint limits."""
    left: tuple[float, float] = (0.0, 0.0)
    """How bad it is: how far a leg misses its foot, and by how many radians a bone flips."""

    @property
    def asks_nothing(self) -> bool:
        """Whether all legs are content, on the frames that were looked at."""
        return not self.asked.any()


@dataclass
class _Search:
    """Movements of the hips that are tried."""

    view_layer: bpy.types.ViewLayer
    feet: Feet
    frames: Sequence[int]
    at: Floats
    """(F,)"""
    goal: MovableGoal
    """The hips."""
    legs: Sequence[Leg]
    along: Floats
    """(F, 3)"""
    recorded: Sequence[Floats]
    """By how many radians (F - 1, n) the bones of each leg turned before."""
    flip: float
    """Radians."""
    carry: Callable[[Floats], None]
    undo: ExitStack
    goals: list[MovableGoal] = field(default_factory=list)
    """The hips, as soon as they are keyed."""
    tries: list[_Try] = field(default_factory=list)
    shown: Floats | None = None
    """(F, 3) what is keyed now."""
    proof: Proof | None = None

    @property
    def best(self) -> _Try:
        """That which leaves the least, as far as is known."""
        return min(self.tries, key=lambda own: own.left)

    def begin(self, offsets: Floats) -> _Try:
        """A further try."""
        frames, legs = len(self.frames), len(self.legs)
        own = _Try(
            offsets,
            Reached.nowhere(frames, self.feet.snap.chains),
            np.zeros(frames, dtype=bool),
            np.zeros((legs, *offsets.shape)),
        )
        self.tries.append(own)
        return own

    def show(self, offsets: Floats) -> None:
        """Key the hips, unless they are where they were from the beginning."""
        moved = self.along + offsets
        if offsets is not self.shown and (self.goals or moved.any()):
            _key(self.feet, self.goal, moved, self.at, self.undo)
            self.carry(moved)
            if not self.goals:  # they may not have been animated before
                self.goals, self.proof = [self.goal], None
        self.shown = offsets

    def look(self, own: _Try, some: Bools) -> Generator[float, None, None]:
        """See what limbs reach on some (F,) of the frames; yields the share that is done."""
        if not some.any():
            return
        self.show(own.offsets)
        self.proof = self.proof or Proof.of(self.view_layer, self.feet, self.frames)
        yield from self.proof.solve(own.reached, some)
        own.seen |= some
        self._judge(own)

    def is_taut(self, offsets: Floats) -> Bools:
        """On which (F,) frames a leg is stretched so far, with the hips moved, that it likely asks for something."""
        return np.any([lengths_of(leg.ends - leg.roots - offsets) > TAUT * leg.reach for leg in self.legs], axis=0)

    def _judge(self, own: _Try) -> None:
        """Find out what legs ask for, and how bad it is."""
        misses, flips, world = [0.0], [0.0], self.feet.sampled.world
        shorts = [leg.short(own.offsets) for leg in self.legs]
        may_bend = not any(short.any() for short in shorts)  # else the hips are as low as they may go
        for i, (leg, short, recorded) in enumerate(zip(self.legs, shorts, self.recorded, strict=True)):
            places = applied(world[:, :3, :3], own.reached.ends[:, i]) + world[:, :3, 3]
            missed, towards = leg.ends - places, leg.ends - leg.roots - own.offsets
            far, chords = lengths_of(missed), lengths_of(towards) / leg.reach
            is_short = leg.held & (far > CLOSE * leg.reach) & (short == 0.0)
            turns = (_steps(own.reached.bones[i]) - recorded).max(axis=1)
            straight = may_bend & (chords > STRAIGHT)
            fast = (turns > self.flip) & (straight[1:] | straight[:-1])
            misses += far[is_short].tolist()
            flips += turns[fast].tolist()
            turns = np.where(fast, turns, 0.0)
            turns = np.maximum(np.append(turns, 0.0), np.append(0.0, turns))
            shares = np.where(turns > 0.0, _bent(chords, turns / (CALMER * self.flip)), 0.0)
            own.asked[i] = np.where(is_short[:, None], missed, shares[:, None] * towards)
        own.left = max(misses), max(flips)


def _bent(chords: Floats, times: Floats) -> Floats:
    """By which fraction (n,) legs as long as (n,) of their reach should be shorter, to turn so many times slower.

    The nearer a leg is to straight, the more its bones turn: as one over the sine of half the angle of its knee.
    """
    sines = np.sqrt(np.maximum(1.0 - chords * chords, 0.0)) * times
    shorter = 1.0 - np.sqrt(np.maximum(1.0 - sines * sines, 0.0)) / np.maximum(chords, STRAIGHT)
    return np.clip(shorter, *BEND)


def _beside(flags: Bools) -> Bools:
    """The frames (F,) with a flag, and some beside each."""
    found = np.zeros_like(flags)
    for i in np.flatnonzero(flags).tolist():
        found[max(i - BESIDE, 0) : i + BESIDE + 1] = True
    return found


def _steps(poses: Floats) -> Floats:
    """By how many radians (F - 1, n) bones posed as (F, n, 4, 4) turn from frame to frame."""
    turns = quaternions(np.moveaxis(orientation(poses), (0, 1), (-2, -1)))
    away = vectors_of(multiply(turns[:, 1:], opposite(turns[:, :-1])))
    return np.asarray(np.sqrt((away * away).sum(axis=0)))


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
