"""Members that finish at different steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Floats, Ints
from .calculus import Calculus, Row
from .kernels import ONE, is_crowd
from .rotations import stacked
from .vectors import Number


class Crowd:
    """B members, or one, that finish at different steps, and their results."""

    def __init__(self, do: Calculus, bones: int, members: int) -> None:
        """Begin with all members running."""
        self.left, self._one = members, do is ONE
        self._of_one: tuple[Row, Number, int] = [], 0.0, 0
        if self._one:
            return
        self.angles = np.empty((3, bones, members))
        self.error, self.steps = np.empty(members), np.zeros(members, dtype=np.int64)
        self._index, self._running = np.arange(members), np.ones(members, dtype=bool)

    def leave(self, ended: Any, done: int, angles: Row, error: Number) -> Any:
        """Store the angles, errors and number of steps of members that have ended.

        Returns:
            The members to go on with, if it pays to leave out the others; None: go on with all.
        """
        if self._one:
            self._of_one, self.left = (angles, error, done), 0
            return None
        ended = ended & self._running
        where = self._index[ended]
        self.angles[..., where] = stacked(*(part[..., ended] for part in angles[0]))
        self.error[where], self.steps[where] = error[ended], done
        self._running &= ~ended
        self.left = int(np.count_nonzero(self._running))
        if not self.left or is_crowd(self.left, len(self._running)):
            return None
        chosen, self._index = self._running, self._index[self._running]
        self._running = np.ones(self.left, dtype=bool)
        return chosen

    @property
    def found(self) -> tuple[Floats, Floats, Ints]:
        """The angles (3, n, B), errors (B,) and number of steps (B,) of all members."""
        if self._one:
            angles, error, done = self._of_one
            return np.array(angles).T[..., None], np.array([error]), np.array([done])
        return self.angles, self.error, self.steps
