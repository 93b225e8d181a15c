"""Moving the hips so that legs reach their planted feet, as far as their lengths and joint limits allow."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from bpy.types import PoseBone

from ..bake.sampling import Frames
from ..bake.solved import Solved
from ..core import fk_store, keyframes
from ..core.channels import Row
from ..core.goals import Goal
from ..core.settings import chain_of, object_of
from ..core.skeleton import inverse, moved
from ..core.steps import part
from ..core.translation.sentences import say
from ..live import registry
from ..live.reports import NEAR
from ..rig.plan.chain import posed_bones, tips
from ..rig.plan.plan import Plan
from ..rig.read.sample import orientation
from ..rig.write.waves import Posed
from ..solve.maths.products import applied, lengths_of
from ..solve.maths.rotations import inverse as opposite
from ..solve.maths.rotations import multiply, quaternions, vectors_of
from ..solve.problem import Bools, Floats, Ints
from ..targets.movable import channels_of, key_goals, parents_of
from ..targets.snap import Chain
from . import original_keys
from .filling import widened
from .ground_object import UP
from .sampled_feet import Feet, is_of_leg
from .standing import Foot

BENT = 1e-4
"""Legs stay short of straight by this fraction of their length: when straight, a target's rounding moves the knee."""
SPARE = 0.01
"""They also stay as far from straight as in the whole record, up to this fraction: nearer to it, knees pop."""
ROUNDS = 6
"""Maximum number of rounds in which the hips move further because joint limits keep a leg from its foot."""
LEFT = 0.3
"""Each round leaves this fraction of the remaining progress to later rounds."""
FLIP = np.radians(240.0)
"""A leg bone or knee that turns faster than recorded by more than this, in radians per second, flipped to another side
of its limits, or the leg snapped straight."""
MOMENT = 1.0 / 30.0
"""Seconds, or one frame, over which this speed is measured: the closer to straight, the faster a leg turns."""
STRAIGHT = 0.95
"""A leg stretched beyond this fraction of its reach turns a lot when its foot moves a little."""
CALMER = 0.9
"""Such a leg is bent until its bones turn by this fraction of a flip."""
BEND = 0.002, 0.005
"""To bend a leg, the hips move towards its foot by a fraction of the distance to it within these bounds. Small steps
suffice: a leg that its limits made flip recovers at once."""
CLOSE = 2e-5
"""A leg that misses its foot by less than this fraction of its reach counts as reaching it."""
STANCE, ROLL = np.radians(1.5), np.radians(7.0)
"""The knee of a foot that stands flat is bent as recorded, within this angle, and while the foot rolls, within this."""
HASTE = 0.5
"""Rather than move the hips faster than this, in legs per second, knees bend otherwise, around that by as much as a
movement takes to begin."""
LEVEL = 0.02
"""Knees bend otherwise where a ground lifts the foot against the hips by more than this fraction of the leg. A contact
holds an ankle down whose heel has begun to rise: by less than that, see `contacts.Criteria.high`."""
TAUT = 0.98
"""Frames on which a leg is stretched beyond this fraction of its reach are solved first; others seldom need help."""
BESIDE = 3
"""Frames next to those in doubt that are solved with them, on each side."""


def why_fixed(feet: Feet) -> str:
    """Return why the hips can't be moved; empty if they can."""
    if feet.hips is None:
        return say("These limbs have no common parent bone, so the hips were left alone")
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


def is_carried(goal: Goal, hips: PoseBone) -> bool:
    """Return whether a target is attached to the hips or to a bone below them."""
    ob, below = hips.id_data, {hips.name, *(bone.name for bone in hips.children_recursive)}
    return any(above.ob == ob and above.bone in below for above in parents_of(goal.ob, goal.bone))


def move_hips(
    feet: Feet,
    planted: Sequence[Foot],
    wanted: Floats,
    records: Sequence[Record],
    along: Floats | None,
    cap: float,
    smooth: float,
    rate: float,
    carry: Callable[[Floats], None],
    undo: ExitStack,
) -> Generator[float, None, tuple[Floats, Reached, list[Goal], list[str]]]:
    """Move and key the hips; yields progress (0 to 1).

    Args:
        feet: the feet as they were sampled.
        planted: the planted feet, one per chain.
        wanted: (F, g, 3) positions of their targets, in world space, whose keys already play.
        records: the chains before planting.
        along: (F, 3) how the ground moves the hips; None if they must not move.
        cap: the largest movement in addition to that.
        smooth: seconds over which such a movement begins and ends.
        rate: frames per second.
        carry: called with the movement (F, 3) of the hips whenever they are keyed; keys what moves with them.
        undo: takes the keys back.

    Returns:
        How far (F, 3) the hips were moved in world space, what limbs reach then, the goals that were keyed, and
        sentences about why the hips were left alone.
    """
    reason, count = "" if along is None else why_fixed(feet), len(feet.frames)
    moved = np.zeros((count, 3)) if along is None or reason else along
    legs = _legs(feet, wanted, moved, [foot.contacts for foot in planted], [record.reached for record in records])
    standing = [] if feet.standing is None else _standing(feet.standing, moved)
    if along is None or feet.hips is None or reason:
        reached = Reached.nowhere(feet)
        yield from solve(feet, reached, np.ones(count, dtype=bool))
        is_short = any(leg.short(moved).any() for leg in legs)
        return moved, reached, [], [reason] if reason and is_short else []
    goal = Goal(feet.snap.ob, feet.snap.ob.pose.bones[feet.hips].name)
    old = original_keys.before(goal, feet.times)
    moment = max(min(round(MOMENT * rate), count - 1), 1)
    turns = [turns_of(record.poses, moment) for record in records]
    search = _Search(feet, goal, legs, standing, along, turns, moment, FLIP * moment / rate, carry, undo)
    asked, found, size = np.zeros(count, dtype=bool), None, max(leg.reach for leg in legs)
    for turn in range(ROUNDS):
        found = help_reach([*legs, *standing], cap, smooth * rate, found)
        while (hasty := _hasty(found.offsets * rate / size, legs, smooth * rate)).any():
            legs = [leg.eased(hasty) for leg in legs]
            found = help_reach([*legs, *standing], cap, smooth * rate, found)
        own = search.begin(found.offsets)
        taut = np.any([leg.distances(found.offsets) > TAUT * leg.reach for leg in legs], axis=0)
        doubtful = widened(asked if asked.any() else taut, BESIDE, BESIDE)
        first, last = 1.0 - LEFT**turn, 1.0 - LEFT ** (turn + 1)
        yield from part(search.look(own, doubtful), first, 0.5 * (first + last))
        if not own.asked.any():
            yield from part(search.look(own, ~doubtful), 0.5 * (first + last), last)
        if not own.asked.any():
            break
        asked |= own.asked.any(axis=(0, 2))
        legs = [leg.cut(gap, found.offsets) for leg, gap in zip(legs, own.asked, strict=True)]
    while not (best := search.best).seen.all():
        yield from part(search.look(best, ~best.seen), 1.0, 1.0)
    search.show(best.offsets)
    if search.goals:
        original_keys.keep(goal, old, feet.times, undo)
    return along + best.offsets, best.reached, search.goals, []


def _hasty(offsets: Floats, legs: Sequence[Leg], smooth: float) -> Bools:
    """Return flags (F,) around frames on which the hips, moved by (F, 3) legs, hurry to keep a knee as recorded."""
    fast, around = np.append(lengths_of(np.diff(offsets, axis=0)) > HASTE, False), round(smooth / 2.0)
    return widened(fast, around + 1, around) & np.any([leg.stance[1] < np.inf for leg in legs], axis=0)


def _legs(feet: Feet, ends: Floats, moved: Floats, contacts: Sequence[Bools], known: Sequence[Bools]) -> list[Leg]:
    """Return the legs of feet, with hips moved by (F, 3), whose targets are at `ends` (F, g, 3) in world space.

    `contacts` are those of each, (2, F), and its knee is bent as recorded where that is `known` (F,).
    """
    found = []
    for chain, own, is_known in zip(feet.snap.chains, contacts, known, strict=True):
        touches, flat = np.asarray(own.any(axis=0)), np.asarray(own.all(axis=0))
        tip, length = feet.tip(chain), feet.length(chain)
        way = feet.sampled.goals[:, chain.target, :3, 3] - feet.roots(chain)
        spare = min(1.0 - float(lengths_of(way).max()) / length, SPARE)
        reach = (1.0 - max(chain_of(tip).softness, spare, BENT)) * length
        roots, foot = feet.roots(chain) + moved, ends[:, chain.target]
        is_level = np.abs(((foot - roots - way) * UP).sum(axis=1)) < LEVEL * length
        # Half the bend of a knee halfway down the leg, and what it may be.
        within = np.where(flat, [[STANCE], [-STANCE]], [[ROLL], [-ROLL]])
        half = np.arccos(np.minimum(lengths_of(way) / length, 1.0 - BENT)) + 0.5 * within
        as_recorded = touches & is_known & is_level & is_of_leg(feet.figure, tip)
        stance = np.where(as_recorded, np.cos(np.maximum(half, 0.0)) * length, [[0.0], [np.inf]])
        found.append(Leg(roots, foot, reach, touches, stance))
    return found


def _standing(feet: Feet, moved: Floats) -> list[Leg]:
    """Return the legs that were planted earlier, held where they touch."""
    contacts = [feet.contacts(chain) for chain in feet.snap.chains]
    known = [np.ones(len(feet.frames), dtype=bool)] * len(contacts)
    return _legs(feet, feet.sampled.goals[:, :, :3, 3], moved, contacts, known)


@dataclass
class _Try:
    """A movement of the hips that was tried, and what is known about it."""

    offsets: Floats
    """(F, 3) movement in addition to that of the ground."""
    reached: Reached
    seen: Bools
    """(F,) which frames were solved."""
    asked: Floats
    """(C, F, 3) the further movement of the hips that each leg needs because of its joint limits."""
    left: tuple[float, float] = (0.0, 0.0)
    """How bad it is: the largest distance of a leg from its foot, and the largest flip of a bone in radians."""


@dataclass
class _Search:
    """The search for a movement of the hips."""

    feet: Feet
    goal: Goal
    """The hips."""
    legs: Sequence[Leg]
    standing: Sequence[Leg]
    """The legs that were planted earlier."""
    along: Floats
    """(F, 3) how the ground moves the hips."""
    recorded: Sequence[Floats]
    """For each leg, the angles (F - m, 2n - 1) in radians by which its bones and joints turned in m frames, before
    planting."""
    moment: int
    """These frames."""
    flip: float
    """The flip limit for as many, in radians."""
    carry: Callable[[Floats], None]
    undo: ExitStack
    goals: list[Goal] = field(default_factory=list)
    """The hips, once they are keyed."""
    tries: list[_Try] = field(default_factory=list)
    shown: Floats | None = None
    """(F, 3) the movement that is keyed now."""

    @property
    def best(self) -> _Try:
        """The best try so far: the smallest miss, then the smallest flip."""
        return min(self.tries, key=lambda own: own.left)

    def begin(self, offsets: Floats) -> _Try:
        """Start a new try."""
        seen, asked = np.zeros(len(offsets), dtype=bool), np.zeros((len(self.legs), *offsets.shape))
        self.tries.append(_Try(offsets, Reached.nowhere(self.feet), seen, asked))
        return self.tries[-1]

    def show(self, offsets: Floats) -> None:
        """Key the hips, unless they stay where they were."""
        moved = self.along + offsets
        if offsets is not self.shown and (self.goals or moved.any()):
            _key(self.feet, self.goal, moved, self.undo)
            self.carry(moved)
            self.goals = [self.goal]
        self.shown = offsets

    def look(self, own: _Try, some: Bools) -> Generator[float, None, None]:
        """Solve the limbs on some (F,) of the frames; yields progress (0 to 1).

        Also determine what each leg needs, and how bad the try is.
        """
        if not some.any():
            return
        self.show(own.offsets)
        yield from solve(self.feet, own.reached, some)
        own.seen |= some
        misses, flips, world = [0.0], [0.0], self.feet.sampled.world
        shorts = [leg.short(own.offsets) for leg in self.legs]
        # If a leg is short, the hips are as low as they may go.
        may_bend = not any(short.any() for short in (*shorts, *(leg.short(own.offsets) for leg in self.standing)))
        for i, (leg, short, recorded) in enumerate(zip(self.legs, shorts, self.recorded, strict=True)):
            places = moved(world, own.reached.ends[:, i])
            missed, towards = leg.ends - places, leg.ends - leg.roots - own.offsets
            far, chords = lengths_of(missed), lengths_of(towards) / leg.reach
            is_short = leg.held & (far > CLOSE * leg.reach) & (short == 0.0)
            turns = (turns_of(own.reached.bones[i], self.moment) - recorded).max(axis=1)
            straight = widened(may_bend & (chords > STRAIGHT), 0, self.moment)
            fast = (turns > self.flip) & straight[: len(turns)]
            misses += far[is_short].tolist()
            flips += turns[fast].tolist()
            turns = widened(np.pad(np.where(fast, turns, 0.0), (0, self.moment)), self.moment, 0)
            shares = np.where(turns > 0.0, _bent(chords, turns / (CALMER * self.flip)), 0.0)
            own.asked[i] = np.where(is_short[:, None], missed, shares[:, None] * towards)
        own.left = max(misses), max(flips)


def _bent(chords: Floats, times: Floats) -> Floats:
    """Return fractions (n,) by which legs at `chords` (n,) of their reach should shorten to turn `times` (n,) slower.

    The straighter a leg, the more its bones turn: in proportion to 1 / sin(half the bend of the knee).
    """
    sines = np.sqrt(np.maximum(1.0 - chords * chords, 0.0)) * times
    shorter = 1.0 - np.sqrt(np.maximum(1.0 - sines * sines, 0.0)) / np.maximum(chords, STRAIGHT)
    return np.clip(shorter, *BEND)


def turns_of(poses: Floats, frames: int = 1) -> Floats:
    """Return the angles (F - m, 2n - 1), in radians, by which bones with poses (F, n, 4, 4) turn within m frames.

    Those of the n bones are followed by those by which each but the first turns in the one before it.
    """
    turns = quaternions(np.moveaxis(orientation(poses), (0, 1), (-2, -1)))
    turns = np.concatenate([turns, multiply(opposite(turns[..., :-1]), turns[..., 1:])], axis=-1)
    away = vectors_of(multiply(turns[:, frames:], opposite(turns[:, :-frames])))
    return np.asarray(np.sqrt((away * away).sum(axis=0)))


def _key(feet: Feet, goal: Goal, moved: Floats, undo: ExitStack) -> None:
    """Key the hips, moved by (F, 3) in world space."""
    ob, sampler, skeleton = feet.snap.ob, feet.snap.sampler, feet.snap.skeleton
    assert feet.hips is not None, "there are some"
    keyframes.check(ob, channels_of(goal, goal.row()[None]))
    poses = feet.sampled.poses[:, sampler.rows([feet.hips])[0]].copy()
    poses[:, :3, 3] += applied(inverse(feet.sampled.world)[:, :3, :3], moved)
    parent = skeleton.parents[feet.hips]
    above = None if parent < 0 else feet.sampled.poses[:, sampler.rows([parent])[0]]
    rows: Row = goal.rows(skeleton.to_basis(ob, feet.hips, poses, above))
    key_goals([goal], rows[:, None], feet.times, undo)


# ---- what limbs reach: frames solved as a bake would solve them, without keying anything

FOLLOWS = 0.01
"""A target that stays this close to the end of its limb in FK, in lengths of the limb, was made from the FK motion."""


class Reached(NamedTuple):
    """Where C chains end on F frames; NaN on frames not solved yet, and for chains that can't be solved."""

    errors: Floats
    """(F, C) distances from their targets, in chain lengths."""
    ends: Floats
    """(F, C, 3) positions of the ends, in pose space."""
    turned: Floats
    """(F, C, 4, 4) poses of the bones that take the target's orientation."""
    bones: list[Floats]
    """For each chain, the poses (F, n, 4, 4) of its bones."""

    @classmethod
    def nowhere(cls, feet: Feet) -> Reached:
        """Return an empty result, with nothing solved yet."""
        frames, chains = len(feet.frames), feet.snap.chains
        errors, ends, turned = (np.full((frames, len(chains), *shape), np.nan) for shape in ((), (3,), (4, 4)))
        return cls(errors, ends, turned, [np.full((frames, len(chain.bones), 4, 4), np.nan) for chain in chains])

    def feet(self, feet: Feet) -> list[Foot]:
        """Return the hands and feet, in the space of what they stand on, without contacts."""
        return [feet.shown(chain, self.ends[:, c], self.turned[:, c]) for c, chain in enumerate(feet.snap.chains)]


def solve(feet: Feet, reached: Reached, some: Bools) -> Generator[float, None, None]:
    """Solve the chains on some (F,) of the frames and write the results to `reached`; yields progress (0 to 1)."""
    ob, view_layer, own = feet.snap.ob, feet.view_layer, np.flatnonzero(some)
    only = None if object_of(ob).live else [chain.tip for chain in feet.snap.chains]
    plan = Plan.of(ob, view_layer.depsgraph, only)
    planned = {chain.tip for chain in plan.chains}
    chosen = {c: chain for c, chain in enumerate(feet.snap.chains) if chain.tip in planned}
    solved = _Ends(plan, reached, own, chosen)
    numbers = [feet.frames[i] for i in own.tolist()]
    work = Frames(view_layer, ob, plan, only, fk_store.held(ob, plan.live), numbers, changes_order=False)
    with registry.paused(ob):
        yield from work.solve(solved, foretold=work.are_foretold)
    reached.errors[np.ix_(own, np.array([*chosen], dtype=np.int64))] = solved.errors


class Record(NamedTuple):
    """A chain on F frames before planting."""

    poses: Floats
    """(F, n, 4, 4) poses of its bones."""
    reached: Bools
    """(F,) whether it reached its target."""


def recorded(feet: Feet) -> Generator[float, None, list[Record]]:
    """Return each chain before planting; yields progress (0 to 1).

    Its poses are FK poses if all targets follow the FK pose, as those of a recording do; otherwise solved poses.
    """
    chains, snap, everywhere = feet.snap.chains, feet.snap, np.ones(len(feet.frames), dtype=bool)
    found = [feet.sampled.poses[:, snap.sampler.rows(chain.bones)] for chain in chains]
    gaps = [lengths_of(feet.ends(chain) - feet.sampled.goals[:, chain.target, :3, 3]) for chain in chains]
    if all(float(gap.max()) < FOLLOWS * feet.length(chain) for gap, chain in zip(gaps, chains, strict=True)):
        return [Record(fk, everywhere) for fk in found]
    reached = Reached.nowhere(feet)
    yield from solve(feet, reached, everywhere)
    return [
        Record(np.where(np.isnan(own), fk, own), np.asarray(errors < NEAR))
        for own, fk, errors in zip(reached.bones, found, reached.errors.T, strict=True)
    ]


class _Ends(Solved):
    """Solved frames that also fill in where the chains end."""

    def __init__(self, plan: Plan, reached: Reached, frames: Ints, chains: dict[int, Chain]) -> None:
        """Begin with the frames, by index, and the chains, by their index in `reached`."""
        super().__init__(plan, [chain.tip for chain in chains.values()], len(frames), [])
        self._reached, self._frames, self._chains = reached, frames, chains
        self._own_rows = plan.rows
        self._reaches = {chain.tip: chain.reach for chain in plan.chains}

    def put(self, start: int, fk: Row, influence: Floats, posed: Posed, plan: Plan) -> None:
        super().put(start, fk, influence, posed, plan)
        reached, at = self._reached, self._frames[start : start + len(fk)]
        for c, chain in self._chains.items():
            turned: Floats = posed.poses[:, self._own_rows[chain.turning]].astype(np.float64)
            reach = (0.0, 0.0, 0.0) if chain.turning == chain.end else self._reaches[chain.tip]
            reached.turned[at, c] = turned
            reached.ends[at, c] = moved(turned, np.broadcast_to(reach, (len(at), 3)))
            reached.bones[c][at] = posed.poses[:, [self._own_rows[bone] for bone in chain.bones]]


# ---- the least and smoothest movement of the hips over a clip that lets legs reach where their feet stand
#
# On each frame, each contact restricts the hips to a ball of positions, and to a thin shell while the knee should be
# bent as recorded. Where joint limits keep a leg from its foot, a plane across the direction to the nearest position
# that works cuts off one side. Within what is left, ADMM looks for the movement with the least sum of squares of its
# size and its acceleration: it alternates between smoothing the whole clip, by cosine transform, and projecting onto
# each of these regions. Movements are small beside the radius of a shell, which so is nearly a flat slab. When regions
# are added to those of an earlier search, it continues from the end of that search.

PASSES = 2000
"""Maximum number of passes."""
INSIDE = 2e-5
"""Balls shrink by this fraction of a leg, and passes stop within half of it, so legs reach their feet."""
PULL = 40.0
"""ADMM penalty that draws a movement into the regions, for smoothing over one frame; grows with the frames squared.
With a smaller one, passes don't suffice for thin shells."""
BEYOND = 1.8
"""Over-relaxation: each pass goes this much farther than it would, so fewer are needed."""


class Leg(NamedTuple):
    """A leg on F frames."""

    roots: Floats
    """(F, 3) positions where it begins."""
    ends: Floats
    """(F, 3) wanted positions of its foot."""
    reach: float
    """The length it can reach."""
    held: Bools
    """(F,) whether the foot has to be there."""
    stance: Floats
    """(2, F) the least and the largest distance from root to foot at which the knee is bent as recorded."""
    cuts: tuple[tuple[Floats, Floats], ...] = ()
    """What joint limits require of the hips: unit vectors (F, 3) along which they have to move, zero where they need
    not, and the least movement (F,) along these."""

    def cut(self, missed: Floats, offsets: Floats) -> Leg:
        """Return the leg with a cut added: with the hips moved by `offsets` (F, 3), it needs `missed` (F, 3) more."""
        size = lengths_of(missed)
        frames = size > INSIDE * self.reach
        ways = np.where(frames[:, None], missed, 0.0) / np.where(frames, size, 1.0)[:, None]
        least = (ways * offsets).sum(axis=1) + size
        return self.eased(frames)._replace(cuts=(*self.cuts, (ways, least)))

    def eased(self, frames: Bools) -> Leg:
        """Return the leg with a knee that may bend otherwise than recorded on some frames."""
        stance = self.stance.copy()
        stance[:, frames] = [[0.0], [np.inf]]
        return self._replace(stance=stance)

    def short(self, offsets: Floats) -> Floats:
        """Return how far (F,) the leg is from reaching its foot with the hips moved; zero where it needn't reach."""
        return np.asarray(np.where(self.held, np.maximum(self.distances(offsets) - self.reach, 0.0), 0.0))

    def distances(self, offsets: Floats) -> Floats:
        """Return the distances (F,) from root to foot with the hips moved."""
        return lengths_of(self.ends - self.roots - offsets)

    def is_content(self, offsets: Floats) -> bool:
        """Return whether the leg reaches its foot, and its knee is bent as recorded, with the hips moved."""
        (least, most), distances = self.stance, self.distances(offsets)
        return not (self.cuts or self.short(offsets).any() or (distances < least).any() or (distances > most).any())


class Help(NamedTuple):
    """A movement of the hips."""

    offsets: Floats
    """(F, 3) how far the hips move."""
    search: Floats
    """(2, R, 3, F) state of the search, for continuing it: the movement in each of R regions, and its scaled dual."""


def help_reach(legs: Sequence[Leg], cap: float, smooth: float, before: Help | None) -> Help:
    """Move the hips so that legs reach.

    Args:
        legs: the legs, on the same F frames.
        cap: the largest movement allowed, however short a leg is.
        smooth: frames over which a movement begins and ends, approximately.
        before: the result for the same legs with fewer cuts; None if there is none.
    """
    count = len(legs[0].held)
    before = before or Help(np.zeros((count, 3)), np.zeros((2, 0, 3, count)))
    if all(leg.is_content(before.offsets) for leg in legs):
        return before
    size = max(leg.reach for leg in legs)
    (middles, radii), (ways, least) = _shells(legs, cap, INSIDE * size), _sides(legs, cap, INSIDE * size)
    first, known = len(radii), before.search.shape[1]
    near, rest = np.zeros((2, first + len(least), 3, count))
    near[known:] = before.offsets.T
    near[:known], rest[:known] = before.search
    pull = PULL * max(smooth, 1.0) ** 2
    rate = (2.0 - 2.0 * np.cos(np.pi * np.arange(count) / count)) ** 2 * smooth**4
    smoothen = _smoothing(pull / (1.0 + rate + pull * len(near)))
    for _ in range(PASSES):
        offsets = smoothen((near - rest).sum(axis=0))
        last = near
        rest = rest + BEYOND * offsets + (1.0 - BEYOND) * last
        # Project each movement onto its shell, or onto the side that its cut leaves.
        away = rest[:first] - middles
        far = np.maximum(np.sqrt((away * away).sum(axis=1)), 1e-300)
        missed = np.maximum(least - (ways * rest[first:]).sum(axis=1), 0.0)
        within = middles + away * (np.clip(far, radii[:, 0], radii[:, 1]) / far)[:, None]
        near = np.concatenate([within, rest[first:] + missed[:, None] * ways])
        rest -= near
        if max(np.abs(near - offsets).max(), np.abs(near - last).max()) < 0.5 * INSIDE * size:
            break
    size = np.maximum(np.sqrt((offsets * offsets).sum(axis=0)), 1e-300)
    return Help((offsets * np.minimum(1.0, cap / size)).T, np.stack([near, rest]))


def _shells(legs: Sequence[Leg], cap: float, inside: float) -> tuple[Floats, Floats]:
    """Return R times where the hips may be: within the cap, or so that a leg reaches with its knee as recorded.

    Returns:
        Centers (R, 3, F) of shells, and their inner and outer radii (R, 2, F); a ball has an inner radius of zero.
    """
    still = np.zeros(len(legs[0].held))
    middles, radii = [np.zeros((3, len(still)))], [np.stack([still, still + cap])]
    for leg in (leg for leg in legs if leg.held.any()):
        ways = leg.ends - leg.roots
        far = lengths_of(ways)
        least, most = leg.stance
        # Extend a shell beyond the cap until the two touch: regions that don't meet would use up all passes.
        outer = np.maximum(np.minimum(np.where(leg.held, leg.reach - inside, np.inf), most), far - cap)
        middles.append(ways.T)
        radii.append(np.stack([np.minimum(np.minimum(least, outer), far + cap), outer]))
    return np.stack(middles), np.stack(radii)


def _sides(legs: Sequence[Leg], cap: float, inside: float) -> tuple[Floats, Floats]:
    """Return unit vectors (R, 3, F) for R cuts, zero where a cut doesn't apply, and the least movement (R, F) along."""
    # Keep the order in which cuts were made, so that the state of earlier ones stays at its indices.
    rounds = zip_longest(*(leg.cuts for leg in legs))
    cuts = [cut for several in rounds for cut in several if cut is not None and cut[0].any()]
    ways = np.array([own.T for own, _least in cuts]).reshape(-1, 3, len(legs[0].held))
    least = np.array([own for _ways, own in cuts]).reshape(-1, len(legs[0].held))
    return ways, np.where(ways.any(axis=1), np.minimum(least + inside, cap), 0.0)


def _smoothing(shares: Floats) -> Callable[[Floats], Floats]:
    """Return a function that scales each cosine wave of values (n, F) by its share (F,): forward and inverse transform.

    The cosine transform is a Fourier transform of the same length: of even values forwards, then odd ones backwards.
    """
    count = len(shares)
    order = np.concatenate([np.arange(0, count, 2), np.arange(1, count, 2)[::-1]])
    back = np.argsort(order)
    waves = np.arange(count // 2 + 1)
    twist = np.exp(-0.5j * np.pi * waves / count)
    own, others = shares[waves], shares[-waves]

    def smoothen(values: Floats) -> Floats:
        found = np.fft.rfft(values[:, order]) * twist
        kept = own * found.real + 1j * (others * found.imag)
        return np.asarray(np.fft.irfft(kept * twist.conj(), count)[:, back])

    return smoothen
