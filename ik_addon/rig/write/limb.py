"""Posed chains and trees of one shape: from FK channels to the solver's arrays, and from solutions back to channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import TypeVar

import numpy as np
from bpy.types import Object

from ...core.channels import FIELDS, Row, basis_rotation, slerp, with_rotation
from ...core.skeleton import orthonormal
from ...solve import Limits, OutOfReach, Solution, Status
from ...solve.maths.numbers import Nested
from ...solve.maths.products import applied, back_times, times, times_back
from ...solve.maths.rotations import is_straight, norm
from ...solve.problem import Bools, Floats, Ints
from ..plan.groups import Wave, above, paths
from ..plan.plan import Plan

WRITTEN_TOLERANCE = 1e-6
"""A written pose that misses its solution by more than this, in chain lengths, is solved again."""
SINGLE_STEPS = 6.0
"""A target within this many steps of single precision of the FK tip counts as on it: Blender's channels, F-curves and
matrices can say no more, and a limb that is nearly straight would turn such a step into a visible bend."""
UNIFORM = 1e-6
"""Scale factors that differ by less than this fraction count as equal."""
STRAIGHT = 5e-5
"""A pose counts as straight if its joints are off its line by less than this, in chain lengths: too little to see."""

Found = TypeVar("Found")

OWN = ("root", "rows", "basis", "reach")
"""The arrays of `Limbs` that differ from member to member."""


def once(method: Callable[[Limbs], Found]) -> Callable[[Limbs], Found]:
    """Compute a method's result once, and again only after `remembered` is cleared.

    Where all frames are in the same FK pose, it is computed for one of them.
    """

    @wraps(method)
    def found(self: Limbs) -> Found:
        known = self.remembered
        if method.__name__ not in known:
            known[method.__name__] = method(self) if self.still is None else _of(found(self.still), self.group)
        result: Found = known[method.__name__]
        return result

    return found


def _of(value: Nested, group: Ints) -> Nested:
    """Return a result for the members of groups (B,)."""
    if isinstance(value, np.ndarray):
        return value[group]
    if isinstance(value, tuple):
        return tuple(_of(part, group) for part in value)
    if isinstance(value, Skew):
        return replace(value, heads=value.heads[group], off=None if value.off is None else value.off[group])
    return value.of(group) if isinstance(value, Limits) else value


@dataclass(frozen=True)
class Skew:
    """The skew of B members about the heads of their root bones, in armature space.

    If a bone points against its parent, as a thigh does, Blender's rest matrix is a rotation only to about 1e-6. It
    skews the whole chain, differently in each pose, so that a solution for rigid bones misses by as much. But seen from
    the parent the skew is the same in each pose: without it bones are rigid, and targets are moved by its inverse.
    """

    heads: Floats
    """(B, 3)"""
    off: Floats | None
    """(B, 3, 3) the skew less the identity; None: no skew."""

    def without(self, points: Floats) -> Floats:
        """Return points (B, ..., 3) with the skew removed."""
        return self._moved(points, -1.0)

    def put_on(self, points: Floats) -> Floats:
        """Return points (B, ..., 3) with the skew applied."""
        return self._moved(points, 1.0)

    def _moved(self, points: Floats, share: float) -> Floats:
        if self.off is None:
            return points
        offsets = points.reshape(len(points), -1, 3) - self.heads[:, None]
        return points + share * times_back(offsets, self.off).reshape(points.shape)

    def frames_without(self, linear: Floats) -> Floats:
        """Return bone matrices (B, n, 3, 3) with the skew removed."""
        if self.off is None:
            return linear
        return linear - times(np.broadcast_to(self.off[:, None], linear.shape), linear)


@dataclass(frozen=True)
class Limbs:
    """B posed groups of n bones and E chains: each member is one group of a wave on one frame."""

    ob: Object
    plan: Plan
    wave: Wave
    group: Ints
    """(B,) the group of each member, as an index into the wave."""
    root: Floats
    """(B, 4, 4) pose of the root's parent in armature space; the identity if there is none."""
    rows: Row
    """(B, n, 17) channels."""
    basis: Floats
    """(B, n, 4, 4) basis matrices of these channels."""
    reach: Floats
    """(B, E, 3) the end effector of each chain, in the axes of its tip."""
    still: Limbs | None = None
    """One member for each group, if all frames are in the same FK pose; None: they are not, or there is only one."""
    remembered: dict[str | bytes, Nested] = field(init=False, default_factory=dict, compare=False)
    """Results of the methods that compute something once."""

    @cached_property
    def poses(self) -> Floats:
        """(B, n, 4, 4) pose matrices in armature space."""
        if self.still is not None:
            return np.asarray(self.still.poses[self.group])
        found, parents = np.empty_like(self.basis), self.wave.shape.parents
        if self.wave.shape.plain:
            # Without BLAS, whose rounding depends on the memory layout, and so on the number of frames.
            local = times(self.plan.skeleton.offsets[self.wave.bones[self.group]], self.basis)
            for i, parent in enumerate(parents):
                found[:, i] = times(self.root if parent < 0 else found[:, parent], local[:, i])
            return found
        for members, bones in self._by_group():
            for i, bone in enumerate(bones):
                parent_pose = self._parent(found, members, bones, i)
                found[members, i] = self.plan.skeleton.to_pose(self.ob, bone, self.basis[members, i], parent_pose)
        return found

    @once
    def joints(self) -> Floats:
        """Joint positions (B, n+E, 3): the heads, then the end effectors."""
        tips = self.poses[:, list(self.wave.shape.segments)]
        ends = tips[..., :3, 3] + applied(tips[..., :3, :3], self.reach)
        return np.concatenate([self.poses[:, :, :3, 3], ends], axis=1)

    @once
    def skew(self) -> Skew:
        """The skew of the rest matrices of root bones; none where anything else skews the members."""
        heads, at_rest = self.poses[:, 0, :3, 3], self.plan.skeleton.skews[self.wave.bones[:, 0]][self.group]
        if not at_rest.any():
            return Skew(heads, None)
        frames = self.root_frames()
        return Skew(heads, np.where(self.rigid()[:, None, None], times_back(times(frames, at_rest), frames), 0.0))

    @once
    def root_frames(self) -> Floats:
        """Orthonormal frames (B, 3, 3) of the parents of the root bones."""
        return orthonormal(self.root[:, :3, :3])

    @once
    def length(self) -> Floats:
        """Lengths (B, E) of the chains in this pose."""
        return self.lengths(self.joints())

    def lengths(self, joints: Floats) -> Floats:
        """Return the lengths (B, E) of the chains from the root to each effector, for joints (B, n+E, 3)."""
        points = joints.T
        found = np.empty((len(joints), len(self.wave.shape.segments)))
        for e, path in enumerate(paths(self.wave.shape.parents, self.wave.shape.segments)):
            own = points if self.wave.shape.is_chain else points[:, path]
            found[:, e] = norm(own[:, 1:] - own[:, :-1]).sum(axis=-2)
        return found

    @once
    def limits(self) -> Limits | None:
        """The limits of the joints; None: the chains have none."""
        ranges = self.wave.shape.limits
        if ranges is None:
            return None
        rests = self.plan.skeleton.joint_rests[self.wave.bones[self.group]]
        angles = np.array(ranges)
        return Limits(rests, self.root_frames(), angles[:, :4], angles[:, 4:])

    @once
    def plane(self) -> Floats | None:
        """Normals (B, 3) of the planes in which planar chains stay, from their rest pose; None: they are not planar."""
        if not self.wave.shape.planar:
            return None
        normals = np.array([self.plan.skeleton.normal_at_rest(bones) for bones in self.wave.bones.tolist()])
        return applied(self.root_frames(), normals[self.group])

    @once
    def bend_side(self) -> Floats | None:
        """Bend sides (B, 3) of chains; None for trees, and if no chain has one."""
        sides = np.array([self.plan.chains[c].bend_side for c in self.wave.chains[:, 0].tolist()])
        if not (self.wave.shape.is_chain and sides.any()):
            return None
        found = applied(self.frames()[:, 0], sides[self.group])
        soft = np.array([self.plan.chains[c].bends_both_ways for c in self.wave.chains[:, 0].tolist()])[self.group]
        if soft.any():
            found[soft & ~is_straight(self.joints(), STRAIGHT)] = 0.0
        return found

    @once
    def folds(self) -> Floats | None:
        """How the joints of chains fold (B, n, 3); None for trees, and if all chains bend evenly."""
        own = [self.plan.chains[c].folds for c in self.wave.chains[:, 0].tolist()]
        if not (self.wave.shape.is_chain and any(own)):
            return None
        bones = self.wave.bones.shape[1]
        local = np.array([folds or np.zeros((bones, 3)) for folds in own])
        return applied(self.frames()[:, [0, *range(bones - 1)]], local[self.group])

    @once
    def frames(self) -> Floats:
        """Orthonormal frames (B, n, 3, 3) in armature space, even of bones that are scaled to zero."""
        scale = self.rows[:, :, FIELDS["scale"]]
        if scale.all():
            return orthonormal(self.skew().frames_without(self.poses[:, :, :3, :3] / scale[:, :, None, :]))
        unscaled = self.basis.copy()
        unscaled[:, :, :3, :3] = basis_rotation(self.basis, self.rows)
        frames = np.empty_like(unscaled[:, :, :3, :3])
        for members, bones in self._by_group():
            for i, bone in enumerate(bones):
                parent = self._parent(self.poses, members, bones, i)
                pose = self.plan.skeleton.to_pose(self.ob, bone, unscaled[members, i], parent)
                frames[members, i] = orthonormal(pose[:, :3, :3])
        return frames

    def gaps(self, solution: Solution) -> Floats:
        """Return how far (B, E) the effectors are from those of a solution; 0 where the solution is invalid."""
        bones = self.wave.bones.shape[1]
        gaps = norm((self.joints()[:, bones:] - solution.joints[:, bones:]).T).T
        return np.where((solution.status != Status.INVALID)[:, None], gaps, 0.0)

    def members(self, chosen: Bools) -> Limbs:
        """Return only the chosen members (B,)."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in ("group", *OWN)})

    def on_frames(self, group: Ints) -> Limbs:
        """Return limbs of one frame, one member for each group, as members (B,) of many frames, by their groups."""
        return replace(self, group=group, still=self, **{name: getattr(self, name)[group] for name in OWN})

    def equals(self, other: Limbs) -> bool:
        """Whether the members of other limbs are in the same FK pose."""
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in OWN)

    def put(self, chosen: Bools, other: Limbs) -> None:
        """Replace the chosen members (B,) by those of other limbs."""
        self.rows[chosen], self.basis[chosen] = other.rows, other.basis
        vars(self).pop("poses", None)
        self.remembered.clear()

    def blended(self, fk: Limbs, influence: Floats) -> Limbs:
        """Return the limbs blended from their FK pose (0) to this one (1), by the influence (B, n) on each bone."""
        start, end = (basis_rotation(limbs.basis, limbs.rows) for limbs in (fk, self))
        rotations = slerp(start, end, influence)
        share = influence[:, :, None].astype(np.float32)
        rows = fk.rows.copy()
        for name in ("location", "scale"):
            columns = FIELDS[name]
            rows[:, :, columns] += share * (self.rows[:, :, columns] - fk.rows[:, :, columns])
        basis = fk.basis.copy()
        basis[:, :, :3, 3] += share * (self.basis[:, :, :3, 3] - fk.basis[:, :, :3, 3])
        basis[:, :, :3, :3] = rotations * rows[:, :, FIELDS["scale"]][:, :, None, :]
        rows = with_rotation(rows, rotations, self.wave.modes[self.group])
        # Bones with no influence, or not solved, keep their FK channels exactly; with full influence, the solved ones.
        still = (influence == 0.0) | (self.rows == fk.rows).all(axis=2)
        for chosen, own in ((influence == 1.0, self), (still, fk)):
            rows[chosen], basis[chosen] = own.rows[chosen], own.basis[chosen]
        return replace(self, rows=rows, basis=basis, still=None)

    def solved(self, frames: Floats, solution: Solution) -> Limbs:
        """Return the limbs with a solution, its orthonormal frames (B, n, 3, 3) and joints, written to their channels.

        Members without a usable solution keep their pose.
        """
        scale = solution.stretch
        if self.wave.shape.out_of_reach is OutOfReach.STRETCH:
            above = np.append(np.ones_like(scale[:, :1]), scale, axis=1)[:, np.array(self.wave.shape.parents) + 1]
            scale = scale / np.where(self.plan.skeleton.inherits_scale[self.wave.bones][self.group], above, 1.0)
        placed = self._place_rigid if self.rigid().all() else self._place_bone_by_bone
        rotations, basis, poses = placed(frames, solution, scale)
        rows = with_rotation(self.rows, rotations, self.wave.modes[self.group])
        if self.wave.shape.out_of_reach is OutOfReach.STRETCH:
            rows[:, :, FIELDS["scale"]] *= scale[:, :, None].astype(np.float32)
        if self.wave.shape.out_of_reach is OutOfReach.PUSH_ROOT:
            rows[:, 0, FIELDS["location"]] = basis[:, 0, :3, 3]
        posed = replace(self, rows=rows, basis=basis, still=None)
        if poses is not None:
            vars(posed)["poses"] = poses
        keep = (solution.status == Status.INVALID) | ~np.isfinite(rows).all(axis=(1, 2))
        if not (self.is_exact() or np.isfinite(posed.poses).all()):
            keep |= ~np.isfinite(posed.poses).all(axis=(1, 2, 3))
        if keep.any():
            posed.put(keep, self.members(keep))
        return posed

    @once
    def rigid(self) -> Bools:
        """Members (B,) whose bones turn their children rigidly: no inheritance flags, and only uniform scale."""
        if not self.wave.shape.plain:
            return np.zeros(len(self.group), dtype=bool)
        scale = self.rows[:, :, FIELDS["scale"]]
        has_parents = (self.plan.skeleton.parents[self.wave.bones[:, 0]] >= 0).any()
        if not has_parents and (scale == 1.0).all():
            return np.ones(len(self.group), dtype=bool)
        uniform = (np.ptp(scale, axis=2) <= UNIFORM * scale[:, :, 0]) & (scale[:, :, 0] > 0.0)
        linear = self.root[:, :3, :3]
        with np.errstate(invalid="ignore"):  # a constraint may leave a bone with values that are not finite
            square = back_times(linear, linear)
            size = np.trace(square, axis1=1, axis2=2) / 3.0
            skew = np.abs(square - size[:, None, None] * np.eye(3)).max(axis=(1, 2))
            return np.asarray(uniform.all(axis=1) & (skew <= UNIFORM * size) & (np.linalg.det(linear) > 0.0))

    @once
    def is_exact(self) -> bool:
        """Whether bones are so nearly rigid that the written pose matches the solved one.

        A strained bone makes it miss by at most twice the strain, on its own part of the chain.
        """
        if self.wave.shape.out_of_reach is not OutOfReach.EXTEND or not self.rigid().all():
            return False
        with np.errstate(all="ignore"):  # poses that are not finite are not exact
            seen = back_times(self.frames(), self.skew().frames_without(self.poses[:, :, :3, :3]))
            strain = seen / (np.trace(seen, axis1=2, axis2=3)[:, :, None, None] / 3.0) - np.eye(3)
            return bool(((strain * strain).sum(axis=(2, 3)) <= (WRITTEN_TOLERANCE / 2.0) ** 2).all())

    @once
    def kept(self) -> Floats:
        """(B, n, 3, 3) factors that turn frames relative to their parents into rotations of channels."""
        below, parents = above(self.wave.shape.parents)
        frames = self.frames()
        kept = times_back(basis_rotation(self.basis, self.rows), frames)
        kept[:, below] = times(kept[:, below], frames[:, parents])
        return kept

    def _place_rigid(self, frames: Floats, solution: Solution, scale: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Place all bones at once, each relative to its parent; a bone that turns with its parent keeps its channels.

        This avoids rest matrices, which are only roughly rotations if a bone points against its parent.

        Returns:
            The rotations (B, n, 3, 3) of the channels, the basis matrices (B, n, 4, 4), and the pose matrices if they
            were computed on the way.
        """
        below, parents = above(self.wave.shape.parents)
        local, basis = frames.copy(), self.basis.copy()
        local[:, below] = back_times(frames[:, parents], frames[:, below])
        rotations = _finite_or_none(times(self.kept(), local))
        basis[:, :, :3, :3] = rotations * (self.rows[:, :, FIELDS["scale"]] * scale[:, :, None])[:, :, None, :]
        if self.wave.shape.out_of_reach is OutOfReach.PUSH_ROOT:
            for members, bones in self._by_group():
                local = self._basis_of(bones[0], frames[members, 0], solution.joints[members, 0], self.root[members])
                basis[members, 0, :3, 3] = local[:, :3, 3]
        return rotations, basis, None

    def _place_bone_by_bone(
        self, frames: Floats, solution: Solution, scale: Floats
    ) -> tuple[Floats, Floats, Floats | None]:
        """Do the same from the root on, bone by bone: a parent's pose decides how flags and scale affect children."""
        rotations, basis, poses = np.empty_like(frames), self.basis.copy(), np.empty_like(self.basis)
        for members, bones in self._by_group():
            for i, bone in enumerate(bones):
                parent = self._parent(poses, members, bones, i)
                local = self._basis_of(bone, frames[members, i], solution.joints[members, i], parent)
                rotations[members, i] = _finite_or_none(orthonormal(local[:, :3, :3]))
                size = self.rows[members, i, FIELDS["scale"]] * scale[members, i, None]
                basis[members, i, :3, :3] = rotations[members, i] * size[:, None, :]
                if i == 0 and self.wave.shape.out_of_reach is OutOfReach.PUSH_ROOT:
                    basis[members, 0, :3, 3] = local[:, :3, 3]
                poses[members, i] = self.plan.skeleton.to_pose(self.ob, bone, basis[members, i], parent)
        return rotations, basis, poses

    def _by_group(self) -> list[tuple[Ints, list[int]]]:
        """Return the members and bones of each group."""
        found = ((np.flatnonzero(self.group == c), bones) for c, bones in enumerate(self.wave.bones.tolist()))
        return [(members, bones) for members, bones in found if len(members)]

    def _parent(self, poses: Floats, members: Ints, bones: list[int], i: int) -> Floats | None:
        """Return the pose of the parent of the i-th bone, from poses (B, n, 4, 4); None: it has no parent."""
        parent = self.wave.shape.parents[i]
        if parent >= 0:
            return np.asarray(poses[members, parent])
        return self.root[members] if self.plan.skeleton.parents[bones[0]] >= 0 else None

    def _basis_of(self, bone: int, frame: Floats, head: Floats, parent: Floats | None) -> Floats:
        """Return the basis (F, 4, 4) of a bone with this frame (F, 3, 3) and head (F, 3) in armature space."""
        wanted = np.zeros((len(frame), 4, 4))
        wanted[:, :3, :3] = frame
        wanted[:, :3, 3] = head
        wanted[:, 3, 3] = 1.0
        return self.plan.skeleton.to_basis(self.ob, bone, wanted, parent)


def _finite_or_none(rotations: Floats) -> Floats:
    """Replace rotations (..., 3, 3) that are not finite by the identity; such members are put back afterwards."""
    finite = np.isfinite(rotations)
    return rotations if finite.all() else np.where(finite.all(axis=(-2, -1), keepdims=True), rotations, np.eye(3))
