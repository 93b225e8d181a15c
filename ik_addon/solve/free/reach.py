"""Out-of-reach policies: the goal that a chain can reach in place of a target that is too far or too near.

All lengths here are fractions of the chain's length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..maths.numbers import MANY, ONE, Numbers
from ..maths.vectors import Number
from ..problem import Floats, OutOfReach, Problem

ROUNDING = 1e-15
"""A shortfall below this fraction of the distance is rounding."""


@dataclass(frozen=True)
class Reach:
    """What remains to be solved for B chains: a distance that is always within reach of the stretched bones."""

    distance: Floats
    """(B,) from the pushed root to the place for the tip, along the line to the target."""
    push: Floats
    """(B,) how far the root moves along that line."""
    stretch: Floats
    """(n, B) uniform scale of each bone."""
    shortfall: Floats
    """(B,) how far the tip then falls short: positive where the target is too far, negative where it is too near."""


def inner_radius(lengths: Floats) -> Floats:
    """Return the smallest distance (B,) that bones of lengths (n, B) can reach, if the lengths add up to 1.

    It is 0 unless one bone is longer than all others together.
    """
    return np.asarray(np.maximum(0.0, 2.0 * lengths.max(axis=0) - 1.0))


def soften(do: Numbers, distance: Number, softness: Number) -> Number:
    """Return the distance at which a chain of length 1 puts its tip for a target at a distance.

    Up to 1 - softness it is the distance itself; from there it approaches 1 exponentially, with the same slope.
    """
    start = 1.0 - softness
    past = distance > start
    if not do.any(past):
        return distance
    width = do.most(softness, 1e-12)
    fallen = do.expm1(-do.most(distance - start, 0.0) / width)
    return do.where(past, start - width * fallen * (softness > 0.0), distance)


def goal_of(
    do: Numbers, distance: Number, longest: Number, softness: Number, push_limit: Number, policy: OutOfReach
) -> tuple[Number, Number, Number, Number]:
    """Return the goal of a chain of length 1 for a target at a distance.

    Args:
        do: kernel for one chain or for many.
        distance: from root to target.
        longest: length of the longest bone.
        softness: fraction of the reach that eases into extension.
        push_limit: how far the root may be pushed.
        policy: what to do about a target out of reach.

    Returns:
        The distance to reach, how far the root is pushed, how much longer the chain gets, and the shortfall of the tip.
    """
    inner = do.most(0.0, 2.0 * longest - 1.0)
    # Easing must not start inside the inner reach, where the chain cannot follow.
    goal = do.most(soften(do, distance, do.least(softness, 1.0 - inner)), inner)
    push = longer = 0.0 * distance
    if policy is OutOfReach.PUSH_ROOT:
        push = do.least(do.most(distance - goal, -push_limit), push_limit)
    elif policy is OutOfReach.STRETCH:
        # The lengthened chain is as extended as the eased one, so the bend does not jump at the transition.
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
    """Return the goals of chains (bones of lengths (n, B), sum 1) for targets at `distance` (B,).

    Args:
        lengths: (n, B) bone lengths, which add up to 1 over n.
        distance: (B,) from root to target.
        softness: (B,) fraction of the reach that eases into extension.
        push_limit: (B,) how far the root may be pushed.
        weights: (n,) share of the lengthening that each bone takes; all zero: equal.
        policy: what to do about a target out of reach.
    """
    goal, push, longer, lack = goal_of(MANY, distance, lengths.max(axis=0), softness, push_limit, policy)
    stretch = np.ones_like(lengths)
    if policy is OutOfReach.STRETCH:
        shares = np.broadcast_to(weights[:, None], lengths.shape)
        total = np.cumsum(shares * lengths, axis=0)[-1]
        stretch = 1.0 + np.where(total > 0, shares, 1.0) * (longer / np.where(total > 0, total, 1.0))
    return Reach(goal, push, stretch, lack)


def reachable_for_one(
    lengths: list[float], distance: float, softness: float, push_limit: float, problem: Problem
) -> tuple[float, float, list[float], float]:
    """Return the same for one chain, in plain floats: distance, push, stretch of each bone, and shortfall.

    The policy and the weights are those of a problem.
    """
    stretch = [1.0] * len(lengths)
    # Most targets: the result of `goal_of`, without calls to the kernel, for which limbs took 5 % longer.
    if softness == 0.0 and problem.out_of_reach is OutOfReach.EXTEND and 2.0 * max(lengths) - 1.0 < distance:
        goal = min(distance, 1.0)
        return goal, 0.0, stretch, 0.0 if distance - goal <= ROUNDING * distance else distance - goal
    goal, push, longer, lack = goal_of(ONE, distance, max(lengths), softness, push_limit, problem.out_of_reach)
    if longer > 0.0:
        weights = problem.stretch_weights
        shares = stretch if weights is None else np.asarray(weights, dtype=np.float64).tolist()
        total = sum(share * length for share, length in zip(shares, lengths, strict=True))
        if not total > 0:
            shares, total = stretch, 1.0
        stretch = [1.0 + share * (longer / total) for share in shares]
    return goal, push, stretch, lack
