"""Whether and where a search should start again, and which of the poses that it finds it takes."""

from __future__ import annotations

import numpy as np

from ..maths.rotations import dot, stacked
from ..problem import Bools, Floats, Ints
from .body import Body, allowed_angles, posed
from .goals import Goals

_CURL, _ROUND = 0.8, 1.5 * np.pi
"""Fraction of their limits that the joints of a curled chain use, and the radians that it may turn in total."""
_WIDEST = np.pi / 2.0
"""Maximum radians by which the poses of the table turn joints without limits."""


def table(body: Body, first: int, count: int) -> Floats:
    """Return `count` poses (3, n, count) within the limits from a fixed list, beginning with number `first`.

    The first four are curled up, each to a different side. The joint angles of the others are points of a Kronecker
    sequence, evenly spread over what the limits allow.
    """
    bones = len(body.parents)
    steps = np.sqrt(_primes(3 * bones)).reshape(bones, 3).T[..., None]
    number = np.arange(first, first + count)
    points = ((number + 1) * steps) % 1.0
    cone = body.cone
    widest = np.sin(_WIDEST / 2.0)
    low, high = np.where(cone.low > 1.0, widest, cone.low), np.where(cone.high > 1.0, widest, cone.high)
    across = points[:2] * (high + low) - low
    # Odd poses spread between the limits, for hinges and coils; even ones about rest, bending to all sides alike.
    angle, radius = 2.0 * np.pi * points[0], np.sqrt(points[1])
    around = np.stack([np.cos(angle), np.sin(angle)]) * radius
    around = around * np.where(around < 0.0, low, high)
    swing = np.where(number % 2, across, around)
    side = np.stack([np.cos(number * np.pi / 2.0), np.sin(number * np.pi / 2.0)]).round()[:, None]
    curled = np.minimum(_CURL * np.where(side < 0.0, low, high), np.sin(_ROUND / bones / 2.0))
    swing = np.where(number < 4, side * curled, swing)
    low, high = (
        np.where(np.isinf(cone.twist_low), -_WIDEST, cone.twist_low),
        np.where(np.isinf(cone.twist_high), _WIDEST, cone.twist_high),
    )
    twist = np.where(number < 4, 0.0, low + (high - low) * points[2])
    return allowed_angles(body, stacked(*swing, twist))


def _primes(count: int) -> Floats:
    """Return the first primes (count,)."""
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return np.array(primes, dtype=np.float64)


# ---- which pose to take

ARRIVED = 3e-7
"""A pose has arrived if it misses by no more than this, in chain lengths."""
SAME = 2e-4
"""Poses that miss by no more than this, in chain lengths, beyond the best one are as good."""
_TIE = 1e-3
"""Poses whose squared distances from FK differ by no more than this fraction count as equally near."""


def nearest_to_fk(tried: Floats, error: Floats, fk: Floats) -> Ints:
    """Return which of the poses (B, k, n, 3) to take, (B,): of the best ones, the nearest to FK (B, n, 3).

    The first pose, which changes smoothly with the target, is preferred to all others: where many poses are best, which
    of them a restart ends in depends on details.

    Args:
        tried: joint angles.
        error: (B, k) residuals of the poses, in chain lengths; infinite: never take this pose.
        fk: joint angles of the FK pose.
    """
    least = error.min(axis=1, keepdims=True)
    good = error <= np.where(least <= ARRIVED, ARRIVED, least + SAME)
    away = ((tried - fk[:, None]) * [2.0, 2.0, 1.0]) ** 2
    away = np.where(good, np.cumsum(away.reshape(*error.shape, -1), axis=-1)[..., -1], np.inf)
    away[:, 0] = np.where(good[:, 0], 0.0, away[:, 0])
    # Mirror images are equally near; rounding must not choose between them.
    return np.asarray(np.argmax(away <= away.min(axis=1, keepdims=True) * (1.0 + _TIE), axis=1))


def out_of_length(body: Body, goals: Goals) -> Bools:
    """Return which bodies (B,) have only targets that are farther from the root than the chains to them are long."""
    found = np.ones(goals.target.shape[2], dtype=bool)
    for effector in range(len(body.segments)):
        away = goals.target[:, effector] - body.heads[:, body.path(effector)[0]]
        found &= np.sqrt(dot(away, away)) > body.reaches[effector] + ARRIVED
    return found


def may_be_missed(body: Body, goals: Goals, angles: Floats) -> Floats:
    """Return an upper bound (B,) on how much nearer to the targets other poses can come than the given ones.

    A joint turns its bone away from the one before by at most its largest swing, whatever other joints do. So no bone
    points more towards the target than all swings up to its own together allow. The bound is tight for a straight chain
    that is bent as far as possible, loose for other chains, and infinite for trees.
    """
    if len(body.segments) != 1:
        return np.full(angles.shape[2], np.inf)
    target = goals.target[:, 0]
    error = target - posed(body, angles)[1][:, -1].T
    towards = error / np.maximum(np.sqrt(dot(error, error)), 1e-200)
    if "room" not in body.kept:
        body.kept["room"] = _room(body)
    lengths, swings, off = body.kept["room"]
    apart = swings.copy()
    apart[0] -= np.arccos(np.clip(dot(body.rest[:, 1, body.path(0)[0]], towards), -1.0, 1.0))
    nearest = np.minimum(np.cumsum(apart, axis=0) + off, 0.0)
    farthest = np.cumsum(lengths * np.cos(nearest), axis=0)[-1]
    return np.asarray(farthest - dot(target - error, towards))


def _room(body: Body) -> tuple[Floats, Floats, Floats]:
    """Return how far the limits let each bone of a chain turn away from the bone before.

    Returns:
        lengths: (k, B)
        swings: (k, B) radians by which a bone may turn away from the one before, the first one from rest.
        off: (k, B) radians between a bone's axis and the line to the next one.
    """
    path = list(body.path(0))
    segments = np.concatenate([body.heads[:, path[1:]], body.ends], axis=1)
    lengths = np.sqrt(dot(segments, segments))
    # Add the angle between the bones at rest.
    swings = np.arccos(np.clip(body.rest[1, 1, path], -1.0, 1.0))
    swings[0] = 0.0
    swings += 2.0 * np.arcsin(np.minimum(np.maximum(body.cone.low, body.cone.high).max(axis=0)[path], 1.0))
    swings[[i for i, bone in enumerate(path) if i and body.free[bone]]] = np.inf
    return lengths, swings, np.arccos(np.clip(segments[1] / np.maximum(lengths, 1e-200), -1.0, 1.0))
