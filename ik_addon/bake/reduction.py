"""Choosing which frames of a clip to key, so that no point is off by more than a given distance.

Keys begin on the first and the last frame. Where a point is too far off, the channel with the largest share in that
gets another key, until no point is. Then every other key is removed again, as far as possible. Between keys, curves are
cubic; the values and slopes of keys are fitted by least squares.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

import numpy as np

from ..solve.maths.products import times
from ..solve.problem import Bools, Floats, Ints

WORST, NEAR = 0.9, 250
"""A key is added where a channel's share is at least this fraction of its largest share within so many frames."""
PASSES = 4
"""Number of passes that try to remove every other key."""
TRIES = 30
"""How many times some of these keys are put back before all of them are."""
LOOSE = 1e-7
"""Weight of the slope between neighboring values, for slopes that no other value determines."""
PINNED = 1e6
"""Weight of a value that a curve should pass through."""

Place = tuple[int, int]
"""A channel: the index of its part, and its index among the part's channels."""


class Part(NamedTuple):
    """A bone whose channels are keyed, on F frames."""

    parent: int
    """Index of the nearest part above it; -1 if there is none."""
    values: Floats
    """(F, c) values of its channels."""
    displacement: Callable[[Floats], Floats]
    """Return how other values (F, c) displace the bone and what it carries, (F, 4, 4) in armature space, while all
    other bones keep their pose."""


class _Keys(NamedTuple):
    """The keys of a channel."""

    frames: Ints
    """(K,) indices of the keyed frames."""
    pinned: Bools
    """(K,) whether the curve passes through the channel's own value there."""

    def kept(self, chosen: Bools) -> _Keys:
        return _Keys(self.frames[chosen], self.pinned[chosen])

    def equals(self, other: _Keys) -> bool:
        return np.array_equal(self.frames, other.frames) and np.array_equal(self.pinned, other.pinned)

    def added(self, frames: Ints) -> _Keys:
        """Return keys with more frames added; frames that already have a key are pinned."""
        pinned = self.frames[self.pinned | np.isin(self.frames, frames)]
        every = np.union1d(self.frames, frames)
        return _Keys(every, np.isin(every, pinned))


class Reduction:
    """The keys of parts that carry points, and how far they displace these points."""

    def __init__(self, parts: Sequence[Part], points: Floats, owners: Ints, world: Floats) -> None:
        """Key the first frame and the last one.

        Args:
            parts: the parts, parents before their children.
            points: (F, m, 3) in armature space.
            owners: (m,) indices of the parts that carry the points.
            world: (F, 3, 3) takes distances to the space in which they are measured.
        """
        self._parts = parts
        self._points = np.ascontiguousarray(points.transpose(2, 1, 0))
        """(3, m, F)"""
        self._owners = owners
        self._world = world
        ends = _Keys(np.array([0, len(points) - 1]), np.ones(2, dtype=bool))
        self._keys = {(p, c): ends for p, part in enumerate(parts) for c in range(part.values.shape[1])}
        self._curves: dict[Place, Curve] = {}
        self._fitted = [part.values.copy() for part in parts]
        self._displacements = [np.empty((0, 4, 4)) for _ in parts]
        self._alone: dict[Place, Floats] = {}
        """(3, 4, F) as from `_motion`, for channels whose keys have not changed since, each alone."""
        self._key(self._keys)

    def curves(self, part: int) -> list[Curve]:
        """Return the curves of the channels of a part."""
        return [self._curves[part, column] for column in range(self._parts[part].values.shape[1])]

    def refine(self, bounds: Floats) -> Generator[None]:
        """Add keys until no point is off by more than its bound; yields now and then.

        Bounds are (m,), or (F, m) if they differ from frame to frame. Once every frame is keyed, only rounding is left.
        """
        while off := self._off(bounds):
            more = {place: self._keys[place].added(self._worst(place, share)) for place, share in off.items()}
            more = {place: keys for place, keys in more.items() if not keys.equals(self._keys[place])}
            if not more:
                return
            self._key(more)
            yield

    def thin(self, bounds: Floats) -> Generator[None]:
        """Remove keys as long as all points stay within their bounds; yields now and then."""
        for number in range(PASSES):
            before = dict(self._keys)
            # Every other key, never the first or the last; odd and even ones alternate.
            out = {place: np.arange(len(keys.frames)) % 2 == (number + 1) % 2 for place, keys in before.items()}
            for own in out.values():
                own[[0, -1]] = False
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
        """Return the channels with the largest share in points too far off, and how far (F,) each moves them."""
        whole: list[Floats] = []
        for moving, own in zip(self._parts, self._displacements, strict=True):
            whole.append(own if moving.parent < 0 else times(whole[moving.parent], own))
        found: dict[Place, Floats] = {}
        bounds = np.broadcast_to(bounds, self._points.shape[2:0:-1]).T
        for owner in np.unique(self._owners).tolist():
            points = np.flatnonzero(self._owners == owner)
            off = self._moved(self._motion(whole[owner]), points, np.s_[:]) > bounds[points]
            frames = np.flatnonzero(off.any(axis=0))
            if not len(frames):
                continue
            off, path = off[:, frames], self._channels_of(owner)
            for place in path:
                if place not in self._alone:
                    part, column = place
                    values = self._parts[part].values.copy()
                    values[:, column] = self._fitted[part][:, column]
                    self._alone[place] = self._motion(self._parts[part].displacement(values))
            shares = np.stack([self._moved(self._alone[place], points, frames) for place in path])
            most = shares.argmax(axis=0)
            for k in np.unique(most[off]).tolist():
                known = found.setdefault(path[k], np.zeros(len(bounds.T)))
                known[frames] = np.maximum(known[frames], np.where(off & (most == k), shares[k], 0.0).max(axis=0))
        return found

    def _channels_of(self, part: int) -> list[Place]:
        """Return the channels of a part and of the parts above it."""
        found = []
        while part >= 0:
            found += [(part, column) for column in range(self._parts[part].values.shape[1])]
            part = self._parts[part].parent
        return found

    def _motion(self, displacement: Floats) -> Floats:
        """Return what a displacement (F, 4, 4) adds to the place of a point, (3, 4, F), as matrices times the point."""
        return np.ascontiguousarray(times(self._world, displacement[:, :3] - np.eye(3, 4)).transpose(1, 2, 0))

    def _moved(self, motion: Floats, points: Ints, frames: Ints | slice) -> Floats:
        """Return how far (p, f) a motion moves points on some frames."""
        x, y, z = self._points[:, points][..., frames]
        return np.asarray(np.sqrt(sum((a * x + b * y + c * z + d) ** 2 for a, b, c, d in motion[..., frames])))

    def _worst(self, place: Place, share: Floats) -> Ints:
        """Return the frames between keys of a channel on which its share (F,) in the error is largest."""
        found = []
        for start, end in pairwise(self._keys[place].frames.tolist()):
            frame = start + int(share[start:end].argmax())
            if share[frame] >= WORST * share[max(frame - NEAR, 0) : frame + NEAR].max() > 0.0:
                found.append(frame)
        return np.array(found, dtype=np.int64)

    def _key(self, keys: dict[Place, _Keys]) -> None:
        """Give channels new keys."""
        changed = set()
        for place, own in keys.items():
            part, column = place
            if place not in self._curves or own is not self._keys[place]:
                self._curves[place] = fitted(self._parts[part].values[:, column], own.frames, own.pinned)
                self._fitted[part][:, column] = self._curves[place].on_frames()
                self._alone.pop(place, None)
                changed.add(part)
        self._keys = {**self._keys, **keys}
        for part in changed:
            self._displacements[part] = self._parts[part].displacement(self._fitted[part])


def _put_back(out: Bools, keys: Ints, frames: Ints, reach: int) -> bool:
    """Put back keys removed from `keys` (K,) within `reach` keys of `frames`; return whether there were any."""
    near = np.searchsorted(keys, frames)[:, None] + np.arange(-reach, reach + 1)
    near = np.unique(np.clip(near, 0, len(keys) - 1))
    was_out = bool(out[near].any())
    out[near] = False
    return was_out


# ---- curves


class Curve(NamedTuple):
    """A curve over F frames that is keyed on K of them."""

    keys: Ints
    """(K,) indices of the keyed frames, ascending from the first frame to the last."""
    values: Floats
    """(K,) values on the keys."""
    slopes: Floats
    """(K,) change per frame on the keys. Between keys on successive frames, the curve is a straight line."""

    @property
    def lines(self) -> Bools:
        """Whether (K - 1,) the curve is a straight line from each key to the next."""
        return np.asarray(np.diff(self.keys) == 1)

    def on_frames(self) -> Floats:
        """Return the values (F,) on all frames."""
        own, length, (start, rising, end, falling) = _segments(self.keys)
        across = start * self.values[own] + end * self.values[own + 1]
        return np.asarray(across + length * (rising * self.slopes[own] + falling * self.slopes[own + 1]))


def fitted(values: Floats, keys: Ints, pinned: Bools) -> Curve:
    """Return the curve with keys `keys` that is nearest to values (F,) and passes through those on `pinned` keys (K,).

    The unknowns are value and slope of each key in turn. Adjacent segments share them, so each key's pair is coupled to
    the next key's: the normal equations have four bands.
    """
    count, (own, length, weights) = len(keys), _segments(keys)
    weights[1::2] *= length
    parts = np.zeros((3, 2, 2, count))  # couples a key to itself, as start and as end, and to the next one
    wanted = np.zeros((count, 2))
    strength = np.ones(len(values))
    strength[keys[pinned]] = PINNED
    for i in range(2):
        for k in range(2):
            pairs = (weights[i], weights[k]), (weights[2 + i], weights[2 + k]), (weights[i], weights[2 + k])
            for part, (a, b) in zip(parts, pairs, strict=True):
                part[i, k] = np.bincount(own, strength * a * b, count)
        pulls = strength * values
        wanted[:, i] = np.bincount(own, weights[i] * pulls, count) + np.bincount(own + 1, weights[2 + i] * pulls, count)
    itself, ends, beside = parts
    itself[..., 1:] += ends[..., :-1]
    after, before = np.minimum(keys + 1, len(values) - 1), np.maximum(keys - 1, 0)
    itself[1, 1] += LOOSE
    wanted[:, 1] += LOOSE * (values[after] - values[before]) / (after - before)
    pairs_of_bands = ((itself[0, 0], itself[1, 1]), (itself[0, 1], beside[1, 0]), (beside[0, 0], beside[1, 1]))
    bands = np.array([np.ravel(pair, order="F") for pair in (*pairs_of_bands, (beside[0, 1], np.zeros(count)))])
    found = _solved(bands, wanted.ravel()).reshape(-1, 2)
    found[pinned, 0] = values[keys[pinned]]
    return Curve(keys, found[:, 0], found[:, 1])


def _segments(keys: Ints) -> tuple[Ints, Ints, Floats]:
    """Return, for each frame, its segment (F,), the segment's length (F,), and the weights (4, F) of its ends.

    Weights are of value and slope at the start, then at the end; slopes are per whole segment.
    """
    frames = np.arange(keys[-1] + 1)
    own = np.minimum(np.searchsorted(keys, frames, side="right") - 1, len(keys) - 2)
    length = np.diff(keys)[own]
    t = (frames - keys[own]) / length
    end = t * t * (3.0 - 2.0 * t)
    return own, length, np.stack([1.0 - end, t * (1.0 - t) ** 2, end, -t * t * (1.0 - t)])


def _solved(bands: Floats, wanted: Floats) -> Floats:
    """Solve a symmetric system with four bands (4, n), the diagonal first, by elimination; right-hand side (n,)."""
    padding = len(bands) - 1
    rows, sides = bands.T.tolist() + [[1.0, 0.0, 0.0, 0.0]] * padding, wanted.tolist() + [0.0] * padding
    for i in range(len(wanted)):
        size, *ties = rows[i]
        for k, tie in enumerate(ties, start=1):
            if tie:
                share, below = tie / size, rows[i + k]
                rows[i + k] = [own - share * other for own, other in zip_longest(below, ties[k - 1 :], fillvalue=0.0)]
                sides[i + k] -= share * sides[i]
    for i in reversed(range(len(wanted))):
        size, a, b, c = rows[i]
        sides[i] = (sides[i] - a * sides[i + 1] - b * sides[i + 2] - c * sides[i + 3]) / size
    return np.array(sides[:-padding])
