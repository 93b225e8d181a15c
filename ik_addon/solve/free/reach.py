"""What a chain does when its target is too far or too near: the goal it can reach instead.

All lengths here are fractions of the chain's length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..maths.calculus import Calculus
from ..maths.kernels import MANY
from ..maths.vectors import Number
from ..problem import Floats, OutOfReach

ROUNDING = 1e-15
"""No more than this is missing, as a part of the distance, where nothing is."""


@dataclass(frozen=True)
class Reach:
    """What is left to solve, for B chains: a distance that is always within reach of the stretched bones."""

    distance: Floats
    """(B,) from the root, where it then stands, to the point for the tip, along the line to the target."""
    push: Floats
    """(B,) how far the root moves along that line."""
    stretch: Floats
    """(n, B) uniform scale of each bone."""
    shortfall: Floats
    """(B,) what the tip then lacks: positive where the target is too far, negative where it is too near."""


def inner_radius(lengths: Floats) -> Floats:
    """Return the nearest distance (B,) that bones of lengths (n, B) reach, their sum being 1.

    It is 0 unless one bone is longer than all others together.
    """
    return np.asarray(np.maximum(0.0, 2.0 * lengths.max(axis=0) - 1.0))


def soften(do: Calculus, distance: Number, softness: Number) -> Number:
    """Return the distance that a chain of length 1 takes on for a target at a distance.

    Up to 1 - softness it is the distance itself; from there it approaches 1 exponentially, with the same slope.
    """
    start = 1.0 - softness
    past = distance > start
    if not do.any(past):
        return distance
    width = do.most(softness, 1e-12)
    (fallen,) = do.each(np.expm1, [-do.most(distance - start, 0.0) / width])
    return do.where(past, start - width * fallen * (softness > 0.0), distance)


def goal_of(
    do: Calculus, distance: Number, longest: Number, softness: Number, push_limit: Number, policy: OutOfReach
) -> tuple[Number, Number, Number, Number]:
    """Return what a chain of length 1 is to reach for a target at a distance.

    Args:
        do: of one chain or of many.
        distance: from root to target.
        longest: length of the longest bone.
        softness: fraction of the reach that eases into extension.
        push_limit: how far the root may be pushed.
        policy: what a target out of reach does.

    Returns:
        The distance to reach, how far the root is pushed, how much longer the chain gets, and what the tip then lacks.
    """
    inner = do.most(0.0, 2.0 * longest - 1.0)
    # Easing must not begin inside the inner reach: the chain cannot follow there.
    goal = do.most(soften(do, distance, do.least(softness, 1.0 - inner)), inner)
    push = longer = 0.0 * distance
    if policy is OutOfReach.PUSH_ROOT:
        push = do.least(do.most(distance - goal, -push_limit), push_limit)
    elif policy is OutOfReach.STRETCH:
        # The lengthened chain is as much extended as the eased one, so the bend does not change in the changeover.
        past = distance > goal
        longer = do.where(past, do.most(distance / do.most(goal, 1e-12) - 1.0, 0.0), 0.0)
        goal = do.where(past, distance, goal)
    lack = distance - push - goal
    return goal, push, longer, do.where(abs(lack) <= ROUNDING * do.most(distance, goal), 0.0, lack)


def reachable(
    lengths: Floats,
    distance: Floats,
    softness: Floats,
    push_limit: Floats,
    weights: Floats,
    policy: OutOfReach,
) -> Reach:
    """Return what the chains (bones of lengths (n, B), sum 1) are to reach for targets at `distance` (B,).

    Args:
        lengths: (n, B) bone lengths, their sum over n being 1.
        distance: (B,) from root to target.
        softness: (B,) fraction of the reach that eases into extension.
        push_limit: (B,) how far the root may be pushed.
        weights: (n,) share of the lengthening that each bone takes; all zero: equal.
        policy: what a target out of reach does.
    """
    goal, push, longer, lack = goal_of(MANY, distance, lengths.max(axis=0), softness, push_limit, policy)
    stretch = np.ones_like(lengths)
    if policy is OutOfReach.STRETCH:
        shares = np.broadcast_to(weights[:, None], lengths.shape)
        total = np.cumsum(shares * lengths, axis=0)[-1]
        stretch = 1.0 + np.where(total > 0, shares, 1.0) * (longer / np.where(total > 0, total, 1.0))
    return Reach(goal, push, stretch, lack)
