"""A foot or hand on the frames of a clip: its position, its orientation, and where it touches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..solve.maths.products import lengths_of
from ..solve.maths.rotations import rotate
from ..solve.maths.runs import runs
from ..solve.problem import Bools, Floats
from .filling import bridged

HEEL, TOE = 0, 1


@dataclass(frozen=True)
class Foot:
    """A foot or hand on F frames, and its contacts."""

    places: Floats
    """(F, 3) positions of its joint."""
    turns: Floats
    """(4, F) orientations as unit quaternions."""
    pivots: Floats
    """(2, 3) heel and toe relative to the joint, in the foot's own axes."""
    contacts: Bools
    """(2, F) whether heel and toe touch."""

    def points(self, pivot: int) -> Floats:
        """Return positions (F, 3) of the heel (0) or the toe (1)."""
        return self.places + self.turned(self.pivots[pivot])

    def part(self, frames: slice) -> Foot:
        """Return the foot on some of the frames."""
        return Foot(self.places[frames], self.turns[:, frames], self.pivots, self.contacts[:, frames])

    @property
    def touches(self) -> Bools:
        """Whether (F,) heel or toe touches."""
        return np.asarray(self.contacts.any(axis=0))

    def slide(self) -> float:
        """Return the largest distance of a point in contact from where it began to touch."""
        return max(slide_of(self.points(pivot), self.contacts[pivot]) for pivot in (HEEL, TOE))

    def turned(self, vectors: Floats) -> Floats:
        """Return vectors (3,) or (F, 3) given in the foot's axes, rotated with the foot on each frame."""
        return np.asarray(rotate(self.turns, np.broadcast_to(vectors, self.places.shape).T).T)

    @cached_property
    def share(self) -> Floats:
        """The point (F,) about which the foot rolls, from 0 (heel) to 1 (toe); 1 where both touch."""
        if not self.touches.any():
            return np.full(len(self.places), 0.5)
        return bridged(self.contacts[TOE].astype(np.float64)[:, None], self.touches)[:, 0]

    @property
    def rolling(self) -> Floats:
        """The point (F, 3) about which the foot rolls, in its own axes."""
        return np.asarray(self.pivots[HEEL] + self.share[:, None] * (self.pivots[TOE] - self.pivots[HEEL]))


def slide_of(points: Floats, touching: Bools) -> float:
    """Return the largest distance of a point (F, 3) from where it began to touch, over the frames `touching` (F,)."""
    gaps = [lengths_of(points[start:end] - points[start]).max() for start, end in runs(touching)]
    return float(max(gaps, default=0.0))
