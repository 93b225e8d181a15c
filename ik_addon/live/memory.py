"""Solved frames, remembered by the numbers that they were computed from, and frames solved before they are played.

A stored solution is used only for numbers with the same bits, so results never depend on what is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.channels import Row
from ..rig.plan.inputs import Numbers
from ..rig.read.sample import Sample
from ..rig.write.outcomes import Outcomes
from ..rig.write.waves import Posed

BLOCK = 32
"""Number of frames that are solved in advance at once: solved together, free chains take little longer than one."""
SEARCHED = 4
"""The same where chains are searched for one by one, so that frames in advance take as long as on their turn."""
SURPRISES = 3
"""Nothing is foretold any more after this many frames that were not as expected."""
MEMORY = 32 * 2**20
"""Bytes of remembered frames per armature."""


@dataclass(frozen=True)
class Known:
    """A solved frame."""

    channels: Row
    """(k, 17) the solution."""
    outcomes: Outcomes
    """The outcomes of the frames that it was solved with."""
    index: int
    """Its place among these."""
    solved: tuple[Sample, Posed] | None = None
    """The sample and its solution, if it was solved alone."""


class Memory:
    """The frames of one plan."""

    def __init__(self, block: int) -> None:
        """Begin with nothing; `block` is the number of frames that are solved in advance at once."""
        self._block = block
        self._known: dict[bytes, Known] = {}
        self._expected: dict[float, Known] = {}
        """What the next frames show if nothing is edited."""
        self._last: float | None = None
        self._pace = 0.0
        self._surprises = 0

    def find(self, numbers: Numbers) -> Known | None:
        """Return the solution for numbers (1, w), if it is known."""
        return self._known.get(numbers.tobytes())

    def remember(self, numbers: Numbers, known: Known) -> None:
        """Remember the solution for numbers (1, w)."""
        size = numbers.nbytes + known.channels.nbytes
        while self._known and (len(self._known) + 1) * size > MEMORY:
            del self._known[next(iter(self._known))]
        self._known[numbers.tobytes()] = known

    def expected(self, frame: float) -> Known | None:
        """Return what a frame is expected to show, if it was foretold."""
        return self._expected.get(frame)

    @property
    def is_surprised(self) -> bool:
        """Whether frames were so often not as expected that nothing is foretold any more."""
        return self._surprises >= SURPRISES

    def played(self, frame: float, known: Known) -> Sequence[float]:
        """Note that a frame was played, and return the frames to foretell now."""
        expected = self._expected.pop(frame, known)
        if expected is not known:
            self._surprises += 1
            self._expected.clear()
        last, self._last = self._last, frame
        if last is None or frame == last:
            return ()
        before, self._pace = self._pace, frame - last
        if self._pace != before or not self._pace.is_integer():
            self._expected.clear()
            return ()
        if frame + self._pace in self._expected:
            return ()
        return [frame + self._pace * k for k in range(1, self._block + 1)]

    def foretell(self, frames: Sequence[float], numbers: Numbers | None, solve: Callable[[Numbers], Posed]) -> None:
        """Solve frames in advance from their numbers (F, w); None: they can't be foretold."""
        if numbers is None:
            self._surprises = SURPRISES
            return
        new = {row.tobytes(): row for row in numbers if row.tobytes() not in self._known}
        if new:
            every = np.array(list(new.values()))
            posed = solve(every)
            for i in range(len(every)):
                self.remember(every[i : i + 1], Known(posed.channels[i], posed.outcomes, i))
        self._expected.update((frame, self._known[row.tobytes()]) for frame, row in zip(frames, numbers, strict=True))
