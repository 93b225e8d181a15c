"""Rest matrices of root bones that are only roughly rotations, and how they skew a chain.

If a bone points against its parent, as a thigh does, Blender's rest matrix is a rotation only to about 1e-6. It skews
the whole chain, differently in each pose, so that a solution for rigid bones misses by as much. But seen from the
parent the skew is the same in each pose: without it bones are rigid, and targets are moved by its inverse.
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
    """(B, 3, 3) the skew less the identity; None: no skew."""

    @classmethod
    def of(cls, heads: Floats, at_rest: Floats, parents: Callable[[], Floats], rigid: Bools) -> Skew:
        """Compute the skew of members.

        Args:
            heads: (B, 3) of root bones.
            at_rest: (B, 3, 3) as in `Skeleton.skews`, of root bones.
            parents: returns the frames (B, 3, 3) of their parents; called only if there is skew.
            rigid: (B,) members that nothing else skews; the skew of the others is ignored.
        """
        if not at_rest.any():
            return cls(heads, None)
        frames = parents()
        return cls(heads, np.where(rigid[:, None, None], times_back(times(frames, at_rest), frames), 0.0))

    def without(self, points: Floats) -> Floats:
        """Return points (B, ..., 3) with the skew removed."""
        return self._moved(points, -1.0)

    def put_on(self, points: Floats) -> Floats:
        """Return points (B, ..., 3) with the skew applied."""
        return self._moved(points, 1.0)

    def _moved(self, points: Floats, share: float) -> Floats:
        if self.off is None:
            return points
        offsets = points.reshape(len(points), -1, 3) - self.heads[:, None]
        return points + share * times_back(offsets, self.off).reshape(points.shape)

    def frames_without(self, linear: Floats) -> Floats:
        """Return bone matrices (B, n, 3, 3) with the skew removed."""
        if self.off is None:
            return linear
        return linear - times(np.broadcast_to(self.off[:, None], linear.shape), linear)
