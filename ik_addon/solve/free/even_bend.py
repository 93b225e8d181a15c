"""Bend chains of any number of bones like a bow: turn them to the target as a whole, then bend them by one number.

A chain whose tip is at the right distance from its root only needs to be turned to the target. The first guess is an
arc pulled along its line, which already solves most chains; Newton's method on the distance finishes the others. Where
its first pass does not, one pass of FABRIK loosens the shape, see `fabrik`.

Written once for one chain in plain floats and for many in arrays, see `numbers`: the bow and the pull with all bones of
many chains at once, as one by one operations on arrays would take as many times longer as a chain has bones.

Chains start at the origin; bones are unit directions, one vector for each, and lengths, in chain lengths.
"""

from collections.abc import Sequence
from functools import reduce
from math import inf

import numpy as np

from ..maths.numbers import MANY, Number, Numbers
from ..maths.turns import applied, between, seen, turned
from ..maths.vectors import Vector, cross, dot, either, plus, reject, size_of, times, unit_of
from .axes import SLACK, Axes, arc_of, joints_of, triangle
from .fabrik import FINEST, pass_once

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


Bone = tuple[Vector, Number, Number]
"""Its direction in the axes of its chain, its length as a fraction of the chain's, and where along the chain its middle
is, from -0.5 to 0.5. Of many chains, a single one stands for all bones: with arrays (n, B), and with sums over n."""


def _pull_of(do: Numbers, bones: Sequence[Bone], chord: Number, wanted: Number, least: float) -> Number:
    """Return the pull: what to add to all bone directions, along the chain's line, for the wanted distance.

    Args:
        do: for one chain or for many.
        bones: after the bow.
        chord: distance from root to tip before the bow.
        wanted: the distance wanted.
        least: the strongest push.
    """
    most, sqrt, where = do.most, do.sqrt, do.where
    # A long pull leaves 1 / (1 + pull)^2 of the slack: in 1 / sqrt(slack), Newton's method goes straight there.
    slack = most(1.0 - wanted, SLACK)
    goal = 1.0 / sqrt(slack)
    pull = sqrt(most(most(1.0 - chord, SLACK) / slack, 1.0)) - 1.0
    low, high = least, inf
    rows = [(x, y, z, y * y + z * z, part) for (x, y, z), part, _ in bones]
    for _ in range(STEPS):
        tip_x: Number = 0.0
        tip_y = tip_z = slope_x = slope_y = slope_z = tip_x
        for x, y, z, beside, part in rows:
            along = x + pull
            length = most(sqrt(along * along + beside), 1e-12)
            share = part / length
            right, up, out = share * along, share * y, share * z
            tip_x, tip_y, tip_z = tip_x + right, tip_y + up, tip_z + out
            drift = along / (length * length)
            slope_x, slope_y, slope_z = slope_x + (share - drift * right), slope_y + drift * up, slope_z + drift * out
        if do is MANY:
            tip_x, tip_y, tip_z = (each.sum(axis=0) for each in (tip_x, tip_y, tip_z))
            slope_x, slope_y, slope_z = (each.sum(axis=0) for each in (slope_x, slope_y, slope_z))
        size = sqrt(tip_x * tip_x + tip_y * tip_y + tip_z * tip_z)
        shortfall = size - wanted
        left = abs(shortfall) > PRECISE
        if not do.any(left):
            break
        low, high = where(shortfall < 0.0, pull, low), where(shortfall < 0.0, high, pull)
        slope = (tip_x * slope_x - tip_y * slope_y - tip_z * slope_z) / most(size, 1e-200)
        now = most(1.0 - size, 1e-16)
        guessed = pull + (goal - 1.0 / sqrt(now)) * (2.0 * now * sqrt(now)) / most(slope, 1e-30)
        fits = (guessed > low) & (guessed < high) & (guessed < 4.0 * pull + 3.0)
        guessed = where(fits, guessed, do.least((low + high) / 2.0, 4.0 * low + 3.0))
        pull = where(left, guessed, pull)
    return pull


REACHING = 1
"""The pass that is done by FABRIK; the one before it and those after it are Newton's."""
PATIENCE = 24
"""Passes after which a chain is laid out by construction: bones folded flat hardly move each other."""
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
    whole, end = sum(lengths), 0.0
    chord, wanted = size_of(do, joints_of(directions, lengths)[-1]) / whole, distance / whole
    given: list[Bone] = []
    for direction, length in zip(directions, lengths, strict=True):
        end = end + length
        given.append((direction, length / whole, (end - length / 2.0) / whole - 0.5))
    if do is MANY:
        # All bones at once: one by one, operations would take many times longer.
        ways, parts, places = zip(*given, strict=True)
        x, y, z = (np.array(each) for each in zip(*ways, strict=True))
        given = [((x, y, z), np.array(parts), np.array(places))]
    bones = [(seen(own, way), part, at) for way, part, at in given]
    changes, pull = abs(chord - wanted) > SLACK, 0.0 * whole
    if do.any(changes):
        if bow:
            give = sum(part * (1.0 - x * x) for (x, _, _), part, _ in bones)
            give = give.sum(axis=0) if do is MANY else give
            kick = do.where((give < STIFF) & (chord < FOLDED), KICK, 0.0)
            turn = do.where(changes, do.most(arc_of(do, wanted) - arc_of(do, chord), kick), 0.0)
            for i, ((x, y, z), part, at) in enumerate(bones):
                cosine, sine = do.cos(turn * at), do.sin(turn * at)
                bones[i] = (x * cosine + y * sine, y * cosine - x * sine, z), part, at
        pull = do.where(changes, _pull_of(do, bones, chord, wanted, LEAST if bow else FARTHER), 0.0)
    guess = []
    for (x, y, z), _, _ in bones:
        along = x + pull
        size = do.sqrt(along * along + y * y + z * z)
        clear = size > 1e-12  # pulled back as far as the bone points ahead, it keeps its direction
        along, size = do.where(clear, along, x), do.where(clear, size, 1.0)
        guess.append(applied(axes, (along / size, y / size, z / size)))
    if do is MANY:
        guess = list(zip(*guess[0], strict=True))
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
    left = abs(distance - size_of(do, joints_of(found, lengths)[-1])) > tolerance
    if do.any(left) and begun < iterations:
        given = found, list(lengths), axes, distance, tolerance, iterations, begun
        found, used = do.redone(_passes, left, (do, *given), (found, used))
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
    used, step, tip = begun + 0 * distance, 1.0 + 0 * distance, joints_of(directions, lengths)[-1]
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
            end = joints_of(found, lengths)[-1]
        directions, tip = do.choose(left, (found, end), (directions, tip))
        used = used + left
    return directions, used


def _turned_to_line(do: Numbers, directions: Sequence[Vector], lengths: Sequence[Number], axes: Axes) -> list[Vector]:
    """Return the directions of a chain turned as a whole to have its tip on its line."""
    end = joints_of(directions, lengths)[-1]
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
    speed = joints_of(give, lengths)[-1]
    along, square, shortfall = dot(tip, speed), dot(speed, speed), distance * distance - dot(tip, tip)
    pull = shortfall / do.most(along + do.sqrt(do.most(along * along + square * shortfall, 0.0)), 1e-30)
    size = step * do.least(do.most(pull, -1.0), 1.0)
    tried = [unit_of(do, plus(direction, times(way, size))) for direction, way in zip(directions, give, strict=True)]
    end = joints_of(tried, lengths)[-1]
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
