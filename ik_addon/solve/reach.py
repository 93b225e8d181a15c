"""What a chain does when its target is too far or too near: the goal it can reach instead.

All lengths here are fractions of the chain's length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .problem import Floats, OutOfReach

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
    missing: Floats
    """(B,) what the tip then lacks: positive where the target is too far, negative where it is too near."""


def inner_radius(lengths: Floats) -> Floats:
    """Return the nearest distance (B,) that bones of lengths (n, B) reach, their sum being 1.

    It is 0 unless one bone is longer than all others together.
    """
    return np.asarray(np.maximum(0.0, 2.0 * lengths.max(axis=0) - 1.0))


def ease(distance: Floats, softness: Floats) -> Floats:
    """Return the distance (B,) that a chain of length 1 takes on for a target at `distance` (B,).

    Up to 1 - softness it is the distance itself; from there it approaches 1 exponentially, with the same slope.
    """
    start = 1.0 - softness
    over = np.maximum(distance - start, 0.0)
    width = np.maximum(softness, 1e-12)
    return np.where(distance > start, start - width * np.expm1(-over / width) * (softness > 0), distance)


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
    inner = inner_radius(lengths)
    # Easing must not begin inside the inner reach: the chain cannot follow there.
    softness = np.minimum(softness, 1.0 - inner)
    goal = np.maximum(ease(distance, softness), inner)
    push = np.zeros_like(distance)
    stretch = np.ones_like(lengths)
    if policy is OutOfReach.PUSH_ROOT:
        push = np.clip(distance - goal, -push_limit, push_limit)
    elif policy is OutOfReach.STRETCH:
        shares = np.broadcast_to(weights[:, None], lengths.shape)
        total = np.cumsum(shares * lengths, axis=0)[-1]
        shares = np.where(total > 0, shares, 1.0)
        total = np.where(total > 0, total, 1.0)
        # The lengthened chain is as much extended as the eased one, so the bend does not change in the changeover.
        missing = np.where(distance > goal, np.maximum(distance / np.maximum(goal, 1e-12) - 1.0, 0.0), 0.0)
        stretch = 1.0 + shares * (missing / total)
        goal = np.where(distance > goal, distance, goal)
    missing = distance - push - goal
    return Reach(goal, push, stretch, np.where(np.abs(missing) <= ROUNDING * np.maximum(distance, goal), 0.0, missing))
