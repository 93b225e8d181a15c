"""Reshape chains by one number: bend them like an arc, then pull them along their line to the wanted distance.

This keeps the character of a pose and varies smoothly with the distance from root to tip, the only thing that has to
come out right. The bend is a formula; the pull is found to rounding by Newton's method in a few steps.

Bones are unit directions in the axes of their chain, see `axes.Axes`: `x` (n, B) along its line, `y` (n, B) towards
its bend and `z` (n, B) along its normal. Lengths and distances are fractions of the chain's length.
"""

from __future__ import annotations

import numpy as np

from ..maths.numbers import MANY, Numbers
from ..maths.vectors import Number
from ..problem import Floats

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


def bow_of(x: Floats, parts: Floats, chord: Floats, wanted: Floats) -> Floats:
    """Return the radians (B,), from end to end, by which to bend chains first: none if they must get longer.

    Args:
        x: (n, B) directions along the chains' lines.
        parts: (n, B) lengths.
        chord: (B,) distance from root to tip.
        wanted: (B,) the distance wanted.
    """
    return np.asarray(np.maximum(arc_of(MANY, wanted) - arc_of(MANY, chord), kick_of(x, parts, chord)))


def kick_of(x: Floats, parts: Floats, chord: Floats) -> Floats:
    """Return the smallest bow (B,) of chains: above 0 where they are folded flat, because no pull moves those."""
    stiff = (parts * (1.0 - x * x)).sum(axis=-2) < STIFF
    return np.where(stiff & (chord < FOLDED), KICK, 0.0)


def pull_of(
    x: Floats, y: Floats, z: Floats, parts: Floats, chord: Floats, wanted: Floats, least: float = LEAST
) -> Floats:
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
