"""What is asked of a body: ends that are pinned or dragged, by place or orientation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..problem import Bools, Floats, Ints
from .problem import Body, Grab, Pin

YIELD = 1e-7
"""By how much pins give way to unit forces: what keeps equations solvable that say the same twice."""


@dataclass(frozen=True)
class Ends:
    """Points of bones, those of pins first."""

    points: list[tuple[int, Floats]]
    """The bone and the place (3,) of each."""
    pinned: int
    """How many are pins."""
    places: Ints
    """Ends whose place counts."""
    orientations: Ints
    """Ends whose orientation counts."""
    yields: Floats
    """(places + orientations,) by how much each gives way to a unit force."""
    placed_grabs: list[int]
    """Those of what is dragged that have a place."""
    turned_grabs: list[int]
    """Those that have an orientation."""

    @classmethod
    def of(cls, body: Body, pins: Sequence[Pin], grabs: Sequence[Grab]) -> Ends:
        """Collect them; pins of bones that can't move have nothing to hold.

        Raises:
            ValueError: a bone is not there, or what is dragged can't move.
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
        soft = [YIELD + 1.0 / pin.weight for pin in holding] + [YIELD] * len(grabs)
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
            np.array([soft[e] for e in (*places, *orientations)]),
            placed,
            turned,
        )

    @property
    def dragged(self) -> Bools:
        """(places + orientations,) which of what is asked belongs to what is dragged."""
        return np.concatenate([self.places, self.orientations]) >= self.pinned

    @property
    def held(self) -> tuple[Ints, Ints]:
        """Ends whose place, and ends whose orientation is to hold without giving way."""
        holds = ~self.dragged & (self.yields <= YIELD)
        places = len(self.places)
        return self.places[holds[:places]], self.orientations[holds[places:]]


def movable_bones(body: Body) -> set[int]:
    """Return the bones that may move: the root and all below it."""
    found: set[int] = set()
    for bone, parent in enumerate(np.asarray(body.parents).tolist()):
        if body.root is None or bone == body.root or parent in found:
            found.add(bone)
    return found


def joints_between(body: Body, ends: Ends, locked: Bools) -> list[int]:
    """Return the bones that have a part in it, parents first: those from the ends up that can turn or move."""
    parents, movable = np.asarray(body.parents).tolist(), movable_bones(body)
    gives = np.ones(len(parents)) if body.give is None else np.asarray(body.give)
    heads = np.asarray(body.heads, np.float64)
    found = set()
    for end, (bone, point) in enumerate(ends.points):
        # A bone does not move its own head by turning.
        if end not in ends.orientations and bone != body.root and (point == heads[bone]).all():
            bone = parents[bone]
        while bone in movable:
            if gives[bone] > 0.0 and (bone == body.root or not locked[bone]):
                found.add(bone)
            bone = parents[bone]
    return sorted(found)
