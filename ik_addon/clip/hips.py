"""The least and smoothest movement of the hips over a clip that lets legs reach where their feet stand.

Each contact allows the hips a ball of places on each frame. Where joint limits keep a leg from its foot, the way to the
nearest place from which it reaches cuts off a side of the ball. Of all movements within what is left, that with the
least sum of squares of its size and of its acceleration is unique. It is found by splitting (ADMM): a smoothing of the
whole clip, by cosine transform, and a step into each of these regions take turns. Where regions are added to those of
an earlier search, it goes on from where that one ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from ..solve.maths.products import lengths_of
from ..solve.problem import Bools, Floats, Ints

PASSES = 2000
"""At most so many."""
INSIDE = 2e-5
"""The balls are made smaller by this fraction of a leg: what is found within half of it lets the foot reach."""
PULL = 0.15
"""How strongly a movement is drawn into the balls, for smoothing over one frame; it grows with the square of these."""
BEYOND = 1.8
"""A pass goes this much farther than it would by itself, which needs fewer of them."""


@dataclass(frozen=True)
class Cut:
    """What joint limits ask of the hips, on some of F frames."""

    frames: Ints
    """(n,)"""
    ways: Floats
    """(n, 3) unit vectors: the hips have to go this way"""
    least: Floats
    """(n,) by at least so much."""


@dataclass(frozen=True)
class Leg:
    """A leg on F frames."""

    roots: Floats
    """(F, 3) where it begins."""
    ends: Floats
    """(F, 3) where its foot is to be."""
    reach: float
    """How far it reaches."""
    held: Bools
    """(F,) whether the foot has to be there."""
    cuts: tuple[Cut, ...] = ()

    def cut(self, missed: Floats, offsets: Floats) -> Leg:
        """The leg as it is known when, with the hips moved by (F, 3), it asks to move them on by (F, 3)."""
        size = lengths_of(missed)
        frames = np.flatnonzero(size > INSIDE * self.reach)
        ways = missed[frames] / size[frames, None]
        least = (ways * offsets[frames]).sum(axis=1) + size[frames]
        return replace(self, cuts=(*self.cuts, Cut(frames, ways, least)))

    def short(self, offsets: Floats) -> Floats:
        """How far (F,) the leg is from reaching, with the hips moved; zero where it need not."""
        distance = lengths_of(self.ends - self.roots - offsets)
        return np.asarray(np.where(self.held, np.maximum(distance - self.reach, 0.0), 0.0))


@dataclass(frozen=True)
class Help:
    """How the hips move."""

    offsets: Floats
    """(F, 3)"""
    short: Floats
    """(F,) by how much the leg that is farthest from its foot doesn't reach it."""
    search: Floats
    """(2, R, 3, F) where the search for it ended: the movement in each of R regions, and what draws it there."""


def help_reach(legs: Sequence[Leg], cap: float, smooth: float, before: Help | None = None) -> Help:
    """Move the hips so that legs reach.

    Args:
        legs: on the same F frames.
        cap: the largest movement, however short a leg is.
        smooth: over about how many frames a movement begins and ends.
        before: what was found when legs had fewer cuts and were the same otherwise.
    """
    count = len(legs[0].held)
    found = before or Help(np.zeros((count, 3)), np.zeros(count), np.zeros((2, 0, 3, count)))
    if any(leg.short(found.offsets).any() or leg.cuts for leg in legs):
        found = _least(legs, cap, smooth, found)
    return replace(found, short=np.max([leg.short(found.offsets) for leg in legs], axis=0))


def _least(legs: Sequence[Leg], cap: float, smooth: float, before: Help) -> Help:
    size = max(leg.reach for leg in legs)
    balls, sides = _Balls.of(legs, cap, INSIDE * size), _Sides.of(legs, cap, INSIDE * size)
    first, count = len(balls.radii), len(legs[0].held)
    known = before.search.shape[1]
    near, rest = np.zeros((2, first + len(sides.least), 3, count))
    near[known:] = before.offsets.T
    near[:known], rest[:known] = before.search
    pull = PULL * max(smooth, 1.0) ** 2
    rate = (2.0 - 2.0 * np.cos(np.pi * np.arange(count) / count)) ** 2 * smooth**4
    smoothen = _smoothing(pull / (1.0 + rate + pull * len(near)))
    for _ in range(PASSES):
        offsets = smoothen((near - rest).sum(axis=0))
        last = near
        rest = rest + BEYOND * offsets + (1.0 - BEYOND) * last
        near = np.concatenate([balls.into(rest[:first]), sides.into(rest[first:])])
        rest -= near
        if max(np.abs(near - offsets).max(), np.abs(near - last).max()) < 0.5 * INSIDE * size:
            break
    return Help(_into(offsets.T, cap), before.short, np.stack([near, rest]))


@dataclass(frozen=True)
class _Balls:
    """What lets R legs reach, and what the cap allows, on F frames."""

    middles: Floats
    """(R, 3, F)"""
    radii: Floats
    """(R, F)"""

    @classmethod
    def of(cls, legs: Sequence[Leg], cap: float, inside: float) -> _Balls:
        middles, radii = [np.zeros((3, len(legs[0].held)))], [np.full(len(legs[0].held), cap)]
        for leg in (leg for leg in legs if leg.held.any()):
            ways = leg.ends - leg.roots
            # What lies beyond the cap is made so large that the two touch: what can't be had needs no passes.
            radius = np.maximum(leg.reach - inside, lengths_of(ways) - cap)
            middles.append(ways.T)
            radii.append(np.where(leg.held, radius, np.inf))
        return cls(np.stack(middles), np.stack(radii))

    def into(self, offsets: Floats) -> Floats:
        """Movements of the hips (R, 3, F), each brought to the nearest one in its ball."""
        away = offsets - self.middles
        far = np.sqrt((away * away).sum(axis=1))
        return np.asarray(self.middles + away * np.minimum(1.0, self.radii / np.maximum(far, 1e-300))[:, None])


@dataclass(frozen=True)
class _Sides:
    """What R cuts leave, on F frames."""

    ways: Floats
    """(R, 3, F) unit vectors; zero where one cuts nothing off."""
    least: Floats
    """(R, F)"""

    @classmethod
    def of(cls, legs: Sequence[Leg], cap: float, inside: float) -> _Sides:
        # In the order in which they were made: what was known of earlier ones is still where it was.
        rounds = zip_longest(*(leg.cuts for leg in legs))
        cuts = [cut for several in rounds for cut in several if cut is not None and len(cut.frames)]
        ways, least = np.zeros((len(cuts), 3, len(legs[0].held))), np.zeros((len(cuts), len(legs[0].held)))
        for i, cut in enumerate(cuts):
            ways[i][:, cut.frames] = cut.ways.T
            least[i, cut.frames] = np.minimum(cut.least + inside, cap)
        return cls(ways, least)

    def into(self, offsets: Floats) -> Floats:
        """Movements of the hips (R, 3, F), each brought to the nearest one that its cut leaves."""
        missed = np.maximum(self.least - (self.ways * offsets).sum(axis=1), 0.0)
        return np.asarray(offsets + missed[:, None] * self.ways)


def _into(vectors: Floats, radius: Floats | float) -> Floats:
    """Vectors (F, 3) no longer than a radius, or than radii (F,)."""
    size = lengths_of(vectors)
    return np.asarray(vectors * np.minimum(1.0, radius / np.maximum(size, 1e-300))[:, None])


def _smoothing(shares: Floats) -> Callable[[Floats], Floats]:
    """What leaves of each wave in values (n, F) its share (F,): the cosine transform there and back again.

    It is made of a Fourier transform of the same length, of every other value forwards and of the rest backwards.
    """
    count = len(shares)
    order = np.concatenate([np.arange(0, count, 2), np.arange(1, count, 2)[::-1]])
    back = np.argsort(order)
    waves = np.arange(count // 2 + 1)
    twist = np.exp(-0.5j * np.pi * waves / count)
    own, others = shares[waves], shares[-waves]

    def smoothen(values: Floats) -> Floats:
        found = np.fft.rfft(values[:, order]) * twist
        kept = own * found.real + 1j * (others * found.imag)
        return np.asarray(np.fft.irfft(kept * twist.conj(), count)[:, back])

    return smoothen
