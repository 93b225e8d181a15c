"""The side to which a chain bends, found from its poses, animation, limits and anatomy.

A side is a vector in the rest space of the chain's root bone, across its first segment: the direction in which the
middle of the chain moves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

import numpy as np
from bpy.types import Depsgraph, Object, PoseBone

from ..anatomy import sides
from ..anatomy.figure import Figure
from ..core import channels, fk_store, transforms
from ..core.settings import chain_of
from ..core.skeleton import Skeleton, inverse, moved
from ..core.translation.sentences import UserError, marked
from ..rig.plan import limits
from ..rig.plan.chain import bending_bones, bending_end, chain_bones, end_of
from ..rig.read import fcurves
from ..solve.free.axes import hinge
from ..solve.maths.numbers import ONE
from ..solve.maths.products import lengths_of
from ..solve.problem import Floats, Ints
from .current_pose import Limb, read_poses

BENT = math.radians(2.0)
"""A chain whose joints bend by less than this in total shows no side."""
FAINTLY_BENT = 1e-3
"""Radians: bends as small as this count only if nothing else shows a side."""
CLEARLY_BENT = math.radians(20.0)
"""A knee or elbow that bends by less than this to the wrong side may be hyperextended."""
CLEARLY_BENT_AT_REST = math.radians(10.0)
ONE_SIDED = math.radians(10.0)
"""A joint whose limits allow this much more to one side than to the other is a hinge."""
FRAMES, MANY = 48, 20_000
"""Number of frames on which animation is sampled: to see its side, or its extremes."""


class Evidence(Enum):
    """What a bend side was found from, in words for the user."""

    REST = marked("its rest pose")
    POSE = marked("its current pose")
    ANIMATION = marked("its animation")
    LIMITS = marked("its IK limits")
    ANATOMY = marked("the anatomy of the character")
    ROLL = marked("only its bone roll")


class Found(NamedTuple):
    """How a chain bends."""

    side: Floats
    """(3,)"""
    evidence: Evidence
    folds: tuple[float, ...]
    """For each bone, root first, see `anatomy.sides`; empty if the chain bends evenly."""
    both_ways: bool
    """Whether it bends to all sides, as spines and tails do. The side then only applies where the chain is straight."""


def find(ob: Object, bones: Sequence[PoseBone], end: PoseBone | None, depsgraph: Depsgraph) -> Found:
    """Find the side of a chain.

    A slightly bent pose counts only if no stronger evidence contradicts it.

    Args:
        ob: the armature object.
        bones: the bones of the chain, root first.
        end: the bone at whose head the chain ends; None: it ends at the tail of its last bone.
        depsgraph: evaluates the current pose.
    """
    chain = _Chain.of(ob, bones, end)
    joints = chain.at_rest, chain.posed(ob, depsgraph), chain.animated(ob)
    known = chain.anatomy(chain.skeleton.rest)
    if known is None:
        known = chain.anatomy(read_poses(ob, depsgraph))  # as with rest poses in which nobody could stand
    side, evidence = _side_shown(chain, joints, known, bones)
    normal = np.cross(side, chain.first)
    shown = [own.dot(normal) for own in joints]
    shares = sides.folds_of(chain.figure, chain.row, shown) if chain.has_side else ()
    return Found(side, evidence, shares, not chain.has_side)


def _side_shown(
    chain: _Chain, joints: tuple[Floats, Floats, Floats], known: Floats | None, posed: Sequence[PoseBone]
) -> tuple[Floats, Evidence]:
    """Return the side (3,) that the bends (n, 3) of the joints show: at rest, in the current pose and in animation.

    `known` is the axis (3,) about which the chain bends by its anatomy; None if unknown.
    """
    rest, pose, moving = map(chain.bend, joints)
    if known is None and np.linalg.norm(pose) > CLEARLY_BENT and rest.dot(pose) < 0.0:
        rest = np.zeros(3)  # posed that way on purpose, and no anatomy says otherwise
    shown = (
        (rest, Evidence.REST, CLEARLY_BENT_AT_REST, (known,)),
        (pose, Evidence.POSE, CLEARLY_BENT, (moving, known)),
        (moving, Evidence.ANIMATION, CLEARLY_BENT, (known,)),
    )
    found: list[tuple[Floats | None, Evidence, float]] = []
    for bend, evidence, clear, against in shown:
        contradicted = any(other is not None and bend.dot(other) < 0.0 for other in against)
        found.append((bend, evidence, clear if contradicted else BENT))
    found += [(chain.limits(posed), Evidence.LIMITS, 0.0), (known, Evidence.ANATOMY, 0.0)]
    found += [(bend, evidence, FAINTLY_BENT) for bend, evidence, *_ in shown]
    for normal, evidence, least in found:
        size = 0.0 if normal is None else float(np.linalg.norm(normal))
        if normal is not None and size > least and np.linalg.norm(np.cross(chain.first, normal)) > 0.1 * size:
            return _side(normal, chain.first), evidence
    return chain.roll_side(), Evidence.ROLL


def to_bend(ob: Object, bones: Sequence[PoseBone], end: PoseBone | None, depsgraph: Depsgraph, least: float) -> Floats:
    """Return the rotation (3,) that a knee or elbow lacks to be bent to its side, in the axes of the root bone.

    It is zero for a limb that is clearly bent in its current pose, to whichever side.

    Args:
        ob: the armature object.
        bones: the bones of the limb, root first; the side of the chain on them counts, or the one that it would get.
        end: the bone at whose head the limb ends; None: it ends at the tail of its last bone.
        depsgraph: evaluates the current pose.
        least: the angle in radians by which it should be bent.
    """
    chain, settings = _Chain.of(ob, bones, end), chain_of(bones[-1])
    now = chain.bend(chain.bends_in(read_poses(ob, depsgraph)))
    if np.linalg.norm(now) > CLEARLY_BENT:
        return np.zeros(3)
    side = np.array(settings.bend_side)
    if not (settings.is_chain and side.any()):
        side = find(ob, bones, end, depsgraph).side
    normal = np.cross(side, chain.first)
    normal = normal / max(float(np.linalg.norm(normal)), 1e-300)
    return np.asarray(max(0.0, least - float(now.dot(normal))) * normal)


def shown_by(ob: Object, bones: Sequence[PoseBone], poses: Floats) -> Floats | None:
    """Return the side (3,) to which pose matrices (m, 4, 4) bend a chain, root first; None if they show none.

    The chain ends at the tail of its last bone, as with Blender's IK.
    """
    chain = _Chain.of(ob, bones, None)
    bend = chain.bend(chain.bends_in(poses))
    return _side(bend, chain.first) if np.linalg.norm(bend) > BENT else None


def opposed_by_limits(tip: PoseBone, side: Floats) -> bool:
    """Return whether the limits of the chain on `tip` let it bend farther away from a side (3,) than towards it."""
    chain, bones = _Chain.on(tip), bending_bones(tip)
    found = chain.limits(bones)
    return found is not None and bool(found.dot(np.cross(side, chain.first)) < 0.0)


def hyperextension(tip: PoseBone, side: Floats, frame: float) -> float:
    """Return by how many radians the FK pose of the chain on `tip` bends away from its side (3,) on a frame.

    0 if it does not. Only F-curves and the stored FK pose are read; constraints and drivers are not known here.
    """
    ob, chain = tip.id_data, _Chain.on(tip)
    below = np.array(chain.indices[1:], dtype=np.int64)
    if not len(below):
        return 0.0
    try:
        rows = fcurves.at_frames(ob, below, fk_store.held(ob, below), [frame])
    except fcurves.NotDetermined:
        return 0.0
    bend = chain.bend(chain.bends_by(_bases(ob, below, rows))[0])
    normal = np.cross(side, chain.first)
    return max(0.0, -float(bend.dot(normal) / max(float(np.linalg.norm(normal)), 1e-12)))


def is_from_roll(tip: PoseBone, side: Floats) -> bool:
    """Return whether a side (3,) comes from the roll of the root bone alone, with no other evidence at rest."""
    chain = _Chain.on(tip)
    if np.abs(side - chain.roll_side()).max() > 1e-6:
        return False
    at_rest = np.linalg.norm(chain.bend(chain.at_rest)) > FAINTLY_BENT
    return not at_rest and chain.limits(bending_bones(tip)) is None and chain.anatomy(chain.skeleton.rest) is None


def extension(tip: PoseBone, depsgraph: Depsgraph) -> float:
    """Return the largest distance from root to end of the chain on `tip`, in its lengths, in all poses that are known.

    These are the rest pose, the current one, and those of its animation.
    """
    ob, chain = tip.id_data, _Chain.of(tip.id_data, chain_bones(tip), end_of(tip))
    poses = np.stack([chain.skeleton.rest, read_poses(ob, depsgraph)])
    steps = [np.diff(Limb.of(chain.skeleton, chain.indices, own, chain.end).joints, axis=0) for own in poses]
    bases = animated_bases(ob, chain.indices[1:], MANY)
    every = np.stack(steps) if bases is None else np.concatenate([steps, chain.steps_by(bases)])
    return float((lengths_of(every.sum(axis=1)) / np.maximum(lengths_of(every).sum(axis=1), 1e-300)).max())


# ---- animation


def animated_bases(ob: Object, bones: Sequence[int], most: int = FRAMES) -> Floats | None:
    """Return the basis matrices (F, n, 4, 4) of pose bones on frames of their animation; None without F-curves.

    These are all whole frames, or `most` of them, evenly spread.
    Constraints and drivers are not known here: with drivers there is no result either.
    """
    paths, own = tuple(f"{ob.pose.bones[bone].path_from_id()}." for bone in bones), np.array(bones, dtype=np.int64)
    try:
        moving = [found for path, found in fcurves.in_force(ob).items() if path.startswith(paths)]
        ranges = np.array([curve.range() for found in moving for curve in found])
        if not len(ranges):
            return None
        frames = np.unique(np.round(np.linspace(ranges[:, 0].min(), ranges[:, 1].max(), most)))
        return _bases(ob, own, fcurves.at_frames(ob, own, channels.read(ob, own), frames.tolist()))
    except fcurves.NotDetermined:
        return None


def _bases(ob: Object, bones: Ints, rows: channels.Row) -> Floats:
    """Return the basis matrices (F, n, 4, 4) that channels (F, n, 17) of pose bones make."""
    own = [ob.pose.bones[bone] for bone in bones.tolist()]
    connected = np.array([bone.bone.use_connect for bone in own], dtype=bool)
    return transforms.basis(rows, [bone.rotation_mode for bone in own], connected)


# ---- evidence of a side: bend vectors in the axes of the root bone, each joint's axis times its angle


def _side(normal: Floats, first: Floats) -> Floats:
    """Return the side (3,) of a chain that bends about an axis (3,) and begins in a direction (3,)."""
    side = np.cross(first, normal)
    return np.asarray(side / np.linalg.norm(side))


class _Chain(NamedTuple):
    """A chain of n bones, root first, at rest."""

    figure: Figure
    row: list[int]
    """Indices in the figure; `indices` are those in the skeleton."""
    skeleton: Skeleton
    indices: list[int]
    end: int | None
    """The bone in the skeleton at whose head the chain ends; None: it ends at the tail of its last bone."""
    at_rest: Floats
    """(n, 3) bends of the joints."""
    lead: int | None
    """The joint whose side is the side of the chain; None if all of them count."""

    @classmethod
    def on(cls, tip: PoseBone) -> _Chain:
        """Return the part of the chain on a tip bone that bends to its side."""
        return cls.of(tip.id_data, bending_bones(tip), bending_end(tip))

    @classmethod
    def of(cls, ob: Object, bones: Sequence[PoseBone], end: PoseBone | None) -> _Chain:
        figure, skeleton = Figure.of(ob), Skeleton.of(ob)
        row = [figure.names.index(bone.name) for bone in bones]
        indices = [skeleton.names.index(bone.name) for bone in bones]
        last = None if end is None else skeleton.names.index(end.name)
        at_rest = _bends(Limb.of(skeleton, indices, skeleton.rest, last))
        return cls(figure, row, skeleton, indices, last, at_rest, sides.leading_joint(figure, row, at_rest))

    @property
    def has_side(self) -> bool:
        """Whether its joints bend to one side, or each to its own."""
        return sides.can_have_side(self.figure, self.row) or self.lead is not None

    @property
    def first(self) -> Floats:
        """Direction (3,) of the first segment, in the axes of the root bone."""
        return self.skeleton.first_segment(self.indices)

    def roll_side(self) -> Floats:
        """The side (3,) to which the chain bends from straight by default: about the X axis of its root bone."""
        return _side(np.array(hinge(ONE, np.eye(3).tolist(), tuple(self.first))), self.first)

    def bend(self, joints: Floats) -> Floats:
        """Return the bend (3,) of the chain, given the bends (n, 3) of its joints."""
        return np.asarray(joints.sum(axis=0) if self.lead is None else joints[self.lead])

    def bends_in(self, poses: Floats) -> Floats:
        """Return the bends (n, 3) in pose matrices (m, 4, 4); zero where these are not finite."""
        limb = Limb.of(self.skeleton, self.indices, poses, self.end)
        return _bends(limb) if np.isfinite(limb.joints).all() and limb.length > 0.0 else np.zeros_like(self.at_rest)

    def posed(self, ob: Object, depsgraph: Depsgraph) -> Floats:
        """Return the bends (n, 3) in the current pose; zero if that pose is a solution."""
        if not set(self.indices).isdisjoint(fk_store.stored_bones(ob)):
            return np.zeros_like(self.at_rest)
        return self.bends_in(read_poses(ob, depsgraph))

    def animated(self, ob: Object) -> Floats:
        """Return the mean bends (n, 3) over the frames of the animation on which the chain is bent."""
        still = np.zeros_like(self.at_rest)
        bases = animated_bases(ob, self.indices[1:])
        if bases is None:
            return still
        joints = self.bends_by(bases)
        # Weighted by the bend itself: a frame with the knee bent by 60 degrees outweighs ten with a locked knee.
        weights = np.linalg.norm([self.bend(bends) for bends in joints], axis=1)
        bent = np.isfinite(joints).all(axis=(1, 2)) & (weights > BENT)
        if not bent.any():
            return still
        return np.asarray((joints[bent] * weights[bent, None, None]).sum(axis=0) / weights[bent].sum())

    def bends_by(self, bases: Floats) -> Floats:
        """Return the bends (F, n, 3) that the basis matrices (F, n-1, 4, 4) of all bones but the root make."""
        return np.array([_bends_of(steps) for steps in self.steps_by(bases)])

    def steps_by(self, bases: Floats) -> Floats:
        """Return the segments (F, n, 3), in the axes of the root bone, that these matrices make."""
        below = np.array(self.indices[1:])
        local = self.skeleton.offsets[below] @ bases
        poses = [np.broadcast_to(np.eye(4), local[:, 0].shape)]
        for k in range(len(below)):
            poses.append(poses[-1] @ local[:, k])
        tip, rest = self.indices[-1], self.skeleton.rest
        last = np.array((0.0, self.skeleton.lengths[tip], 0.0))
        if self.end is not None:
            last = (inverse(rest[tip]) @ rest[self.end])[:3, 3]
        heads = [*(pose[:, :3, 3] for pose in poses), moved(poses[-1], last)]
        return np.diff(np.array(heads), axis=0).transpose(1, 0, 2)

    def limits(self, posed: Sequence[PoseBone]) -> Floats | None:
        """Return the axis about which limits let the joints bend more one way than the other; None if there is none."""
        found = np.zeros(3)
        root = self.skeleton.rest[self.indices[0], :3, :3]
        for joint, (bone, index) in enumerate(zip(posed, self.indices, strict=True)):
            if joint == 0 or (self.lead is not None and joint != self.lead):
                continue
            try:
                ranges = limits.ranges_of(bone)
            except UserError:
                continue
            for axis, (low, high) in zip((0, 2), ranges[:2], strict=True):
                if math.isfinite(low + high) and abs(low + high) > ONE_SIDED:
                    found += (low + high) * root.T.dot(self.skeleton.rest[index, :3, axis])
        return found if np.linalg.norm(found) > ONE_SIDED else None

    def anatomy(self, poses: Floats) -> Floats | None:
        """Return the axis (3,) about which the chain bends by its anatomy in pose matrices (m, 4, 4); None if unknown.

        It is in the axes of the root bone.
        """
        limb = Limb.of(self.skeleton, self.indices, poses, self.end)
        if not (np.isfinite(poses).all() and limb.length > 0.0):
            return None
        heads = poses[:, :3, 3]
        tails = heads + poses[:, :3, 1] * self.skeleton.lengths[:, None]
        order = [self.skeleton.names.index(name) for name in self.figure.names]
        side = sides.side_of_row(replace(self.figure, heads=heads[order], tails=tails[order]), self.row)
        if side is None:
            return None
        return np.asarray(limb.frames[0].T.dot(np.cross(side, limb.joints[-1] - limb.joints[0])) / limb.length)


def _bends(limb: Limb) -> Floats:
    """Return the bends (n, 3) of the joints of a limb in one pose."""
    return _bends_of(limb.frames[0].T.dot(np.diff(limb.joints, axis=0).T).T)


def _bends_of(steps: Floats) -> Floats:
    """Return the bends (n, 3) of the joints of segments (n, 3); zero for the first one and those without length."""
    sizes = np.linalg.norm(steps, axis=1)
    found, before = np.zeros_like(steps), None
    for i in np.flatnonzero(sizes > 1e-6 * sizes.sum()):
        own = steps[i] / sizes[i]
        if before is not None:
            axis = np.cross(before, own)
            sine = float(np.linalg.norm(axis))
            found[i] = axis * (math.atan2(sine, float(before.dot(own))) / max(sine, 1e-12))
        before = own
    return found
