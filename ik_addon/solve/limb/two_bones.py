"""Two bones, and a foot attached to them, in plain floats: what depends on no target, and the triangle with one.

A knee may be a hinge whose axis is not square to the upper bone, as on many rigs drawn by hand. Such a knee also leads
the lower bone to the side, always by the same angle. In a bent limb that hardly shows. In a straight one nothing else
is left of the bend, so that the direction in which the limb bends has turned by a quarter about the upper bone, most of
it close to the end of the reach. If that direction kept pointing to the pole, the limb would roll by as much. So it
points to the pole up to a certain roll, and from there on the upper bone rolls no further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from math import asin, atan2, copysign, inf, isfinite, nan, radians, sqrt
from typing import NamedTuple

import numpy as np

from ..free.axes import hinge, room_about, roomiest
from ..maths.numbers import ONE
from ..maths.products import applied as all_applied
from ..maths.turns import Frame, Range, applied, back_product, product, range_of, seen, transposed
from ..maths.vectors import Vector, cross, dot, minus, norm, plus, reject, times, unit
from ..problem import Floats, Problem, Solver, lists_of
from .directions import EDGE, outside, peaks_towards

ROLL = radians(20.0)
"""How far a limb rolls for the angle to the side, or more if it does so at rest; also how far a hinge may bend back."""
_STRAIGHT = 1e-4
"""Radians: a knee that is bent by less shows no side."""
_ALONG = 1e-6
"""A hinge with less than this across the upper bone does not bend the limb."""
_AXES = ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


class Hinge(NamedTuple):
    """A knee that swings about a single axis, and to one side."""

    axis: Vector
    """In the axes of the upper bone; a positive rotation about it bends the limb."""
    roll: float
    """How far the limb rolls at most, in radians, to keep its bend at the side of the pole."""

    @classmethod
    def of(cls, upper: Vector, rest: Frame, ranges: tuple[tuple[float, float], tuple[float, float]]) -> Hinge | None:
        """Return the hinge of a knee; None if it is no hinge, or bends to both sides.

        Args:
            upper: direction of the upper bone, in its own axes.
            rest: frame of the lower bone at rest, in the same axes.
            ranges: the least and greatest angle about X and about Z in radians; both zero where it is locked.
        """
        locked = [range_ == (0.0, 0.0) for range_ in ranges]
        if locked[0] == locked[1]:
            return None
        free, along = locked.index(False), unit(upper)
        above = seen(rest, along)
        straight = atan2(-above[0] if free else above[2], above[1])
        up, down = ranges[free][1] - straight, straight - ranges[free][0]
        if min(up, down) > ROLL:
            return None
        axis = applied(rest, times(_AXES[free], 1.0 if up >= down else -1.0))
        side = reject(rest[1], along)
        forward, aside = _parts(along, side, axis)
        return cls(axis, max(ROLL, atan2(abs(aside), abs(forward))) if norm(side) > _STRAIGHT else ROLL)

    def unfollowed(self, along: Vector, side: Vector) -> float:
        """Return the angle in radians about the upper bone by which the bend leaves the side of the pole.

        Args:
            along: unit direction of the upper bone.
            side: the direction in which the lower bone leaves it, perpendicular to it; of any length but zero.
        """
        forward, aside = _parts(along, side, self.axis)
        if abs(forward) + abs(aside) < _ALONG * norm(side):
            return 0.0
        # Where the knee bends backwards a little, the upper bone stays as well.
        return atan2(aside, forward) - copysign(min(atan2(abs(aside), abs(forward)), self.roll), aside)


def _parts(along: Vector, side: Vector, axis: Vector) -> tuple[float, float]:
    """Return how much of a side is in the direction in which a hinge bends, and how much beside it."""
    fold = cross(axis, along)
    return dot(side, fold), dot(side, cross(along, fold))


def unfollowed_by(joints: Floats, frames: Floats, hinge: Hinge) -> Floats:
    """Return the angles (B,) of `Hinge.unfollowed` for limbs in a pose; NaN for straight ones, which show no bend.

    Args:
        joints: (B, n+1, 3), root first.
        frames: (B, n, 3, 3) orientation of the bones.
        hinge: of all of them.
    """
    axes = all_applied(frames[:, 0], np.broadcast_to(hinge.axis, (len(frames), 3))).tolist()
    found = []
    for (root, knee, end), axis in zip(joints[:, :3].tolist(), axes, strict=True):
        along, lower = unit(minus(knee, root)), minus(end, knee)
        side = reject(lower, along)
        own = hinge._replace(axis=axis)
        found.append(own.unfollowed(along, side) if norm(side) > _STRAIGHT * norm(lower) else nan)
    return np.array(found)


STRAIGHT = 1e-5
"""A limb whose bend is less than this fraction of its length counts as straight."""
_DIGITS = 7
"""Decimals of a direction that decide how far a knee can bend; rest matrices in single precision know no more."""
_SKEW = 1e-5
"""Maximum radians between a bone's direction and its Y axis: more than the rounding of single precision."""


@dataclass(eq=False)
class Limb:
    """Two bones with limits, in the space of the root; lengths are in units of that of both bones."""

    scale: float
    """That length."""
    lever_arms: list[Vector]
    """From head to head, in the axes of each bone; with a foot three."""
    zero: Frame
    """Frame of the upper bone with its joint at rest."""
    rest: Frame
    """Frame of the lower bone with its joint at rest, in the upper bone's axes."""
    hip: Range
    knee: Range
    upper_fk: Frame
    lower_fk: Frame
    bend_side: Vector | None
    """See `Problem.bend_side`."""
    upper: Vector
    """From the upper bone's head to the lower bone's, in the upper bone's axes."""
    lower: Vector
    """From the lower bone's head to the end of the limb, in the lower bone's axes."""
    lengths: tuple[float, float]
    """Lengths of the two bones."""
    elbow: Vector
    """Head of the lower bone in the FK pose, relative to the root."""
    chord: float
    """Distance from the root to the limb's end in the FK pose."""
    fk_axes: Frame
    """Line, bend and normal of the FK pose, see `axes.chain_axes`."""
    fk_knee: tuple[Frame, Vector, Vector]
    """The knee's FK rotation from rest, and the lower bone's direction in its own axes and in the knee's."""

    @classmethod
    def of(
        cls,
        segments: Sequence[Vector],
        sizes: Sequence[float],
        fk: Sequence[Frame],
        rests: Sequence[Frame],
        ranges: Sequence[Range],
        bend_side: Vector | None,
        stretch: Sequence[float],
    ) -> Limb | None:
        """Return a limb with its segments, of these sizes, lengthened by factors.

        Return None if its bones do not point along their Y axes, or the FK pose's end is at the root.
        """
        scale = sizes[0] * stretch[0] + sizes[1] * stretch[1]
        lever_arms = [times(segment, factor / scale) for segment, factor in zip(segments, stretch, strict=True)]
        upper, lower = lever_arms[:2]
        lengths, elbow = (norm(upper), norm(lower)), applied(fk[0], upper)
        end = plus(elbow, applied(fk[1], lower))
        chord = norm(end)
        arms = zip((upper, lower), lengths, strict=True)
        if chord < STRAIGHT or any(y <= 0.0 or sqrt(x * x + z * z) > _SKEW * length for (x, y, z), length in arms):
            return None
        line = unit(end)
        # The centroid of both bones, as a curve: half as far off the line as the knee.
        bend = times(reject(elbow, line), sum(lengths) / 2.0)
        zero, (low, high, *_) = product(fk[0], rests[1]), ranges[1]
        if norm(bend) < STRAIGHT:
            normal = hinge(ONE, transposed(fk[0]), line)
            bend = cross(line, roomiest(ONE, lambda axis: room_about(ONE, seen(zero, axis), low, high), line, normal))
        bend = unit(bend)
        turn, own = back_product(zero, fk[1]), unit(lower)
        joints = rests[0], rests[1], ranges[0], ranges[1], fk[0], fk[1]
        posed = elbow, chord, (line, bend, cross(bend, line)), (turn, own, unit(applied(turn, own)))
        return cls(scale, lever_arms, *joints, bend_side, upper, lower, lengths, *posed)

    @cached_property
    def bend_axes(self) -> Frame:
        """The axes that `bend_axes_about` returns for the normal of the FK pose."""
        return self.bend_axes_about(self.fk_axes[2])

    def bend_axes_about(self, normal: Vector) -> Frame:
        """Return the upper bone's direction, the side to which the knee bends about a normal, and that normal.

        The normal is given in space; the axes are those of the upper bone.
        """
        along = unit(self.upper)
        own = unit(reject(seen(self.upper_fk, normal), along))
        return along, cross(own, along), own

    @property
    def hinge(self) -> Hinge | None:
        """The knee as a hinge; None if it is none."""
        return _hinge_of(_rounded(unit(self.upper)), self.rest, self.knee)

    @cached_property
    def bending(self) -> Bending:
        """How far the knee can bend."""
        return _bending(_rounded(seen(self.rest, unit(self.upper))), self.knee)


def _rounded(direction: Vector) -> Vector:
    """Return a direction that is the same in all FK poses; adding zero leaves no negative zero."""
    x, y, z = direction
    return round(x, _DIGITS) + 0.0, round(y, _DIGITS) + 0.0, round(z, _DIGITS) + 0.0


class Bending(NamedTuple):
    """How far a knee can bend."""

    turning_points: tuple[Vector, ...]
    """Directions of the lower bone, in the knee's axes, at which its bend is locally least or greatest."""
    least: tuple[float, float]
    """Cosine and sine of the least bend."""
    greatest: tuple[float, float]

    def reach(self, first: float, second: float) -> tuple[float, float]:
        """Return the least and the greatest distance from root to end of two bones of these lengths."""
        squares = first * first + second * second
        near, far = (squares + 2.0 * first * second * bend[0] for bend in (self.greatest, self.least))
        return sqrt(max(near, 0.0)), sqrt(max(far, 0.0))


@lru_cache(maxsize=256)
def _bending(along: Vector, knee: Range) -> Bending:
    """Return how far a knee can bend, from the direction of the upper bone in the knee's axes."""
    along = unit(along)
    found = []
    for sign in (1.0, -1.0):
        direction = times(along, sign)
        if outside(direction, knee) <= EDGE:
            found.append(direction)
        else:
            found += [point.direction for _, point in peaks_towards(direction, knee, every=True)]
    bends = sorted((dot(along, way), norm(cross(along, way))) for way in found)
    return Bending(tuple(dict.fromkeys(found)), bends[-1], bends[0])


@lru_cache(maxsize=256)
def _hinge_of(upper: Vector, rest: Frame, knee: Range) -> Hinge | None:
    x, z = ((-2.0 * asin(min(a, 1.0)), 2.0 * asin(min(b, 1.0))) for a, b in zip(knee.low, knee.high, strict=True))
    return Hinge.of(upper, rest, (x, z))


_NO_LENGTH = 1e-6
"""A segment shorter than this fraction of its chain counts as having no length."""


class Member(NamedTuple):
    """The part of a member that does not depend on its goal."""

    root: Vector
    fk: list[Frame]
    segments: list[Vector]
    """From head to head, in the axes of each bone."""
    lengths: list[float]
    rests: list[Frame]
    """The frames of bones with their joints at rest: of the first bone in space, of others relative to the parent.

    A joint without any limit, or locked altogether, is at rest in the FK pose."""
    bend_side: Vector | None
    limb: Limb | None
    """The member without stretch."""


@dataclass(frozen=True)
class KnownLimbs:
    """Members that are limbs by their joints, if their goals suit a limb."""

    ranges: list[Range]
    limited: list[bool]
    """Which bones have a limit, but are not locked altogether."""
    hangs: bool
    """Whether the root bone inherits the rotation of its parent."""
    members: dict[int, Member | None] = field(default_factory=dict)
    """Those that were read, by index; None: one of the two bones has no length."""

    @classmethod
    def of(cls, problem: Problem) -> KnownLimbs | None:
        """Read the limbs of a problem of two or three bones; None if its chains are not limbs."""
        bones = np.shape(problem.frames)[1]
        if problem.others or problem.solver is Solver.FABRIK or problem.plane is not None:
            return None
        if problem.parents is not None and list(problem.parents) != list(range(-1, bones - 1)):
            return None
        inherits = [True] * bones if problem.inherits is None else [bool(value) for value in problem.inherits]
        if not all(inherits[1:]) or (problem.stiffness is not None and np.any(problem.stiffness)):
            return None
        rows = [[-inf, inf] * 3] * bones
        if problem.limits is not None:
            rows = np.concatenate([problem.limits.cones, problem.limits.twist], axis=1).tolist()
        ranges = [range_of(*row) for row in rows]
        if ranges[0].low == ranges[0].high == (0.0, 0.0) or not all(map(any, rows[2:])):
            # A root with twist alone has no roll to choose, and a fixed foot takes no orientation.
            return None
        return cls(ranges, [any(row) and any(map(isfinite, row)) for row in rows], inherits[0])

    def read(self, problem: Problem, new: list[int]) -> None:
        """Read members that were not read yet."""
        limits, fks = problem.limits, [list(map(transposed, frames)) for frames in lists_of(problem.frames, new)]
        rests, roots = fks, [fk[0] for fk in fks]  # without limits, they don't matter
        if limits is not None:
            every = np.broadcast_to(limits.rest, np.shape(problem.frames))
            rests = [list(map(transposed, rest)) for rest in lists_of(every, new)]
            roots = list(map(transposed, lists_of(limits.root, new)))
        sides = [None] * len(new) if problem.bend_side is None else lists_of(problem.bend_side, new)
        for i, *parts in zip(new, lists_of(problem.joints, new), fks, rests, roots, sides, strict=True):
            self.members[i] = self.read_one(*parts)

    def read_one(
        self, joints: Sequence[Vector], fk: list[Frame], rest: list[Frame], root: Frame, side: Vector | None
    ) -> Member | None:
        """Return a member from its joints, its frames in FK and its bend side, and from the frames of its limits."""
        segments = [minus(b, a) for a, b in pairwise(joints)]
        lengths = list(map(norm, segments))
        if min(lengths[:2]) <= _NO_LENGTH * sum(lengths):
            return None
        rests = [fk[0], *map(back_product, fk, fk[1:])]
        for bone in [bone for bone, limited in enumerate(self.limited) if limited]:
            rests[bone] = product(root, rest[bone]) if bone == 0 and self.hangs else rest[bone]
        segments = list(map(seen, fk, segments))
        limb = Limb.of(segments, lengths, fk, rests, self.ranges, side, [1.0] * len(segments))
        return Member(joints[0], fk, segments, lengths, rests, side, limb)


class Foot(NamedTuple):
    """A child of the lower bone that keeps its orientation, as far as its end can then be at the target."""

    rest: Frame
    """Frame of the foot with its joint at rest, in the lower bone's axes."""
    limits: Range
    frame: Frame
    """Orientation that the foot should have."""

    def turn(self, lower: Frame) -> Frame:
        """Return the joint's rotation from rest below a frame of the lower bone."""
        return back_product(product(lower, self.rest), self.frame)


class Triangle(NamedTuple):
    """Cosine and sine at the root, from the line to the upper bone, and of the bend at the knee."""

    cosine: float
    sine: float
    bend_cosine: float
    bend_sine: float


def of_knee(first: float, second: float, along: Vector, way: Vector) -> Triangle:
    """Return the triangle of a limb from the directions of its upper and its lower bone in the knee's axes."""
    cosine, sine = dot(along, way), norm(cross(along, way))
    x, y = first + second * cosine, second * sine
    size = sqrt(x * x + y * y)
    # Folded onto itself, the limb is perpendicular to its line.
    return Triangle(x / size, y / size, cosine, sine) if size > 1e-15 else Triangle(0.0, 1.0, cosine, sine)


def of_corner(along: float, across: float, distance: float) -> Triangle:
    """Return the triangle with its knee at these distances along and off the line to the target."""
    one = sqrt(along * along + across * across)
    rest = distance - along
    two = sqrt(rest * rest + across * across)
    c, s, x, y = along / one, across / one, rest / two, -across / two
    return Triangle(c, s, c * x + s * y, s * x - c * y)
