"""Rest matrices of root bones that are rotations only roughly, and what they do to a chain.

Of a bone that points against its parent, as a thigh does, Blender's rest matrix is a rotation to a millionth only. It
skews the whole chain, and differently in each pose, so that a solution for rigid bones misses by as much. But it is the
same skew in each pose for who looks from the parent: without it bones are rigid, and targets are where it leads from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...solve.maths.products import times, times_back
from ...solve.problem import Bools, Floats


@dataclass(frozen=True)
class Skew:
    """The skew of B members about the heads of their root bones, in armature space."""

    heads: Floats
    """(B, 3)"""
    off: Floats | None
    """(B, 3, 3) the skew less the identity; None: there is none."""

    @classmethod
    def of(cls, heads: Floats, at_rest: Floats, parents: Callable[[], Floats], rigid: Bools) -> Skew:
        """Find the skew of members.

        Args:
            heads: (B, 3) of root bones.
            at_rest: (B, 3, 3) as in `Skeleton.skews`, of root bones.
            parents: returns the frames (B, 3, 3) of their parents, where they are asked for.
            rigid: (B,) members that nothing else skews; of others it is not looked at.
        """
        if not at_rest.any():
            return cls(heads, None)
        frames = parents()
        return cls(heads, np.where(rigid[:, None, None], times_back(times(frames, at_rest), frames), 0.0))

    def without(self, points: Floats) -> Floats:
        """Points (B, ..., 3) as they are without it."""
        return self._moved(points, -1.0)

    def put_on(self, points: Floats) -> Floats:
        """Where it takes points (B, ..., 3)."""
        return self._moved(points, 1.0)

    def _moved(self, points: Floats, share: float) -> Floats:
        if self.off is None:
            return points
        offsets = points.reshape(len(points), -1, 3) - self.heads[:, None]
        return points + share * times_back(offsets, self.off).reshape(points.shape)

    def frames_without(self, linear: Floats) -> Floats:
        """Matrices (B, n, 3, 3) of bones as they are without it."""
        if self.off is None:
            return linear
        return linear - times(np.broadcast_to(self.off[:, None], linear.shape), linear)
