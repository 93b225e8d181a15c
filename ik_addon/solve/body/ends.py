"""Ends: the points of a body that are pinned or dragged, with a place, an orientation or both, and the pull on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np

from ..maths.numbers import Vector
from ..problem import Bools, Floats, Ints
from .problem import STRENGTH, Body, Grab, Pin

YIELD = 1e-7
"""How far an end gives way to a unit force; keeps redundant equations solvable."""


@dataclass(frozen=True)
class Ends:
    """Pinned and dragged points of bones; pins come first."""

    points: list[tuple[int, Floats]]
    """Bone and position (3,) of each end."""
    pinned: int
    """Number of pins among the ends."""
    places: Ints
    """Ends with a place to keep or reach."""
    orientations: Ints
    """Ends with an orientation to keep or reach."""
    strengths: Floats
    """(places + orientations,) the largest force that holds each; infinite for pins that never give way."""
    placed_grabs: list[int]
    """Grabs with a target position."""
    turned_grabs: list[int]
    """Grabs with a target orientation."""

    @classmethod
    def of(cls, body: Body, pins: Sequence[Pin], grabs: Sequence[Grab]) -> Ends:
        """Collect the ends of pins and grabs, without pins on bones that can't move anyway.

        Raises:
            ValueError: a bone does not exist, or a grabbed bone can't move.
        """
        bones, movable = len(body.parents), movable_bones(body)
        for bone in (*(pin.bone for pin in pins), *(grab.bone for grab in grabs)):
            if not 0 <= bone < bones:
                raise ValueError(f"bone must be the index of one of the {bones} bones, not {bone}")
        for grab in grabs:
            if grab.bone not in movable:
                raise ValueError(f"bone {grab.bone} is not below the root, so it can't be dragged")
        heads = np.asarray(body.heads, np.float64)
        holding = [pin for pin in pins if pin.bone in movable]
        wanted = [(pin.bone, pin.point) for pin in holding] + [(grab.bone, grab.point) for grab in grabs]
        points = [(bone, heads[bone] if point is None else np.asarray(point, np.float64)) for bone, point in wanted]
        strengths = [pin.strength for pin in holding] + [STRENGTH] * len(grabs)
        placed = [i for i, grab in enumerate(grabs) if grab.target is not None]
        turned = [i for i, grab in enumerate(grabs) if grab.rotation is not None]
        held = len(holding)
        places = [e for e, pin in enumerate(holding) if pin.location] + [held + i for i in placed]
        orientations = [e for e, pin in enumerate(holding) if pin.rotation] + [held + i for i in turned]
        return cls(
            points,
            held,
            np.array(places, np.int64),
            np.array(orientations, np.int64),
            np.array([strengths[e] for e in (*places, *orientations)], np.float64),
            placed,
            turned,
        )

    @cached_property
    def wanted(self) -> Ints:
        """(places + orientations,) the ends with a place, then those with an orientation."""
        return np.concatenate([self.places, self.orientations])

    @cached_property
    def dragged(self) -> Bools:
        """(places + orientations,) which of them belong to grabs."""
        return np.asarray(self.wanted >= self.pinned)

    @cached_property
    def hard(self) -> Bools:
        """(places + orientations,) which of them never give way."""
        return np.isinf(self.strengths)


def movable_bones(body: Body) -> set[int]:
    """Return the bones that may move: the root and all bones below it, or every bone if there is no root."""
    found: set[int] = set()
    for bone, parent in enumerate(np.asarray(body.parents).tolist()):
        if body.root is None or bone == body.root or parent in found:
            found.add(bone)
    return found


def joints_between(body: Body, ends: Ends, locked: Bools) -> list[int]:
    """Return the bones above the ends, ends included, that can turn or move; parents first."""
    parents, movable = np.asarray(body.parents).tolist(), movable_bones(body)
    gives = np.ones(len(parents)) if body.give is None else np.asarray(body.give)
    heads = np.asarray(body.heads, np.float64)
    found = set()
    for end, (bone, point) in enumerate(ends.points):
        # Turning a bone does not move its own head.
        if end not in ends.orientations and bone != body.root and (point == heads[bone]).all():
            bone = parents[bone]
        while bone in movable:
            if gives[bone] > 0.0 and (bone == body.root or not locked[bone]):
                found.add(bone)
            bone = parents[bone]
    return sorted(found)


class Pull(NamedTuple):
    """How e ends are held during a pass."""

    yields: Floats
    """(e,) how far each end gives way to a unit force."""
    thrusts: dict[int, tuple[Vector, float]]
    """Directions in which ends are pulled with full strength, however far they move along them, and that strength."""


def pull_of(gaps: Floats, forces: Floats, strengths: Floats, yields: Floats, *, near: bool) -> Pull:
    """Return how ends are held, from their gaps and the forces of the last pass.

    Far from the end of a search, an end of limited strength gives way by its whole gap under the maximum force: it is
    sure to come nearer, but ever more slowly. Near the end of the search it either reaches its target and does not give
    way, or is pulled with full strength; the last force and the gap together decide which.

    Args:
        gaps: (e, 3) from where the ends are to where they should be.
        forces: (e, 3) that held the ends in the last pass.
        strengths: (e,) the largest force on each end; infinite for those that are held whatever it takes.
        yields: (e,) how far ends give way to a unit force when they are not pulled.
        near: whether the search is near its end.
    """
    found, thrusts = yields.copy(), {}
    for end in np.flatnonzero(np.isfinite(strengths)).tolist():
        strength = float(strengths[end])
        (gx, gy, gz), (fx, fy, fz) = gaps[end].tolist(), forces[end].tolist()
        if not near:
            found[end] += sqrt(gx * gx + gy * gy + gz * gz) / strength
            continue
        x, y, z = fx + strength * gx, fy + strength * gy, fz + strength * gz
        size = sqrt(x * x + y * y + z * z)
        if size > strength:
            thrusts[end] = (x / size, y / size, z / size), strength
            found[end] += (size / strength - 1.0) / strength
    return Pull(found, thrusts)
