"""Which frames of a clip to key, so that no point is farther from where it was than a given distance.

It begins with the first frame and the last. Where a point is too far off, the channel that has most part in it gets one
more key, and so on. Then every other key is taken out again, as far as that can be.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..solve.maths.products import applied, lengths_of, times
from ..solve.problem import Bools, Floats, Ints
from .spline import Curve, fitted

WORST, NEAR = 0.9, 250
"""Keys are added where a channel has at least this part of the largest share that it has within so many frames."""
PASSES = 4
"""How often every other key is tried to be taken out."""
TRIES = 30
"""How often some of these are put back before all of them are."""

Place = tuple[int, int]
"""A channel: the index of its part, and of the channel among those of the part."""


@dataclass(frozen=True)
class Part:
    """A bone whose channels are keyed, on F frames."""

    parent: int
    """The index of the nearest part above it; -1: none."""
    values: Floats
    """(F, c) of its channels."""
    displacement: Callable[[Floats], Floats]
    """How other values (F, c) displace the bone and what it carries, (F, 4, 4) in armature space, while all other bones
    keep their pose."""


@dataclass(frozen=True)
class _Keys:
    """The keys of a channel."""

    frames: Ints
    """(K,) indices of frames."""
    pinned: Bools
    """(K,) the curve goes through the channel's own value."""

    def kept(self, chosen: Bools) -> _Keys:
        return _Keys(self.frames[chosen], self.pinned[chosen])

    def equals(self, other: _Keys) -> bool:
        return np.array_equal(self.frames, other.frames) and np.array_equal(self.pinned, other.pinned)

    def added(self, frames: Ints) -> _Keys:
        """With keys on more frames; those that are keyed already are pinned."""
        pinned = self.frames[self.pinned | np.isin(self.frames, frames)]
        every = np.union1d(self.frames, frames)
        return _Keys(every, np.isin(every, pinned))


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
        ends = _Keys(np.array([0, len(points) - 1]), np.ones(2, dtype=bool))
        self._keys = {(p, c): ends for p, part in enumerate(parts) for c in range(part.values.shape[1])}
        self._curves: dict[Place, Curve] = {}
        self._fitted = [part.values.copy() for part in parts]
        self._displacements = [np.empty((0, 4, 4)) for _ in parts]
        self._alone: dict[Place, Floats] = {}
        """What `_displaced_by` found of channels that have the same keys still."""
        self._key(self._keys)

    def curves(self, part: int) -> list[Curve]:
        """The curves of the channels of a part."""
        return [self._curves[part, column] for column in range(self._parts[part].values.shape[1])]

    def refine(self, bounds: Floats) -> Generator[None]:
        """Add keys until no point is farther from where it was than its bound; yields now and then.

        The bounds are (m,), or (F, m) where they differ from frame to frame. What is left where every frame is keyed is
        rounding.
        """
        while off := self._off(bounds):
            more = {place: self._keys[place].added(self._worst(place, share)) for place, share in off.items()}
            more = {place: keys for place, keys in more.items() if not keys.equals(self._keys[place])}
            if not more:
                return
            self._key(more)
            yield

    def thin(self, bounds: Floats) -> Generator[None]:
        """Take out keys without which all points stay within their bounds, as they are; yields now and then."""
        for number in range(PASSES):
            before = dict(self._keys)
            out = {place: _alternate(len(keys.frames), number) for place, keys in before.items()}
            for attempt in range(TRIES):
                self._key({place: keys.kept(~out[place]) for place, keys in before.items()})
                off = self._off(bounds)
                yield
                if not off:
                    break
                for place, share in off.items():
                    frames = np.flatnonzero(share)
                    if not _put_back(out[place], before[place].frames, frames, 1):
                        for other, keys in before.items():
                            _put_back(out[other], keys.frames, frames, 1 + attempt)
            else:
                self._key(before)

    def _off(self, bounds: Floats) -> dict[Place, Floats]:
        """The channels that have most part in points that are too far off, each with how far it moves them (F,)."""
        whole: list[Floats] = []
        for part, own in zip(self._parts, self._displacements, strict=True):
            whole.append(own if part.parent < 0 else times(whole[part.parent], own))
        found: dict[Place, Floats] = {}
        bounds = np.broadcast_to(bounds, self._points.shape[:2])
        for point, owner in enumerate(self._owners.tolist()):
            off = np.flatnonzero(self._moved(whole[owner], point, np.s_[:]) > bounds[:, point])
            if not len(off):
                continue
            path = self._channels_of(owner)
            for place in path:
                if place not in self._alone:
                    self._alone[place] = self._displaced_by(place)
            shares = np.stack([self._moved(self._alone[place], point, off) for place in path])
            most = shares.argmax(axis=0)
            for k in np.unique(most).tolist():
                own, frames = most == k, found.setdefault(path[k], np.zeros(len(self._points)))
                frames[off[own]] = np.maximum(frames[off[own]], shares[k, own])
        return found

    def _channels_of(self, part: int) -> list[Place]:
        """The channels of a part and of those above it."""
        found = []
        while part >= 0:
            found += [(part, column) for column in range(self._parts[part].values.shape[1])]
            part = self._parts[part].parent
        return found

    def _displaced_by(self, place: Place) -> Floats:
        """How one channel alone displaces its part (F, 4, 4)."""
        part, column = place
        values = self._parts[part].values.copy()
        values[:, column] = self._fitted[part][:, column]
        return self._parts[part].displacement(values)

    def _moved(self, displacement: Floats, point: int, frames: Ints | slice) -> Floats:
        """How far a point is moved on some frames."""
        places, own = self._points[frames, point], displacement[frames]
        away = applied(own[:, :3, :3], places) + own[:, :3, 3] - places
        return lengths_of(applied(self._world[frames], away))

    def _worst(self, place: Place, share: Floats) -> Ints:
        """Between which keys of a channel its share (F,) in what is wrong is large, and there on which frame."""
        keys = self._keys[place].frames.tolist()
        found = []
        for start, end in pairwise(keys):
            frame = start + int(share[start:end].argmax())
            if share[frame] >= WORST * share[max(frame - NEAR, 0) : frame + NEAR].max() > 0.0:
                found.append(frame)
        return np.array(found, dtype=np.int64)

    def _key(self, keys: dict[Place, _Keys]) -> None:
        """Give channels other keys."""
        changed = set()
        for place, own in keys.items():
            part, column = place
            if place not in self._curves or own is not self._keys[place]:
                values = self._parts[part].values[:, column]
                self._curves[place] = fitted(values, own.frames, own.pinned)
                self._fitted[part][:, column] = self._curves[place].on_frames()
                self._alone.pop(place, None)
                changed.add(part)
        self._keys = {**self._keys, **keys}
        for part in changed:
            self._displacements[part] = self._parts[part].displacement(self._fitted[part])


def _alternate(count: int, number: int) -> Bools:
    """Every other one of so many, but not the first and the last; with the next number the others."""
    chosen = np.arange(count) % 2 == (number + 1) % 2
    chosen[[0, -1]] = False
    return np.asarray(chosen)


def _put_back(out: Bools, keys: Ints, frames: Ints, reach: int) -> bool:
    """Put back what was taken out of keys (K,) within so many of them of some frames; return whether any was."""
    near = np.searchsorted(keys, frames)[:, None] + np.arange(-reach, reach + 1)
    near = np.unique(np.clip(near, 0, len(keys) - 1))
    was_out = bool(out[near].any())
    out[near] = False
    return was_out
