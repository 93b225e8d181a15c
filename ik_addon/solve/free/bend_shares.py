"""Distribute an even bend unevenly: by the bones' stiffness, and led from the root or from the tip.

An even bend turns each joint by some angle. Here each joint takes a share of it: its turn about each of its bone's axes
is multiplied by the joint's mobility about that axis, then all turns by the factor that restores their sum. The one
number left to find is the distance at which to evaluate the even bend. Equal shares give the even bend itself, and
nearly equal shares nearly that.

Towards the ends of the reach the shares become equal: no chain is straight while its stiff joints are bent, and none
gets to its root by its loose joints alone.

Chains start at the origin; bones are unit directions (3, n, B) and lengths (n, B), in chain lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..maths.numbers import MANY, ONE, Number, Numbers, Vector
from ..maths.rotations import cross, dot, norm
from ..problem import Bools, Floats
from .axes import Axes, Frame, chain_axes
from .even_bend import apart, first_guess, together

STEPS = 12
"""Maximum number of steps of the search for that distance."""
PRECISE = 1e-13
"""The difference in distance that is not worth another step."""
LATE = 8
"""The power with which shares become equal on the way to the root: hardly at all halfway."""
FARTHEST = 0.9
"""Where the secant fails, the fraction of the way to the end of the interval that a step goes instead."""
FLATTEST = 1e-3
"""The smallest slope of the tip's distance that the secant assumes."""
MISSED = 1e-9
"""The difference in distance above which the shares alone are not enough."""


def mobility_of(
    do: Numbers, lengths: Sequence[Number], carried: Sequence[Number], stiffness: Floats | None, lead: float
) -> Floats | None:
    """Return the mobility of joints about their bones' axes, (3, n, B); None if all are equally mobile.

    Args:
        do: for one chain or for many.
        lengths: of the bones.
        carried: whether they count as bones without length.
        stiffness: (n, 3) from 0 to less than 1 about X, Y and Z; None: 0.
        lead: from -1 (the joints next to the root turn most) to 1 (those next to the tip do).
    """
    if lead == 0.0 and (stiffness is None or not np.any(stiffness)):
        return None
    sizes, real = _array(do, lengths), ~_array(do, carried).astype(bool)
    eager = np.ones((*sizes.shape, 3)) if stiffness is None else 1.0 - np.asarray(stiffness)[:, None]
    heads = np.cumsum(sizes, axis=0) - sizes
    members = np.arange(sizes.shape[1])
    first, last = np.argmax(real, axis=0), len(real) - 1 - np.argmax(real[::-1], axis=0)
    begin, end = heads[first, members] + sizes[first, members], heads[last, members]
    # From 0 at the first joint that bends to 1 at the last; a single one has none to share with.
    way = end - begin
    place = np.where(way > 0.0, np.clip((heads - begin) / np.where(way > 0.0, way, 1.0), 0.0, 1.0), 0.5)
    share = 1.0 + lead * (2.0 * place - 1.0)
    return np.asarray(np.moveaxis(np.broadcast_to(eager, (*sizes.shape, 3)), -1, 0) * share)


def folds_by(do: Numbers, folds: Sequence[Vector], frames: Sequence[Frame], mobility: Floats) -> list[Vector]:
    """Return folds scaled by the mobility (3, n, B) about the bones' axes."""
    axes, every = _frames(do, frames), _vectors(do, folds)
    local = np.stack([dot(axes[:, k], every) * mobility[k] for k in range(3)])
    x, y, z = (axes[:, k] * local[k] for k in range(3))
    return _apart(do, x + y + z)


def shared_guess(
    do: Numbers,
    directions: Sequence[Vector],
    lengths: Sequence[Number],
    carried: Sequence[Number],
    own: Axes,
    distance: Number,
    frames: Sequence[Frame],
    mobility: Floats,
) -> list[Vector]:
    """Return directions with the tip at a distance from the root, the turns shared out by mobility.

    Args:
        do: for one chain or for many.
        directions: unit directions of the bones in the FK pose.
        lengths: their lengths.
        carried: whether they count as bones without length, which follow the bone before them.
        own: the chain's axes.
        distance: wanted distance from root to tip.
        frames: FK orientation of the bones.
        mobility: (3, n, B) see `mobility_of`.
    """
    every = _vectors(do, directions), _array(do, lengths), ~_array(do, carried).astype(bool), _array(do, own)
    return _apart(do, _guess(*every, _array(do, distance), _frames(do, frames), mobility))


def _array(do: Numbers, numbers: Any) -> Floats:
    """Return nested numbers as an array (..., B)."""
    found = np.array(numbers, dtype=np.float64)
    return found[..., None] if do is ONE else found


def _vectors(do: Numbers, vectors: Sequence[Vector]) -> Floats:
    return np.ascontiguousarray(_array(do, vectors).swapaxes(0, 1))


def _frames(do: Numbers, frames: Sequence[Frame]) -> Floats:
    """Return frames as an array (3, 3, n, B)."""
    return np.ascontiguousarray(np.moveaxis(_array(do, frames), 0, 2))


def _apart(do: Numbers, vectors: Floats) -> list[Vector]:
    return list(map(tuple, vectors[..., 0].T.tolist())) if do is ONE else apart(vectors)


def _guess(
    directions: Floats,
    lengths: Floats,
    real: Bools,
    own: Floats,
    distance: Floats,
    frames: Floats,
    mobility: Floats,
) -> Floats:
    whole = lengths.sum(axis=-2)
    parts, wanted = lengths / whole, distance / whole
    start, sizes, axes = apart(directions), list(parts), Axes(*map(tuple, own))

    def even(asked: Floats) -> Floats:
        return together(first_guess(MANY, start, sizes, axes, axes, asked))

    def reach_of(found: Floats) -> Floats:
        return norm((found * parts).sum(axis=-2))

    # Where no even bend is at the distance, later passes go on from the shares of the nearest one.
    bendable = np.abs(reach_of(even(wanted)) - wanted) <= MISSED
    chord, inner = reach_of(directions), np.maximum(0.0, 2.0 * parts.max(axis=0) - 1.0)
    leads = None
    if not real.all():
        index = np.maximum.accumulate(np.where(real, np.arange(len(real))[:, None], 0), axis=0)
        leads = np.maximum(index, np.argmax(real, axis=0))

    def posed(asked: Floats) -> tuple[Floats, Floats]:
        """Return the directions for an even bend at distance `asked`, and by how much their tip is too far away."""
        turns = _turns(directions, even(asked), own[2])
        turns = turns if leads is None else np.take_along_axis(turns, leads[None], axis=1)
        longer = np.clip((asked - chord) / np.maximum(1.0 - chord, 1e-12), 0.0, 1.0)
        nearer = np.clip((chord - asked) / np.maximum(chord - inner, 1e-12), 0.0, 1.0)
        equal = longer * longer + nearer**LATE
        shared = _shared(directions, turns, frames, mobility + (1.0 - mobility) * equal)
        return shared, reach_of(shared) - wanted

    low, high = inner, np.ones_like(wanted)
    asked = np.clip(wanted, low, high)
    found, off = posed(asked)
    slope = np.ones_like(off)
    for _ in range(STEPS):
        left = bendable & (np.abs(off) > PRECISE)
        if not left.any():
            break
        low, high = np.where(off < 0.0, asked, low), np.where(off < 0.0, high, asked)
        # The secant; where it leaves the interval with the solution, most of the way to that end.
        guessed = asked - off / slope
        end = np.where(off < 0.0, high, low)
        guessed = np.where((guessed > low) & (guessed < high), guessed, asked + FARTHEST * (end - asked))
        pose, gap = posed(guessed)
        step = guessed - asked
        rise = np.where(step == 0.0, slope, (gap - off) / np.where(step == 0.0, 1.0, step))
        slope = np.where(left, np.maximum(rise, FLATTEST), slope)
        asked, off = np.where(left, guessed, asked), np.where(left, gap, off)
        found = np.where(left, pose, found)
    missed = bendable & (np.abs(off) > MISSED)
    if missed.any():
        now = chain_axes(MANY, apart(found), sizes, list(map(list, frames[:, :, 0])))
        found = np.where(missed, together(first_guess(MANY, apart(found), sizes, now, now, wanted)), found)
    return found


def _shared(rest: Floats, turns: Floats, frames: Floats, mobility: Floats) -> Floats:
    """Return directions (3, n, B), the rest turned by each joint's share of the rotation vectors `turns` (3, n, B)."""
    steps = turns[:, 1:] - turns[:, :-1]
    local = np.stack([dot(frames[:, k, 1:], steps) * mobility[k, 1:] for k in range(3)])
    shares = local[0] * frames[:, 0, 1:] + local[1] * frames[:, 1, 1:] + local[2] * frames[:, 2, 1:]
    if shares.shape[1]:
        before, after = norm(steps).sum(axis=-2), norm(shares).sum(axis=-2)
        shares = shares * np.where(after > 0.0, before / np.where(after > 0.0, after, 1.0), 1.0)
    vector = np.cumsum(np.concatenate([turns[:, :1], shares], axis=1), axis=1)
    angle = norm(vector)
    safe = np.where(angle > 0.0, angle, 1.0)
    axis = vector / safe
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.asarray(rest * cosine + cross(axis, rest) * sine + axis * (dot(axis, rest) * (1.0 - cosine)))


def _turns(one: Floats, other: Floats, normal: Floats) -> Floats:
    """Return the rotation vectors (3, n, B) of the smallest rotations from unit directions to others."""
    axis = cross(one, other)
    sine, cosine = norm(axis), dot(one, other)
    angle = np.arctan2(sine, cosine)
    # For opposite directions any axis will do, as long as rounding does not change it.
    factor = np.where(sine > 1e-12, angle / np.where(sine > 1e-12, sine, 1.0), np.where(cosine < 0.0, 0.0, 1.0))
    turned = axis * factor
    return np.where((sine <= 1e-12) & (cosine < 0.0), np.pi * normal[:, None], turned)
