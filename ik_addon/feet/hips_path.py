"""The least and smoothest movement of the hips over a clip that lets legs reach where their feet stand.

On each frame, each contact restricts the hips to a ball of positions, and to a thin shell while the knee should be bent
as recorded. Where joint limits keep a leg from its foot, a plane across the direction to the nearest position that
works cuts off one side. Within what is left, ADMM looks for the movement with the least sum of squares of its size and
its acceleration: it alternates between smoothing the whole clip, by cosine transform, and projecting onto each of these
regions. Movements are small beside the radius of a shell, which so is nearly a flat slab. When regions are added to
those of an earlier search, it continues from the end of that search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from ..solve.maths.products import lengths_of
from ..solve.problem import Bools, Floats, Ints

PASSES = 2000
"""Maximum number of passes."""
INSIDE = 2e-5
"""Balls shrink by this fraction of a leg, and passes stop within half of it, so legs reach their feet."""
PULL = 40.0
"""ADMM penalty that draws a movement into the regions, for smoothing over one frame; grows with the frames squared.
With a smaller one, passes don't suffice for thin shells."""
BEYOND = 1.8
"""Over-relaxation: each pass goes this much farther than it would, so fewer are needed."""


@dataclass(frozen=True)
class Cut:
    """What joint limits require of the hips, on some of F frames."""

    frames: Ints
    """(n,) indices of these frames."""
    ways: Floats
    """(n, 3) unit vectors along which the hips have to move."""
    least: Floats
    """(n,) the least movement along them."""


@dataclass(frozen=True)
class Leg:
    """A leg on F frames."""

    roots: Floats
    """(F, 3) positions where it begins."""
    ends: Floats
    """(F, 3) wanted positions of its foot."""
    reach: float
    """The length it can reach."""
    held: Bools
    """(F,) whether the foot has to be there."""
    stance: Floats
    """(2, F) the least and the largest distance from root to foot at which the knee is bent as recorded."""
    cuts: tuple[Cut, ...] = ()

    def cut(self, missed: Floats, offsets: Floats) -> Leg:
        """Return the leg with a cut added: with the hips moved by `offsets` (F, 3), it needs `missed` (F, 3) more."""
        size = lengths_of(missed)
        frames = np.flatnonzero(size > INSIDE * self.reach)
        ways = missed[frames] / size[frames, None]
        least = (ways * offsets[frames]).sum(axis=1) + size[frames]
        return replace(self.eased(frames), cuts=(*self.cuts, Cut(frames, ways, least)))

    def eased(self, frames: Ints | Bools) -> Leg:
        """Return the leg with a knee that may bend otherwise than recorded on some frames."""
        stance = self.stance.copy()
        stance[:, frames] = [[0.0], [np.inf]]
        return replace(self, stance=stance)

    def short(self, offsets: Floats) -> Floats:
        """Return how far (F,) the leg is from reaching its foot with the hips moved; zero where it needn't reach."""
        return np.asarray(np.where(self.held, np.maximum(self.distances(offsets) - self.reach, 0.0), 0.0))

    def distances(self, offsets: Floats) -> Floats:
        """Return the distances (F,) from root to foot with the hips moved."""
        return lengths_of(self.ends - self.roots - offsets)

    def is_content(self, offsets: Floats) -> bool:
        """Return whether the leg reaches its foot, and its knee is bent as recorded, with the hips moved."""
        (least, most), distances = self.stance, self.distances(offsets)
        return not (self.cuts or self.short(offsets).any() or (distances < least).any() or (distances > most).any())


@dataclass(frozen=True)
class Help:
    """A movement of the hips."""

    offsets: Floats
    """(F, 3) how far the hips move."""
    search: Floats
    """(2, R, 3, F) state of the search, for continuing it: the movement in each of R regions, and its scaled dual."""


def help_reach(legs: Sequence[Leg], cap: float, smooth: float, before: Help | None) -> Help:
    """Move the hips so that legs reach.

    Args:
        legs: the legs, on the same F frames.
        cap: the largest movement allowed, however short a leg is.
        smooth: frames over which a movement begins and ends, approximately.
        before: the result for the same legs with fewer cuts; None if there is none.
    """
    count = len(legs[0].held)
    before = before or Help(np.zeros((count, 3)), np.zeros((2, 0, 3, count)))
    if all(leg.is_content(before.offsets) for leg in legs):
        return before
    size = max(leg.reach for leg in legs)
    (middles, radii), (ways, least) = _shells(legs, cap, INSIDE * size), _sides(legs, cap, INSIDE * size)
    first, known = len(radii), before.search.shape[1]
    near, rest = np.zeros((2, first + len(least), 3, count))
    near[known:] = before.offsets.T
    near[:known], rest[:known] = before.search
    pull = PULL * max(smooth, 1.0) ** 2
    rate = (2.0 - 2.0 * np.cos(np.pi * np.arange(count) / count)) ** 2 * smooth**4
    smoothen = _smoothing(pull / (1.0 + rate + pull * len(near)))
    for _ in range(PASSES):
        offsets = smoothen((near - rest).sum(axis=0))
        last = near
        rest = rest + BEYOND * offsets + (1.0 - BEYOND) * last
        # Project each movement onto its shell, or onto the side that its cut leaves.
        away = rest[:first] - middles
        far = np.maximum(np.sqrt((away * away).sum(axis=1)), 1e-300)
        missed = np.maximum(least - (ways * rest[first:]).sum(axis=1), 0.0)
        within = middles + away * (np.clip(far, radii[:, 0], radii[:, 1]) / far)[:, None]
        near = np.concatenate([within, rest[first:] + missed[:, None] * ways])
        rest -= near
        if max(np.abs(near - offsets).max(), np.abs(near - last).max()) < 0.5 * INSIDE * size:
            break
    size = np.maximum(np.sqrt((offsets * offsets).sum(axis=0)), 1e-300)
    return Help((offsets * np.minimum(1.0, cap / size)).T, np.stack([near, rest]))


def _shells(legs: Sequence[Leg], cap: float, inside: float) -> tuple[Floats, Floats]:
    """Return R times where the hips may be: within the cap, or so that a leg reaches with its knee as recorded.

    Returns:
        Centers (R, 3, F) of shells, and their inner and outer radii (R, 2, F); a ball has an inner radius of zero.
    """
    still = np.zeros(len(legs[0].held))
    middles, radii = [np.zeros((3, len(still)))], [np.stack([still, still + cap])]
    for leg in (leg for leg in legs if leg.held.any()):
        ways = leg.ends - leg.roots
        far = lengths_of(ways)
        least, most = leg.stance
        # Extend a shell beyond the cap until the two touch: regions that don't meet would use up all passes.
        outer = np.maximum(np.minimum(np.where(leg.held, leg.reach - inside, np.inf), most), far - cap)
        middles.append(ways.T)
        radii.append(np.stack([np.minimum(np.minimum(least, outer), far + cap), outer]))
    return np.stack(middles), np.stack(radii)


def _sides(legs: Sequence[Leg], cap: float, inside: float) -> tuple[Floats, Floats]:
    """Return unit vectors (R, 3, F) for R cuts, zero where a cut doesn't apply, and the least movement (R, F) along."""
    # Keep the order in which cuts were made, so that the state of earlier ones stays at its indices.
    rounds = zip_longest(*(leg.cuts for leg in legs))
    cuts = [cut for several in rounds for cut in several if cut is not None and len(cut.frames)]
    ways, least = np.zeros((len(cuts), 3, len(legs[0].held))), np.zeros((len(cuts), len(legs[0].held)))
    for i, cut in enumerate(cuts):
        ways[i][:, cut.frames] = cut.ways.T
        least[i, cut.frames] = np.minimum(cut.least + inside, cap)
    return ways, least


def _smoothing(shares: Floats) -> Callable[[Floats], Floats]:
    """Return a function that scales each cosine wave of values (n, F) by its share (F,): forward and inverse transform.

    The cosine transform is a Fourier transform of the same length: of even values forwards, then odd ones backwards.
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
