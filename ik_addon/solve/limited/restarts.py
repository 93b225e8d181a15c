"""Whether and where a search should start again, and which of the poses that it finds it takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, islice
from math import inf, isqrt

import numpy as np

from ..maths.numbers import MANY, Vector, dot, minus, norm
from ..maths.rotations import stacked
from ..problem import Floats
from .newton import SAME, away_from
from .skeleton import Angles, Body, allowed_angles, pose_of, rows_of

_CURL, _ROUND = 0.8, 1.5 * np.pi
"""Fraction of their limits that the joints of a curled chain use, and the radians that it may turn in total."""
_WIDEST = np.pi / 2.0
"""Maximum radians by which the poses of the table turn joints without limits."""
SIZE = 64
"""Number of poses among which chains choose where to start again."""


def table(body: Body, first: int, amount: int) -> list[Angles]:
    """Return `amount` poses within the limits from a fixed list, beginning with number `first`, kept with the body.

    The first four are curled up, each to a different side. The joint angles of the others are points of a Kronecker
    sequence, evenly spread over what the limits allow.
    """
    known: dict[int, Angles] = body.kept.setdefault("table", {})
    if not known.keys() >= set(range(first, first + amount)):
        poses = _table(body, first, amount)
        known.update({first + i: rows_of(poses[..., i]) for i in range(amount)})
    return [known[number] for number in range(first, first + amount)]


def nearest(body: Body, member: int, target: Vector) -> list[Angles]:
    """Return the first poses of the table for a chain, those before the others that end nearest to its target.

    Of the nearest 16 every fourth comes first: poses that end at nearly the same place often lead to the same pose.
    """
    poses = table(body, 0, SIZE)
    if ("ends", member) not in body.kept:
        every: Floats = np.array(poses).transpose(2, 1, 0)
        (end,) = pose_of(body.skeleton(member)._replace(do=MANY), rows_of(every)).ends
        body.kept["ends", member] = list(zip(*(part.tolist() for part in end), strict=True))
    # Poses that mirror each other are equally near; rounding must not choose between them.
    away = [round(norm(minus(end, target)), 6) for end in body.kept["ends", member]]
    order = sorted(range(SIZE), key=away.__getitem__)
    return [poses[i] for i in sorted(order[:16], key=lambda i: order.index(i) % 4 > 0) + order[16:]]


def _table(body: Body, first: int, amount: int) -> Floats:
    """Return poses (3, n, amount) of the table."""
    bones = len(body.parents)
    steps = np.sqrt(_primes(3 * bones)).reshape(bones, 3).T[..., None]
    number = np.arange(first, first + amount)
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


def _primes(amount: int) -> Floats:
    """Return the first primes (amount,)."""
    primes = (number for number in count(2) if all(number % i for i in range(2, isqrt(number) + 1)))
    return np.array(list(islice(primes, amount)), dtype=np.float64)


# ---- which pose to take

ARRIVED = 3e-7
"""A pose has arrived if it misses by no more than this, in chain lengths."""
_TIE = 1e-3
"""Poses whose squared distances from FK differ by no more than this fraction count as equally near."""


def nearest_to_fk(tried: Sequence[Angles], errors: Sequence[float], fk: Angles) -> int:
    """Return which of the poses to take: of the best ones, the nearest to FK.

    The first pose, which changes smoothly with the target, is preferred to all others: where many poses are best, which
    of them a restart ends in depends on details.

    Args:
        tried: joint angles.
        errors: residuals of the poses, in chain lengths.
        fk: joint angles of the FK pose.
    """
    least = min(errors)
    enough = ARRIVED if least <= ARRIVED else least + SAME
    if errors[0] <= enough:
        return 0
    ways = (map(away_from, angles, fk) for angles in tried)
    sizes = [sum(dot(each, each) for each in way) for way in ways]
    away = [size if error <= enough else inf for size, error in zip(sizes, errors, strict=True)]
    # Mirror images are equally near; rounding must not choose between them.
    nearest = min(away) * (1.0 + _TIE)
    return next(i for i, size in enumerate(away) if size <= nearest)
