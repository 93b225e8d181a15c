"""A fixed table of poses for a search to start from."""

from __future__ import annotations

import numpy as np

from .body import Body, allowed_angles
from .problem import Floats
from .rotations import stacked

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
