"""The axes of a chain, the side to which it bends, the triangle of two bones, and bone rotations from bone directions.

Written once for one chain in plain floats and for many in arrays, see `numbers`. Chains start at the origin; bones
are unit directions, one vector for each, and lengths, in chain lengths.

A chain with a bend side stays on it, even where its FK pose is hyperextended or straight: knees forward, elbows
backward. The FK pose only affects the plane of the bend, and does so by how far it bends to the right side: a pose
passing through straight shows no plane, so nothing flips there. How far FK bends is compared with how far the solved
chain will bend: as long as the solved chain bends no more, its plane is that of FK, and a chain whose target is at its
FK tip keeps its pose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

from ..maths.numbers import Number, Numbers, Pair
from ..maths.turns import Matrix, Quaternion, between, multiply, rotate
from ..maths.vectors import Vector, cross, dot, either, minus, over, plus, reject, size_of, times, unit_of

STRAIGHT = 1e-5
"""A chain that leaves its line by less than this fraction of its length counts as straight: it could be rounding."""
SLACK = 1e-12
"""The smallest slack, length minus chord, of a chain with a bend: below it, rounding would show as its square root."""
ALONG = 1e-3
"""A bend side with less than this across the line of the chain counts as none."""


class Axes(NamedTuple):
    """A right-handed set of unit vectors, bend = line x normal."""

    line: Vector
    """From root to tip."""
    bend: Vector
    """The side on which the chain lies."""
    normal: Vector
    """The axis about which its joints bend: a positive rotation bends the chain more."""


def joints_of(directions: Sequence[Vector], lengths: Sequence[Number]) -> list[Vector]:
    """Return the joints of a chain that starts at 0."""
    x = y = z = 0.0
    joints: list[Vector] = [(x, y, z)]
    for (u, v, w), length in zip(directions, lengths, strict=True):
        x, y, z = x + u * length, y + v * length, z + w * length
        joints.append((x, y, z))
    return joints


def centroid(joints: Sequence[Vector], lengths: Sequence[Number]) -> Vector:
    """Return the centroid of a chain as a curve; the lengths add up to 1."""
    x = y = z = 0.0
    for i, length in enumerate(lengths):
        (ax, ay, az), (bx, by, bz), half = joints[i], joints[i + 1], length / 2.0
        x, y, z = x + (bx + ax) * half, y + (by + ay) * half, z + (bz + az) * half
    return x, y, z


def arc_of(do: Numbers, chord: Number) -> Number:
    """Return the angle in radians of an arc of length 1 with a given chord, to within a percent."""
    lack = do.least(do.most(1.0 - SLACK - chord, 0.0), 1.0)
    return 2.0 * do.sqrt(6.0 * lack) * (1.0 + 0.15 * lack + 0.1325 * (lack * lack * lack))


def hinge(do: Numbers, frame: Matrix, direction: Vector) -> Vector:
    """Return the unit axis, perpendicular to a unit direction, about which a straight bone bends.

    It is the X axis of its frame; where X lies along the direction, it is the axis about which a positive rotation
    turns the direction to Z. That is a cross product, so a mirrored bone bends mirrored.
    """
    (xx, _, zx), (xy, _, zy), (xz, _, zz) = frame
    across = reject((xx, xy, xz), direction)
    return unit_of(do, either(do, size_of(do, across) > 1e-4, across, cross(direction, (zx, zy, zz))))


def chain_axes(
    do: Numbers, directions: Sequence[Vector], lengths: Sequence[Number], root: Matrix, side: Vector | None = None
) -> Axes:
    """Return the axes of chains, with sensible choices for straight and for closed ones.

    The bend is the part of the chain's centroid that is perpendicular to its line (for two bones: the direction of the
    elbow). A straight chain bends to its bend side, or without one by a positive rotation about the X axis of its root
    bone.

    Args:
        do: for one chain or for many.
        directions: unit directions of the bones.
        lengths: their lengths, which add up to 1.
        root: orientation of the root bone.
        side: see `Problem.bend_side`; None: there is none.
    """
    joints = joints_of(directions, lengths)
    middle, size = centroid(joints, lengths), size_of(do, joints[-1])
    line = unit_of(do, joints[-1])
    bend, closed = reject(middle, line), size < STRAIGHT
    if do.any(closed):
        around, out = _closed_axes(do, joints, middle, root)
        line, bend = either(do, closed, around, line), either(do, closed, out, bend)
    straight = (size >= STRAIGHT) & (size_of(do, bend) < STRAIGHT)
    if do.any(straight):
        other = cross(line, hinge(do, root, line))
        if side is not None:
            across = reject(side, line)
            other = either(do, size_of(do, across) > ALONG, across, other)
        bend = either(do, straight, other, bend)
    bend = unit_of(do, bend)
    return Axes(line, bend, cross(bend, line))


def _closed_axes(do: Numbers, joints: Sequence[Vector], middle: Vector, root: Matrix) -> tuple[Vector, Vector]:
    """Return line and bend of chains whose tip is at their root, by the area that they enclose."""
    away = joints[0]
    for joint in reversed(joints[1:]):
        away = either(do, size_of(do, joint) > STRAIGHT, joint, away)
    side = unit_of(do, either(do, size_of(do, middle) > STRAIGHT, middle, away))
    area = reject(reduce(plus, map(cross, joints, joints[1:])), side)
    normal = unit_of(do, either(do, size_of(do, area) > STRAIGHT, area, hinge(do, root, side)))
    return cross(normal, side), side


def roomiest(do: Numbers, room: Callable[[Vector], Number], line: Vector, normal: Vector) -> Vector:
    """Return the axis about which the joints of a straight chain have the most room to bend.

    The candidates are the axis that it bends about without limits, and the others in steps of a quarter turn about
    its line; of equal ones the first is taken.
    """
    other, most = cross(line, normal), -1.0 + 0.0 * normal[0]
    best = normal
    for axis in (normal, times(normal, -1.0), other, times(other, -1.0)):
        found = room(axis)
        more = found > most + 1e-6
        best, most = either(do, more, axis, best), do.where(more, found, most)
    return best


def room_about(do: Numbers, axis: Vector, low: Pair, high: Pair) -> Number:
    """Return how far a joint with a cone can turn about an axis, as the sine of half the angle."""
    x, _, z = axis
    across, along = do.where(x < 0.0, low[0], high[0]), do.where(z < 0.0, low[1], high[1])
    return abs(x) * do.least(across, 1.0) + abs(z) * do.least(along, 1.0)


def pole_bend(do: Numbers, pole: Vector, line: Vector, natural: Vector) -> Vector:
    """Return the unit bend direction towards a pole, which is relative to the root.

    A pole on the line of the chain gives no direction; the natural one then remains.
    """
    across = reject(pole, line)
    clear = size_of(do, across) > 1e-6 * size_of(do, pole) + 1e-9
    bend: Vector = either(do, clear, unit_of(do, across), natural)
    return bend


def bone_rotations(
    do: Numbers,
    chain_turn: Quaternion,
    rest: Sequence[Vector],
    solved: Sequence[Vector],
    frames: Sequence[Matrix],
    carried: Sequence[Number],
    inherits: Sequence[bool],
) -> list[Quaternion]:
    """Return the rotations of bones, to apply to their FK frames.

    Each bone takes over the rotation of the bone before it, then turns by the smallest rotation to its solved
    direction: no twist is added along the chain.

    Args:
        do: for one chain or for many.
        chain_turn: rotation of the chain as a whole, from which the first bone with length starts.
        rest: unit FK directions.
        solved: unit solved directions.
        frames: FK frames.
        carried: bones without length, which follow the bone before them.
        inherits: bones that start from the rotation of the bone before them, not from their FK orientation.
    """
    zero = 0.0 * chain_turn[0]
    still = zero + 1.0, zero, zero, zero
    found: list[Quaternion] = []
    parent, begun = still, carried[0] != carried[0]
    for i, direction in enumerate(rest):
        if i > 0 and not inherits[i]:
            parent = start = still
        else:
            start = do.choose(begun, parent, chain_turn)

        def axis(i: int = i, start: Quaternion = start) -> Vector:
            return rotate(start, hinge(do, frames[i], rest[i]))

        # A unit vector again: rounding of its length would grow from bone to bone.
        turn = between(do, unit_of(do, rotate(start, direction)), solved[i], axis)
        parent = do.choose(carried[i], parent, multiply(turn, start))
        begun = begun | (carried[i] == False)  # noqa: E712 - of an array as of a single one
        found.append(parent)
    return found


NO_BEND = 1e-4
"""Radians: a chain that bends by less shows no plane, as the bend could be rounding in single precision."""
CLEAR = 0.017
"""Radians: a chain that bends to its side by more than this, about a degree, bends in the plane of its FK pose."""
LEAST = 1e-3
"""Radians: the smallest bend with which the bend of FK is compared."""
SHARE = 0.5
"""Fraction of the solved bend that FK must bend to its side to decide the plane: in the FK pose, up to 60° off."""
ASKEW = 1e-3
"""A hinge with less than this across the line from root to tip gives no side."""


def side_hinge(do: Numbers, line: Vector, side: Vector, first: Vector) -> tuple[Vector, Number]:
    """Return the unit axis about which chains bend to their side, and whether there is one.

    It is the same however far a chain bends; the side would lean over with the upper bone.

    Args:
        do: for one chain or for many.
        line: unit vector from root to tip in the FK pose.
        side: bend side of the root bone in the FK pose; zero: none.
        first: unit direction of the first segment in the FK pose.
    """
    hinge = reject(cross(side, first), line)
    size = size_of(do, hinge)
    return over(hinge, do.most(size, ASKEW)), size > ASKEW


def side_bend(
    do: Numbers, line: Vector, bend: Vector, side: Vector, first: Vector, chord: Number, distance: Number
) -> tuple[Vector, Number, Number]:
    """Return the direction in which chains with a bend side bend, relative to their line in the FK pose.

    Args:
        do: for one chain or for many.
        line: unit vector from root to tip in the FK pose.
        bend: unit vector across the line, the direction in which the FK pose bends.
        side: bend side of the root bone in the FK pose; zero: none.
        first: unit direction of the first segment in the FK pose.
        chord: distance from root to tip in the FK pose, in chain lengths.
        distance: the same in the solved pose.

    Returns:
        The direction, a unit vector across the line; whether it is exactly that of the FK pose; and how far FK bends to
        the side, roughly in radians.
    """
    hinge, known = side_hinge(do, line, side, first)
    own = cross(line, hinge)
    right = _bent(do, chord) * dot(bend, own)
    needed = do.most(do.least(SHARE * _bent(do, distance), CLEAR), LEAST)
    weight = do.least(do.most((right - NO_BEND) / (needed - NO_BEND), 0.0), 1.0)
    weight = weight * weight * (3.0 - 2.0 * weight)
    x, y, z = plus(times(bend, weight), times(own, 1.0 - weight))
    length = do.most(do.sqrt(x * x + y * y + z * z), ASKEW)
    kept = (weight == 1.0) | (known == False)  # noqa: E712 - of an array as of a single one
    found = (x / length, y / length, z / length)
    chosen = [do.where(kept, b, f) for b, f in zip(bend, found, strict=True)]
    return (chosen[0], chosen[1], chosen[2]), kept, do.where(known, right, CLEAR)


def _bent(do: Numbers, chord: Number) -> Number:
    """Return how far a chain with a given chord bends: for two equal bones the chord of the angle."""
    return 2.0 * do.sqrt(do.most(1.0 - chord * chord, 0.0))


def triangle(
    do: Numbers, first: Number, second: Number, distance: Number, line: Vector, bend: Vector
) -> tuple[Vector, Vector]:
    """Return the directions of the two bones.

    Args:
        do: for one chain or for many.
        first: length of the bone at the root.
        second: length of the bone at the tip.
        distance: from root to tip, between the difference and the sum of the lengths.
        line: unit vector from root to tip.
        bend: unit vector perpendicular to `line`, towards the side of the middle joint.
    """
    along, across = corner_of(do, first, second, distance)
    middle = times(unit_of(do, plus(times(line, along), times(bend, across))), first)
    return unit_of(do, middle), unit_of(do, minus(times(line, distance), middle))


def corner_of(do: Numbers, first: Number, second: Number, distance: Number) -> Pair:
    """Return how far the middle joint is along the line from root to tip, and beside it, by the law of cosines.

    If the tip is too far or too near, the joint is on the line.
    """
    twice = 2.0 * do.most(distance, 1e-200)
    difference = first - second
    # Products of differences, like Heron's formula in Kahan's form: exact even where the triangle is nearly flat.
    along = distance / 2.0 + difference * ((first + second) / twice)
    before = do.most(distance - difference, 0.0) * (do.most(first + second - distance, 0.0) / twice)
    after = do.most(distance + difference, 0.0) * ((first + second + distance) / twice)
    # At distance 0, two equal bones lie along the bend direction.
    folded = distance < 1e-15
    return do.where(folded, 0.0, along), do.where(folded, first, do.sqrt(before * after))
