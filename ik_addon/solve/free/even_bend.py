"""Bend chains of any number of bones like a bow: turn them to the target as a whole, then bend them by one number.

A chain whose tip is at the right distance from its root only needs to be turned to the target. The first guess is an
arc pulled along its line, which already solves most chains; Newton's method on the distance finishes the others. Where
its first pass does not, one pass of FABRIK loosens the shape, see `fabrik`.

Written once for one chain in plain floats and for many in arrays, see `numbers`, but for the bow and the pull: `bent`
and `bent_one` take the same steps in the same order. Written once, bone by bone, the pull takes twice as long for one
chain, and operations on arrays as many times longer as a chain has bones.

Chains start at the origin; bones are unit directions, one vector for each, and lengths, in chain lengths. For the bow
and the pull they are in the axes of their chain, see `axes.Axes`: `x` along its line, `y` towards its bend and `z`
along its normal, all (n, B), as fractions of the chain's length.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import cos, inf, sin, sqrt
from typing import Any

import numpy as np

from ..maths import rotations
from ..maths.numbers import (
    MANY,
    ONE,
    Number,
    Numbers,
    Vector,
    between,
    cross,
    dot,
    either,
    member,
    norm,
    plus,
    reject,
    size_of,
    times,
    turned,
    unit_of,
)
from ..problem import Floats
from .axes import Axes, tip_of
from .fabrik import FINEST, pass_once
from .two_bone import triangle

STEPS = 12
"""Maximum number of steps; three or four usually suffice. A shape not found by then is out of reach of the pull."""
PRECISE = 1e-13
"""The difference in distance that is not worth another step."""
LEAST = -0.5
"""The strongest push: bones across the line turn by 27 degrees, those along it not at all."""
FARTHER = -0.9
"""The strongest push without a bow: it bends a chain up to ten times as much as it was bent."""
STIFF = 1e-9
"""Where the bones of a chain leave its line by less than this (squared sine), no pull changes its shape."""
FOLDED = 0.999
"""A chain without a bend and shorter than this is folded; otherwise it is straight and bends like an arc."""
KICK = 0.2
"""Radians by which a folded chain is bent first."""
SLACK = 1e-12
"""The smallest slack, length minus chord, of a chain with a bend: below it, rounding would show as its square root."""


def arc_of(do: Numbers, chord: Number) -> Number:
    """Return the angle in radians of an arc of length 1 with a given chord, to within a percent."""
    lack = do.least(do.most(1.0 - SLACK - chord, 0.0), 1.0)
    return 2.0 * do.sqrt(6.0 * lack) * (1.0 + 0.15 * lack + 0.1325 * (lack * lack * lack))


def bent(directions: Floats, lengths: Floats, own: Floats, axes: Floats, distance: Floats, *, bow: bool) -> Floats:
    """Return directions (3, n, B) that bring the tip to about the wanted distance; see `even_bend.first_guess`.

    Args:
        directions: (3, n, B) unit directions of the bones.
        lengths: (n, B) their lengths.
        own: (3, 3, B) line, bend and normal of the chains.
        axes: (3, 3, B) those that they should have.
        distance: (B,) wanted distance from root to tip.
        bow: whether chains are bent first.
    """
    ends = np.cumsum(lengths, axis=0)
    whole = ends[-1]
    chord = rotations.norm((directions * lengths).sum(axis=-2)) / whole
    wanted = distance / whole
    x, y, z = (rotations.dot(directions, axis[:, None]) for axis in own)
    along = x
    changed = np.flatnonzero(np.abs(chord - wanted) > SLACK)
    if len(changed):
        some = changed if len(changed) < len(wanted) else np.s_[:]
        parts = lengths[:, some] / whole[some]
        right, up, out, before, after = x[:, some], y[:, some], z[:, some], chord[some], wanted[some]
        if bow:
            stiff = (parts * (1.0 - right * right)).sum(axis=-2) < STIFF
            kick = np.where(stiff & (before < FOLDED), KICK, 0.0)
            turn = np.maximum(arc_of(MANY, after) - arc_of(MANY, before), kick)
            turn = turn * ((ends[:, some] - lengths[:, some] / 2.0) / whole[some] - 0.5)
            cosine, sine = np.cos(turn), np.sin(turn)
            right, up = right * cosine + up * sine, up * cosine - right * sine
            x[:, some], y[:, some] = right, up
        along = x.copy()
        along[:, some] += _pull_of(right, up, out, parts, before, after, LEAST if bow else FARTHER)
    size = np.sqrt(along * along + y * y + z * z)
    if size.min() <= 1e-12:  # pulled back as far as the bone points ahead
        along, size = np.where(size > 1e-12, along, x), np.where(size > 1e-12, size, 1.0)
    guess = along / size * axes[0][:, None]
    guess += y / size * axes[1][:, None]
    guess += z / size * axes[2][:, None]
    return np.asarray(guess)


def _pull_of(x: Floats, y: Floats, z: Floats, parts: Floats, chord: Floats, wanted: Floats, least: float) -> Floats:
    """Return the pull (B,): what to add to all bone directions, along the chain's line, for the wanted distance.

    Args:
        x: (n, B) directions along the chains' lines, after the bow, like y and z.
        y: (n, B) directions towards their bends.
        z: (n, B) directions along their normals.
        parts: (n, B) lengths.
        chord: (B,) distance from root to tip before the bow.
        wanted: (B,) the distance wanted.
        least: the strongest push.
    """
    # A long pull leaves 1 / (1 + pull)^2 of the slack: in 1 / sqrt(slack), Newton's method goes straight there.
    slack = np.maximum(1.0 - wanted, SLACK)
    goal = 1.0 / np.sqrt(slack)
    pull = np.sqrt(np.maximum(np.maximum(1.0 - chord, SLACK) / slack, 1.0)) - 1.0
    low, high = np.full_like(pull, least), np.full_like(pull, np.inf)
    flat = not z.any()
    across = y * y + z * z
    for _ in range(STEPS):
        along = x + pull
        length = np.maximum(np.sqrt(along * along + across), 1e-12)
        share = parts / length
        right, up = share * along, share * y
        tip_x, tip_y = right.sum(axis=-2), up.sum(axis=-2)
        square = tip_x * tip_x + tip_y * tip_y
        if not flat:
            out = share * z
            tip_z = out.sum(axis=-2)
            square = square + tip_z * tip_z
        size = np.sqrt(square)
        shortfall = size - wanted
        left = np.abs(shortfall) > PRECISE
        if not left.any():
            break
        low, high = np.where(shortfall < 0.0, pull, low), np.where(shortfall < 0.0, high, pull)
        drift = along / (length * length)
        slope = tip_x * (share - drift * right).sum(axis=-2) - tip_y * (drift * up).sum(axis=-2)
        if not flat:
            slope = slope - tip_z * (drift * out).sum(axis=-2)
        slope = slope / np.maximum(size, 1e-200)
        now = np.maximum(1.0 - size, 1e-16)
        guessed = pull + (goal - 1.0 / np.sqrt(now)) * (2.0 * now * np.sqrt(now)) / np.maximum(slope, 1e-30)
        half = np.minimum((low + high) / 2.0, 4.0 * low + 3.0)
        pull = np.where(
            left, np.where((guessed > low) & (guessed < high) & (guessed < 4.0 * pull + 3.0), guessed, half), pull
        )
    return pull


def bent_one(
    directions: Sequence[Vector], lengths: Sequence[float], own: Axes, axes: Axes, distance: float, *, bow: bool
) -> list[Vector]:
    """Do the same as `bent` for one chain."""
    (line, bend, normal), whole = axes, sum(lengths)
    chord, wanted = norm(tip_of(directions, lengths)) / whole, distance / whole
    plane = [(dot(each, own[0]), dot(each, own[1]), dot(each, own[2])) for each in directions]
    pull = 0.0
    if abs(chord - wanted) > SLACK:
        parts = [length / whole for length in lengths]
        if bow:
            give = sum(part * (1.0 - x * x) for part, (x, _y, _z) in zip(parts, plane, strict=True))
            kick = KICK if give < STIFF and chord < FOLDED else 0.0
            plane = _bowed(plane, max(arc_of(ONE, wanted) - arc_of(ONE, chord), kick), parts)
        pull = _pull_of_one(plane, parts, chord, wanted, LEAST if bow else FARTHER)
    guess = []
    for x, y, z in plane:
        along = x + pull
        size = sqrt(along * along + y * y + z * z)
        if not size > 1e-12:
            along, size = x, 1.0
        a, b, c = along / size, y / size, z / size
        guess.append(
            (
                a * line[0] + b * bend[0] + c * normal[0],
                a * line[1] + b * bend[1] + c * normal[1],
                a * line[2] + b * bend[2] + c * normal[2],
            )
        )
    return guess


def _bowed(plane: list[Vector], turn: float, parts: list[float]) -> list[Vector]:
    found, end = [], 0.0
    for (x, y, z), part in zip(plane, parts, strict=True):
        end += part
        place = turn * (end - part / 2.0 - 0.5)
        c, s = cos(place), sin(place)
        found.append((x * c + y * s, y * c - x * s, z))
    return found


def _pull_of_one(plane: list[Vector], parts: list[float], chord: float, wanted: float, least: float) -> float:
    """See `_pull_of`."""
    slack = max(1.0 - wanted, SLACK)
    goal = 1.0 / sqrt(slack)
    pull = sqrt(max(max(1.0 - chord, SLACK) / slack, 1.0)) - 1.0
    low, high = least, inf
    across = [y * y + z * z for _x, y, z in plane]
    for _ in range(STEPS):
        tip_x = tip_y = tip_z = slope_x = slope_y = slope_z = 0.0
        for (x, y, z), part, beside in zip(plane, parts, across, strict=True):
            along = x + pull
            length = max(sqrt(along * along + beside), 1e-12)
            share = part / length
            right, up, out = share * along, share * y, share * z
            tip_x, tip_y, tip_z = tip_x + right, tip_y + up, tip_z + out
            drift = along / (length * length)
            slope_x, slope_y, slope_z = slope_x + (share - drift * right), slope_y + drift * up, slope_z + drift * out
        size = sqrt(tip_x * tip_x + tip_y * tip_y + tip_z * tip_z)
        shortfall = size - wanted
        if not abs(shortfall) > PRECISE:
            break
        low, high = (pull, high) if shortfall < 0.0 else (low, pull)
        slope = (tip_x * slope_x - tip_y * slope_y - tip_z * slope_z) / max(size, 1e-200)
        now = max(1.0 - size, 1e-16)
        guessed = pull + (goal - 1.0 / sqrt(now)) * (2.0 * now * sqrt(now)) / max(slope, 1e-30)
        if not (low < guessed < high and guessed < 4.0 * pull + 3.0):
            guessed = min((low + high) / 2.0, 4.0 * low + 3.0)
        pull = guessed
    return pull


REACHING = 1
"""The pass that is done by FABRIK; the one before it and those after it are Newton's."""
PATIENCE = 24
"""Passes after which a chain is laid out by construction: bones folded flat hardly move each other."""
FEW = 8
"""Up to this many of many chains make their passes one by one."""
NO_CHORD = 1e-7
"""A tip nearer to the root than this fraction of the chain is not turned to its line: rounding would say from where."""


def first_guess(
    do: Numbers,
    directions: Sequence[Vector],
    lengths: Sequence[Number],
    own: Axes,
    axes: Axes,
    distance: Number,
    *,
    bow: bool = True,
) -> list[Vector]:
    """Return directions that bring the tip to about the wanted distance and keep the character of the pose.

    A chain that must get shorter is bent about its normal like an arc; one that must get longer is pulled straight. At
    the current distance nothing changes.

    Args:
        do: for one chain or for many.
        directions: unit directions of the bones.
        lengths: their lengths.
        own: the axes that the chain has.
        axes: the axes that it should have.
        distance: wanted distance from root to tip.
        bow: False: a chain that must get shorter is pushed along its line, which bends most where it is bent.
    """
    if do is ONE:
        guess = bent_one(directions, lengths, own, axes, distance, bow=bow)
    else:
        sizes: Floats = np.array(lengths)
        guess = apart(bent(together(directions), sizes, np.array(own), np.array(axes), distance, bow=bow))
    return flattened(do, guess, lengths, axes.line, distance)


def flattened(
    do: Numbers, directions: Sequence[Vector], lengths: Sequence[Number], line: Vector, distance: Number
) -> list[Vector]:
    """Return the directions, with chains at the ends of their reach laid along the line.

    Those need no search. Folded flat, the longest bone points towards the target and all others point back.

    Args:
        do: for one chain or for many.
        directions: unit directions of the bones.
        lengths: their lengths.
        line: from root to target.
        distance: between them.
    """
    whole, longest = sum(lengths), reduce(do.most, lengths)
    straight = distance / whole >= 1.0 - SLACK
    flat = straight | ((2.0 * longest > whole) & (2.0 * longest - whole >= distance - SLACK))
    if not do.any(flat):
        return list(directions)
    ways = (times(line, do.where(straight | (length == longest), 1.0, -1.0)) for length in lengths)
    return [either(do, flat, way, direction) for way, direction in zip(ways, directions, strict=True)]


def apart(directions: Floats) -> list[Vector]:
    """Return directions (3, n, B) as a list of vectors, one for each bone."""
    return [(x, y, z) for x, y, z in directions.transpose(1, 0, 2)]


def together(directions: Sequence[Sequence[Any]]) -> Floats:
    """Return a list of vectors, one for each bone, as directions (3, n, B): the inverse of `apart`."""
    return np.ascontiguousarray(np.array(directions).swapaxes(0, 1))


def solve_directions(
    do: Numbers,
    start: Sequence[Vector],
    lengths: Sequence[Number],
    axes: Axes,
    distance: Number,
    tolerance: Number,
    iterations: int,
    begun: int = 0,
) -> tuple[list[Vector], Number]:
    """Return bone directions of a chain that ends at a distance along its line, and the passes used.

    The FABRIK pass starts from a chain turned to the target, so that doing it or stopping before it makes no more
    difference than the tolerance: the result moves smoothly with the target.

    Args:
        do: for one chain or for many.
        start: unit directions to start from.
        lengths: bone lengths.
        axes: axes that the chain should have; `line` points at the target.
        distance: from root to target, within reach.
        tolerance: distance from tip to target that is near enough.
        iterations: maximum number of passes.
        begun: passes already spent.
    """
    tolerance = do.most(tolerance, FINEST * sum(lengths))
    found, used = list(start), begun + 0 * distance
    left = abs(distance - size_of(do, tip_of(found, lengths))) > tolerance
    if do.any(left) and begun < iterations:
        given = found, list(lengths), axes, distance, tolerance, iterations, begun
        if np.count_nonzero(left) > FEW:
            found, used = do.redone(_passes, left, (do, *given), (found, used))
        elif do is ONE:
            found, used = _passes(do, *given)
        else:
            every = together(found)
            for i in np.flatnonzero(left).tolist():
                own, used[i] = _passes(ONE, *member(given, i))
                every[..., i] = np.array(own).T
            found = apart(every)
    return _turned_to_line(do, found, lengths, axes), used


def _passes(
    do: Numbers,
    directions: list[Vector],
    lengths: list[Number],
    axes: Axes,
    distance: Number,
    tolerance: Number,
    iterations: int,
    begun: int,
) -> tuple[list[Vector], Number]:
    """Return the directions after the passes of `solve_directions`, and their number."""
    used, step, tip = begun + 0 * distance, 1.0 + 0 * distance, tip_of(directions, lengths)
    for done in range(begun, iterations):
        left = abs(distance - size_of(do, tip)) > tolerance
        if not do.any(left):
            break
        if done == REACHING:
            start = _turned_to_line(do, directions, lengths, axes)
            found, end = pass_once(do, start, lengths, times(axes.line, distance))
        elif done < PATIENCE:
            found, end, step = _pulled(do, directions, lengths, tip, distance, step)
        else:
            found = _constructed(do, lengths, axes, distance)
            end = tip_of(found, lengths)
        directions, tip = do.choose(left, (found, end), (directions, tip))
        used = used + left
    return directions, used


def _turned_to_line(do: Numbers, directions: Sequence[Vector], lengths: Sequence[Number], axes: Axes) -> list[Vector]:
    """Return the directions of a chain turned as a whole to have its tip on its line."""
    end = tip_of(directions, lengths)
    tip = unit_of(do, end)
    turn = between(do, tip, axes.line, unit_of(do, reject(axes.normal, tip)))
    clear = size_of(do, end) > NO_CHORD
    found: list[Vector] = do.choose(clear, turned(turn, directions), list(directions))
    return found


def _pulled(
    do: Numbers, directions: list[Vector], lengths: Sequence[Number], tip: Vector, distance: Number, step: Number
) -> tuple[list[Vector], Vector, Number]:
    """Pull all bones alike along the line from root to tip: Newton's method on the distance between them.

    A bone counts by its length, so that it moves as its two halves would, and this is the least turning that
    changes the distance. The tip also moves sideways, which matters near the root: the pull is chosen so that the
    tip, moving straight, meets the sphere of the target.

    Returns:
        The directions, the tip, and the share of the next step to take.
    """
    line = unit_of(do, tip)
    give = [reject(line, direction) for direction in directions]
    speed = tip_of(give, lengths)
    along, square, shortfall = dot(tip, speed), dot(speed, speed), distance * distance - dot(tip, tip)
    pull = shortfall / do.most(along + do.sqrt(do.most(along * along + square * shortfall, 0.0)), 1e-30)
    size = step * do.least(do.most(pull, -1.0), 1.0)
    tried = [unit_of(do, plus(direction, times(way, size))) for direction, way in zip(directions, give, strict=True)]
    end = tip_of(tried, lengths)
    better = abs(distance - size_of(do, end)) < abs(distance - size_of(do, tip))
    tried, end = do.choose(better, (tried, end), (directions, tip))
    return tried, end, do.where(better, do.least(2.0 * step, 1.0), step / 2.0)


def _constructed(do: Numbers, lengths: Sequence[Number], axes: Axes, distance: Number) -> list[Vector]:
    """Lay a chain out in its plane as at most three straight pieces, exactly.

    The middle piece is the bone at the middle of the chain. With the line to the target the pieces make a
    quadrilateral; of its possible diagonals, the mean of the shortest and the longest is taken.
    """
    whole = sum(lengths)
    end = before = own = 0.0 * whole
    places = []
    for length in lengths:
        begin, end = end, end + length
        place = 1 * (2.0 * begin >= whole) - (2.0 * end < whole)
        before, own = do.where(place == 0, begin, before), do.where(place == 0, length, own)
        places.append(place)
    after = whole - before - own
    shortest = do.most(abs(own - after), abs(before - distance))
    diagonal = (shortest + do.least(own + after, before + distance)) / 2.0
    first, rest = triangle(do, before, diagonal, distance, axes.line, axes.bend)
    second, third = triangle(do, own, after, diagonal, rest, cross(rest, cross(axes.line, axes.bend)))
    return [either(do, place < 0, first, either(do, place == 0, second, third)) for place in places]
