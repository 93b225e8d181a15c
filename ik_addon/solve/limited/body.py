"""Bodies of joints with limits, as arrays: components first and members last. One of them in floats is a `Skeleton`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..maths.cones import RIM, Cone, nearest_swing
from ..maths.numbers import MANY, ONE
from ..maths.rotations import dot, stacked
from ..problem import Floats
from .skeleton import Bone, Joint, Skeleton, is_unlimited, pose_of, rows_of

FEW = 32
"""Maximum number of bodies posed one by one, in plain floats: an operation on arrays takes as long as some 30 of
floats."""


@dataclass(frozen=True)
class Body:
    """B bodies of n bones and E effectors: everything that does not depend on the joint angles."""

    parents: tuple[int, ...]
    """The parent of each bone, an earlier one; -1: none."""
    free: tuple[bool, ...]
    """Bones whose orientation depends on no other bone: roots, and bones that do not inherit rotation."""
    segments: tuple[int, ...]
    """The bone of each effector."""
    rest: Floats
    """(3, 3, n, B) rest orientation relative to the parent bone; in space for free bones."""
    heads: Floats
    """(3, n, B) head relative to the parent bone; in space for roots."""
    ends: Floats
    """(3, E, B) effector relative to its bone."""
    cone: Cone
    """Limits of the joints: swings (2, n, 1), twists (n, 1)."""
    mobility: Floats
    """(3, n, 1) how readily a joint turns, from 0 (locked) to 1: swing about X and Z, twist."""

    def path(self, effector: int) -> tuple[int, ...]:
        """Return the bones from the root to the bone of an effector."""
        bones, bone = [], self.segments[effector]
        while bone >= 0:
            bones.append(bone)
            bone = self.parents[bone]
        return tuple(bones[::-1])

    @property
    def is_serial(self) -> bool:
        """Whether the body is a chain whose joints all turn its one effector."""
        bones = len(self.parents)
        return self.parents == tuple(range(-1, bones - 1)) and self.segments == (bones - 1,) and not any(self.free[1:])

    @cached_property
    def are_limited(self) -> bool:
        """Whether all joints have limits, see `newton.Chart`."""
        return not any(map(is_unlimited, self._joints))

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """Layouts of single members, reused while only goals change."""
        return {}

    def skeleton(self, member: int | None = None) -> Skeleton:
        """Return one of the bodies in floats, kept while only goals change; None: all of them in arrays."""
        if member in self.kept:
            known: Skeleton = self.kept[member]
            return known
        chosen = slice(None) if member is None else member
        rests, heads, ends = (part[..., chosen] for part in (self.rest, self.heads, self.ends))
        bones = [
            Bone(tuple(_numbers(rests[:, :, i].reshape(9, *rests.shape[3:]))), tuple(_numbers(heads[:, i])))
            for i in range(len(self.parents))
        ]
        tips = [tuple(_numbers(ends[:, e])) for e in range(len(self.segments))]
        do = MANY if member is None else ONE
        found = Skeleton(do, self.parents, self.free, self.segments, self._joints, bones, tips)
        if member is not None:
            self.kept[member] = found
        return found

    @cached_property
    def reaches(self) -> Floats:
        """(E, B) lengths of the chains from the root to each effector."""
        found = []
        for effector in range(len(self.segments)):
            path = list(self.path(effector))
            steps = np.concatenate([self.heads[:, path[1:]], self.ends[:, effector : effector + 1]], axis=1)
            found.append(np.cumsum(np.sqrt(dot(steps, steps)), axis=0)[-1])
        return np.stack(found)

    @property
    def _limits(self) -> tuple[Floats, ...]:
        mobility = np.sqrt(self.mobility)
        return (*self.cone, self.mobility, mobility, mobility * np.array([0.5, 0.5, 1.0])[:, None, None])

    @cached_property
    def _joints(self) -> list[Joint]:
        """The joints of one member, which are the same for all."""
        return list(map(Joint, *(part[..., 0].T.tolist() for part in self._limits)))


def _numbers(values: Floats) -> Iterable[Any]:
    """Return values (k,) as floats, or values (k, B) as arrays."""
    numbers: Iterable[Any] = values.tolist() if values.ndim == 1 else values
    return numbers


def posed(body: Body, angles: Floats) -> tuple[Floats, Floats]:
    """Return frames (B, n, 3, 3) of the bones, and heads and effectors (B, n+E, 3), for joint angles (3, n, B)."""
    members, bones = angles.shape[2], len(body.parents)
    if members > FEW:
        pose = pose_of(body.skeleton(), rows_of(angles))
        turns: Floats = np.moveaxis(np.array(pose.frames), 2, 0)
        points: Floats = np.array([*pose.points, *pose.ends])
        return turns.reshape(members, bones, 3, 3), np.moveaxis(points, 2, 0)
    poses = [pose_of(body.skeleton(i), rows_of(angles[..., i])) for i in range(members)]
    frames: Floats = np.array([pose.frames for pose in poses]).reshape(members, bones, 3, 3)
    return frames, np.array([[*pose.points, *pose.ends] for pose in poses])


def allowed_angles(body: Body, angles: Floats) -> Floats:
    """Return the joint angles (3, n, B) within the limits that are nearest to the given ones, angle by angle."""
    swing = nearest_swing(angles[:2], body.cone)
    size = np.sqrt(swing[0] * swing[0] + swing[1] * swing[1])
    swing = swing * np.minimum(1.0, RIM / np.maximum(size, 1e-30))
    return stacked(*swing, np.minimum(np.maximum(angles[2], body.cone.twist_low), body.cone.twist_high))
