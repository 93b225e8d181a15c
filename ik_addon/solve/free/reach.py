"""The goals of chains, and what a chain can reach in place of a target that is too far or too near.

All lengths here are fractions of the chain's length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import repeat
from typing import NamedTuple

import numpy as np

from ..maths.numbers import ONE, Nested, Number, Numbers
from ..maths.turns import Frame, transposed
from ..maths.vectors import Vector
from ..problem import Floats, Ints, OutOfReach, Problem, Status

ROUNDING = 1e-15
"""A shortfall below this fraction of the distance is rounding."""
FULL, FARTHEST = 1e-12, 1.25
"""Targets are placed to bring soft chains this near to full extension, but no farther from the root."""


class Aim(NamedTuple):
    """The goal of one chain in floats, or of many in arrays; see `Goal` and `Problem`."""

    target: Vector
    pole: Vector | None
    pole_angle: Number
    rotation: Frame | None
    softness: Number
    push_limit: Number
    tolerance: Number

    @classmethod
    def each(cls, problem: Problem, index: Ints) -> Iterator[Aim]:
        """Yield the goals of the members `index` (k,)."""
        goal, none = problem.goal, repeat(None)
        poles = none if goal.pole is None else lists_of(goal.pole, index)
        rotations = none if goal.rotation is None else map(transposed, lists_of(goal.rotation, index))
        angle = 0.0 if goal.pole_angle is None else goal.pole_angle
        every = (angle, problem.softness, problem.push_limit, problem.tolerance)
        numbers = [np.asarray(value, dtype=np.float64) for value in every]
        angles, *settings = (each[index].tolist() if each.ndim else repeat(each.item()) for each in numbers)
        return map(cls, lists_of(goal.target, index), poles, angles, rotations, *settings)


def lists_of(array: Floats, index: list[int] | Ints) -> list[Nested]:
    """Return the rows of chosen members as plain floats."""
    rows: list[Nested] = np.asarray(array, dtype=np.float64)[index].tolist()
    return rows


class Reach(NamedTuple):
    """What remains to be solved: a distance that is always within reach of the stretched bones."""

    distance: Number
    """From the pushed root to the place for the tip, along the line to the target."""
    push: Number
    """How far the root moves along that line."""
    stretch: Sequence[Number]
    """Uniform scale of each bone."""
    shortfall: Number
    """How far the tip then falls short: positive where the target is too far, negative where it is too near."""


def goal_of(
    do: Numbers, distance: Number, longest: Number, softness: Number, push_limit: Number, policy: OutOfReach
) -> tuple[Number, Number, Number, Number]:
    """Return the goal of a chain of length 1 for a target at a distance.

    Up to 1 - softness it is the distance itself; from there it approaches 1 exponentially, with the same slope.

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
    inner, goal = do.most(0.0, 2.0 * longest - 1.0), distance
    # Easing must not start inside the inner reach, where the chain cannot follow.
    softness = do.least(softness, 1.0 - inner)
    start = 1.0 - softness
    past = distance > start
    if do.any(past):
        width = do.most(softness, 1e-12)
        fallen = do.expm1(-do.most(distance - start, 0.0) / width)
        goal = do.where(past, start - width * fallen * (softness > 0.0), distance)
    goal = do.most(goal, inner)
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


def target_for(reached: Floats, longest: Floats, softness: Floats) -> Floats:
    """Return the distances of targets for which chains that only extend reach given ones: the inverse of `goal_of`."""
    softness = np.minimum(softness, 1.0 - np.maximum(2.0 * longest - 1.0, 0.0))
    left = np.maximum(1.0 - reached, FULL)
    eased = 1.0 - softness + softness * np.log(np.maximum(softness, left) / left)
    return np.asarray(np.where(left < softness, np.clip(eased, reached, FARTHEST), reached))


def reachable(do: Numbers, lengths: Sequence[Number], distance: Number, aim: Aim, problem: Problem) -> Reach:
    """Return the goal of a chain for a target at a distance, with the policy and the weights of a problem.

    Args:
        do: for one chain or for many.
        lengths: of the bones, which add up to 1.
        distance: from root to target.
        aim: the goal.
        problem: its policy, and the share of the lengthening that each bone takes; all zero: equal.
    """
    policy, stretch = problem.out_of_reach, [1.0] * len(lengths)
    longest = reduce(do.most, lengths)
    # Most targets: the result of `goal_of`, without calls to the kernel, for which limbs took 5 % longer.
    is_hard = do is ONE and (aim.softness == 0.0 or distance <= 1.0 - aim.softness)
    if is_hard and policy is OutOfReach.EXTEND and 2.0 * longest - 1.0 < distance:
        goal = min(distance, 1.0)
        return Reach(goal, 0.0, stretch, 0.0 if distance - goal <= ROUNDING * distance else distance - goal)
    goal, push, longer, lack = goal_of(do, distance, longest, aim.softness, aim.push_limit, policy)
    if policy is OutOfReach.STRETCH and do.any(longer > 0.0):
        weights = problem.stretch_weights
        shares = stretch if weights is None else np.asarray(weights, dtype=np.float64).tolist()
        total = sum(share * length for share, length in zip(shares, lengths, strict=True))
        weighed = total > 0.0
        longer = longer / do.where(weighed, total, 1.0)
        stretch = [1.0 + do.where(weighed, share, 1.0) * longer for share in shares]
    return Reach(goal, push, stretch, lack)


def status_of(do: Numbers, reached: Number, beyond: Number, tolerance: Number, otherwise: Status) -> Number:
    """Return the status of chains: too far or too near is only what the policy leaves unreached.

    Args:
        do: for one chain or for many.
        reached: whether the tip is at its target.
        beyond: how far the target is beyond the reach; negative: inside the inner reach.
        tolerance: the error that counts as reached.
        otherwise: the status of chains that miss a target within reach.
    """
    missed = do.where(beyond < -tolerance, Status.TOO_NEAR, otherwise)
    return do.where(reached, Status.REACHED, do.where(beyond > tolerance, Status.TOO_FAR, missed))
