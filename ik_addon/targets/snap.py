"""Snap targets and poles to the poses of their limbs, on a frame or on many, so that solving moves nothing.

Frames are sampled as a bake samples them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, partial

import numpy as np
from bpy.types import Context, Depsgraph, Object, PoseBone, ViewLayer

from ..anatomy import sides
from ..anatomy.figure import Figure
from ..anatomy.limbs import extremity_of
from ..bake.sampling import Held, follow_live, may_be_foretold, proofs, stepped
from ..bake.scene import over_frames, time_scale
from ..chains import new_chain, removal
from ..chains.current_pose import Limb, read_poses, shifts, straight
from ..chains.current_pose import target_of as limb_target
from ..chains.profile import exceeded
from ..core import channels, fk_store, keyframes
from ..core.channels import Row
from ..core.goals import Goal
from ..core.names import chain_name
from ..core.report import percent
from ..core.settings import chain_of, object_of
from ..core.skeleton import Skeleton, inverse, matrix_array, moved
from ..core.steps import finished, part
from ..core.transforms import continuous
from ..core.translation.sentences import UserError, quoted, say
from ..live import registry, solving
from ..live.reports import NEAR
from ..rig.plan.chain import bending_bones, chain_bones, end_axes, end_of, posed_bones, shares_bones, tips, turning_end
from ..rig.plan.facts import Settings
from ..rig.plan.inputs import Inputs, Numbers
from ..rig.plan.limits import hinge_of, is_free
from ..rig.plan.order import in_order
from ..rig.plan.plan import Plan
from ..rig.plan.presence import Presence, why_absent
from ..rig.read import fcurves
from ..rig.read.fcurves import NOISE
from ..rig.read.sample import Frames, sample_of, target_rotations
from ..rig.write.waves import pose
from ..solve.maths.products import applied, determinants, times
from ..solve.problem import Floats, Ints
from . import places
from .autokey import auto_key, left_out, reverting
from .movable import channels_of, goals_of, key_goals, parents_of, target_of, why_lacking

AWAY = 0.02
"""A joint that is farther than this from the record, in lengths of its chain, is reported."""
BATCH = 1000
"""Frames per batch: enough for speed, few enough that a user can cancel."""

_beyond: set[tuple[int, str]] = set()
"""Chains that `goes_beyond_limits` names: `session_uid` of the armature object, and tip bone."""


def batches(frames: int) -> Iterator[slice]:
    """Split a number of frames into slices."""
    yield from (slice(start, min(start + BATCH, frames)) for start in range(0, frames, BATCH))


@dataclass(frozen=True)
class Sampled:
    """Samples of k bones of an armature, C of its chains, and their g goals, on F frames."""

    world: Floats
    """(F, 4, 4) world matrix of the armature object."""
    poses: Floats
    """(F, k, 4, 4) pose matrices in armature space."""
    settings: Floats
    """(F, C, S) `Settings` of the chains."""
    goals: Floats
    """(F, g, 4, 4) world matrices."""
    spaces: Floats
    """(F, g, 4, 4) matrices from a goal's own channels to world space; NaN where there is none."""
    parents: Ints
    """(F, g) index of the goal that a goal follows; -1 for none."""

    def is_same(self, other: Sampled) -> bool:
        """Whether two samples agree within single-precision noise."""
        pairs = [(own, vars(other)[name]) for name, own in vars(self).items()]
        return all(
            np.allclose(a, b, rtol=NOISE, atol=NOISE * max(1.0, float(np.abs(np.nan_to_num(a)).max(initial=0.0))))
            for a, b in pairs
            if np.isfinite(a).all() or np.isfinite(b).all()
        )

    def frames(self, chosen: slice | Sequence[int]) -> Sampled:
        """Return the samples of the chosen frames."""
        return Sampled(**{name: value[chosen] for name, value in vars(self).items()})

    @classmethod
    def stacked(cls, samples: Sequence[Sampled]) -> Sampled:
        """Join samples of consecutive frames into one."""
        return cls(**{name: np.concatenate([vars(sample)[name] for sample in samples]) for name in vars(samples[0])})


@dataclass(frozen=True)
class Sampler:
    """Samples chains of one armature with their goals."""

    ob: Object
    tips: Sequence[str]
    """Tip bones of C chains."""
    goals: Sequence[Goal]
    bones: Ints
    """(k,) ascending indices of all bones of the chains, and of any extra bones requested."""
    shown: bool
    """Sample the pose shown in the viewport instead of the FK pose."""

    @classmethod
    def of(
        cls, ob: Object, tips: Sequence[PoseBone], goals: Sequence[Goal], shown: bool, more: Collection[int] = ()
    ) -> Sampler:
        """Build a sampler for the chains of an armature object, given their tip bones, goals and extra bones."""
        bones = {ob.pose.bones.find(bone.name) for tip in tips for bone in posed_bones(tip)}.union(more)
        return cls(ob, [tip.name for tip in tips], goals, np.array(sorted(bones), dtype=np.int64), shown)

    def rows(self, bones: Sequence[int]) -> Ints:
        """Return the positions of bones within `self.bones`."""
        return np.searchsorted(self.bones, bones)

    def here(self, depsgraph: Depsgraph) -> Sampled:
        """Sample the frame at which a depsgraph is evaluated (F = 1)."""
        seen = self.ob.evaluated_get(depsgraph)
        goals = np.array([matrix_array(goal.world(depsgraph)) for goal in self.goals])
        held = [goal.ob.evaluated_get(depsgraph) for goal in self.goals]
        holders = [own.pose.bones[g.bone] if g.is_bone else own for own, g in zip(held, self.goals, strict=True)]
        own = np.array([matrix_array(holder.matrix_basis) for holder in holders])
        chains = [chain_of(seen.pose.bones[tip]) for tip in self.tips]
        settings = [[getattr(chain, name) for name in Settings._fields] for chain in chains]
        return Sampled(
            world=matrix_array(seen.matrix_world)[None],
            poses=channels.read_pose(seen, self.bones)[None],
            settings=np.array(settings).reshape(1, -1, len(Settings._fields)),
            goals=goals[None],
            spaces=times(goals, inverse(own))[None],
            parents=self._parents(held)[None],
        )

    def sample(self, view_layer: ViewLayer, frames: Sequence[int]) -> Generator[float, None, Sampled]:
        """Sample F frames; yields progress (0 to 1). The caller must pause live solving unless `is_solved`."""
        stored = (channels.read if self.shown else fk_store.held)(self.ob, self.bones)
        held = None if self.is_solved else Held(self.ob, self.bones, stored)

        step, foretell = partial(stepped, view_layer, read=self.here, held=held), self.foretelling(view_layer, stored)
        chosen = [frames[i] for i in proofs(len(frames))]
        foretold = foretell(chosen) if may_be_foretold(view_layer.id_data) else None
        if foretold is None or not foretold.is_same(Sampled.stacked(finished(step(chosen)))):
            return Sampled.stacked((yield from step(frames)))
        found = []
        for some in batches(len(frames)):
            sampled = foretell(frames[some])
            assert sampled is not None, "what decides is the same on all frames"
            found.append(sampled)
            yield some.stop / len(frames)
        return Sampled.stacked(found)

    def proof(self, view_layer: ViewLayer, frames: Sequence[int]) -> Iterator[tuple[int, Sampled]]:
        """Yield the indices of some frames, each with its sample (F = 1) as keys that were written play."""
        chosen = proofs(len(frames))
        found = finished(stepped(view_layer, [frames[i] for i in chosen], self.here))
        yield from zip(chosen, found, strict=True)

    @cached_property
    def is_solved(self) -> bool:
        """Whether live solving affects anything that is sampled."""
        if not object_of(self.ob).live:
            return False
        needed = {self.ob.pose.bones[bone] for bone in self.bones.tolist()}
        spots = (spot for goal in self.goals for spot in (goal, *parents_of(goal.ob, goal.bone)))
        needed |= {spot.holder for spot in spots if spot.ob == self.ob and spot.is_bone}
        needed |= {above for bone in needed for above in bone.parent_recursive}
        others = (tip for tip in tips(self.ob) if chain_of(tip).enabled and (self.shown or tip.name not in self.tips))
        return any(not needed.isdisjoint(posed_bones(tip)) for tip in others)

    @property
    def alone(self) -> AbstractContextManager[None]:
        """A context in which live solving rests, unless it affects what is sampled."""
        return nullcontext() if self.is_solved else registry.paused(self.ob)

    def foretold(self, view_layer: ViewLayer, frames: Floats, stored: Row) -> Sampled | None:
        """Return samples of frames (F,) from F-curves and from the unanimated channels (m, 17) of all bones.

        None if anything else affects the motion.
        """
        is_known = fcurves.decide_alone(view_layer.id_data)
        return self.foretelling(view_layer, stored[self.bones])(frames.tolist()) if is_known else None

    def foretelling(self, view_layer: ViewLayer, stored: Row) -> Callable[[Sequence[int]], Sampled | None]:
        """Return what samples frames from F-curves, or returns None if anything else affects the motion."""
        depsgraph, own = view_layer.depsgraph, [(goal.ob, goal.bone) for goal in self.goals]
        presence = Presence(view_layer, depsgraph)
        inputs = Inputs.of(self.ob, presence, Skeleton.of(self.ob), self.bones, self.bones.tolist(), self.tips, own)
        plan = Plan.of(self.ob, depsgraph) if self.is_solved else None
        is_moved = follow_live(self.ob, inputs, view_layer.id_data)
        is_moved |= bool(Plan.of(self.ob, depsgraph, self.tips).watch)
        is_moved |= plan is not None and (bool(plan.watch or plan.leaders) or plan.asks)

        def foretell(frames: Sequence[int]) -> Sampled | None:
            try:
                numbers = None if is_moved else fcurves.numbers_at(inputs, stored, frames)
                if numbers is not None and plan is not None:
                    self._solve(plan, inputs, numbers, frames)
            except fcurves.NotDetermined:
                return None
            return None if numbers is None else self._sampled_of(Frames(inputs, numbers), len(frames))

        return foretell

    def _solve(self, plan: Plan, inputs: Inputs, numbers: Numbers, frames: Sequence[int]) -> None:
        """Fill the solved channels of the bones of live chains into the numbers (F, w) of frames."""
        fk = fcurves.numbers_at(plan.numbers, fk_store.held(self.ob, plan.live), frames)
        solved = pose(self.ob, plan, sample_of(plan, Frames(plan.numbers, fk))).channels
        rows = numbers[:, inputs.rows].reshape(len(numbers), -1, channels.WIDTH)
        for i, bone in enumerate(inputs.armatures[0].indices.tolist()):  # the chains' armature comes first
            if bone in plan.rows:
                rows[:, i] = solved[:, plan.rows[bone]]
        numbers[:, inputs.rows] = rows.reshape(len(numbers), -1)

    def _sampled_of(self, posed: Frames, count: int) -> Sampled:
        """Compute samples of frames with our own forward kinematics."""

        def of_all(values: Floats) -> Floats:
            return np.asarray(np.broadcast_to(values, (count, *values.shape[1:])))

        own = posed.inputs.others
        goals = [of_all(posed.at(spot)) for spot in own]
        spaces = [times(goal, of_all(inverse(posed.basis_at(spot)))) for goal, spot in zip(goals, own, strict=True)]
        return Sampled(
            world=of_all(posed.world(posed.inputs.own)),
            poses=of_all(posed.poses[:, posed.inputs.live]),
            settings=of_all(posed.settings),
            goals=np.stack(goals, axis=1) if goals else np.empty((count, 0, 4, 4)),
            spaces=np.stack(spaces, axis=1) if spaces else np.empty((count, 0, 4, 4)),
            parents=np.broadcast_to(self._parents([goal.ob for goal in self.goals]), (count, len(goals))),
        )

    def _parents(self, seen: Sequence[Object]) -> Ints:
        """Return the index (g,) of the nearest goal that each goal follows, or -1; `seen` has the goals' objects."""
        places = {(goal.ob.name_full, goal.bone): g for g, goal in enumerate(self.goals)}
        found = np.full(len(self.goals), -1, dtype=np.int64)
        for g, (goal, ob) in enumerate(zip(self.goals, seen, strict=True)):
            own = (places.get((above.ob.name_full, above.bone), -1) for above in parents_of(ob, goal.bone))
            found[g] = next((place for place in own if place >= 0 and place != g), -1)
        return found


# ---- the channels of targets and poles that are snapped to the poses of their limbs


class Poles(Enum):
    """How poles are placed."""

    MATCH = "They go where the limb bends in the pose"
    TWIST = "They go where the root bone points with its bend side"
    FOOT = "They go where the toes point"
    KEEP = "They are left alone"
    USED = "As MATCH, but those that no chain bends to now are left alone"


@dataclass(frozen=True)
class Chain:
    """One chain whose goals are snapped."""

    tip: str
    bones: list[int]
    end: int | None
    """The end bone, at whose head the limb ends; None: the limb ends at the tail of the tip bone."""
    turning: int
    """The bone whose orientation the target matches."""
    end_axes: Floats
    """(3, 3) its axes in those of the target, see `chain.end_axes`."""
    target: int
    """Index of the target in `Snap.goals`."""
    pole: int | None
    foot: tuple[int, Floats] | None
    """A foot and the axis (3,) in its local space about which the leg bends; None if the pole does not follow it."""
    is_soft: bool
    """Its softness holds it back before it is straight: it is in no tree, and neither pushes nor stretches."""
    bends_to_tip: bool
    """The tip bone takes an orientation, and the pole bends the knee of the two bones before it."""


@dataclass(frozen=True)
class Snap:
    """The chains whose goals are snapped, and the pose they are snapped to."""

    ob: Object
    chains: Sequence[Chain]
    goals: Sequence[Goal]
    sampler: Sampler
    skeleton: Skeleton
    poles: Poles

    @classmethod
    def of(cls, view_layer: ViewLayer, ob: Object, tips: Sequence[PoseBone], shown: bool, poles: Poles) -> Snap:
        """Collect chains and their goals, and check that they can be snapped.

        Raises:
            UserError: they can't; the message says why.
        """
        presence = Presence(view_layer)
        for tip in tips:
            absent = (why_absent(goal.ob, presence) for goal in goals_to_snap(tip, poles))
            if reason := new_chain.why_unusable(tip) or next(filter(None, absent), ""):
                raise UserError(reason)
        new_chain.check_world(ob, ob.evaluated_get(view_layer.depsgraph).matrix_world)
        skeleton, figure = Skeleton.of(ob), Figure.of(ob) if poles is Poles.FOOT else None
        goals: list[Goal] = []
        chains = []
        for tip in tips:
            found = goals_to_snap(tip, poles)
            row = [ob.pose.bones.find(bone.name) for bone in chain_bones(tip)]
            chain, end, turning = chain_of(tip), end_of(tip), turning_end(tip)
            is_one_sided = any(chain.bend_side) and not chain.bends_both_ways
            chains.append(
                Chain(
                    tip.name,
                    row,
                    end=None if end is None else ob.pose.bones.find(end.name),
                    turning=row[-1] if turning is None else ob.pose.bones.find(turning.name),
                    end_axes=end_axes(tip),
                    target=len(goals),
                    pole=len(goals) + 1 if len(found) > 1 else None,
                    foot=None if figure is None else _foot(skeleton, figure, row),
                    is_soft=chain.out_of_reach == "EXTEND" and not shares_bones(tip),
                    bends_to_tip=len(row) == 3 and bending_bones(tip)[-1] != tip and is_one_sided,
                )
            )
            goals += found
        more = {bone for chain in chains for bone in (chain.end, chain.foot and chain.foot[0]) if bone is not None}
        return cls(ob, chains, goals, Sampler.of(ob, tips, goals, shown, more), skeleton, poles)

    def limbs(self, sampled: Sampled, chain: Chain) -> Limb:
        """Return the limb of a chain on F frames."""
        poses = sampled.poses[:, self.sampler.rows(chain.bones)]
        if chain.end is None:
            return Limb.posed(poses, poses[:, -1, :3, 3] + poses[:, -1, :3, 1] * self.skeleton.lengths[chain.bones[-1]])
        return Limb.posed(poses, sampled.poses[:, self.sampler.rows([chain.end])[0], :3, 3])

    def knee(self, sampled: Sampled, chain: Chain) -> Limb:
        """Return the part of a limb that its pole bends, on F frames: two bones, if the tip takes an orientation."""
        if chain.bends_to_tip:
            chain = replace(chain, bones=chain.bones[:-1], end=chain.bones[-1])
        return self.limbs(sampled, chain)

    def distances(self, sampled: Sampled) -> list[float]:
        """Return how far from its limb the pole of each chain belongs: its distance on the one frame sampled.

        A pole too close to its limb gets one chain length instead.
        """
        found = []
        for chain in self.chains:
            limbs = self.limbs(sampled, chain)
            length = float(limbs.length[0])
            pole = sampled.goals[:, chain.target if chain.pole is None else chain.pole, :3, 3]
            off = float(places.distances(limbs, moved(inverse(sampled.world), pole))[0])
            found.append(off if off > places.NEAR * length else length)
        return found

    def distances_from(self, sampled: Sampled, found: Sampled) -> dict[str, Floats]:
        """Return by tip how far (F,) joints of chains are from where they were sampled, in chain lengths."""
        pairs = ((chain.tip, self.limbs(sampled, chain), self.limbs(found, chain)) for chain in self.chains)
        return {
            tip: np.linalg.norm(new.joints - old.joints, axis=-1).max(axis=-1) / np.maximum(old.length, 1e-30)
            for tip, old, new in pairs
        }

    def rows(self, sampled: Sampled, distances: Sequence[float]) -> tuple[Row, Floats]:
        """Return the channels (F, g, 17) of the goals, and the positions (F, g, 3) in world space they should give."""
        wanted, turns, own = sampled.goals[:, :, :3, 3].copy(), {}, Settings.of(sampled.settings)
        for c, (chain, distance) in enumerate(zip(self.chains, distances, strict=True)):
            limbs = self.limbs(sampled, chain)
            softness = own.softness[:, c] if chain.is_soft else 0.0
            wanted[:, chain.target] = moved(sampled.world, limb_target(limbs, softness))
            limbs = self.knee(sampled, chain)
            if self.goals[chain.target].turns:
                turning = sampled.poses[:, self.sampler.rows([chain.turning])[0]]
                turns[chain.target] = target_rotations(sampled.world, turning, chain.end_axes)
            if chain.pole is not None:
                settings = chain_of(self.ob.pose.bones[chain.tip])
                side, folds = np.array(settings.bend_side), any(settings.folds)
                hinges = places.hinges_of(limbs, side) if self.poles is Poles.TWIST else None
                if chain.foot is not None:
                    foot, axis = chain.foot
                    turned = sampled.poses[:, self.sampler.rows([foot])[0], :3, :3]
                    hinges = applied(turned, np.broadcast_to(axis, (len(turned), 3)))
                knee = hinge_of(self.ob.pose.bones[chain.tip])
                pole = places.poles(limbs, side, own.pole_angle[:, c], distance, hinges, folds, knee)
                stays = np.asarray(~np.isfinite(pole).all(axis=1))  # a chain scaled to zero has no bend
                if self.sampler.shown and chain_of(self.ob.pose.bones[chain.tip]).enabled:
                    # A solved limb that is stretched out shows no bend: keep the pole, which decides it.
                    stays = stays | straight(limbs.joints)
                pole = moved(sampled.world, pole)
                wanted[:, chain.pole] = np.where(stays[:, None], wanted[:, chain.pole], pole)
        return rows_of(self.goals, sampled, wanted, turns), wanted

    def held(self, sampled: Sampled, wanted: Floats) -> set[str]:
        """Return the names of goals in use that are not at the positions (1, g, 3) they were moved to."""
        found = set()
        to_object = np.broadcast_to(inverse(sampled.world)[:, None, :3, :3], (*wanted.shape, 3))
        gaps = applied(to_object, sampled.goals[:, :, :3, 3] - wanted)
        for chain in self.chains:
            pole = chain.pole if chain_of(self.ob.pose.bones[chain.tip]).use_pole else None
            for g in (chain.target, pole):
                if g is not None and np.linalg.norm(gaps[0, g]) > NEAR * self.limbs(sampled, chain).length[0]:
                    found.add(self.goals[g].name)
        return found


def rows_of(goals: Sequence[Goal], sampled: Sampled, wanted: Floats, turns: Mapping[int, Floats]) -> Row:
    """Return channels (F, g, 17) that move goals to positions (F, g, 3) and rotations (F, 3, 3) in world space.

    `turns` has the rotations by index of goal; goals that follow others move with these.
    """
    count = len(sampled.world)
    rows = np.empty((count, len(goals), channels.WIDTH), dtype=np.float32)
    now = sampled.goals.copy()
    follow = {g: {*sampled.parents[:, g].tolist()} - {-1} for g in range(len(goals))}
    for g in itertools.chain(*in_order(follow, follow)):
        goal, own = goals[g], sampled.spaces[:, g]
        basis = times(inverse(own), sampled.goals[:, g])
        by = sampled.parents[:, g]
        carrying = times(now[np.arange(count), by], inverse(sampled.goals[np.arange(count), by]))
        own = np.where((by >= 0)[:, None, None], times(carrying, own), own)
        basis[:, :3, 3] = moved(inverse(own), wanted[:, g])
        if goal.turns and g in turns:
            size = np.linalg.norm(sampled.goals[:, g, :3, :3], axis=1)
            turned = turns[g] * size[:, None, :]
            # Solvers are right-handed.
            turned[:, :, 0] *= np.where(determinants(own[:, :3, :3]) < 0.0, -1.0, 1.0)[:, None]
            basis[:, :3, :3] = times(inverse(own)[:, :3, :3], turned)
        usable = np.isfinite(basis).all(axis=(1, 2))
        rows[:, g] = goal.row()
        rows[usable, g] = goal.rows(basis[usable])
        now[:, g] = times(own, basis)
    return rows


def _foot(skeleton: Skeleton, figure: Figure, bones: list[int]) -> tuple[int, Floats] | None:
    """Return the foot of a leg, and the axis (3,) in its local space about which the leg bends to where its toes point.

    The axis across the foot is used because toes may point along the leg, as on a lifted foot, and then show no side.
    """
    row = [figure.names.index(skeleton.names[bone]) for bone in bones]
    foot, toes = extremity_of(figure, row), sides.toes_of(figure, row)
    if foot is None or toes is None or not sides.is_leg(figure, row):
        return None
    index = skeleton.names.index(figure.names[foot])
    hinge = np.cross(figure.heads[foot] - figure.heads[row[0]], toes)
    return index, np.asarray(skeleton.rest[index, :3, :3].T.dot(hinge))


def goals_to_snap(tip: PoseBone, poles: Poles) -> list[Goal]:
    """Return the goals of a chain to snap: its target, then its pole unless that is left alone.

    Raises:
        UserError: there is no target, or a goal can't be moved.
    """
    if reason := why_lacking(tip):
        raise UserError(reason)
    is_left = poles is Poles.KEEP or (poles is Poles.USED and not chain_of(tip).use_pole)
    found = goals_of(tip)[: 1 if is_left else 2]
    for goal in found:
        goal.check_movable()
    return found


# ---- snapping


def is_solved(tip: PoseBone) -> bool:
    """Whether the shown pose of a chain is its solved pose, determined by its target."""
    chain, ob = chain_of(tip), tip.id_data
    if not chain.enabled or chain.influence == 0.0:
        return False
    if object_of(ob).live:
        return True
    own = {ob.pose.bones.find(bone.name) for bone in posed_bones(tip)}
    return not own.isdisjoint(fk_store.stored_bones(ob))


def snap_here(
    context: Context, tips: Sequence[PoseBone], *, shown: bool = False, poles: Poles = Poles.MATCH, keyed: bool = True
) -> list[str]:
    """Move targets and poles to match the pose of the current frame, so that solving changes nothing.

    Args:
        context: gives the scene and the view layer.
        tips: the tip bones of the chains, one or more of one armature.
        shown: match the pose shown instead of the FK pose.
        poles: how poles are placed.
        keyed: key the goals if auto keying is on, and report those that return to their keys on the next frame change.

    Returns:
        Sentences about goals that missed their place, and about chains that solving moves anyway.

    Raises:
        UserError: the goals can't be snapped; nothing has changed.
    """
    view_layer, ob = context.view_layer, tips[0].id_data
    snap = Snap.of(view_layer, ob, tips, shown, poles)
    moved: dict[str, float] = {}
    poses = read_poses(ob, view_layer.depsgraph)
    with ExitStack() as undo:
        for goal in snap.goals:
            undo.callback(goal.set_row, goal.row())
        with in_fk(context, ob, [] if shown else tips):
            sampled = snap.sampler.here(view_layer.depsgraph)
            rows, wanted = snap.rows(sampled, snap.distances(sampled))
            for goal, row in zip(snap.goals, rows[0], strict=True):
                goal.set_row(row)
            view_layer.update()
            held = snap.held(snap.sampler.here(view_layer.depsgraph), wanted)
            if not shown:
                moved = _moved_by_solving(context, ob, tips)
        undo.pop_all()
    view_layer.update()
    if shown and object_of(ob).live:
        moved = shifts(ob, tips, poses, read_poses(ob, view_layer.depsgraph))
    remarks = remarks_on(held)
    moves = (
        "Solving moves the chain on '{tip}' by {distance} of its length anyway, because of its pole, "
        "softness, limits or another chain"
    )
    remarks += [
        say(moves, tip=chain_name(ob.pose.bones[tip]), distance=percent(distance))
        for tip, distance in moved.items()
        if distance > NEAR and not held
    ]
    if keyed:
        for goal in snap.goals:
            auto_key(context, goal.holder, goal.fields)
        remarks += left_out(context, [goal.holder for goal in snap.goals])
        remarks += reverting(context, [(goal.holder, goal.fields) for goal in snap.goals])
    return sorted(set(remarks))


def key_range(
    context: Context, tips: Sequence[PoseBone], frames: Sequence[int], shown: bool = False, poles: Poles = Poles.MATCH
) -> Generator[float, None, list[str]]:
    """Key targets and poles to match the pose on a range of frames; yields progress (0 to 1).

    The first time, an animated hand or foot starts to take the orientation of its target. Closing the generator undoes
    everything.

    Args:
        context: gives the scene and the view layer.
        tips: the tip bones of the chains, one or more of one armature.
        frames: ascending; keys from the first to the last are replaced.
        shown: match the pose shown instead of the FK pose.
        poles: how poles are placed.

    Returns:
        Sentences about goals that missed their place, and about live chains that differ from the pose nevertheless.

    Raises:
        UserError: the goals can't be keyed; nothing has changed.
    """
    view_layer, scene, ob = context.view_layer, context.scene, tips[0].id_data
    scale = time_scale(scene)
    with over_frames(view_layer, ob) as (undo, before):
        for tip in tips:
            target = target_of(tip)
            if target is not None and not target.is_keyed and new_chain.waiting_end(tip) is not None:
                undo.callback(setattr, chain_of(tip), "use_end_rotation", False)
                chain_of(tip).use_end_rotation = True
        snap = Snap.of(view_layer, ob, tips, shown, poles)
        for goal in snap.goals:
            keyframes.check(goal.ob, channels_of(goal, goal.row()[None]))
        with snap.sampler.alone:
            distances = snap.distances(snap.sampler.here(view_layer.depsgraph))
            with in_fk(context, ob, tips) if snap.sampler.is_solved and not shown else nullcontext():
                sampled = yield from part(snap.sampler.sample(view_layer, frames), 0.0, 0.7)
            parts = []
            for some in batches(len(frames)):
                parts.append(snap.rows(sampled.frames(some), distances))
                yield 0.7 + 0.2 * some.stop / len(frames)
            rows, wanted = (np.concatenate(own) for own in zip(*parts, strict=True))
            modes = [goal.holder.rotation_mode for goal in snap.goals]
            key_goals(snap.goals, continuous(rows, modes), scale * np.array(frames, dtype=np.float64), undo)
            yield 0.95
            held = set()
            for i, found in snap.sampler.proof(view_layer, frames):
                held |= snap.held(found, wanted[i : i + 1])
        away: dict[str, Floats] = {}
        if object_of(ob).live:
            found = yield from part(replace(snap.sampler, shown=True).sample(view_layer, frames), 0.96, 1.0)
            away = {tip: own for tip, own in snap.distances_from(sampled, found).items() if own.max() > AWAY}
        before.restore()
        for goal in snap.goals:
            goal.show_keys(scale * scene.frame_current_final)
    _beyond.difference_update(map(_key_of, tips))
    _beyond.update(_key_of(tip) for tip in tips if tip.name in away and exceeded(tip))
    if not (shown or object_of(ob).live):
        removal.restore_pose(ob, view_layer, list(tips))
    view_layer.update()
    off = (
        "On frame {frame}, the chain on '{tip}' is {distance} of its length away from the record, because of its "
        "limits, softness or pole"
    )
    return remarks_on(held) or [
        say(off, frame=frames[int(by.argmax())], tip=chain_name(ob.pose.bones[tip]), distance=percent(float(by.max())))
        for tip, by in away.items()
    ]


def goes_beyond_limits(tip: PoseBone) -> bool:
    """Whether snapping a range found a chain away from its record, which its limits forbid."""
    return _key_of(tip) in _beyond and chain_of(tip).use_limits and not all(map(is_free, chain_bones(tip)))


def _key_of(tip: PoseBone) -> tuple[int, str]:
    return tip.id_data.session_uid, tip.name


def remarks_on(held: set[str]) -> list[str]:
    """Return a sentence about the goals, by name, that are not at the places they were moved to; none if all are."""
    if not held:
        return []
    return [say("A constraint, driver or lock held these back from their places: {names}", names=quoted(sorted(held)))]


@contextmanager
def in_fk(context: Context, ob: Object, tips: Sequence[PoseBone]) -> Iterator[None]:
    """Disable chains temporarily to show their FK pose, while other chains are solved as usual."""
    enabled = {tip.name: chain_of(tip).enabled for tip in tips}
    if tips and not object_of(ob).live:
        removal.restore_pose(ob, context.view_layer, list(tips))
    try:
        for name in enabled:
            chain_of(ob.pose.bones[name]).enabled = False
        context.view_layer.update()
        yield
    finally:
        for name, on in enabled.items():
            if chain_of(ob.pose.bones[name]).enabled != on:
                chain_of(ob.pose.bones[name]).enabled = on


def _moved_by_solving(context: Context, ob: Object, tips: Sequence[PoseBone]) -> dict[str, float]:
    """Return the farthest that solving moves a joint of each disabled chain, in chain lengths, by tip bone."""
    view_layer = context.view_layer
    before = read_poses(ob, view_layer.depsgraph)
    everything = np.arange(len(ob.pose.bones))
    rows = channels.read(ob, everything)
    is_live = object_of(ob).live
    if is_live:
        for tip in tips:
            chain_of(tip).enabled = True
    else:
        solving.solve_now(ob, view_layer.depsgraph, [tip.name for tip in tips])
    view_layer.update()
    after = read_poses(ob, view_layer.depsgraph)
    if not is_live:  # live chains stay as they are, for Blender to evaluate them no more than once
        removal.restore_pose(ob, view_layer, list(tips))
        channels.write(ob, everything, rows)  # animated bones may have been posed without a key
        view_layer.update()
    return shifts(ob, tips, before, after)
