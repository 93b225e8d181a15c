"""A body of joints with limits, in numbers: where its bones are for given joint angles, and about what they turn.

A chain is a body without branches. A joint has three angles: the two coordinates of its swing, and its twist, see
`cones`. Numbers are floats for one body, or arrays (B,) for B bodies, see `numbers`. Whatever belongs to a joint is an
item of a list, parents first. Matrices are nine numbers, row by row.

`Standing` lays members of a problem out as bodies, relative to their roots, in units of their longest chains.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from ..maths.cones import Cone, cone_of
from ..maths.numbers import MANY, ONE, Nested, Number, Numbers, Pair
from ..maths.products import back_applied, back_times, times
from ..maths.rotations import norm, quaternions
from ..maths.turns import RIM, Quaternion, nearest_direction, nearest_twist, swing_and_twist
from ..maths.vectors import Vector
from ..problem import Bools, Floats, Ints, Problem, chain_lengths, path_of, shape_of

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
    known: dict[int, Nested]
    """What poles found out about it, by effector."""


class Skeleton(NamedTuple):
    """Everything that does not depend on the joint angles; see `Body`."""

    do: Numbers
    parents: tuple[int, ...]
    free: tuple[bool, ...]
    segments: tuple[int, ...]
    joints: list[Joint]
    bones: list[Bone]
    ends: list[Vector]


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
    return Pose(frames, points, ends, axes, {})


def inside(do: Numbers, joint: Joint, x: Number, z: Number, twist: Number) -> Vector:
    """Return the joint angles within the limits that are nearest to the given ones, angle by angle."""
    x, z = do.nearest_swing(x, z, joint.low, joint.high)
    square = x * x + z * z
    if do.any(square > CLEAR):
        room = do.least(1.0, RIM / do.most(do.sqrt(square), 1e-30))
        x, z = x * room, z * room
    return x, z, do.least(do.most(twist, joint.twist_low), joint.twist_high)


def each_joint(do: Numbers, function: Callable[..., Nested], *joints: Sequence[Nested]) -> list[Nested]:
    """Return what a function makes of each joint: of many members all joints at once, on arrays (n, B)."""
    if do is ONE:
        return list(map(function, *joints))
    found = function(*map(_together, joints))
    return _apart(found, len(joints[0]))


def _together(joints: Sequence[Nested]) -> Nested:
    """Stack numbers of joints, floats or arrays (B,), to arrays (n, B); floats to (n, 1)."""
    if isinstance(joints, np.ndarray):
        return joints.swapaxes(0, 1) if joints.ndim > 2 else joints
    one = joints[0]
    if isinstance(one, tuple | list):
        parts = list(map(_together, zip(*joints, strict=True)))
        return one._make(parts) if hasattr(one, "_make") else tuple(parts)
    return np.concatenate(joints).reshape(len(joints), -1) if np.ndim(one) else np.array(joints)[:, None]


def _apart(value: Nested, count: int) -> list[Nested]:
    """Return the numbers of each joint from arrays (n, B) of all of them."""
    if not isinstance(value, tuple | list):
        return list(value) if np.ndim(value) else [value] * count
    parts = zip(*(_apart(part, count) for part in value), strict=True)
    return list(map(value._make, parts)) if hasattr(value, "_make") else list(parts)


def nearest_angles(do: Numbers, joint: Joint, turn: Quaternion) -> Vector:
    """Return the joint angles within the limits that are nearest to a joint's rotation."""
    x, z, twist = swing_and_twist(do, turn)
    x, z = nearest_direction(do, (x, z), joint.low, joint.high)
    return inside(do, joint, x, z, nearest_twist(do, twist, joint.twist_low, joint.twist_high))


def rows_of(angles: Floats) -> list[Nested]:
    """Return the angles (3, n) of one body, or (3, n, B) of B bodies, joint by joint; or quaternions (4, ...)."""
    if angles.ndim == 2:
        return list(map(tuple, angles.T.tolist()))
    return [tuple(angles[:, joint]) for joint in range(angles.shape[1])]


def arrays_of(angles: Sequence[Nested]) -> Floats:
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
    kept: dict[Hashable, Nested] = field(init=False, default_factory=dict)
    """Layouts of single members, reused while only goals change."""

    @property
    def is_serial(self) -> bool:
        """Whether the body is a chain whose joints all turn its one effector."""
        bones = len(self.parents)
        return self.parents == tuple(range(-1, bones - 1)) and self.segments == (bones - 1,) and not any(self.free[1:])

    def skeleton(self, member: int | None = None) -> Skeleton:
        """Return one of the bodies in floats, kept while only goals change; None: all of them in arrays."""
        if member in self.kept:
            known: Skeleton = self.kept[member]
            return known
        parts = self.rest.reshape(9, *self.rest.shape[2:]), self.heads, self.ends
        shape = self.parents, self.free, self.segments, self._joints
        if member is None:
            rests, heads, tips = (list(part.swapaxes(0, 1)) for part in parts)
            return Skeleton(MANY, *shape, list(map(Bone, rests, heads)), tips)
        rests, heads, tips = (rows_of(part[..., member]) for part in parts)
        bones = list(map(Bone, rests, heads))
        found = self.kept[member] = Skeleton(ONE, *shape, bones, tips)
        return found

    @cached_property
    def _joints(self) -> list[Joint]:
        """The joints of one member, which are the same for all."""
        scale = np.sqrt(self.mobility)
        parts = *self.cone, self.mobility, scale, scale * np.array([0.5, 0.5, 1.0])[:, None, None]
        return list(map(Joint, *(part[..., 0].T.tolist() for part in parts)))


def posed(body: Body, angles: Floats) -> tuple[Floats, Floats]:
    """Return frames (B, n, 3, 3) of the bones, and heads and effectors (B, n+E, 3), for joint angles (3, n, B)."""
    pose = pose_of(body.skeleton(), rows_of(angles))
    frames, points = (np.moveaxis(np.array(part), 2, 0) for part in (pose.frames, [*pose.points, *pose.ends]))
    return frames.reshape(*frames.shape[:2], 3, 3), points


def allowed_angles(body: Body, angles: Floats) -> Floats:
    """Return the joint angles (3, n, B) within the limits that are nearest to the given ones, angle by angle."""
    joints = body.skeleton().joints
    return arrays_of([inside(MANY, joint, *own) for joint, own in zip(joints, rows_of(angles), strict=True)])


@dataclass(frozen=True)
class Standing:
    """B members of a problem in FK, relative to the root, in units of the longest chain: everything but the goals."""

    body: Body
    turns: Floats
    """(4, n, B) rotations of the joints in the FK pose."""
    points: Floats
    """(B, n+E, 3) joint positions."""
    frames: Floats
    """(B, n, 3, 3)"""
    origin: Floats
    """(B, 3)"""
    scale: Floats
    """(B,)"""
    lengths: Floats
    """(B, E) lengths of the chains to the effectors, in the problem's unit."""
    limited: Bools
    """(n,) joints with a limit that are not locked altogether."""

    @classmethod
    def of(cls, problem: Problem, index: Ints) -> Self:
        """Read the valid members `index` (k,) of a problem."""
        joints = np.asarray(problem.joints, dtype=np.float64)[index]
        frames = np.asarray(problem.frames, dtype=np.float64)[index]
        parents, free, segments = shape_of(problem)
        lengths = chain_lengths(problem, index).T
        scale = lengths.max(axis=1)
        origin = joints[:, 0]
        points = (joints - origin[:, None]) / scale[:, None, None]
        rest, cone, mobility, limited, locked = _joints_of(problem, index, parents, free)
        rest_frames = np.where(free[:, None, None], rest, times(frames[:, parents], rest))
        rest_frames[:, locked] = frames[:, locked]
        turns = quaternions(back_times(rest_frames, frames).transpose(2, 3, 1, 0))
        shape = tuple(parents.tolist()), tuple(free.tolist()), tuple(segments.tolist())
        rest, mobility = np.ascontiguousarray(rest.transpose(2, 3, 1, 0)), np.ascontiguousarray(mobility.T)[..., None]
        heads, ends = _segments(points, frames, parents, segments, np.ones(frames.shape[:2]))
        body = Body(*shape, rest, heads, ends, cone, mobility)
        return cls(body, turns, points, frames, origin, scale, lengths, limited)

    @cached_property
    def path(self) -> list[int]:
        """Indices of the points of the chain to the first effector."""
        return [*path_of(self.body.parents, self.body.segments[0]), len(self.body.parents)]

    @cached_property
    def steps(self) -> Floats:
        """(k, B) lengths of the segments of that chain."""
        points = self.points[:, self.path].transpose(2, 1, 0)
        return norm(points[:, 1:] - points[:, :-1])

    @cached_property
    def suits(self) -> bool:
        """Whether these are chains whose joints all have limits, and all turn the one effector, see `crowd`."""
        return self.body.is_serial and not any(map(is_unlimited, self.body.skeleton(0).joints))

    def lengthened(self, member: int, factors: Sequence[float]) -> Self:
        """Return one member with its bones lengthened by factors (n,); its unit grows with the chain."""
        own, parents, segments = [member], np.array(self.body.parents), np.array(self.body.segments)
        stretch, steps = np.array([factors]), self.steps[:, member]
        grown = (steps * stretch[0, self.path[:-1]]).sum() / steps.sum()
        points, frames = self.points[own] / grown, self.frames[own]
        heads, ends = _segments(points, frames, parents, segments, stretch)
        return replace(
            self,
            body=replace(self.body, rest=self.body.rest[..., own], heads=heads, ends=ends),
            turns=self.turns[..., own],
            points=points,
            frames=frames,
            origin=self.origin[own],
            scale=self.scale[own] * grown,
            lengths=self.lengths[own],
        )


def _segments(points: Floats, frames: Floats, parents: Ints, segments: Ints, stretch: Floats) -> tuple[Floats, Floats]:
    """Return heads (3, n, B) and ends (3, E, B) as in `Body`, of bones lengthened by factors (B, n)."""
    bones = len(parents)
    offsets = points[:, :bones] - points[:, parents]
    heads = back_applied(frames[:, parents], offsets) * stretch[:, parents, None]
    heads[:, parents < 0] = points[:, :bones][:, parents < 0]
    ends = back_applied(frames[:, segments], points[:, bones:] - points[:, segments]) * stretch[:, segments, None]
    return np.ascontiguousarray(heads.transpose(2, 1, 0)), np.ascontiguousarray(ends.transpose(2, 1, 0))


def _joints_of(problem: Problem, index: Ints, parents: Ints, free: Bools) -> tuple[Floats, Cone, Floats, Bools, Bools]:
    """Return the joints' rest frames (B, n, 3, 3), cones, mobility (n, 3), and which are limited and locked (n,).

    A joint without any limit is at rest in the FK pose, which is farthest from half a turn.
    """
    bones = len(parents)
    frames = np.asarray(problem.frames, dtype=np.float64)[index]
    rest = np.where(free[:, None, None], frames, back_times(frames[:, parents], frames))
    stiffness = np.zeros((bones, 3)) if problem.stiffness is None else np.asarray(problem.stiffness, dtype=np.float64)
    mobility = 1.0 - stiffness[:, [0, 2, 1]]
    everything = np.tile([-np.inf, np.inf], (bones, 3))
    limits = problem.limits
    ranges = everything if limits is None else np.concatenate([limits.cones, limits.twist], axis=1).astype(np.float64)
    locked = (ranges == 0.0).all(axis=1)
    limited = np.isfinite(ranges).any(axis=1) & ~locked
    if limits is not None:
        root = np.asarray(limits.root, dtype=np.float64)[index]
        at_rest = np.broadcast_to(np.asarray(limits.rest, dtype=np.float64), np.shape(problem.frames))[index]
        rest[:, limited] = at_rest[:, limited]
        for i in map(int, np.flatnonzero(limited & (parents < 0))):
            if problem.inherits is None or problem.inherits[i]:
                rest[:, i] = times(root, at_rest[:, i])
    cone = cone_of(ranges[:, :4], ranges[:, 4:])
    cone = Cone(*(part[..., None] for part in cone))
    return rest, cone, mobility * (ranges[:, ::2] != ranges[:, 1::2]), limited, locked
