"""Frames that are solved before they are played, and frames that were played: neither is solved again.

Many frames at once take a fraction of what they take one by one, and what is known before Blender evaluates a frame
can be evaluated with it. Nothing depends on what was expected, nor on what is remembered: a frame is what its numbers
make of it, and a solution is taken for those of the same bits alone, see `playback`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

import numpy as np

from ..pose.channels import Row
from ..rig.plan.inputs import Numbers
from ..rig.write.outcomes import Outcomes

FRAMES = 256
"""How many frames are solved in advance at once, at most."""
LEAST = 4
"""How many at first, and however long they take."""
BUDGET = 0.004
"""Seconds that work for other frames may take at once, so that playback does not falter."""
OF_A_FRAME = 2.5
"""Or so many times what Blender takes for a frame, where that is longer."""
SAMPLES = 3
"""Of so many portions of a size the fastest tells what they take: other programs may have held up the others."""
HARDLY = 4.0 / 3.0
"""Or so many times what the least portion takes, most of which may be what frames take together."""
SURPRISES = 3
"""After so many frames that were other than expected nothing is solved in advance any more."""
MEMORY = 32 * 2**20
"""Bytes of frames that are remembered for each armature."""


@dataclass(frozen=True)
class Solved:
    """Frames that were solved as one batch."""

    numbers: Numbers
    """(F, w) what they were computed from."""
    channels: Row
    """(F, k, 17) the solution."""
    outcomes: Outcomes
    """How each chain ended."""
    was_hurried: bool = False
    """There is more to be found for the same numbers."""


@dataclass(frozen=True)
class Known:
    """A frame that was solved."""

    block: Solved
    index: int

    @property
    def channels(self) -> Row:
        """(k, 17) the solution."""
        return self.block.channels[self.index]

    def is_of(self, numbers: Numbers) -> bool:
        """Whether it was computed from exactly these numbers (1, w), and to the end."""
        return not self.block.was_hurried and self.block.numbers[self.index].tobytes() == numbers.tobytes()


NumbersAt = Callable[[Sequence[float]], Numbers | None]
"""The numbers (F, w) of F frames; None where they cannot be known."""
Solve = Callable[[Numbers], Solved]
"""Solves frames with these numbers (F, w)."""


class Portion:
    """How many frames are taken at once: twice as many as before, while that fits the budget."""

    def __init__(self) -> None:
        """Begin with a few."""
        self.count = LEAST
        self._seconds: dict[int, deque[float]] = {}
        """What the last portions of so many frames took."""
        self._is_doubted = False

    def adapt(self, frames: int, seconds: float, budget: float) -> None:
        """Take more or less from now on: so many frames took so long."""
        if frames < self.count:
            return
        half, doubled = self._took(self.count // 2), 2 * self.count
        if 0.0 < 2.0 * half < seconds and not self._is_doubted:
            self._is_doubted = True  # twice as many cannot take longer: it is tried once more
            return
        self._is_doubted = False
        self._seconds.setdefault(self.count, deque(maxlen=SAMPLES)).append(seconds)
        if not self._fits(self.count, budget) and self.count > LEAST:
            self.count //= 2
        elif doubled <= FRAMES and (doubled not in self._seconds or self._fits(doubled, budget)):
            self.count = doubled

    def _fits(self, count: int, budget: float) -> bool:
        return self._took(count) <= max(budget, HARDLY * self._took(LEAST))

    def _took(self, count: int) -> float:
        return min(self._seconds.get(count, (0.0,)))


class Prefetch:
    """Remembers frames, and solves the next ones in advance, or those around one that was jumped to.

    What frames are computed from is found some frames earlier than they are solved, as each takes its time.
    """

    def __init__(self, numbers_at: NumbersAt) -> None:
        """Begin with nothing.

        Args:
            numbers_at: finds what frames will be computed from.
        """
        self._numbers_at = numbers_at
        self._frames: dict[float, Known] = {}
        self._expected: dict[float, Numbers] = {}
        """(w,) what frames to come will be computed from."""
        self._last: float | None = None
        self._end: float | None = None
        self._pace = 0.0
        self._read, self._solved, self._near = Portion(), Portion(), Portion()
        self._surprises = 0

    def find(self, frame: float) -> Known | None:
        """What a frame will be, or was."""
        return self._frames.get(frame)

    def surprised(self) -> None:
        """A frame was not what was expected or remembered: what that depends on has changed, for other frames too."""
        self._surprises += 1
        self._frames.clear()
        self._expected.clear()
        self._end = None

    def solved(self, frame: float, numbers: Numbers, evaluation: float, solve: Solve) -> Known:
        """Solve one frame by its numbers (1, w), and after a jump those around it: whoever scrubs comes back near it.

        Args:
            frame: the frame.
            numbers: what it is computed from.
            evaluation: seconds that Blender took for it.
            solve: solves frames.
        """
        start = time.perf_counter()
        near = self._around(frame)
        others = self._numbers_at(near) if near else None
        found = solve(numbers if others is None else np.concatenate([numbers, others]))
        known = [Known(found, index) for index in range(len(found.numbers))]
        if others is not None:
            self._near.adapt(len(near), time.perf_counter() - start, max(BUDGET, OF_A_FRAME * evaluation))
        self._remember([frame, *near[: len(known) - 1]], known)
        return known[0]

    def _around(self, frame: float) -> list[float]:
        """Whole frames next to one that was jumped to, which are not known yet."""
        if self._last is None or self._surprises >= SURPRISES or self._is_played_on(frame - self._last):
            return []
        middle, count = round(frame), self._near.count
        reach = (middle + (k + 1) // 2 * (1 if k % 2 else -1) for k in range(4 * count))
        return list(islice((float(f) for f in reach if f != frame and f not in self._frames), count))

    def _is_played_on(self, pace: float) -> bool:
        """Whether frames are played one after the other that are so many apart."""
        return abs(pace) == 1.0 or (pace == self._pace and pace.is_integer())

    def look(self, now: float, evaluation: float, solve: Solve) -> None:
        """Solve some of the next frames, if frames are played one after the other.

        Args:
            now: the frame that was posed.
            evaluation: seconds that Blender took for it.
            solve: solves others.
        """
        if self._last is None or now == self._last:
            self._last = now
            return
        pace = now - self._last
        is_played_on = self._is_played_on(pace)
        self._last, self._pace = now, pace
        if now == self._end:
            self._surprises = 0
        if not is_played_on or self._surprises >= SURPRISES:
            self._read, self._solved = Portion(), Portion()
            self._expected.clear()
            return
        budget = max(BUDGET, OF_A_FRAME * evaluation)
        if now + pace not in self._frames:
            if now + pace not in self._expected:
                self._expect(now + pace, budget)
            self._solve(now + pace, budget, solve)
        elif now + 2.0 * pace not in self._frames and now + 2.0 * pace not in self._expected:
            self._expect(now + 2.0 * pace, budget)

    def _expect(self, first: float, budget: float) -> None:
        """Find what some frames from the first one on will be computed from."""
        self._expected.clear()
        frames = [first + self._pace * k for k in range(max(self._read.count, self._solved.count))]
        start = time.perf_counter()
        numbers = self._numbers_at(frames)
        self._read.adapt(len(frames), time.perf_counter() - start, budget)
        if numbers is None:
            self._surprises = SURPRISES
        else:
            self._expected.update(zip(frames, numbers, strict=True))

    def _solve(self, first: float, budget: float, solve: Solve) -> None:
        """Solve some frames from the first one on, as far as their numbers are known."""
        coming = (first + self._pace * k for k in range(self._solved.count))
        frames = [frame for frame in takewhile(self._expected.__contains__, coming) if frame not in self._frames]
        if not frames:
            return
        # Frames on which everything stands alike are solved once.
        order: dict[bytes, int] = {}
        numbers: list[Numbers] = []
        index: list[int] = []
        for frame in frames:
            row = self._expected.pop(frame)
            place = order.setdefault(row.tobytes(), len(order))
            index.append(place)
            if place == len(numbers):
                numbers.append(row)
        start = time.perf_counter()
        found = solve(np.array(numbers))
        self._solved.adapt(len(frames), time.perf_counter() - start, budget)
        self._end = frames[-1]
        self._remember(frames, [Known(found, place) for place in index])

    def _remember(self, frames: Sequence[float], known: Sequence[Known]) -> None:
        for frame, own in zip(frames, known, strict=True):
            self._frames.pop(frame, None)
            self._frames[frame] = own
        size = known[0].channels.nbytes + known[0].block.numbers[0].nbytes
        while len(self._frames) > max(FRAMES, MEMORY // size):
            del self._frames[next(iter(self._frames))]
