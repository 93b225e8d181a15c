"""Whether a search should start again, from where, and which of the poses that are found it takes."""

from __future__ import annotations

import numpy as np

from ..maths.rotations import dot, stacked
from ..problem import Bools, Floats, Ints
from .body import Body, allowed_angles, posed
from .goals import Goals

_CURL, _ROUND = 0.8, 1.5 * np.pi
"""How much of their limits the joints of a curled chain take, and the radians that it turns altogether at most."""
_WIDEST = np.pi / 2.0
"""Radians to which the poses of the table bend joints without limits."""


def table(body: Body, first: int, count: int) -> Floats:
    """Return `count` poses (3, n, count) within the limits from a fixed list, beginning with number `first`.

    The first four are curled up, each to another side. The joint angles of the others are the points of a Kronecker
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
    # Between the limits lie what hinges need and coils; about rest, as many bends to one side as to the other.
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
"""What may be missing, in chain lengths, in a pose that counts as arrived."""
SAME = 2e-4
"""Poses that miss by not more than this, in chain lengths, beyond the best are as good as it."""
_TIE = 1e-3
"""Poses whose squared distances from FK differ by no more than this fraction are equally near to it."""


def nearest_to_fk(tried: Floats, error: Floats, fk: Floats) -> Ints:
    """Return which of the poses (B, k, n, 3) to take, (B,): the one nearest to FK (B, n, 3) of those that do best.

    The first one, which changes smoothly with the target, is taken before all others: where many poses do best, it
    depends on details which of them a restart ends in.

    Args:
        tried: joint angles.
        error: (B, k) what is missing in the poses, in chain lengths; infinite: not one to take.
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
    """Return the bodies (B,) whose targets are all farther from the root than the chains to them are long."""
    found = np.ones(goals.target.shape[2], dtype=bool)
    for effector in range(len(body.segments)):
        away = goals.target[:, effector] - body.heads[:, body.path(effector)[0]]
        found &= np.sqrt(dot(away, away)) > body.reaches[effector] + ARRIVED
    return found


def may_be_missed(body: Body, goals: Goals, angles: Floats) -> Floats:
    """Return by how much (B,) other poses than the given ones can come nearer to the targets, at most.

    A joint turns its bone and the one before apart by no more than it may swing, whatever other joints do. So no bone
    points more towards the target than all swings up to its own together let it. That is all there is to say of a
    straight chain that is bent as far as it can be; of others it says less, and of trees nothing.
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
    """Return for the bones of a chain how far its limits let them point to where they do not at rest.

    Returns:
        lengths: (k, B)
        swings: (k, B) radians by which a bone may turn from the one before, of the first one from rest.
        off: (k, B) radians between a bone's axis and the line to the next one.
    """
    path = list(body.path(0))
    segments = np.concatenate([body.heads[:, path[1:]], body.ends], axis=1)
    lengths = np.sqrt(dot(segments, segments))
    # What lies between the bones at rest comes on top.
    swings = np.arccos(np.clip(body.rest[1, 1, path], -1.0, 1.0))
    swings[0] = 0.0
    swings += 2.0 * np.arcsin(np.minimum(np.maximum(body.cone.low, body.cone.high).max(axis=0)[path], 1.0))
    swings[[i for i, bone in enumerate(path) if i and body.free[bone]]] = np.inf
    return lengths, swings, np.arccos(np.clip(segments[1] / np.maximum(lengths, 1e-200), -1.0, 1.0))
