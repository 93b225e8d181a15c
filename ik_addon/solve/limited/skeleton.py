"""A body of joints with limits, in numbers: where its bones are for given joint angles, and about what they turn.

A chain is a body without branches. A joint has three angles: the two coordinates of its swing, and its twist, see
`cones`. Numbers are floats for one body, or arrays (B,) for B bodies, see `numbers`. Whatever belongs to a joint is an
item of a list, parents first. Matrices are nine numbers, row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..maths.cones import RIM, Cone, nearest_swing
from ..maths.numbers import (
    MANY,
    ONE,
    Number,
    Numbers,
    Pair,
    Quaternion,
    Vector,
    nearest_direction,
    nearest_twist,
    swing_and_twist,
)
from ..maths.rotations import stacked
from ..problem import Floats, path_of

STEEPEST = 1e-3
"""Minimum cosine of half a swing's angle: near half a turn, a swing turns the bone about itself ever faster."""
STEEPEST_SQUARE = STEEPEST**2
CLEAR = 0.9
"""Swings whose square is no larger are clear of the rim of all swings."""

Nine = tuple[Number, ...]
Angles = list[Vector]
"""The angles of each joint: its swing about X and about Z, and its twist."""


class Joint(NamedTuple):
    """The limits and the mobility of a joint, in floats: they are the same for all members."""

    low: Pair
    high: Pair
    twist_low: float
    twist_high: float
    mobility: Vector
    scale: Vector
    """Square root of the mobility, which scales the coordinates of a step."""
    units: Vector
    """Factors that convert the coordinates of a step to those of the joint."""


def is_unlimited(joint: Joint) -> bool:
    """Whether a joint may turn to any orientation, equally readily about each axis."""
    is_free = min(*joint.low, *joint.high) > 1.0 and joint.twist_low == -joint.twist_high == float("-inf")
    return is_free and joint.mobility[0] == joint.mobility[1] == joint.mobility[2]


class Bone(NamedTuple):
    """See `Body.rest` and `Body.heads`."""

    rest: Nine
    head: Vector


class Pose(NamedTuple):
    """A skeleton posed by joint angles."""

    frames: list[Nine]
    """The orientation of each bone."""
    points: list[Vector]
    """The heads of the bones."""
    ends: list[Vector]
    """The effectors."""
    axes: list[Nine]
    """The axes about which each bone turns as its joint's angles change: three columns. The angles are the twist and
    twice the coordinates of the swing: a small change turns a bone by as many radians."""


class Skeleton(NamedTuple):
    """Everything that does not depend on the joint angles; see `Body`."""

    do: Numbers
    parents: tuple[int, ...]
    free: tuple[bool, ...]
    segments: tuple[int, ...]
    joints: list[Joint]
    bones: list[Bone]
    ends: list[Vector]

    def path(self, bone: int) -> tuple[int, ...]:
        """Return the bones from the root to a bone."""
        return path_of(self.parents, bone)


def pose_of(skeleton: Skeleton, angles: Angles) -> Pose:
    """Return the pose that joint angles give: one pass down the bones, with nothing but numbers."""
    do, parents, free, _, _, bones, tips = skeleton
    sqrt, tan, most = do.sqrt, do.tan, do.most
    frames: list[Nine] = []
    points: list[Vector] = []
    axes: list[Nine] = []
    for (rest, head), (x, z, twist), parent, is_free in zip(bones, angles, parents, free, strict=True):
        a, b, c, d, e, f, g, h, i = rest
        if parent >= 0:
            (j, k, m, n, o, p, q, r, s), (u, v, w), (px, py, pz) = frames[parent], head, points[parent]
            head = px + (j * u + k * v + m * w), py + (n * u + o * v + p * w), pz + (q * u + r * v + s * w)
            if not is_free:
                a, d, g = j * a + k * d + m * g, n * a + o * d + p * g, q * a + r * d + s * g
                b, e, h = j * b + k * e + m * h, n * b + o * e + p * h, q * b + r * e + s * h
                c, f, i = j * c + k * f + m * i, n * c + o * f + p * i, q * c + r * f + s * i
        # The turn of the joint, swing times twist. From half the angle: numpy's tangent is faster than its sine.
        half = tan(0.5 * twist)
        square = half * half
        share = 1.0 / (1.0 + square)
        u, v = (1.0 - square) * share, 2.0 * half * share
        xx, zz = x * x, z * z
        rim = 1.0 - xx - zz
        w = 2.0 * sqrt(most(rim, 0.0))
        dx, dz, xz = 2.0 * xx, 2.0 * zz, 2.0 * x * z
        wx, wz, left, right = w * x, w * z, 1.0 - dz, 1.0 - dx
        j, k, m = left * u - xz * v, -wz, left * v + xz * u
        n, o, p = wz * u + wx * v, right - dz, wz * v - wx * u
        q, r, s = xz * u - right * v, wx, xz * v + right * u
        j, n, q = a * j + b * n + c * q, d * j + e * n + f * q, g * j + h * n + i * q
        k, o, r = a * k + b * o + c * r, d * k + e * o + f * r, g * k + h * o + i * r
        m, p, s = a * m + b * p + c * s, d * m + e * p + f * s, g * m + h * p + i * s
        rim = sqrt(most(rim, STEEPEST_SQUARE))
        both = x * z / rim
        xx, zz = xx / rim + rim, zz / rim + rim
        u, v, w = a * xx + b * z + c * both, d * xx + e * z + f * both, g * xx + h * z + i * both
        a, d, g = a * both - b * x + c * zz, d * both - e * x + f * zz, g * both - h * x + i * zz
        axes.append((u, a, k, v, d, o, w, g, r))
        frames.append((j, k, m, n, o, p, q, r, s))
        points.append(head)
    ends = []
    for bone, (u, v, w) in zip(skeleton.segments, tips, strict=True):
        (j, k, m, n, o, p, q, r, s), (px, py, pz) = frames[bone], points[bone]
        ends.append((px + (j * u + k * v + m * w), py + (n * u + o * v + p * w), pz + (q * u + r * v + s * w)))
    return Pose(frames, points, ends, axes)


def inside(do: Numbers, joint: Joint, x: Number, z: Number, twist: Number) -> Vector:
    """Return the joint angles within the limits that are nearest to the given ones, angle by angle."""
    x, z = do.nearest_swing(x, z, joint.low, joint.high)
    square = x * x + z * z
    if do.any(square > CLEAR):
        room = do.least(1.0, RIM / do.most(do.sqrt(square), 1e-30))
        x, z = x * room, z * room
    return x, z, do.least(do.most(twist, joint.twist_low), joint.twist_high)


def nearest_angles(do: Numbers, joint: Joint, turn: Quaternion) -> Vector:
    """Return the joint angles within the limits that are nearest to a joint's rotation."""
    x, z, twist = swing_and_twist(do, turn)
    x, z = nearest_direction(do, (x, z), joint.low, joint.high)
    return inside(do, joint, x, z, nearest_twist(do, twist, joint.twist_low, joint.twist_high))


def rows_of(angles: Floats) -> Angles:
    """Return the angles (3, n) of one body, or (3, n, B) of B bodies, joint by joint."""
    if angles.ndim == 2:
        return list(map(tuple, angles.T.tolist()))
    return [tuple(angles[:, joint]) for joint in range(angles.shape[1])]


def arrays_of(angles: Sequence[Any]) -> Floats:
    """Return the angles of one body as an array (3, n), or of B bodies as (3, n, B)."""
    found: Floats = np.array(angles, dtype=np.float64)
    return np.ascontiguousarray(found.swapaxes(0, 1))


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
        return path_of(self.parents, self.segments[effector])

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
