"""The posed bones of a chain: forward kinematics to the solver's arrays, and a solution back into channels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import bpy
import numpy as np

from ..solve import OutOfReach, Solution, Status
from ..solve.problem import Bools, Floats
from . import channels
from .channels import FIELDS, Row
from .plan import ChainPlan, Plan
from .skeleton import orthonormal

UNIFORM = 1e-6
"""Scale factors that differ by less than this are the same."""


@dataclass(frozen=True)
class Limb:
    """The n bones of a chain on F frames, root first, below a parent."""

    ob: bpy.types.Object
    plan: Plan
    chain: ChainPlan
    root: Floats | None
    """(F, 4, 4) pose of the root's parent in armature space; None at the armature's root."""
    rows: Row
    """(F, n, 17) channels."""
    basis: Floats
    """(F, n, 4, 4) basis matrices that the channels make."""
    poses: Floats
    """(F, n, 4, 4) pose matrices in armature space."""

    def joints(self) -> Floats:
        """Joint positions (F, n+1, 3): the heads, and the tail of the tip."""
        length = self.plan.skeleton.lengths[self.chain.bones[-1]]
        tail = self.poses[:, -1, :3, 3] + self.poses[:, -1, :3, 1] * length
        return np.concatenate([self.poses[:, :, :3, 3], tail[:, None]], axis=1)

    def frames(self) -> Floats:
        """Orthonormal frames (F, n, 3, 3) in armature space, defined also where a bone is scaled to nothing."""
        scale = self.rows[:, :, FIELDS["scale"]]
        if scale.all():
            return orthonormal(self.poses[:, :, :3, :3] / scale[:, :, None, :])
        turns = channels.basis_rotation(self.basis, self.rows)
        frames = np.empty_like(turns)
        for i, bone in enumerate(self.chain.bones):
            unscaled = self.basis[:, i].copy()
            unscaled[:, :3, :3] = turns[:, i]
            parent = self.root if i == 0 else self.poses[:, i - 1]
            frames[:, i] = orthonormal(self.plan.skeleton.to_pose(self.ob, bone, unscaled, parent)[:, :3, :3])
        return frames

    def misses(self, solution: Solution, tolerance: float) -> Bools:
        """Frames (F,) on which the tip is not where a solution has it, by more than `tolerance` chain lengths."""
        joints = self.joints()
        length = np.linalg.norm(np.diff(joints, axis=1), axis=2).sum(axis=1)
        gap = np.linalg.norm(joints[:, -1] - solution.joints[:, -1], axis=1)
        return np.asarray((gap > tolerance * length) & (solution.status != Status.INVALID))

    def frames_of(self, chosen: Bools) -> Limb:
        """The limb on the chosen frames (F,) alone."""
        root = None if self.root is None else self.root[chosen]
        return replace(self, root=root, rows=self.rows[chosen], basis=self.basis[chosen], poses=self.poses[chosen])

    def put(self, chosen: Bools, other: Limb) -> None:
        """Replace the chosen frames (F,) by those of another limb."""
        self.rows[chosen], self.basis[chosen], self.poses[chosen] = other.rows, other.basis, other.poses

    def is_rigid(self) -> bool:
        """Whether each bone turns its children rigidly: no inheritance flags, no scale but uniform ones."""
        if not self.plan.skeleton.plain[list(self.chain.bones)].all():
            return False
        scale = self.rows[:, :, FIELDS["scale"]]
        if scale.min() <= 0.0 or np.ptp(scale, axis=2).max() > UNIFORM * scale.max():
            return False
        if self.root is None:
            return True
        linear = self.root[:, :3, :3]
        square = linear.transpose(0, 2, 1) @ linear
        size = np.trace(square, axis1=1, axis2=2) / 3.0
        uniform = np.abs(square - size[:, None, None] * np.eye(3)).max() <= UNIFORM * size.max()
        return bool(uniform and (np.linalg.det(linear) > 0.0).all())

    def solved(self, frames: Floats, solution: Solution) -> Limb:
        """The limb with a solution, given as orthonormal frames (F, n, 3, 3) and joints, in its channels.

        On frames without a solution it stays as it is.
        """
        above = np.concatenate([np.ones_like(solution.stretch[:, :1]), solution.stretch[:, :-1]], axis=1)
        inherits = self.plan.skeleton.inherits_scale[list(self.chain.bones)]
        scale = solution.stretch / np.where(inherits, above, 1.0)
        place = self._place_rigid if self.is_rigid() else self._place_bone_by_bone
        rotations, basis, poses = place(frames, solution, scale)
        rows = channels.with_rotation(self.rows, rotations, self.chain.modes)
        if self.chain.out_of_reach is OutOfReach.STRETCH:
            rows[:, :, FIELDS["scale"]] *= scale[:, :, None].astype(np.float32)
        if self.chain.out_of_reach is OutOfReach.PUSH_ROOT:
            rows[:, 0, FIELDS["location"]] = basis[:, 0, :3, 3]
        finite = np.isfinite(poses).all(axis=(1, 2, 3)) & np.isfinite(rows).all(axis=(1, 2))
        keep = np.asarray(~finite | (solution.status == Status.INVALID))
        if keep.any():
            rows[keep], basis[keep], poses[keep] = self.rows[keep], self.basis[keep], self.poses[keep]
        return replace(self, rows=rows, basis=basis, poses=poses)

    def _place_rigid(self, frames: Floats, solution: Solution, scale: Floats) -> tuple[Floats, Floats, Floats]:
        """All bones at once: the frames of the parents are those of the solution."""
        bones = list(self.chain.bones)
        root = np.eye(3) if self.root is None else orthonormal(self.root[:, :3, :3])
        above = np.concatenate([np.broadcast_to(root, frames[:, 0].shape)[:, None], frames[:, :-1]], axis=1)
        rotations = _finite_or_none((above @ self.plan.skeleton.offsets[bones, :3, :3]).swapaxes(2, 3) @ frames)
        basis, poses = self.basis.copy(), self.poses.copy()
        basis[:, :, :3, :3] = rotations * (self.rows[:, :, FIELDS["scale"]] * scale[:, :, None])[:, :, None, :]
        size = np.linalg.norm(self.poses[:, :, :3, 0], axis=2) * solution.stretch
        poses[:, :, :3, :3] = frames * size[:, :, None, None]
        poses[:, :, :3, 3] = solution.joints[:, :-1]
        if self.chain.out_of_reach is OutOfReach.PUSH_ROOT:
            basis[:, 0, :3, 3] = self._basis_of(bones[0], frames[:, 0], solution.joints[:, 0], self.root)[:, :3, 3]
        return rotations, basis, poses

    def _place_bone_by_bone(self, frames: Floats, solution: Solution, scale: Floats) -> tuple[Floats, Floats, Floats]:
        """From the root on: what flags and scale of a parent make of its children is known only when it stands."""
        rotations = np.empty_like(frames)
        basis, poses = self.basis.copy(), self.poses.copy()
        parent = self.root
        for i, bone in enumerate(self.chain.bones):
            local = self._basis_of(bone, frames[:, i], solution.joints[:, i], parent)
            rotations[:, i] = _finite_or_none(orthonormal(local[:, :3, :3]))
            size = self.rows[:, i, FIELDS["scale"]] * scale[:, i, None]
            basis[:, i, :3, :3] = rotations[:, i] * size[:, None, :]
            if i == 0 and self.chain.out_of_reach is OutOfReach.PUSH_ROOT:
                basis[:, 0, :3, 3] = local[:, :3, 3]
            poses[:, i] = self.plan.skeleton.to_pose(self.ob, bone, basis[:, i], parent)
            parent = poses[:, i]
        return rotations, basis, poses

    def _basis_of(self, bone: int, frame: Floats, head: Floats, parent: Floats | None) -> Floats:
        """Basis (F, 4, 4) that gives a bone a frame (F, 3, 3) and a head (F, 3) in armature space."""
        wanted = np.zeros((len(frame), 4, 4))
        wanted[:, :3, :3] = frame
        wanted[:, :3, 3] = head
        wanted[:, 3, 3] = 1.0
        return self.plan.skeleton.to_basis(self.ob, bone, wanted, parent)


def _finite_or_none(rotations: Floats) -> Floats:
    """Rotations (..., 3, 3), with none in place of those that are not finite: such frames are put back afterwards."""
    usable = np.asarray(np.isfinite(rotations).all(axis=(-2, -1)))
    return rotations if usable.all() else np.where(usable[..., None, None], rotations, np.eye(3))
