"""What is dragged is pulled by a force that has a greatest strength: how much it gives way, and where that leads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem import Bools, Floats

STRENGTH = 100.0
"""Greatest force of what is dragged: with a lever arm as long as the body it turns a joint by as many radians."""
CREEPS = 0.3
"""From this part of the greatest force on, a gap closes so slowly that it is foretold where it comes to rest."""
LEAP = 0.1
"""What is foretold of a gap is no less than this part of it."""


@dataclass(frozen=True)
class Pulls:
    """What the last passes found of ends."""

    gaps: Floats
    """(e,) how far they were from where they should be, before the last pass."""
    forces: Floats
    """(e,) sizes of the forces in the last pass."""
    earlier: Floats
    """(e,) and in the one before it."""

    @classmethod
    def none(cls, ends: int) -> Pulls:
        """Begin without passes."""
        return cls(np.zeros(ends), np.full(ends, np.inf), np.zeros(ends))

    def then(self, gaps: Floats, forces: Floats) -> Pulls:
        """Return what is known after one more pass, from these gaps (e,) with forces of these sizes (e,)."""
        return Pulls(gaps, forces, self.forces)

    def yields(self, gaps: Floats, dragged: Bools, *, foretold: bool) -> Floats:
        """Return by how much ends (e,) give way to a unit force, because it may be no stronger.

        An end that gives way by its gap, for the greatest force, comes nearer to where that force holds it, but ever
        slower where it is not far from there. Two passes show how the gap goes with the force, and so where it leads.

        Args:
            gaps: (e,) how far they are from where they should be.
            dragged: (e,) which of them are dragged.
            foretold: whether the last passes tell of the next.
        """
        closed, grown = self.gaps - gaps, self.forces - self.earlier
        slow = (closed > 0.0) & (grown > 0.0) & (self.forces > CREEPS * STRENGTH) & (self.forces < STRENGTH) & foretold
        rest = gaps - closed / np.where(slow, grown, 1.0) * np.where(slow, STRENGTH - self.forces, 0.0)
        rest = np.where(slow, np.clip(rest, LEAP * gaps, gaps), gaps)
        return np.where(dragged, rest, 0.0) / STRENGTH
