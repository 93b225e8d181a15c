"""The current pose of the bones of a chain: joints and frames as arrays in the armature's object space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from bpy.types import Depsgraph, Object, PoseBone

from ..core import channels
from ..core.skeleton import STRAIGHT, Skeleton, orthonormal
from ..core.untyped import Shaped
from ..rig.plan.chain import chain_bones, end_of
from ..solve.maths.rotations import is_straight
from ..solve.problem import Bools, Floats, target_for

BEYOND = 2e-6
"""How far the target of a straight chain is placed beyond its tip, as a fraction of its length: far less than
`reports.NEAR`, but more than rounding, which could put the target nearer and so bend the chain.
"""


class Limb(NamedTuple):
    """The bones of a chain in one pose, or in many at once (...), root first, in the armature's object space."""

    joints: Floats
    """(..., n+1, 3) heads of the bones, then the tip's tail or the head of the end bone."""
    frames: Floats
    """(..., n, 3, 3) orthonormal axes of the bones."""

    @classmethod
    def posed(cls, poses: Floats, last: Floats) -> Limb:
        """Return the limb with pose matrices (..., n, 4, 4) of its n bones that ends at positions (..., 3)."""
        joints = np.concatenate([poses[..., :3, 3], last[..., None, :]], axis=-2)
        return cls(joints, orthonormal(poses[..., :3, :3]))

    @classmethod
    def of(cls, skeleton: Skeleton, bones: Sequence[int], poses: Floats, end: int | None = None) -> Limb:
        """Return the limb of these bones, up to the head of `end` if given, from the pose matrices (m, 4, 4) of all."""
        own = poses[list(bones)]
        last = own[-1, :3, 3] + own[-1, :3, 1] * skeleton.lengths[bones[-1]] if end is None else poses[end, :3, 3]
        return cls.posed(own, last)

    @classmethod
    def on(cls, tip: PoseBone, skeleton: Skeleton, poses: Floats) -> Limb:
        """Return the limb of the chain on a tip bone, from the pose matrices (m, 4, 4) of all bones of its armature."""
        end = end_of(tip)
        bones = [skeleton.names.index(bone.name) for bone in chain_bones(tip)]
        return cls.of(skeleton, bones, poses, None if end is None else skeleton.names.index(end.name))

    @property
    def segments(self) -> Floats:
        """(..., n) lengths from joint to joint."""
        return np.asarray(np.linalg.norm(np.diff(self.joints, axis=-2), axis=-1))

    @property
    def length(self) -> Shaped:
        """(...) total length of all segments."""
        return self.segments.sum(axis=-1)

    @property
    def line(self) -> Floats:
        """(..., 3) vectors from root to tip."""
        return np.asarray(self.joints[..., -1, :] - self.joints[..., 0, :])


def straight(joints: Floats) -> Bools:
    """Which (F,) chains with joints (F, n+1, 3) are too straight to show the side to which they bend."""
    return is_straight(joints, STRAIGHT)


def target_of(limbs: Limb, softness: Floats | float = 0.0) -> Floats:
    """Return the positions (F, 3) of targets that leave limbs as they are.

    They are at the tip, or just beyond if the limb is straight, or as far beyond as softness (F,) holds it back.
    """
    size, length = (np.maximum(own, 1e-300) for own in (np.linalg.norm(limbs.line, axis=1), limbs.length))
    reached = size / length
    beyond = target_for(reached, limbs.segments.max(axis=1) / length, np.asarray(softness)) - reached
    beyond = (beyond + np.where(straight(limbs.joints), BEYOND, 0.0)) * length / size
    return np.asarray(limbs.joints[:, -1] + beyond[:, None] * limbs.line)


def read_poses(ob: Object, depsgraph: Depsgraph) -> Floats:
    """Return the evaluated pose matrices (m, 4, 4) of all bones of an armature object."""
    evaluated = ob.evaluated_get(depsgraph)
    return channels.read_pose(evaluated, np.arange(len(evaluated.pose.bones)))


def shifts(ob: Object, tips: Sequence[PoseBone], before: Floats, after: Floats) -> dict[str, float]:
    """Return how far joints of chains are apart at most between two poses (m, 4, 4), in chain lengths, by tip bone."""
    skeleton, found = Skeleton.of(ob), {}
    for tip in tips:
        old, new = (Limb.on(tip, skeleton, poses) for poses in (before, after))
        found[tip.name] = float(np.linalg.norm(old.joints - new.joints, axis=1).max()) / max(old.length, 1e-30)
    return found


def largest_turn(before: Floats, after: Floats) -> float:
    """Return the largest angle, in radians, between frames (n, 3, 3) before and after."""
    # Not from the trace, whose arc cosine is inaccurate for small angles.
    chord = np.linalg.norm(before - after, axis=(1, 2)).max() / np.sqrt(8.0)
    return float(2.0 * np.arcsin(min(float(chord), 1.0)))
