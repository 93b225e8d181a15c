"""Members that are on their way, and what has become of those that have ended."""

from __future__ import annotations

from typing import Any

import numpy as np

from .calculus import ONE, Calculus, Row
from .problem import Floats, Ints
from .rotations import stacked
from .tuples import Number

CROWD = 0.75
"""Members that have ended are carried along until no more than this share of them is left: to pick the others out takes
as long as a step."""


class Crowd:
    """Of B members, or of one."""

    def __init__(self, do: Calculus, bones: int, members: int) -> None:
        """Begin with all of them."""
        self.one = do is ONE
        self.angles = np.empty((3, bones, members))
        self.missing, self.steps = np.empty(members), np.zeros(members, dtype=np.int64)
        self._index, self._running = np.arange(members), np.ones(members, dtype=bool)
        self.left = members

    def leave(self, ended: Any, done: int, angles: Row, missing: Number) -> Any:
        """Let members go with their angles, what is missing and the steps taken.

        Returns:
            Those of the members that are worth going on with alone; None: all of them.
        """
        if self.one:
            self.angles[..., 0] = np.array(angles).T
            self.missing[0], self.steps[0], self.left = missing, done, 0
            return None
        ended = ended & self._running
        where = self._index[ended]
        self.angles[..., where] = stacked(*(part[..., ended] for part in angles[0]))
        self.missing[where], self.steps[where] = missing[ended], done
        self._running &= ~ended
        self.left = int(np.count_nonzero(self._running))
        if not self.left or self.left >= CROWD * len(self._running):
            return None
        chosen, self._index = self._running, self._index[self._running]
        self._running = np.ones(self.left, dtype=bool)
        return chosen

    @property
    def found(self) -> tuple[Floats, Floats, Ints]:
        """The angles (3, n, B), what is missing (B,) and the steps (B,)."""
        return self.angles, self.missing, self.steps
