"""Compute the channels of targets and poles that are snapped to the poses of their limbs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from bpy.types import Object, PoseBone, ViewLayer

from ..anatomy import sides
from ..anatomy.figure import Figure
from ..anatomy.limbs import extremity_of
from ..chains import new_chain
from ..chains.current_pose import Limb, straight
from ..chains.current_pose import target_of as limb_target
from ..core import channels
from ..core.channels import Row
from ..core.goals import Goal
from ..core.settings import ROLES, chain_of
from ..core.skeleton import Skeleton, inverse, moved
from ..core.translation.sentences import UserError
from ..live.reports import NEAR
from ..rig.plan.chain import bending_bones, chain_bones, end_axes, end_of, shares_bones, turning_end
from ..rig.plan.limits import hinge_of
from ..rig.plan.order import in_order
from ..rig.plan.presence import Presence, why_absent
from ..rig.plan.watch import Settings
from ..rig.read.orientation import target_rotations
from ..solve.maths.products import applied, determinants, times
from ..solve.problem import Floats
from . import places
from .limb_frames import Sampled, Sampler
from .movable import pole_of, target_of, why_lacking


class Poles(Enum):
    """How poles are placed."""

    MATCH = "They go where the limb bends in the pose"
    TWIST = "They go where the root bone points with its bend side"
    FOOT = "They go where the toes point"
    KEEP = "They are left alone"


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
    tips: Sequence[PoseBone]
    chains: Sequence[Chain]
    goals: Sequence[Goal]
    sampler: Sampler
    skeleton: Skeleton
    shown: bool
    poles: Poles

    @classmethod
    def of(
        cls,
        view_layer: ViewLayer,
        ob: Object,
        tips: Sequence[PoseBone],
        shown: bool,
        poles: Poles,
        skeleton: Skeleton | None = None,
    ) -> Snap:
        """Collect chains and their goals, and check that they can be snapped; `skeleton`: of the armature, if known.

        Raises:
            UserError: they can't; the message says why.
        """
        for tip in tips:
            if reason := new_chain.why_unusable(tip):
                raise UserError(reason)
        presence = Presence(view_layer)
        for tip in tips:
            for role in ROLES[:1] if poles is Poles.KEEP else ROLES:
                goal = getattr(chain_of(tip), role)
                if goal is not None and (reason := why_absent(goal, presence)):
                    raise UserError(reason)
        new_chain.check_world(ob, ob.evaluated_get(view_layer.depsgraph).matrix_world)
        skeleton, figure = skeleton or Skeleton.of(ob), Figure.of(ob) if poles is Poles.FOOT else None
        goals: list[Goal] = []
        chains = []
        for tip in tips:
            found = _goals(tip, poles)
            row = [ob.pose.bones.find(bone.name) for bone in chain_bones(tip)]
            foot = None if figure is None else _foot(skeleton, figure, row)
            end, turning = end_of(tip), turning_end(tip)
            chains.append(
                Chain(
                    tip.name,
                    row,
                    end=None if end is None else ob.pose.bones.find(end.name),
                    turning=row[-1] if turning is None else ob.pose.bones.find(turning.name),
                    end_axes=end_axes(tip),
                    target=len(goals),
                    pole=len(goals) + 1 if len(found) > 1 else None,
                    foot=foot,
                    is_soft=chain_of(tip).out_of_reach == "EXTEND" and not shares_bones(tip),
                    bends_to_tip=len(row) == 3 and bending_bones(tip)[-1] != tip and _is_one_sided(tip),
                )
            )
            goals += found
        more = {bone for chain in chains for bone in (chain.end, chain.foot and chain.foot[0]) if bone is not None}
        sampler = Sampler.of(ob, tips, goals, shown, more)
        return cls(ob, tips, chains, goals, sampler, skeleton, shown, poles)

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
                is_twist = self.poles is Poles.TWIST
                hinges = places.hinges_of(limbs, side) if is_twist else self._foot_hinges(sampled, chain)
                knee = hinge_of(self.ob.pose.bones[chain.tip])
                pole = places.poles(limbs, side, own.pole_angle[:, c], distance, hinges, folds=folds, hinge=knee)
                stays = np.asarray(~np.isfinite(pole).all(axis=1))  # a chain scaled to zero has no bend
                if self.shown and chain_of(self.ob.pose.bones[chain.tip]).enabled:
                    # A solved limb that is stretched out shows no bend: keep the pole, which decides it.
                    stays = stays | straight(limbs.joints)
                pole = moved(sampled.world, pole)
                wanted[:, chain.pole] = np.where(stays[:, None], wanted[:, chain.pole], pole)
        return rows_of(self.goals, sampled, wanted, turns), wanted

    def held(self, sampled: Sampled, wanted: Floats) -> set[str]:
        """Return the names of goals in use that are not at the positions (1, g, 3) they were moved to."""
        found = set()
        gaps = applied(
            np.broadcast_to(inverse(sampled.world)[:, None, :3, :3], (*wanted.shape, 3)),
            sampled.goals[:, :, :3, 3] - wanted,
        )
        for chain in self.chains:
            pole = chain.pole if chain_of(self.ob.pose.bones[chain.tip]).use_pole else None
            for g in (chain.target, pole):
                if g is not None and np.linalg.norm(gaps[0, g]) > NEAR * self.limbs(sampled, chain).length[0]:
                    found.add(self.goals[g].name)
        return found

    def _foot_hinges(self, sampled: Sampled, chain: Chain) -> Floats | None:
        """Return the axes (F, 3) across the foot of a chain; None if its pole does not follow a foot."""
        if chain.foot is None:
            return None
        foot, axis = chain.foot
        turned = sampled.poses[:, self.sampler.rows([foot])[0], :3, :3]
        return applied(turned, np.broadcast_to(axis, (len(turned), 3)))


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
            turned[:, :, 0] *= np.where(determinants(own[:, :3, :3]) < 0.0, -1.0, 1.0)[:, None]  # see `orientation`
            basis[:, :3, :3] = times(inverse(own)[:, :3, :3], turned)
        usable = np.isfinite(basis).all(axis=(1, 2))
        rows[:, g] = goal.row()
        rows[usable, g] = goal.rows(basis[usable])
        now[:, g] = times(own, basis)
    return rows


def _is_one_sided(tip: PoseBone) -> bool:
    """Whether a chain always bends to the same side."""
    return any(chain_of(tip).bend_side) and not chain_of(tip).bends_both_ways


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


def _goals(tip: PoseBone, poles: Poles) -> list[Goal]:
    """Return the goals of a chain to snap: its target, then its pole unless poles are kept.

    Raises:
        UserError: there is no target, or a goal can't be moved.
    """
    target, pole = target_of(tip), None if poles is Poles.KEEP else pole_of(tip)
    if target is None:
        raise UserError(why_lacking(tip))
    found = [target] if pole is None else [target, pole]
    for goal in found:
        goal.check_movable()
    return found
