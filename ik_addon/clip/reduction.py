"""Which frames of a clip to key, so that no point is farther from where it was than a given distance.

It begins with the first frame and the last. Where a point is too far off, the bone that has most part in it gets a key
more on that frame, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np

from ..solve.maths.products import applied, lengths_of, times
from ..solve.problem import Bools, Floats, Ints
from .spline import Curve, fitted


@dataclass(frozen=True)
class Part:
    """A bone whose channels are keyed, on F frames."""

    parent: int
    """The index of the nearest part above it; -1: none."""
    values: Floats
    """(F, c) what the channels are."""
    displacement: Callable[[Floats], Floats]
    """How other values (F, c) displace the bone and what it carries, (F, 4, 4) in armature space, while all other bones
    keep their pose."""


class Reduction:
    """The keys of parts that carry points, and what becomes of these."""

    def __init__(self, parts: Sequence[Part], points: Floats, owners: Ints, world: Floats) -> None:
        """Key the first frame and the last one.

        Args:
            parts: parents come before their children.
            points: (F, m, 3) in armature space.
            owners: (m,) the indices of the parts that they go with.
            world: (F, 3, 3) what takes distances to the space in which they count.
        """
        self._parts = parts
        self._points = points
        self._owners = owners
        self._world = world
        self.curves: list[Curve] = []
        """Of each part."""
        self._displacements: list[Floats] = []
        for part in parts:
            curve = fitted(part.values, np.array([0, len(part.values) - 1]))
            self.curves.append(curve)
            self._displacements.append(part.displacement(curve.on_frames()))

    def refine(self, bounds: Floats) -> Generator[None]:
        """Add keys until no point is farther from where it was than its bound (m,); yields now and then."""
        while True:
            wanted = self._wanted(bounds)
            if not any(own.any() for own in wanted):
                return
            for index, share in enumerate(wanted):
                if share.any():
                    self._add_keys(index, share)
            yield

    def _wanted(self, bounds: Floats) -> list[Floats]:
        """By how much (F,) each part displaces points that are too far off, where it is the one that does so most."""
        frames = len(self._points)
        whole: list[Floats] = []
        for part, own in zip(self._parts, self._displacements, strict=True):
            whole.append(own if part.parent < 0 else times(whole[part.parent], own))
        found = [np.zeros(frames) for _ in self._parts]
        for point, (owner, bound) in enumerate(zip(self._owners.tolist(), bounds.tolist(), strict=True)):
            off = np.flatnonzero(self._moved(whole[owner], point, np.s_[:]) > bound)
            if not len(off):
                continue
            path = [owner]
            while self._parts[path[-1]].parent >= 0:
                path.append(self._parts[path[-1]].parent)
            shares = np.stack([self._moved(self._displacements[part], point, off) for part in path])
            most = shares.argmax(axis=0)
            for place, part in enumerate(path):
                own = most == place
                found[part][off[own]] = np.maximum(found[part][off[own]], shares[place, own])
        return found

    def _moved(self, displacement: Floats, point: int, frames: Ints | slice) -> Floats:
        """How far a point is moved on some frames."""
        places, own = self._points[frames, point], displacement[frames]
        away = applied(own[:, :3, :3], places) + own[:, :3, 3] - places
        return lengths_of(applied(self._world[frames], away))

    def _add_keys(self, index: int, share: Floats) -> None:
        """Key a part between two of its keys on the frame where it has most part (F,) in what is wrong."""
        part, keys = self._parts[index], self.curves[index].keys
        new = [int(start + share[start:end].argmax()) for start, end in zip(keys[:-1], keys[1:], strict=True)]
        keys = np.union1d(keys, [frame for frame in new if share[frame] > 0.0])
        self.curves[index] = fitted(part.values, keys)
        self._displacements[index] = part.displacement(self.curves[index].on_frames())
