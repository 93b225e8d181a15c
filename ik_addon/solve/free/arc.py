"""Reshape chains by one number: bend them like an arc, then pull them along their line to the wanted distance.

This keeps the character of a pose and varies smoothly with the distance from root to tip, the only thing that has to
come out right. The bend is a formula; the pull is found to rounding by Newton's method in a few steps.

These are the only steps of free chains that exist twice, in the same order: `bent` for many chains, and `bent_one` for
one in plain floats. Written once, bone by bone, the pull takes twice as long for one chain, and operations on
arrays as many times longer as a chain has bones.

Bones are unit directions in the axes of their chain, see `axes.Axes`: `x` along its line, `y` towards its bend and `z`
along its normal, all (n, B). Lengths and distances are fractions of the chain's length.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, inf, sin, sqrt

import numpy as np

from ..maths.numbers import MANY, ONE, Numbers
from ..maths.rotations import dot, norm
from ..maths.vectors import Number, Vector
from ..maths.vectors import dot as product
from ..maths.vectors import norm as size_of
from ..problem import Floats
from .axes import Axes, tip_of

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
    chord = norm((directions * lengths).sum(axis=-2)) / whole
    wanted = distance / whole
    x, y, z = (dot(directions, axis[:, None]) for axis in own)
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
    chord, wanted = size_of(tip_of(directions, lengths)) / whole, distance / whole
    plane = [(product(each, own[0]), product(each, own[1]), product(each, own[2])) for each in directions]
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
