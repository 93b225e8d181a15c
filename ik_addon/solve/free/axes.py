"""The axes of a chain, and bone rotations from bone directions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..maths.rotations import between, cross, dot, hinge, identity, multiply, norm, reject, rotate, unit
from ..problem import Bools, Floats

STRAIGHT = 1e-5
"""A chain that leaves its line by less than this fraction of its length counts as straight: it could be rounding."""
ALONG = 1e-3
"""A bend side with less than this across the line of the chain counts as none."""


MANY = 64
"""From this many chains on, running sums are faster joint by joint than along each chain."""


class Axes(NamedTuple):
    """A right-handed set of unit vectors (3, B) for B chains, bend = line x normal."""

    line: Floats
    """From root to tip."""
    bend: Floats
    """The side on which the chain lies."""
    normal: Floats
    """The axis about which its joints bend: a positive rotation bends the chain more."""


def add_up(steps: Floats) -> None:
    """Replace steps (3, n, B) by their running sums, in place."""
    if steps.shape[2] < MANY:
        np.cumsum(steps, axis=1, out=steps)
    else:
        for i in range(1, steps.shape[1]):
            steps[:, i] += steps[:, i - 1]


def joints_of(directions: Floats, lengths: Floats) -> Floats:
    """Return the joints (3, n+1, B), the root at 0, of bones of unit directions (3, n, B) and lengths (n, B)."""
    joints = np.zeros((3, len(lengths) + 1, lengths.shape[1]))
    np.multiply(directions, lengths, out=joints[:, 1:])
    add_up(joints)
    return joints


def tip_of(directions: Floats, lengths: Floats) -> Floats:
    """Return the ends (3, B) of chains that start at 0."""
    return np.asarray((directions * lengths).sum(axis=-2))


def centroid(joints: Floats, lengths: Floats) -> Floats:
    """Return the centroids (3, B) of chains as curves, from joints (3, n+1, B); the lengths (n, B) add up to 1."""
    return np.asarray(((joints[:, 1:] + joints[:, :-1]) * (lengths / 2.0)).sum(axis=-2))


def chain_axes(directions: Floats, lengths: Floats, root_frames: Floats, side: Floats | None = None) -> Axes:
    """Return the axes of chains, with sensible choices for straight and for closed ones.

    The bend is the part of the chain's centroid that is perpendicular to its line (for two bones: the direction of the
    elbow). A straight chain bends to its bend side, or without one by a positive rotation about the X axis of its root
    bone.

    Args:
        directions: (3, n, B) unit directions of the bones.
        lengths: (n, B) their lengths, which add up to 1.
        root_frames: (3, 3, B) orientation of the root bone.
        side: (3, B) see `Problem.bend_side`; None: none of them has one.
    """
    joints = joints_of(directions, lengths)
    middle = centroid(joints, lengths)
    closed = norm(joints[:, -1]) < STRAIGHT
    line = unit(np.where(closed, 0.0, joints[:, -1]))
    bend = reject(middle, line)
    straight = ~closed & (norm(bend) < STRAIGHT)
    if closed.any():
        line, bend = _closed_axes(joints, middle, root_frames, closed, line, bend)
    if straight.any():
        other = cross(line, hinge(root_frames, line))
        if side is not None:
            across = reject(side, line)
            other = np.where(norm(across) > ALONG, across, other)
        bend = np.where(straight, other, bend)
    bend = unit(bend)
    return Axes(line, bend, cross(bend, line))


def _closed_axes(
    joints: Floats, middle: Floats, frames: Floats, closed: Bools, line: Floats, bend: Floats
) -> tuple[Floats, Floats]:
    """Fill in line and bend of chains whose tip is at their root, by the area that they enclose."""
    first = np.argmax(norm(joints) > STRAIGHT, axis=0)
    away = np.take_along_axis(joints, first[None, None], axis=1)[:, 0]
    side = unit(np.where(norm(middle) > STRAIGHT, middle, away))
    area = reject(cross(joints[:, :-1], joints[:, 1:]).sum(axis=-2), side)
    normal = unit(np.where(norm(area) > STRAIGHT, area, hinge(frames, side)))
    return np.where(closed, cross(normal, side), line), np.where(closed, side, bend)


def pole_bend(pole: Floats, line: Floats, natural: Floats) -> Floats:
    """Return the unit bend directions (3, B) towards poles (3, B), which are relative to the root.

    A pole on the line (3, B) of the chain gives no direction; the natural one (3, B) then remains.
    """
    across = reject(pole, line)
    clear = norm(across) > 1e-6 * norm(pole) + 1e-9
    return np.where(clear, unit(across), natural)


def signed_angle(a: Floats, b: Floats, axis: Floats) -> Floats:
    """Return the angles (B,) that turn a to b about `axis`, all (3, B) and a and b perpendicular to it."""
    return np.arctan2(dot(cross(a, b), axis), dot(a, b))


def bone_rotations(
    chain_turn: Floats, rest: Floats, solved: Floats, frames: Floats, carried: Bools, inherits: Bools
) -> Floats:
    """Return the rotations (4, n, B) of bones, as quaternions to apply to their FK frames.

    Each bone takes over the rotation of the bone before it, then turns by the smallest rotation to its solved
    direction: no twist is added along the chain.

    Args:
        chain_turn: (4, B) rotation of the chain as a whole, from which the first bone with length starts.
        rest: (3, n, B) unit FK directions.
        solved: (3, n, B) unit solved directions.
        frames: (3, 3, n, B) FK frames.
        carried: (n, B) bones without length, which follow the bone before them.
        inherits: (n,) bones that start from the rotation of the bone before them, not from their FK orientation.
    """
    count = chain_turn.shape[1]
    still = identity(count)
    rotations = np.empty((4, len(carried), count))
    begun = np.zeros(count, dtype=bool)
    any_carried = np.asarray(carried.any(axis=1))
    parent = still
    for i in range(len(carried)):
        if i > 0 and not inherits[i]:
            parent = start = still
        else:
            start = parent if begun.all() else np.where(begun, parent, chain_turn)

        def axis(i: int = i, start: Floats = start) -> Floats:
            return rotate(start, hinge(frames[:, :, i], rest[:, i]))

        turned = multiply(between(unit(rotate(start, rest[:, i])), solved[:, i], axis), start)
        parent = np.where(carried[i], parent, turned) if any_carried[i] else turned
        begun = begun | ~carried[i]
        rotations[:, i] = parent
    # Normalize only now: rounding of the lengths along the chain does not affect the next bone.
    return np.asarray(rotations / np.sqrt(rotations[0] * rotations[0] + dot(rotations[1:], rotations[1:])))
