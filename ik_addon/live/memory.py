"""Solved frames, remembered by the numbers that they were computed from, and what frames are expected to be.

A stored solution is used only for numbers with the same bits, so results never depend on what is remembered.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.channels import Row
from ..rig.plan.inputs import Numbers
from ..rig.read.sample import Sample
from ..rig.write.solving import Outcomes
from ..rig.write.waves import Posed

BLOCK = 64
"""Number of frames that are foretold at once: sampled and solved together, they take little longer than one."""
CLOSED = 16
"""As many of these are solved at once with limbs that are solved one by one in closed form: more would halt playback
for longer."""
VISITS = 3
"""Where playback jumps about, a block is foretold once it was visited so often: it takes as long as a few frames."""
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
    """Its own outcomes."""
    solved: tuple[Sample, Posed] | None = None
    """The sample and its solution, if it was solved alone."""


class Memory:
    """The frames of one plan."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._known: dict[bytes, Known] = {}
        self._expected: dict[float, Numbers] = {}
        """The numbers (1, w) of frames that were foretold, played or not, if nothing is edited."""
        self._played: dict[float, Numbers] = {}
        """Those of frames that could not be foretold, when they were played last."""
        self._ahead: set[float] = set()
        """Those of them that were solved ahead."""
        self.is_sure = False
        """Whether frames come as expected: the last one did, and nothing was edited or foretold since."""
        self._last: float | None = None
        self._pace = 0.0
        self._is_steady = False
        self._visits: Counter[float] = Counter()
        """How often the blocks of frames were visited that nothing is expected of."""
        self.surprises = 0
        """How many frames were not as expected; after `SURPRISES` of them nothing is foretold any more."""

    def find(self, numbers: Numbers) -> Known | None:
        """Return the solution for numbers (1, w), if it is known."""
        return self._known.get(numbers.tobytes())

    def remember(self, numbers: Numbers, known: Known) -> None:
        """Remember the solution for numbers (1, w)."""
        size = numbers.nbytes + known.channels.nbytes
        while self._known and (len(self._known) + 1) * size > MEMORY:
            del self._known[next(iter(self._known))]
        self._known[numbers.tobytes()] = known

    def expected(self, frame: float) -> Numbers | None:
        """Return the numbers (1, w) of a frame, if it was foretold, or was played while frames come as expected."""
        return self._expected.get(frame, self._played.get(frame) if self.is_sure else None)

    def is_next(self, frame: float | None) -> bool:
        """Whether a frame follows those that were played last, at their pace."""
        return self._last is not None and self._pace != 0.0 and frame == self._last + self._pace

    def doubt(self, frame: float | None = None) -> None:
        """Expect nothing any more: something was edited. Where playback goes on with a frame, that will show."""
        self.is_sure = False
        if not self.is_next(frame):
            self._expect_nothing()

    def played(self, frame: float, numbers: Numbers) -> Sequence[float]:
        """Note that a frame with these numbers (1, w) was played, and return the frames to foretell now.

        They are the next ones if the pace is steady, and all of a block that somebody jumps about in.
        """
        expected = self._expected.get(frame)
        known = self._played.get(frame) if expected is None else expected
        self.is_sure = known is not None and known.tobytes() == numbers.tobytes()
        if expected is not None and not self.is_sure:
            self.surprises += 1
            self._expect_nothing()
        elif expected is None:
            if len(self._played) * numbers.nbytes > MEMORY:
                self._played.clear()
            self._played[frame] = numbers
        last, self._last = self._last, frame
        if last is None or frame == last:
            return ()
        before, self._pace = self._pace, frame - last
        self._is_steady = self._pace == before
        if not self._pace.is_integer():
            return ()
        if self._is_steady:
            return () if frame + self._pace in self._expected else [frame + self._pace * k for k in range(1, BLOCK + 1)]
        block = frame // BLOCK
        self._visits[block] += expected is None
        if expected is not None or self._visits[block] != VISITS or not frame.is_integer():
            return ()
        return [other for k in range(BLOCK) if (other := block * BLOCK + k) not in self._expected]

    def expect(self, frames: Sequence[float], numbers: Numbers) -> None:
        """Expect numbers (F, w) on frames."""
        self.is_sure = False
        if (len(self._expected) + len(frames)) * numbers[0].nbytes > MEMORY:
            self._expect_nothing()
        self._expected.update((frame, numbers[i : i + 1]) for i, frame in enumerate(frames))

    def solve_ahead(self, count: int, solve: Callable[[Numbers], Posed]) -> None:
        """Solve up to `count` of the expected frames, if the next one, or this one after a jump, is not solved yet.

        They are those that follow, or the nearest.
        """
        here = self._last
        if here is None or not self._is_unsolved(here + self._pace * self._is_steady):
            return
        if self._is_steady:
            ahead = [*filter(self._is_unsolved, (here + self._pace * k for k in range(1, count + 1)))]
        else:
            ahead = sorted(filter(self._is_unsolved, self._expected), key=lambda frame: abs(frame - here))[:count]
        self._ahead.update(ahead)
        rows = {(row := self._expected[frame]).tobytes(): row for frame in ahead}
        new = [row for row in rows.values() if self.find(row) is None]
        if not new:
            return
        every = np.concatenate(new)
        posed = solve(every)
        for i in range(len(every)):
            own = slice(i, i + 1)
            self.remember(every[own], Known(posed.channels[i], posed.outcomes.frames(own)))

    def _is_unsolved(self, frame: float) -> bool:
        """Whether a frame is expected, and was not solved ahead."""
        return frame in self._expected and frame not in self._ahead

    def _expect_nothing(self) -> None:
        for known in (self._expected, self._played, self._visits, self._ahead):
            known.clear()
