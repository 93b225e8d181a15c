"""Bodies of joints with limits: where their bones are for given joint angles, and how these move them.

A chain is a body without branches. A joint has three angles: the two coordinates of its swing, and its twist, see
`cones`. Components come first and members last, so that each operation runs over contiguous memory. Everything but the
walk down the bones is written once, for one body in plain floats and for many in arrays, see `calculus`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..maths.calculus import Calculus, Row
from ..maths.cones import RIM, Cone, nearest_direction, nearest_swing, nearest_twist, swing_twist
from ..maths.kernels import MANY, ONE, is_everyone
from ..maths.rotations import dot, stacked
from ..maths.vectors import Matrix, Number, Vector, plus, product, turned
from ..problem import Bools, Floats, Ints

STEEPEST = 1e-3
"""Minimum cosine of half a swing's angle: near half a turn, a swing turns the bone about itself ever faster."""
STEEPEST_SQUARE = STEEPEST**2


CLEAR = 0.9
"""Swings whose square is no larger are clear of the rim of all swings."""
FEW = 4
"""Maximum number of bodies posed one by one, in plain floats."""
HAIR = 1e-5
"""Offsets from a bone's axis below this fraction of its length are rounding of single precision."""


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

    def members(self, chosen: Bools | Ints) -> Body:
        """Return only the chosen members, each as often as its index occurs."""
        if is_everyone(chosen, self.rest.shape[-1]):
            return self
        rest, heads, ends = (part[..., chosen] for part in (self.rest, self.heads, self.ends))
        return replace(self, rest=rest, heads=heads, ends=ends)

    @cached_property
    def straightened(self) -> Body:
        """The bodies with points that are on the axis of a bone, but for rounding, exactly on it.

        Then the twist of such a bone has no effect at all, instead of a tiny one.
        """

        def on_axis(seen: Floats) -> Floats:
            near = np.maximum(np.abs(seen[0]), np.abs(seen[2])) < HAIR * np.abs(seen[1])
            return np.where(near & np.array([[[True]], [[False]], [[True]]]), 0.0, seen)

        return replace(self, heads=on_axis(self.heads), ends=on_axis(self.ends))

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
    def is_unlimited(self) -> Bools:
        """(n,) joints that may turn to any orientation, equally readily about each axis."""
        cone, ready = self.cone, np.ptp(self.mobility[..., 0], axis=0) == 0.0
        swings = np.asarray((np.minimum(cone.low, cone.high) > 1.0).all(axis=0))
        twists = np.isinf(cone.twist_low) & np.isinf(cone.twist_high)
        return np.asarray((swings & twists)[:, 0] & ready)

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """Layouts of single members, reused while only goals change."""
        return {}

    def skeleton(self, member: int | None = None) -> Skeleton:
        """Return all bodies, or one, laid out for the kernels."""
        if ("skeleton", member) in self.kept:
            known: Skeleton = self.kept["skeleton", member]
            return known
        topology = self.parents, self.free, self.segments
        if member is None:
            ends = [self.ends[:, e] for e in range(len(self.segments))]
            return Skeleton(MANY, *topology, [Joint(*self._limits)], [Bone(self.rest, self.heads)], ends)
        rest, heads = self.rest[..., member].transpose(2, 0, 1).tolist(), self.heads[..., member].T.tolist()
        bones = list(map(Bone, rest, heads))
        found = Skeleton(ONE, *topology, self._joints, bones, self.ends[..., member].T.tolist())
        self.kept["skeleton", member] = found
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
    def _joints(self) -> Row:
        """The joints of one member, which are the same for all."""
        return list(map(Joint, *(part[..., 0].T.tolist() for part in self._limits)))


class Joint(NamedTuple):
    """The limits and the mobility of a joint."""

    low: Any
    high: Any
    twist_low: Number
    twist_high: Number
    mobility: Any
    scale: Any
    """Square root of the mobility, which scales the coordinates of a step."""
    units: Any
    """Factors that convert the coordinates of a step to those of the joint."""


class Bone(NamedTuple):
    """See `Body.rest` and `Body.heads`."""

    rest: Any
    head: Any


class Skeleton(NamedTuple):
    """Bodies laid out for a kernel."""

    do: Calculus
    parents: tuple[int, ...]
    free: tuple[bool, ...]
    segments: tuple[int, ...]
    joints: Row
    """Of type `Joint`; the same for all members."""
    bones: Row
    """Of type `Bone`."""
    ends: Any
    """Vectors: the effectors relative to their bones."""

    def members(self, chosen: Any) -> Skeleton:
        """Return only the chosen members."""
        return self._replace(bones=self.do.members(self.bones, chosen), ends=self.do.members(self.ends, chosen))


class Pose(NamedTuple):
    """Bodies posed by joint angles."""

    rest_frames: Row
    """Matrices: the orientation that each bone has if its joint is at rest."""
    frames: Row
    """Matrices: the orientation of each bone."""
    points: Row
    """Vectors: the heads of the bones."""
    ends: list[Vector]
    """The effectors."""
    found: dict[Any, Any]
    """What objectives have found out about the pose."""


def pose_of(skeleton: Skeleton, angles: Row) -> Pose:
    """Return the pose that joint angles give."""
    do = skeleton.do
    # From half the angle: numpy's tangent is ten times as fast as its sine.
    halves = [do.tan(0.5 * twist) for _, _, twist in angles]
    turns = [_turn(do, x, z, half) for (x, z, _), half in zip(angles, halves, strict=True)]
    down = _down_one if do is ONE else _down_many
    rest_frames, frames, points = down(skeleton, turns)
    ends = [
        plus(do.of(points, bone), turned(do.of(frames, bone), end))
        for bone, end in zip(skeleton.segments, skeleton.ends, strict=True)
    ]
    return Pose(rest_frames, frames, points, ends, {})


def posed(body: Body, angles: Floats) -> tuple[Floats, Floats]:
    """Return frames (B, n, 3, 3) of the bones, and heads and effectors (B, n+E, 3), for joint angles (3, n, B)."""
    members = angles.shape[2]
    if members > FEW:
        pose = pose_of(body.skeleton(), as_row(angles, None))
        points = np.concatenate([pose.points[0], np.stack([np.stack(end) for end in pose.ends], axis=1)], axis=1)
        return pose.frames[0].transpose(3, 2, 0, 1), points.transpose(2, 1, 0)
    poses = [pose_of(body.skeleton(i), as_row(angles, i)) for i in range(members)]
    return np.array([pose.frames for pose in poses]), np.array([[*pose.points, *pose.ends] for pose in poses])


def _turn(do: Calculus, x: Number, z: Number, half: Number) -> Matrix:
    """Return the matrix of joint angles, swing times twist; the twist is given as the tangent of its half."""
    square = half * half
    share = 1.0 / (1.0 + square)
    c, s = (1.0 - square) * share, 2.0 * half * share
    xx, zz = x * x, z * z
    w = 2.0 * do.sqrt(do.most(1.0 - xx - zz, 0.0))
    xx, zz, xz = 2.0 * xx, 2.0 * zz, 2.0 * x * z
    wx, wz, left, right = w * x, w * z, 1.0 - zz, 1.0 - xx
    return (
        (left * c - xz * s, -wz, left * s + xz * c),
        (wz * c + wx * s, right - zz, wz * s - wx * c),
        (xz * c - right * s, wx, xz * s + right * c),
    )


def _down_one(skeleton: Skeleton, turns: Row) -> tuple[Row, Row, Row]:
    """Return rest frames, frames and heads of the bones of one body."""
    rest_frames: Row = []
    frames: Row = []
    points: Row = []
    for (rest, head), turn, parent, free in zip(skeleton.bones, turns, skeleton.parents, skeleton.free, strict=True):
        rest_frame, point = rest, head
        if parent >= 0:
            point = plus(points[parent], turned(frames[parent], head))
            if not free:
                rest_frame = product(frames[parent], rest)
        rest_frames.append(rest_frame)
        frames.append(product(rest_frame, turn))
        points.append(point)
    return rest_frames, frames, points


def _down_many(skeleton: Skeleton, turns: Row) -> tuple[Row, Row, Row]:
    """Return the same for many bodies: whole matrices at once, because calls cost more than numbers."""
    ((rest, heads),) = skeleton.bones
    local, rest_frames, frames = (np.empty_like(rest) for _ in range(3))
    for row, parts in zip(local, turns[0], strict=True):
        for out, part in zip(row, parts, strict=True):
            out[:] = part
    parts = np.empty((3, *rest[:, :, 0].shape))
    for i, (parent, free) in enumerate(zip(skeleton.parents, skeleton.free, strict=True)):
        if free:
            rest_frames[:, :, i] = rest[:, :, i]
        else:
            _multiply(frames[:, :, parent], rest[:, :, i], rest_frames[:, :, i], parts)
        _multiply(rest_frames[:, :, i], local[:, :, i], frames[:, :, i], parts)
    serial = skeleton.parents == tuple(range(-1, len(skeleton.parents) - 1))
    above = frames[:, :, :-1] if serial else frames[:, :, list(skeleton.parents)]
    # The entries of roots, which have no parent, are not used.
    steps = stacked(*turned(above, heads[:, 1:] if serial else heads))
    points = np.empty_like(heads)
    for i, parent in enumerate(skeleton.parents):
        if parent < 0:
            points[:, i] = heads[:, i]
        else:
            np.add(points[:, parent], steps[:, i - serial], out=points[:, i])
    return [rest_frames], [frames], [points]


def _multiply(a: Floats, b: Floats, out: Floats, parts: Floats) -> None:
    """Put the products of matrices (3, 3, B) into `out`, see `vectors.product`; `parts` is overwritten."""
    np.multiply(a[:, :, None], b, out=parts)
    np.add(parts[:, 0], parts[:, 1], out=out)
    out += parts[:, 2]


def axes_of(do: Calculus, pose: Pose, angles: Row) -> Row:
    """Return the axes about which bones turn as their joint angles change, as the columns of matrices.

    The angles are the twist and twice the coordinates of the swing: a small change turns a bone by as many radians.
    """
    found = []
    for (x, z, _), rest_frame, frame in zip(angles, pose.rest_frames, pose.frames, strict=True):
        (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rest_frame
        p, q = x * x, z * z
        rest = do.sqrt(do.most(1.0 - p - q, STEEPEST_SQUARE))
        both = x * z / rest
        p, q = p / rest + rest, q / rest + rest
        found.append(
            (
                (xx * p + xy * z + xz * both, xx * both - xy * x + xz * q, frame[0][1]),
                (yx * p + yy * z + yz * both, yx * both - yy * x + yz * q, frame[1][1]),
                (zx * p + zy * z + zz * both, zx * both - zy * x + zz * q, frame[2][1]),
            )
        )
    return found


def jacobian_of(axes: Matrix, lever_arm: Vector) -> Matrix:
    """Return how a point moves, one row per component, while its lever arm turns about the columns of `axes`."""
    (ax, bx, cx), (ay, by, cy), (az, bz, cz) = axes
    x, y, z = lever_arm
    return (
        (ay * z - az * y, by * z - bz * y, cy * z - cz * y),
        (az * x - ax * z, bz * x - bx * z, cz * x - cx * z),
        (ax * y - ay * x, bx * y - by * x, cx * y - cy * x),
    )


def inside(do: Calculus, joint: Any, x: Number, z: Number, twist: Number) -> Vector:
    """Return the joint angles within the limits that are nearest to the given ones, angle by angle."""
    x, z = do.nearest_swing(x, z, joint.low, joint.high)
    square = x * x + z * z
    if do.any(square > CLEAR):
        room = do.least(1.0, RIM / do.most(do.sqrt(square), 1e-30))
        x, z = x * room, z * room
    return x, z, do.least(do.most(twist, joint.twist_low), joint.twist_high)


def as_row(angles: Floats, member: int | None) -> Row:
    """Return joint angles (3, n, B) as a row of vectors, for all members or for one."""
    return [tuple(angles)] if member is None else list(map(tuple, angles[..., member].T.tolist()))


def allowed_angles(body: Body, angles: Floats) -> Floats:
    """Return the joint angles (3, n, B) within the limits that are nearest to the given ones, angle by angle."""
    swing = nearest_swing(angles[:2], body.cone)
    size = np.sqrt(swing[0] * swing[0] + swing[1] * swing[1])
    swing = swing * np.minimum(1.0, RIM / np.maximum(size, 1e-30))
    return stacked(*swing, np.minimum(np.maximum(angles[2], body.cone.twist_low), body.cone.twist_high))


def angles_of(body: Body, turns: Floats) -> Floats:
    """Return the joint angles (3, n, B) within the limits that are nearest to joint rotations (4, n, B)."""
    swing, twist = swing_twist(turns)
    return allowed_angles(body, stacked(*nearest_direction(swing, body.cone), nearest_twist(twist, body.cone)))
