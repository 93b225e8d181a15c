"""How near limits let a chain come to its target at best, so that a search ends once it is there.

A joint turns its bone away from the one before by at most its largest swing, whatever other joints do. That bounds how
far a chain reaches in the direction of its target, which is tight for one that is bent as far as possible and then
straight, and how tightly it curls up: its ends are nearest to each other if it bends to one side, as far as it can at
each joint, as long as it then makes a convex polygon (A. Schur, "Über die Schwarzsche Extremaleigenschaft des Kreises
unter den Kurven konstanter Krümmung", Mathematische Annalen 83, 1921; J. O'Rourke, "An extension of Cauchy's arm lemma
with application to curve development", arXiv math/0006096).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import acos, atan2, cos, pi, sin, sqrt

import numpy as np

from ..maths.numbers import Vector, minus, norm, over, unit
from ..maths.numbers import dot as product
from ..maths.rotations import dot
from ..problem import Floats
from .skeleton import Body

WAYS = 4
"""Number of directions from which the farthest place of a joint is approached."""


def is_nearest(body: Body, member: int, target: Vector, end: Vector, margin: float) -> bool:
    """Return whether limits prove that no pose of a body ends nearer to its target than one that ends at `end`.

    Args:
        body: bodies.
        member: which of them.
        target: relative to the root, as all places.
        end: where the pose ends.
        margin: by how much another pose may be nearer after all.
    """
    error = norm(minus(target, end))
    least, towards = error - margin, unit(minus(target, end))
    return any(bound >= least for bound in bounds(body, member, target, towards, least))


def bounds(body: Body, member: int, target: Vector, towards: Vector, least: float) -> Iterator[float]:
    """Yield lower bounds of the distances of a body's ends from its target; none for trees.

    The second bound is for a chain with a rigid link to its root, which begins at the target. The others are for parts
    of the chain that cannot curl up as tightly as the joint above them is near to the target: the difference remains,
    however far the joints above move that joint away.

    Args:
        body: bodies.
        member: which of them.
        target: relative to the root, as all places.
        towards: a direction in which it may be hard to reach the target; the first bound is for it.
        least: bounds that are smaller may be left out.
    """
    if len(body.segments) != 1:
        return
    if "room" not in body.kept:
        body.kept["room"] = list(zip(*(part.T.tolist() for part in _room(body)), strict=True))
    first, lengths, swings, off = body.kept["room"][member]
    limits, whole = [], 0.0
    for swing, own in zip(swings, off, strict=True):
        whole += swing
        limits.append(whole + own)
    apart = _angle(first, towards)
    reach = sum(length * cos(max(apart - limit, 0.0)) for length, limit in zip(lengths, limits, strict=True))
    yield product(target, towards) - reach
    away = norm(target)
    behind = pi - _angle(first, over(target, max(away, 1e-200)))
    turns = [swing + one + other for swing, one, other in zip(swings, off, [0.0, *off], strict=False)]
    yield _chord([away, *lengths], [behind + turns[0], *turns[1:]])
    for i in range(len(lengths) - 1):
        curled = _chord(lengths[i:], turns[i + 1 :])
        if curled >= least:
            yield curled - _farthest(lengths[:i], limits, away, pi - behind, curled - least)


def _angle(one: Vector, other: Vector) -> float:
    return acos(min(max(product(one, other), -1.0), 1.0))


def _chord(lengths: list[float], turns: list[float]) -> float:
    """Return the distance between the ends of a polygon that turns to one side; 0 if with its chord it is not convex.

    Args:
        lengths: of its edges.
        turns: between them.
    """
    if max(turns) > pi:
        return 0.0
    x, y, angle = lengths[0], 0.0, 0.0
    for length, turn in zip(lengths[1:], turns, strict=True):
        angle += turn
        x, y = x + length * cos(angle), y + length * sin(angle)
    chord = atan2(y, x)
    return sqrt(x * x + y * y) if 0.0 <= chord <= angle <= chord + pi else 0.0


def _farthest(lengths: list[float], limits: list[float], away: float, apart: float, most: float) -> float:
    """Return how far from its target the first bones of a chain can bring the joint below them.

    Args:
        lengths: of these bones.
        limits: radians by which they can turn from the first bone at rest.
        away: how far the target is from the root.
        apart: radians between the target and the first bone at rest.
        most: once the joint is known to get farther than this, how far it gets does not matter.
    """
    # All lies in a plane: the bones turn away from the target.
    x, y, best = -away * cos(apart), away * sin(apart), away if not lengths else 0.0
    for start in range(WAYS if lengths else 0):
        angle, last = pi * start / WAYS, -1.0
        while best > last + 1e-9 or last < 0.0:
            last, u, v = best, x, y
            for length, limit in zip(lengths, limits, strict=False):
                turn = min(angle, limit)
                u, v = u + length * cos(turn), v + length * sin(turn)
            angle, best = atan2(v, u), max(best, sqrt(u * u + v * v))
            if best > most:
                return best
    return best


def _room(body: Body) -> tuple[Floats, Floats, Floats, Floats]:
    """Return how far the limits let each bone of a chain turn away from the bone before.

    Returns:
        first: (3, B) direction of the first bone at rest.
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
    off = np.arccos(np.clip(segments[1] / np.maximum(lengths, 1e-200), -1.0, 1.0))
    return body.rest[:, 1, path[0]], lengths, swings, off
