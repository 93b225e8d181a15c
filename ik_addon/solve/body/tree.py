"""The joints of a body that take part in a drag, as a skeleton, and where they put pinned and dragged points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..limited.skeleton import Bone, Pose, Skeleton, pose_of
from ..maths.cones import joint_rotation, range_of, swing_twist
from ..maths.numbers import ONE, Vector
from ..maths.products import applied, back_applied, back_times, times, times_back
from ..maths.rotations import matrices, norm, quaternions
from ..problem import Bools, Floats, Ints
from .ends import Ends
from .limits import Limit
from .problem import Body

STILL = np.array([[1.0], [0.0], [0.0], [0.0]])


@dataclass(frozen=True)
class Tree:
    """The m joints that turn, parents first; if the body has a free root it is the first of them.

    Lengths are fractions of the body's size, the greatest length of a path along joints to an end. Rotations are
    measured from rest; without limits a joint is at rest in the body's initial pose.
    """

    bones: Ints
    """(m,) bones of the joints."""
    has_root: bool
    skeleton: Skeleton
    """Its effectors are the ends that a joint carries."""
    limits: list[Limit]
    turns: Floats
    """(4, m) rotations of the joints in the initial pose."""
    is_limited: Bools
    """(m,) joints with limits."""
    stiffness: Floats | None
    """(m, 3, 3) square root of a joint's stiffness about the axes at rest; None: no joint is stiff."""
    origin: Floats
    """(3,) where the skeleton's origin is in the body: the first joint's head."""
    size: float
    """The body's size."""
    ends: Ends
    places: Floats
    """(ends, 3) initial places of the ends; those that no joint carries stay there."""
    carriers: Ints
    """(ends,) the joint that carries each; -1: none."""

    @classmethod
    def of(cls, body: Body, joints: Sequence[int], ends: Ends) -> Tree:
        """Return the tree whose joints are the bones `joints`, in this order."""
        index = {bone: i for i, bone in enumerate(joints)}
        parents = np.asarray(body.parents).tolist()

        def joint_of(bone: int) -> int:
            while bone >= 0 and bone not in index:
                bone = parents[bone]
            return index[bone] if bone >= 0 else -1

        heads, frames = np.asarray(body.heads, np.float64), np.asarray(body.frames, np.float64)
        above = [joint_of(parents[bone]) for bone in joints]
        has_root = bool(joints) and joints[0] == body.root
        carriers = [joint_of(bone) for bone, _ in ends.points]
        places = np.array([point for _, point in ends.points]).reshape(-1, 3)
        carried = [(joint, place) for joint, place in zip(carriers, places, strict=True) if joint >= 0]
        size, origin = _size_of(heads[joints], above, carried), heads[joints[0]] if joints else np.zeros(3)
        every = ranges_of(body)
        own, locked = every[joints], (every[joints, ::2] == 0.0) & (every[joints, 1::2] == 0.0)
        own[: int(has_root)], locked[: int(has_root)] = [-np.inf, np.inf] * 3, False
        is_limited = np.asarray(np.isfinite(own).any(axis=1))
        rests, stiffness = _rests_of(body, joints, is_limited, has_root=has_root)
        turns = quaternions(back_times(rests, frames[joints]).transpose(1, 2, 0))
        swing, twist = swing_twist(turns)
        each = zip(locked.tolist(), np.array([*swing, twist]).T.tolist(), own.tolist(), strict=True)
        limits = [Limit.of(fixed, angle, *range_of(*row)) for fixed, angle, row in each]

        def seen(point: Floats, joint: int) -> Vector:
            frame, start = (np.eye(3), origin) if joint < 0 else (frames[joints[joint]], heads[joints[joint]])
            x, y, z = (back_applied(frame, point - start) / size).tolist()
            return x, y, z

        bones = []
        for bone, joint, rest in zip(joints, above, rests, strict=True):
            rest = rest if joint < 0 else back_times(frames[joints[joint]], rest)
            bones.append(Bone(tuple(rest.ravel().tolist()), seen(heads[bone], joint)))
        skeleton = Skeleton(
            ONE,
            tuple(above),
            tuple(joint < 0 for joint in above),
            tuple(joint for joint, _ in carried),
            [],
            bones,
            [seen(place, joint) for joint, place in carried],
        )
        return cls(
            np.array(joints, dtype=np.int64),
            has_root,
            skeleton,
            limits,
            turns,
            is_limited,
            stiffness,
            origin,
            size,
            ends,
            places,
            np.array(carriers, np.int64),
        )

    @cached_property
    def locked(self) -> Bools:
        """(3, m) angles that stay as they are."""
        return np.array([limit.locked for limit in self.limits], dtype=bool).reshape(-1, 3).T

    @cached_property
    def _at_rest(self) -> tuple[Floats, list[Vector]]:
        """The orientations (m, 3, 3) and the heads of the skeleton's bones."""
        bones = self.skeleton.bones
        return np.array([bone.rest for bone in bones]).reshape(-1, 3, 3), [bone.head for bone in bones]

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """All pairs of a joint and one that it carries: the upper joints, and the lower ones."""
        path = self.skeleton.path
        found = [(upper, joint) for joint in range(len(self.bones)) for upper in path(joint)[:-1]]
        upper, lower = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return upper, lower

    @cached_property
    def order(self) -> list[int]:
        """The order in which joints are swept, each after all joints below it, numbered as in `children`.

        Joints that carry only dragged ends come first: these are the ones that turn over, so a sweep that must fail
        fails early.
        """
        dragged = self.carriers[self.ends.wanted[self.ends.dragged]]
        alone = np.zeros(len(self.bones), dtype=bool)
        for joint in dragged.tolist():
            alone[list(self.skeleton.path(joint))] = True
        for i, parent in reversed(list(enumerate(self.skeleton.parents))):
            if parent >= 0 and not alone[i]:
                alone[parent] = False
        joints = range(len(self.bones), 0, -1)
        return [*(i for i in joints if alone[i - 1]), *(i for i in joints if not alone[i - 1]), 0]

    @cached_property
    def children(self) -> list[list[int]]:
        """The joints directly below each, last ones first. Number 0 is the root's offset, joint i has number i + 1."""
        found: list[list[int]] = [[] for _ in range(len(self.bones) + 1)]
        for i, parent in reversed(list(enumerate(self.skeleton.parents, 1))):
            found[parent + 1].append(i)
        return found

    def split(self, turns: Floats) -> tuple[Floats, Floats]:
        """Return rotations (4, m) in two parts: those from which angles are measured, and the angles (3, m).

        Angles are measured from rest, or without limits from the pose itself, since near half a turn they say little
        about where a bone points.
        """
        swing, twist = swing_twist(np.where(self.is_limited, turns, STILL))
        return np.where(self.is_limited, STILL, turns), np.array([*swing, twist])

    def joined(self, begin: Floats, angles: Floats) -> Floats:
        """Return the rotations that `split` has split."""
        return np.where(self.is_limited, joint_rotation(angles[:2], angles[2]), begin)

    def posed(self, begin: Floats, angles: Floats, offset: Floats) -> Posed:
        """Return the pose for rotations (4, m) and angles (3, m), see `split`, and an offset (3,) of the root."""
        turned = matrices(begin).transpose(2, 0, 1)
        rests, heads = self._at_rest
        every: Any = times(rests, turned).reshape(-1, 9).tolist()
        bones = list(map(Bone, every, heads))
        if self.has_root:
            x, y, z = (np.array(bones[0].head) + offset).tolist()
            bones[0] = bones[0]._replace(head=(x, y, z))
        pose = pose_of(self.skeleton._replace(bones=bones), list(map(tuple, angles.T.tolist())))
        ends = self.places.copy()
        ends[self.carriers >= 0] = np.array(pose.ends).reshape(-1, 3) * self.size + self.origin
        return Posed(pose, angles, turned, ends)

    def carried(self, body: Body, begin: Posed, posed: Posed) -> tuple[Floats, Floats]:
        """Return the heads (n, 3) and orientations (n, 3, 3) of all bones of a body as its joints carry them.

        Args:
            body: in its initial pose.
            begin: the joints in that pose.
            posed: the joints in the new pose.
        """
        heads, frames = (np.array(part, np.float64) for part in (body.heads, body.frames))
        index = {bone: i for i, bone in enumerate(self.bones.tolist())}
        owner: list[int] = []
        for bone, parent in enumerate(np.asarray(body.parents).tolist()):
            owner.append(index.get(bone, owner[parent] if parent >= 0 else -1))
        taken = np.flatnonzero(np.array(owner) >= 0)
        by = np.array(owner)[taken]
        turned = times_back(posed.frames(by.tolist()), begin.frames(by.tolist()))
        there = np.array(posed.pose.points).reshape(-1, 3)[by] * self.size + self.origin
        heads[taken] = there + applied(turned, heads[taken] - heads[self.bones[by]])
        frames[taken] = times(turned, frames[taken])
        return heads, frames


@dataclass(frozen=True)
class Posed:
    """The joints and ends of a body in a pose."""

    pose: Pose
    angles: Floats
    """(3, m) angles of the joints: their swings about X and Z, and their twists."""
    begin: Floats
    """(m, 3, 3) rotations from which they are measured."""
    ends: Floats
    """(ends, 3) positions of the ends in the body."""

    def frames(self, joints: Sequence[int]) -> Floats:
        """Return the orientations (k, 3, 3) of joints."""
        return np.array([self.pose.frames[joint] for joint in joints]).reshape(-1, 3, 3)


def _size_of(heads: Floats, parents: Sequence[int], ends: Sequence[tuple[int, Floats]]) -> float:
    """Return the greatest length of a path along joints to an end, given its joint and place; 1 if there is none."""
    ways = [0.0] * len(heads)
    for i, parent in enumerate(parents):
        if parent >= 0:
            ways[i] = ways[parent] + float(norm(heads[i] - heads[parent]))
    size = max((ways[joint] + float(norm(place - heads[joint])) for joint, place in ends), default=0.0)
    return size if size > 0.0 else 1.0


def _rests_of(body: Body, joints: Sequence[int], is_limited: Bools, *, has_root: bool) -> tuple[Floats, Floats | None]:
    """Return the orientations (m, 3, 3) of joints at rest below bones as they are, and `Tree.stiffness`."""
    frames, parents = np.asarray(body.frames, np.float64), np.asarray(body.parents).tolist()
    rests, stiffness = frames[joints], np.tile(np.eye(3), (len(joints), 1, 1))
    for i, bone in enumerate(joints[int(has_root) :], int(has_root)):
        rest = frames[bone]
        if body.rest is not None:
            rest = np.asarray(body.rest[bone], np.float64)
            rest = rest if parents[bone] < 0 else times(frames[parents[bone]], rest)
        if is_limited[i]:
            rests[i] = rest
        if body.stiffness is not None:
            axes, give = back_times(rest, rests[i]), 1.0 - np.asarray(body.stiffness, np.float64)[bone]
            stiffness[i] = back_times(axes, axes / np.sqrt(give)[:, None])
    return rests, None if body.stiffness is None else stiffness


def ranges_of(body: Body) -> Floats:
    """Return the least and the greatest angles (n, 6) of joints, infinite where they have no limits."""
    if body.rest is None or body.cones is None or body.twist is None:
        return np.tile([-np.inf, np.inf], (len(body.parents), 3))
    return np.concatenate([body.cones, body.twist], axis=1).astype(np.float64)
