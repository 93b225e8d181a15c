"""The joints of a body that take part in a drag, with their limits and the ends that they carry.

Ends are the points of a body that are pinned or dragged, with a place, an orientation or both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import copysign, sqrt
from typing import NamedTuple

import numpy as np

from ..limited.skeleton import STEEPEST_SQUARE
from ..maths.cones import joint_rotation, swing_twist
from ..maths.numbers import ONE, Pair
from ..maths.products import applied, back_applied, back_times, times, times_back
from ..maths.rotations import matrices, multiply, norm, quaternions
from ..maths.turns import RIM, nearest_twist, range_of
from ..maths.vectors import Vector, over, plus, size_of
from ..maths.vectors import times as scaled
from ..problem import Bools, Floats, Ints
from .problem import STRENGTH, Body, Grab, Pin

HELD_BACK = 1e-9
"""A limit holds an angle back if it moves it by more than this."""
AT = 1e-2
"""A swing is at the rim of its cone if it is within about this fraction of the half-axes."""
NEAR = 0.1
"""A limit that is farther away than this holds a joint no longer."""


class Bound(NamedTuple):
    """The limits that fix part of a joint's step, in its angles: the coordinates of its swing and its twist."""

    normal: Pair | None = None
    """Unit, out of the cone; None: the swing may go anywhere."""
    depth: float = 0.0
    """How far the swing goes along it."""
    curvature: float = 0.0
    """Of the cone, by which a step along its rim is the more expensive the more the joint is pushed against it."""
    sign: float = 0.0
    """To which side the twist is at its end; 0: it may go anywhere."""
    way: float = 0.0
    """How far the twist goes."""


FREE = Bound()


class Limit(NamedTuple):
    """The limits of a joint. One that is outside at the start of a drag may stay as far outside."""

    locked: tuple[bool, bool, bool]
    """Angles that stay as they are."""
    origin: Vector
    """Where angles are measured from: locked ones from where they are, the others from 0."""
    excess: Pair
    """How far outside swing and twist may be."""
    low: Pair
    high: Pair
    twist_low: float
    twist_high: float

    @classmethod
    def of(cls, locked: tuple[bool, bool, bool], angle: Vector, low: Pair, high: Pair, *twist: float) -> Limit:
        """Return limits that allow a joint to keep its angles."""
        x, z, turned = (0.0 if is_locked else part for is_locked, part in zip(locked, angle, strict=True))
        u, v = ONE.nearest_swing(x, z, low, high)
        u, v = x - u, z - v
        excess = sqrt(u * u + v * v), abs(turned - nearest_twist(ONE, turned, *twist))
        return cls(locked, (angle[0] - x, angle[1] - z, angle[2] - turned), excess, low, high, *twist)

    def allowed(self, x: float, z: float, twist: float) -> Vector:
        """Return the allowed angles nearest to given ones."""
        (no_x, no_z, no_twist), (from_x, from_z, from_twist), (outside, turned), low, high, *ends = self
        x, z, twist = x - from_x, z - from_z, twist - from_twist
        x, z, twist = 0.0 if no_x else x, 0.0 if no_z else z, 0.0 if no_twist else twist
        u, v = ONE.nearest_swing(x, z, low, high)
        u, v = x - u, z - v
        if u or v:
            share = max(0.0, 1.0 - outside / max(sqrt(u * u + v * v), 1e-30))
            x, z = x - u * share, z - v * share
        beyond = twist - nearest_twist(ONE, twist, *ends)
        if beyond:
            twist -= beyond * max(0.0, 1.0 - turned / max(abs(beyond), 1e-30))
        x, z, twist = x + from_x, z + from_z, twist + from_twist
        share = min(1.0, RIM / max(sqrt(x * x + z * z), 1e-30))
        return x * share, z * share, twist

    def kept(self, bound: Bound, now: Vector) -> Bound:
        """Return the bound with which a step begins where another one has led, that began with `bound`."""
        found = FREE
        if bound.normal is not None:
            (p, q), curvature = self._rim(now) or (bound.normal, bound.curvature)
            x, z, _ = self.allowed(now[0] + NEAR * p, now[1] + NEAR * q, now[2])
            depth = p * (x - now[0]) + q * (z - now[1])
            if depth < 0.5 * NEAR:
                found = Bound((p, q), depth, curvature)
        if bound.sign:
            way = self.allowed(now[0], now[1], now[2] + NEAR * bound.sign)[2] - now[2]
            if bound.sign * way < 0.5 * NEAR:
                found = found._replace(sign=bound.sign, way=way)
        return found

    def crossed(self, bound: Bound, now: Vector, wanted: Vector, allowed: Vector) -> Bound:
        """Return a bound with the limits added that a joint would cross on the way from `now` to `wanted`.

        Args:
            bound: to add to; returned as it is if there is nothing to add.
            now: the angles of the joint.
            wanted: the angles that a step would give it.
            allowed: the allowed angles nearest to these.
        """
        x, z, turned = (
            0.0 if is_locked else part - there
            for is_locked, part, there in zip(self.locked, wanted, allowed, strict=True)
        )
        size = sqrt(x * x + z * z)
        if size > HELD_BACK and bound.normal is None:
            (p, q), curvature = self._rim(now) or ((x / size, z / size), 0.0)
            depth = p * (allowed[0] - now[0]) + q * (allowed[1] - now[1])
            bound = bound._replace(normal=(p, q), depth=depth, curvature=curvature)
        if abs(turned) > HELD_BACK and not bound.sign:
            bound = bound._replace(sign=copysign(1.0, turned), way=allowed[2] - now[2])
        return bound

    def _rim(self, angle: Vector) -> tuple[Pair, float] | None:
        """Return the normal of the cone where a joint is at its rim, and the curvature there; None: it is not."""
        x, z = angle[0] - self.origin[0], angle[1] - self.origin[1]
        u, v = ONE.nearest_swing(x, z, self.low, self.high)
        half_x = max((self.low if x < 0.0 else self.high)[0], 1e-9)
        half_z = max((self.low if z < 0.0 else self.high)[1], 1e-9)
        off = sqrt((x - u) ** 2 + (z - v) ** 2)
        if off < self.excess[0] - AT:
            return None
        p, q = u / half_x, v / half_z
        if p * p + q * q < 1.0 - AT:
            return None
        p, q = p / half_x, q / half_z
        size = sqrt(p * p + q * q)
        p, q = p / size, q / size
        across, along = q / half_x, p / half_z
        return (p, q), (across * across + along * along) / size


YIELD = 1e-7
"""How far an end gives way to a unit force; keeps redundant equations solvable."""


@dataclass(frozen=True)
class Ends:
    """Pinned and dragged points of bones; pins come first."""

    points: list[tuple[int, Floats]]
    """Bone and position (3,) of each end."""
    pinned: int
    """Number of pins among the ends."""
    places: Ints
    """Ends with a place to keep or reach."""
    orientations: Ints
    """Ends with an orientation to keep or reach."""
    strengths: Floats
    """(places + orientations,) the largest force that holds each; infinite for pins that never give way."""
    placed_grabs: list[int]
    """Grabs with a target position."""
    turned_grabs: list[int]
    """Grabs with a target orientation."""

    @classmethod
    def of(cls, body: Body, pins: Sequence[Pin], grabs: Sequence[Grab]) -> Ends:
        """Collect the ends of pins and grabs, without pins on bones that can't move anyway.

        Raises:
            ValueError: a bone does not exist, or a grabbed bone can't move.
        """
        bones, movable = len(body.parents), movable_bones(body)
        for bone in (*(pin.bone for pin in pins), *(grab.bone for grab in grabs)):
            if not 0 <= bone < bones:
                raise ValueError(f"bone must be the index of one of the {bones} bones, not {bone}")
        for grab in grabs:
            if grab.bone not in movable:
                raise ValueError(f"bone {grab.bone} is not below the root, so it can't be dragged")
        heads = np.asarray(body.heads, np.float64)
        holding = [pin for pin in pins if pin.bone in movable]
        wanted = [(pin.bone, pin.point) for pin in holding] + [(grab.bone, grab.point) for grab in grabs]
        points = [(bone, heads[bone] if point is None else np.asarray(point, np.float64)) for bone, point in wanted]
        strengths = [pin.strength for pin in holding] + [STRENGTH] * len(grabs)
        placed = [i for i, grab in enumerate(grabs) if grab.target is not None]
        turned = [i for i, grab in enumerate(grabs) if grab.rotation is not None]
        held = len(holding)
        places = [e for e, pin in enumerate(holding) if pin.location] + [held + i for i in placed]
        orientations = [e for e, pin in enumerate(holding) if pin.rotation] + [held + i for i in turned]
        held_by = np.array([strengths[e] for e in (*places, *orientations)], np.float64)
        return cls(points, held, np.array(places, np.int64), np.array(orientations, np.int64), held_by, placed, turned)

    @cached_property
    def wanted(self) -> Ints:
        """(places + orientations,) the ends with a place, then those with an orientation."""
        return np.concatenate([self.places, self.orientations])

    @cached_property
    def dragged(self) -> Bools:
        """(places + orientations,) which of them belong to grabs."""
        return np.asarray(self.wanted >= self.pinned)

    @cached_property
    def hard(self) -> Bools:
        """(places + orientations,) which of them never give way."""
        return np.isinf(self.strengths)


def movable_bones(body: Body) -> set[int]:
    """Return the bones that may move: the root and all bones below it, or every bone if there is no root."""
    found: set[int] = set()
    for bone, parent in enumerate(np.asarray(body.parents).tolist()):
        if body.root is None or bone == body.root or parent in found:
            found.add(bone)
    return found


def joints_between(body: Body, ends: Ends, locked: Bools) -> list[int]:
    """Return the bones above the ends, ends included, that can turn or move; parents first."""
    parents, movable = np.asarray(body.parents).tolist(), movable_bones(body)
    gives = np.ones(len(parents)) if body.give is None else np.asarray(body.give)
    heads = np.asarray(body.heads, np.float64)
    found = set()
    for end, (bone, point) in enumerate(ends.points):
        # Turning a bone does not move its own head.
        if end not in ends.orientations and bone != body.root and (point == heads[bone]).all():
            bone = parents[bone]
        while bone in movable:
            if gives[bone] > 0.0 and (bone == body.root or not locked[bone]):
                found.add(bone)
            bone = parents[bone]
    return sorted(found)


class Pull(NamedTuple):
    """How e ends are held during a pass."""

    yields: Floats
    """(e,) how far each end gives way to a unit force."""
    thrusts: dict[int, tuple[Vector, float]]
    """Directions in which ends are pulled with full strength, however far they move along them, and that strength."""


def pull_of(gaps: Floats, forces: Floats, strengths: Floats, yields: Floats, *, near: bool) -> Pull:
    """Return how ends are held, from their gaps and the forces of the last pass.

    Far from the end of a search, an end of limited strength gives way by its whole gap under the maximum force: it is
    sure to come nearer, but ever more slowly. Near the end of the search it either reaches its target and does not give
    way, or is pulled with full strength; the last force and the gap together decide which.

    Args:
        gaps: (e, 3) from where the ends are to where they should be.
        forces: (e, 3) that held the ends in the last pass.
        strengths: (e,) the largest force on each end; infinite for those that are held whatever it takes.
        yields: (e,) how far ends give way to a unit force when they are not pulled.
        near: whether the search is near its end.
    """
    found, thrusts = yields.copy(), {}
    for end in np.flatnonzero(np.isfinite(strengths)).tolist():
        strength, gap, force = float(strengths[end]), gaps[end].tolist(), forces[end].tolist()
        if not near:
            found[end] += size_of(ONE, gap) / strength
            continue
        pull = plus(force, scaled(gap, strength))
        size = size_of(ONE, pull)
        if size > strength:
            thrusts[end] = over(pull, size), strength
            found[end] += (size / strength - 1.0) / strength
    return Pull(found, thrusts)


STILL = np.array([[1.0], [0.0], [0.0], [0.0]])
EYE = np.eye(3)


class Unknowns(NamedTuple):
    """The n unknowns of a step: the root's offset, and each joint's swing about X and about Z, and its twist.

    They go from the ends to the root; those that can't change are left out.
    """

    places: Ints
    """(n,) among those of the root and of m joints, three each."""
    numbers: list[list[int]]
    """(m, 3) the number of each joint's unknowns; -1: left out."""
    pairs: tuple[Ints, Ints]
    """Pairs of unknowns of the same joint: their places in a flat matrix (n, n), and in flat matrices (m + 1, 3, 3)."""
    above: Floats
    """(n, n) 1: what the first does carries the second along; 0.5: each carries the other half the way; 0: neither."""


@dataclass(frozen=True)
class Tree:
    """The m joints that turn, parents first; if the body has a free root it is the first of them.

    Lengths are fractions of the body's size, the greatest length of a path along joints to an end. Rotations are
    measured from rest; without limits a joint is at rest in the body's initial pose.
    """

    bones: Ints
    """(m,) bones of the joints."""
    has_root: bool
    parents: tuple[int, ...]
    """The joint above each; -1: none."""
    rests: Floats
    """(m + 1, 4, 4) places of joints at rest, seen from the joints above; then that of what no joint carries."""
    limits: list[Limit]
    turns: Floats
    """(4, m) rotations of the joints in the initial pose."""
    is_limited: Bools
    """(m,) joints with limits."""
    stiffness: Floats | None
    """(m, 3, 3) square root of a joint's stiffness about the axes at rest; None: no joint is stiff."""
    origin: Floats
    """(3,) from where places are measured in the body: the first joint's head."""
    size: float
    """The body's size."""
    ends: Ends
    tips: Floats
    """(ends, 4, 1) places of the ends, seen from the joints that carry them, and 1."""
    carriers: Ints
    """(ends,) the joint that carries each; -1: none."""
    taken: tuple[Ints, Ints]
    """The bones of the body that joints carry, and these joints."""

    @classmethod
    def of(cls, body: Body, joints: Sequence[int], ends: Ends) -> Tree:
        """Return the tree whose joints are the bones `joints`, in this order."""
        index, which = {bone: i for i, bone in enumerate(joints)}, np.array(joints, dtype=np.int64)
        parents = np.asarray(body.parents).tolist()

        def joint_of(bone: int) -> int:
            while bone >= 0 and bone not in index:
                bone = parents[bone]
            return index[bone] if bone >= 0 else -1

        heads, frames = (np.asarray(part, np.float64)[which] for part in (body.heads, body.frames))
        above = [joint_of(parents[bone]) for bone in joints]
        has_root = bool(joints) and joints[0] == body.root
        carriers = np.array([joint_of(bone) for bone, _ in ends.points], np.int64)
        places = np.array([point for _, point in ends.points]).reshape(-1, 3)
        carried = [(joint, place) for joint, place in zip(carriers.tolist(), places, strict=True) if joint >= 0]
        size, origin = _size_of(heads, above, carried), heads[0] if joints else np.zeros(3)
        every = ranges_of(body)
        own, locked = every[which], (every[which, ::2] == 0.0) & (every[which, 1::2] == 0.0)
        own[: int(has_root)], locked[: int(has_root)] = [-np.inf, np.inf] * 3, False
        is_limited = np.asarray(np.isfinite(own).any(axis=1))
        rests, stiffness = _rests_of(body, joints, is_limited, has_root=has_root)
        turns = quaternions(back_times(rests, frames).transpose(1, 2, 0))
        swing, twist = swing_twist(turns)
        each = zip(locked.tolist(), np.array([*swing, twist]).T.tolist(), own.tolist(), strict=True)
        limits = [Limit.of(fixed, angle, *range_of(*row)) for fixed, angle, row in each]
        # What no joint carries is seen from the origin.
        by, starts, seen_from = np.array(above, np.int64), np.array([*heads, origin]), np.array([*frames, EYE])
        local = np.tile(np.eye(4), (len(joints) + 1, 1, 1))
        local[:-1, :3, :3] = back_times(seen_from[by], rests)
        local[:-1, :3, 3] = back_applied(seen_from[by], heads - starts[by]) / size
        tips = np.ones((len(places), 4, 1))
        tips[:, :3, 0] = back_applied(seen_from[carriers], places - starts[carriers]) / size
        owners = np.array([joint_of(bone) for bone in range(len(parents))])
        taken = np.flatnonzero(owners >= 0)
        known = limits, turns, is_limited, stiffness, origin, size, ends, tips, carriers, (taken, owners[taken])
        return cls(which, has_root, tuple(above), local, *known)

    @cached_property
    def locked(self) -> Bools:
        """(3, m) angles that stay as they are."""
        return np.array([limit.locked for limit in self.limits], dtype=bool).reshape(-1, 3).T

    @cached_property
    def carries(self) -> Bools:
        """(m + 1, m + 1) whether the root's offset and each joint carry another joint, or are it; the offset is 0."""
        found = np.eye(len(self.parents) + 1, dtype=bool)
        for joint, above in enumerate(self.parents, 1):
            found[:, joint] |= found[:, above + 1]
        return found

    @cached_property
    def held(self) -> Ints:
        """(h,) those of `Ends.wanted` that joints carry."""
        return np.flatnonzero(self.carriers[self.ends.wanted] >= 0)

    @cached_property
    def moves(self) -> Floats:
        """(3 h, 3 (m + 1)) 1 where an end's coordinate is moved by an unknown of the root or of a joint, else 0."""
        found = self.carries[:, self.carriers[self.ends.wanted[self.held]] + 1].T
        return np.repeat(np.repeat(found, 3, axis=0), 3, axis=1).astype(np.float64)

    @cached_property
    def unknowns(self) -> Unknowns:
        """The unknowns of a step."""
        is_open = np.concatenate([np.full((1, 3), self.has_root), ~self.locked.T])
        places, numbers = np.flatnonzero(is_open)[::-1], np.full(is_open.shape, -1)
        numbers.flat[places] = np.arange(len(places))
        joints, axes = places // 3, places % 3
        rows, columns = np.nonzero(joints[:, None] == joints)
        # A swing carries the axis of its joint's twist along.
        within = np.array([[0.5, 0.5, 1.0], [0.5, 0.5, 1.0], [0.0, 0.0, 0.5]])
        above = self.carries[joints[:, None], joints].astype(np.float64)
        above[rows, columns] = within[axes[rows], axes[columns]]
        pairs = rows * len(places) + columns, 3 * places[rows] + axes[columns]
        return Unknowns(places, numbers[1:].tolist(), pairs, above)

    @cached_property
    def _ranges(self) -> tuple[Ints, Bools, Floats, Floats, Floats]:
        """The k joints with limits; of their angles (3, k) which are locked, the origin, and the ends on both sides."""
        limited = np.flatnonzero(self.is_limited)
        limits = [self.limits[i] for i in limited.tolist()]
        locked, origin = (np.array([limit[part] for limit in limits]).reshape(-1, 3).T for part in (0, 1))
        low = np.array([(*limit.low, -limit.twist_low) for limit in limits]).reshape(-1, 3).T
        high = np.array([(*limit.high, limit.twist_high) for limit in limits]).reshape(-1, 3).T
        return limited, locked.astype(bool), origin, np.maximum(low, 1e-12), np.maximum(high, 1e-12)

    def allowed(self, angles: Floats) -> Floats:
        """Return the allowed angles nearest to given ones (3, m)."""
        limited, locked, origin, low, high = self._ranges
        found, own = angles.copy(), np.where(locked, 0.0, angles[:, limited] - origin)
        found[:, limited] = inside = own + origin
        parts = own / np.where(own < 0.0, low, high)
        swings, (x, z, twist) = inside[:2] * inside[:2], parts * parts
        is_outside = (x + z > 1.0) | (twist > 1.0) | (swings[0] + swings[1] > RIM * RIM)
        for i in limited[is_outside].tolist():
            found[:, i] = self.limits[i].allowed(*angles[:, i].tolist())
        return found

    @cached_property
    def _jumps(self) -> list[Ints]:
        """(m + 1,) joints by whose places those of joints are multiplied, one after the other; see `posed`."""
        found, above = [], np.array([*self.parents, -1])
        while (above >= 0).any():
            found.append(above)
            above = above[above]
        return found

    def angles_of(self, turns: Floats) -> Floats:
        """Return the angles (3, m) of joints from rest, for rotations (4, m); 0 without limits.

        Near half a turn they say little about where a bone points, so the angles of joints without limits are measured
        from the pose itself.
        """
        swing, twist = swing_twist(np.where(self.is_limited, turns, STILL))
        return np.array([*swing, twist])

    def turned(self, turns: Floats, angles: Floats) -> Floats:
        """Return the rotations (4, m) of joints that have turned to other angles."""
        found = multiply(np.where(self.is_limited, STILL, turns), joint_rotation(angles[:2], angles[2]))
        return np.asarray(found / np.sqrt((found * found).sum(axis=0)))

    def posed(self, turns: Floats, angles: Floats, offset: Floats) -> Posed:
        """Return the pose for rotations (4, m) from rest, with their angles (3, m), and an offset (3,) of the root."""
        (x, z, _), turned = angles, matrices(turns).transpose(2, 0, 1)
        rim = np.sqrt(np.maximum(1.0 - x * x - z * z, STEEPEST_SQUARE))
        both, axes = x * z / rim, turned[:, :, [0, 2, 1]]
        swings = np.array([(x * x / rim + rim, both), (z, -x), (both, z * z / rim + rim)])
        axes[self.is_limited, :, :2] = swings.transpose(2, 0, 1)[self.is_limited]
        places, rests = self.rests.copy(), self.rests[:-1, :3, :3]
        places[:-1, :3, :3] = rests @ turned
        places[0, :3, 3] += offset
        # Each time, the joints by which places are multiplied are twice as far above.
        for above in self._jumps:
            places = places[above] @ places
        about = places[np.array(self.parents, dtype=np.int64), :3, :3] @ (rests @ axes)
        ends = (places[self.carriers] @ self.tips)[:, :3, 0]
        return Posed(places, turns, angles, axes, about, ends)

    def carried(self, body: Body, begin: Posed, posed: Posed) -> tuple[Floats, Floats]:
        """Return the heads (n, 3) and orientations (n, 3, 3) of all bones of a body as its joints carry them.

        Args:
            body: in its initial pose.
            begin: the joints in that pose.
            posed: the joints in the new pose.
        """
        heads, frames = (np.array(part, np.float64) for part in (body.heads, body.frames))
        taken, by = self.taken
        turned = times_back(posed.frames[by], begin.frames[by])
        there = posed.heads[by] * self.size + self.origin
        heads[taken] = there + applied(turned, heads[taken] - heads[self.bones[by]])
        frames[taken] = times(turned, frames[taken])
        return heads, frames


class Posed(NamedTuple):
    """The joints and ends of a body in a pose."""

    places: Floats
    """(m + 1, 4, 4) places of the joints; then that of what no joint carries."""
    turns: Floats
    """(4, m) rotations of the joints, from rest."""
    angles: Floats
    """(3, m) angles of the joints: their swings about X and Z, and their twists."""
    own: Floats
    """(m, 3, 3) as columns, the axes about which a change of these angles turns joints, seen from rest."""
    axes: Floats
    """(m, 3, 3) the same axes in space."""
    ends: Floats
    """(ends, 3) places of the ends."""

    @property
    def frames(self) -> Floats:
        """(m + 1, 3, 3) the orientations of the joints."""
        return self.places[:, :3, :3]

    @property
    def heads(self) -> Floats:
        """(m + 1, 3) the heads of the joints."""
        return self.places[:, :3, 3]


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
