"""Solve frames before they are played and remember played ones, so that neither is solved again.

A batch of frames takes a fraction of the time that they take one by one, and a solution that is known before Blender
evaluates a frame can be evaluated with it. Results never depend on what was prefetched or remembered: a frame is
determined by its numbers, and a stored solution is used only for numbers with the same bits; see `playback`.
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
"""Maximum number of frames solved in advance at once."""
LEAST = 4
"""Number of frames in the first and smallest portion, however long they take."""
BUDGET = 0.004
"""Seconds that work for other frames may take at once, so that playback does not falter."""
OF_A_FRAME = 2.5
"""The budget is at least this multiple of the time that Blender takes for a frame."""
SAMPLES = 3
"""The fastest of this many portions of a size is their time: other programs may have slowed down the others."""
HARDLY = 4.0 / 3.0
"""A portion also fits if it takes at most this multiple of the smallest portion's time, most of which may be a fixed
cost that all frames of a portion share."""
SURPRISES = 3
"""Prefetching stops after this many frames that were not as expected."""
MEMORY = 32 * 2**20
"""Bytes of remembered frames per armature."""


@dataclass(frozen=True)
class Solved:
    """A batch of solved frames."""

    numbers: Numbers
    """(F, w) what they were computed from."""
    channels: Row
    """(F, k, 17) the solution."""
    outcomes: Outcomes
    """The outcome of each chain."""
    was_hurried: bool = False
    """Whether the solve stopped early, and a complete one would find more."""


@dataclass(frozen=True)
class Known:
    """A solved frame."""

    block: Solved
    index: int

    @property
    def channels(self) -> Row:
        """(k, 17) the solution."""
        return self.block.channels[self.index]

    def is_of(self, numbers: Numbers) -> bool:
        """Return whether the frame was computed from exactly these numbers (1, w), and solved to the end."""
        return not self.block.was_hurried and self.block.numbers[self.index].tobytes() == numbers.tobytes()


NumbersAt = Callable[[Sequence[float]], Numbers | None]
"""Returns the numbers (F, w) of F frames; None if they can't be known."""
Solve = Callable[[Numbers], Solved]
"""Solves frames with these numbers (F, w)."""


class Portion:
    """How many frames to take at once: doubled as long as they fit the time budget."""

    def __init__(self) -> None:
        """Begin with the smallest portion."""
        self.count = LEAST
        self._seconds: dict[int, deque[float]] = {}
        """The times of the last portions, by their number of frames."""
        self._is_doubted = False

    def adapt(self, frames: int, seconds: float, budget: float) -> None:
        """Adjust the count after `frames` frames took `seconds` seconds."""
        if frames < self.count:
            return
        half, doubled = self._took(self.count // 2), 2 * self.count
        if 0.0 < 2.0 * half < seconds and not self._is_doubted:
            self._is_doubted = True  # double the frames can't take more than double the time: measure once more
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
    """Remembers frames, and solves the next ones in advance, or those around a frame that was jumped to.

    The numbers of frames are read some frames before these are solved, because each step takes time.
    """

    def __init__(self, numbers_at: NumbersAt) -> None:
        """Begin with nothing.

        Args:
            numbers_at: returns what frames will be computed from.
        """
        self._numbers_at = numbers_at
        self._frames: dict[float, Known] = {}
        self._expected: dict[float, Numbers] = {}
        """(w,) what coming frames will be computed from."""
        self._last: float | None = None
        self._end: float | None = None
        self._pace = 0.0
        self._read, self._solved, self._near = Portion(), Portion(), Portion()
        self._surprises = 0

    def find(self, frame: float) -> Known | None:
        """Return the solution of a frame, if it is known."""
        return self._frames.get(frame)

    def surprised(self) -> None:
        """Forget all frames: one was not as expected, so something that others depend on has changed, too."""
        self._surprises += 1
        self._frames.clear()
        self._expected.clear()
        self._end = None

    def solved(self, frame: float, numbers: Numbers, evaluation: float, solve: Solve) -> Known:
        """Solve one frame from its numbers (1, w), and after a jump those around it, as scrubbing comes back near it.

        Args:
            frame: the frame.
            numbers: what it is computed from.
            evaluation: seconds that Blender took to evaluate it.
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
        """Return the nearest whole frames around a frame that was jumped to, as far as they are not solved yet."""
        if self._last is None or self._surprises >= SURPRISES or self._is_played_on(frame - self._last):
            return []
        middle, count = round(frame), self._near.count
        reach = (middle + (k + 1) // 2 * (1 if k % 2 else -1) for k in range(4 * count))
        return list(islice((float(f) for f in reach if f != frame and f not in self._frames), count))

    def _is_played_on(self, pace: float) -> bool:
        """Return whether a step of `pace` frames is a step of regular playback."""
        return abs(pace) == 1.0 or (pace == self._pace and pace.is_integer())

    def look(self, now: float, evaluation: float, solve: Solve) -> None:
        """Solve some of the next frames if playback is regular.

        Args:
            now: the frame that was posed.
            evaluation: seconds that Blender took to evaluate it.
            solve: solves frames.
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
        """Read what some frames from `first` on will be computed from."""
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
        """Solve some frames from `first` on, as far as their numbers are known."""
        coming = (first + self._pace * k for k in range(self._solved.count))
        frames = [frame for frame in takewhile(self._expected.__contains__, coming) if frame not in self._frames]
        if not frames:
            return
        # Frames with identical numbers are solved once.
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
