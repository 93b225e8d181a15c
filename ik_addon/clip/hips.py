"""The least and smoothest movement of the hips over a clip that lets legs reach where their feet stand.

Each contact allows the hips a ball of places on each frame. Where joint limits keep a leg from its foot, the way to the
nearest place from which it reaches cuts off a side of the ball. Of all movements within what is left, that with the
least sum of squares of its size and of its acceleration is unique. It is found by splitting (ADMM): a smoothing of the
whole clip, by cosine transform, and a step into each of these regions take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..solve.maths.products import lengths_of
from ..solve.problem import Bools, Floats, Ints

PASSES = 2000
"""At most so many."""
INSIDE = 2e-5
"""The balls are made smaller by this fraction of a leg: what is found within half of it lets the foot reach."""
PULL = 0.15
"""How strongly a movement is drawn into the balls, for smoothing over one frame; it grows with the square of these."""
BEYOND = 1.7
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

    def missed(self, offsets: Floats) -> Floats:
        """By how much (n,) the hips, moved by (F, 3), haven't gone far enough."""
        return np.asarray(self.least - (self.ways * offsets[self.frames]).sum(axis=1))


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


def help_reach(legs: Sequence[Leg], cap: float, smooth: float) -> Help:
    """Move the hips so that legs reach.

    Args:
        legs: on the same F frames.
        cap: the largest movement, however short a leg is.
        smooth: over about how many frames a movement begins and ends.
    """
    count = len(legs[0].held)
    offsets = np.zeros((count, 3))
    if any(leg.short(offsets).any() or leg.cuts for leg in legs):
        offsets = _least(legs, cap, smooth)
    return Help(offsets, np.max([leg.short(offsets) for leg in legs], axis=0))


def _least(legs: Sequence[Leg], cap: float, smooth: float) -> Floats:
    size = max(leg.reach for leg in legs)
    count = len(legs[0].held)
    regions = [step for leg in legs for step in _regions(leg, cap, INSIDE * size)]
    regions.append(lambda offsets: _into(offsets, cap))
    pull = PULL * max(smooth, 1.0) ** 2
    rate = (2.0 - 2.0 * np.cos(np.pi * np.arange(count) / count)) ** 2 * smooth**4
    share = pull / (1.0 + rate + pull * len(regions))
    near = np.zeros((len(regions), count, 3))
    rest = np.zeros_like(near)
    offsets = np.zeros((count, 3))
    for _ in range(PASSES):
        offsets = _from_cosines(_to_cosines((near - rest).sum(axis=0)) * share[:, None])
        before = near
        rest = rest + BEYOND * offsets + (1.0 - BEYOND) * before
        near = np.stack([step(own) for step, own in zip(regions, rest, strict=True)])
        rest -= near
        if max(np.abs(near - offsets).max(), np.abs(near - before).max()) < 0.5 * INSIDE * size:
            break
    return _into(offsets, cap)


def _regions(leg: Leg, cap: float, inside: float) -> list[Callable[[Floats], Floats]]:
    """What brings movements of the hips (F, 3) to the nearest ones that a leg allows, by each of its demands."""
    middles = (leg.ends - leg.roots)[leg.held]
    # What lies beyond the cap is made so large that the two touch: what can't be had needs no passes.
    radii = np.maximum(leg.reach - inside, lengths_of(middles) - cap)

    def into_ball(offsets: Floats) -> Floats:
        out = offsets.copy()
        out[leg.held] = middles + _into(offsets[leg.held] - middles, radii)
        return out

    def beyond(cut: Cut) -> Callable[[Floats], Floats]:
        own = replace(cut, least=np.minimum(cut.least + inside, cap))

        def step(offsets: Floats) -> Floats:
            out = offsets.copy()
            out[own.frames] += np.maximum(own.missed(offsets), 0.0)[:, None] * own.ways
            return out

        return step

    return [into_ball, *(beyond(cut) for cut in leg.cuts)]


def _into(vectors: Floats, radius: Floats | float) -> Floats:
    """Vectors (F, 3) no longer than a radius, or than radii (F,)."""
    size = lengths_of(vectors)
    return np.asarray(vectors * np.minimum(1.0, radius / np.maximum(size, 1e-300))[:, None])


def _to_cosines(values: Floats) -> Floats:
    """The cosine transform (F, 3) along the frames, of values (F, 3)."""
    count = len(values)
    twist = np.exp(-0.5j * np.pi * np.arange(count) / count)[:, None]
    return np.asarray((np.fft.rfft(np.concatenate([values, values[::-1]]), axis=0)[:count] * twist).real)


def _from_cosines(cosines: Floats) -> Floats:
    """The inverse of `_to_cosines`."""
    count = len(cosines)
    twist = np.exp(0.5j * np.pi * np.arange(count) / count)[:, None]
    half = np.concatenate([cosines * twist, np.zeros((1, 3))])
    return np.asarray(np.fft.irfft(half, 2 * count, axis=0)[:count])
