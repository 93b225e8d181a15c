"""Feet that stand still while they touch: they roll about heel and toe, and are eased into and out of contact.

All frames are solved at once. While heel and toe touch, the foot keeps one orientation; while one of them does, it
rolls about that point as it did in the clip. Points in contact keep their place to the last bit of rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..solve.maths.products import lengths_of
from ..solve.maths.rotations import about_vectors, inverse, multiply, rotate, vectors_of
from ..solve.problem import Bools, Floats, Ints
from .filling import bridged, eased, numbered, runs


@dataclass(frozen=True)
class Foot:
    """A foot or hand on F frames, and where it touches."""

    places: Floats
    """(F, 3) of its joint."""
    turns: Floats
    """(4, F) unit quaternions."""
    pivots: Floats
    """(2, 3) heel and toe, seen from the joint in the foot's own axes."""
    contacts: Bools
    """(2, F) whether heel and toe touch."""

    def points(self, pivot: int) -> Floats:
        """Where (F, 3) the heel (0) or the toe (1) is."""
        return self.places + self._turned(self.pivots[pivot])

    @property
    def touches(self) -> Bools:
        """Whether (F,) anything of it touches."""
        return np.asarray(self.contacts.any(axis=0))

    def slide(self) -> float:
        """The largest distance of a point in contact from where it began to touch."""
        farthest = 0.0
        for pivot in range(2):
            points = self.points(pivot)
            for start, end in runs(self.contacts[pivot]):
                farthest = max(farthest, float(lengths_of(points[start:end] - points[start]).max()))
        return farthest

    def _turned(self, vectors: Floats) -> Floats:
        """Vectors (3,) or (F, 3) in the foot's axes, as it turns on each frame."""
        return np.asarray(rotate(self.turns, np.broadcast_to(vectors, self.places.shape).T).T)


def plant(foot: Foot, length: int) -> Foot:
    """The foot as it stands still where it touches; its way there and from there is eased over so many frames."""
    if not foot.contacts.any():
        return foot
    flat = np.asarray(foot.contacts.all(axis=0))
    turned = replace(foot, turns=_flat_turns(foot, flat, length))
    touching = foot.touches
    own = np.where(foot.contacts[1][:, None], foot.pivots[1], foot.pivots[0])
    pivots = bridged(own, touching)
    there = foot.places + foot._turned(pivots)
    moved = eased(_held(turned, foot, flat) - there, touching, length)
    return replace(turned, places=there + moved - turned._turned(pivots))


def _flat_turns(foot: Foot, flat: Bools, length: int) -> Floats:
    """The orientations (4, F): one for each time that the foot stands flat, eased to those of the clip in between."""
    wanted = foot.turns.copy()
    for start, end in runs(flat):
        wanted[:, start:end] = _mean(foot.turns[:, start:end])[:, None]
    turns = vectors_of(multiply(wanted, inverse(foot.turns)))
    eased_turns = multiply(about_vectors(eased(turns.T, flat, length).T), foot.turns)
    return np.asarray(np.where(flat, wanted, eased_turns))


def _mean(turns: Floats) -> Floats:
    """The mean (4,) of orientations (4, F) that differ little."""
    middle = turns[:, turns.shape[1] // 2, None]
    away = vectors_of(multiply(turns, inverse(np.broadcast_to(middle, turns.shape))))
    mean = multiply(about_vectors(away.mean(axis=1)[:, None]), middle)[:, 0]
    return np.asarray(mean / np.sqrt((mean * mean).sum()))


def _held(turned: Foot, source: Foot, flat: Bools) -> Floats:
    """Where (F, 3) the point that a touching foot rolls about is held; anything where nothing touches.

    A foot that stands flat ties the places of its heel and its toe together. All that are tied are moved as one, to
    where they are nearest to the clip while the foot is flat.
    """
    numbers = [numbered(contacts) for contacts in turned.contacts]
    tied: list[dict[tuple[int, int], Floats]] = []
    of: dict[tuple[int, int], dict[tuple[int, int], Floats]] = {}
    for start, _end in runs(flat):
        heel, toe = (0, int(numbers[0][start])), (1, int(numbers[1][start]))
        apart = rotate(turned.turns[:, start, None], (turned.pivots[1] - turned.pivots[0])[:, None])[:, 0]
        group = of.get(heel) or of.get(toe)
        if group is None:
            group = {heel: np.zeros(3)}
            tied.append(group)
        known = heel if heel in group else toe
        group[heel] = group[heel] if known == heel else group[toe] - apart
        group[toe] = group[heel] + apart
        of[heel] = of[toe] = group
    for pivot, own in enumerate(numbers):
        tied += [{(pivot, run): np.zeros(3)} for run in range(int(own.max()) + 1) if (pivot, run) not in of]
    held = np.zeros_like(source.places)
    for group in tied:
        _hold(group, numbers, source, flat, held)
    return held


def _hold(
    group: dict[tuple[int, int], Floats], numbers: Sequence[Ints], source: Foot, flat: Bools, held: Floats
) -> None:
    """Put the places of contacts that are tied together into those (F, 3) where the foot is held."""
    spans = {(pivot, run): numbers[pivot] == run for pivot, run in group}
    if any((span & flat).any() for span in spans.values()):
        compared = {key: span & flat for key, span in spans.items()}
    else:
        compared = spans
    away = [(source.points(key[0]) - place)[compared[key]] for key, place in group.items()]
    shift = np.concatenate(away).mean(axis=0)
    for key in sorted(group):  # where both touch, the toe counts
        held[spans[key]] = group[key] + shift
