"""Solve frames before they are played and remember played ones, so that neither is solved again.

A batch of frames takes a fraction of the time that they take one by one, and a solution that is known before Blender
evaluates a frame can be evaluated with it. Results never depend on what was prefetched or remembered: a frame is
determined by its numbers, and a stored solution is used only for numbers with the same bits; see `playback`.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

import numpy as np

from ..pose.channels import Row
from ..pose.steps import finished
from ..rig.plan.inputs import Numbers
from ..rig.write.outcomes import Outcomes

FRAMES = 256
"""Maximum number of frames solved in advance at once."""
LEAST = 4
"""Number of frames in the smallest portion, however long they take."""
FIRST = 2
"""Number of frames of the first job, which has to be done at once."""
READ = 16
"""Number of frames whose numbers are read for the first jobs."""
BUDGET = 0.003
"""Seconds that work for other frames may take at once, so that playback does not falter."""
OF_A_FRAME = 2.5
"""The budget is at least this multiple of the time that Blender takes for a frame."""
SAMPLES = 3
"""The fastest of this many portions of a size is their time: other programs may have slowed down the others."""
HARDLY = 4.0 / 3.0
"""A portion also fits if it takes at most this multiple of the smallest portion's time, most of which may be a fixed
cost that all frames of a portion share."""
DEAR = 5.0
"""Work that takes this many times as long as Blender takes for the same frames is dear."""
WORTH = 1.5
"""If work is dear, a portion also fits if it takes at most this multiple of the time of half as many frames."""
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
Solve = Callable[[Numbers], Generator[float, None, Solved]]
"""Solves frames with these numbers (F, w), in steps."""


class Job:
    """Frames that are being solved in advance, some steps at a time."""

    def __init__(self, frames: Sequence[float], index: Sequence[int], steps: Generator[float, None, Solved]) -> None:
        """Begin with nothing done.

        Args:
            frames: the frames.
            index: of each frame, its place in what is solved.
            steps: the work.
        """
        self.frames, self._index, self._steps = frames, index, steps
        self.taken = 0
        """Number of steps taken."""
        self.slowest = 0.0
        """Seconds of the slowest step."""

    def go_on(self, budget: float) -> list[Known] | None:
        """Take one step, and more as long as one like the slowest so far fits the budget; return the solved frames."""
        start = before = time.perf_counter()
        solved = None
        while solved is None:
            try:
                next(self._steps)
            except StopIteration as done:
                solved = [Known(done.value, place) for place in self._index]
            now = time.perf_counter()
            self.taken, self.slowest, before = self.taken + 1, max(self.slowest, now - before), now
            if now - start + self.slowest > budget:
                break
        return solved


def budget_of(evaluation: float) -> float:
    """Return the seconds that work for other frames may take at once, if Blender takes `evaluation` for a frame."""
    return max(BUDGET, OF_A_FRAME * evaluation)


class Portion:
    """How many frames to take at once: doubled as long as they fit the time budget, or hardly take longer."""

    def __init__(self) -> None:
        """Begin with the smallest portion."""
        self.count = LEAST
        self._seconds: dict[int, deque[float]] = {}
        """The times of the last portions, by their number of frames."""
        self._is_doubted = False

    def adapt(self, frames: int, seconds: float, evaluation: float) -> None:
        """Adjust the count after `frames` frames took `seconds` seconds, while Blender took `evaluation` for each."""
        if frames < self.count:
            if not self._seconds:
                self._seconds[frames] = deque([seconds])
            return
        if 0.0 < 2.0 * self._took(self.count // 2) < seconds and not self._is_doubted:
            self._is_doubted = True  # double the frames can't take more than double the time: measure once more
            return
        self._is_doubted = False
        known = self._seconds.setdefault(self.count, deque(maxlen=SAMPLES))
        known.append(seconds)
        if self.count == LEAST or self._fits(self.count, evaluation):
            if 2 * self.count <= FRAMES and self._fits(2 * self.count, evaluation):
                self.count *= 2
        elif len(known) == SAMPLES or not self._is_dear(self.count // 2, evaluation):
            self.count //= 2

    def _fits(self, count: int, evaluation: float) -> bool:
        known, half, least = self._seconds.get(count, ()), self._took(count // 2), min(self._seconds)
        expected = min(known, default=half)
        if not known and least < count // 2:  # along a line
            expected += (half - self._took(least)) * (count // 2) / (count // 2 - least)
        if expected <= max(budget_of(evaluation), HARDLY * self._took(LEAST)):
            return True
        return self._is_dear(count // 2, evaluation) and (not known or expected <= WORTH * half)

    def _is_dear(self, count: int, evaluation: float) -> bool:
        return self._took(count) > DEAR * evaluation * count

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
        self._evaluations: deque[float] = deque(maxlen=SAMPLES)
        self._read, self._solved, self._near = Portion(), Portion(), Portion()
        self._surprises = 0
        self._job: Job | None = None
        self._steps = 0
        """Number of steps of a job, each on a frame of its own; 0 until one was done."""

    def find(self, frame: float) -> Known | None:
        """Return the solution of a frame, if it is known."""
        return self._frames.get(frame)

    def surprised(self) -> None:
        """Forget all frames: one was not as expected, so something that others depend on has changed, too."""
        self._surprises += 1
        self._frames.clear()
        self._expected.clear()
        self._end = self._job = None

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
        found = finished(solve(numbers if others is None else np.concatenate([numbers, others])))
        known = [Known(found, index) for index in range(len(found.numbers))]
        if others is not None:
            self._near.adapt(len(near), time.perf_counter() - start, evaluation)
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
            self._read, self._solved, self._job, self._steps = Portion(), Portion(), None, 0
            self._expected.clear()
            return
        self._evaluations.append(evaluation)
        evaluation = min(self._evaluations)
        lead = max(1, self._steps)
        first = next((now + pace * k for k in range(1, lead + 2) if now + pace * k not in self._frames), None)
        if self._job is None and first is not None:
            if first + pace * (self._portion - 1) not in self._expected:
                self._expect(first, evaluation)
                if first != now + pace:
                    return
            if first != now + pace * (lead + 1):
                self._job = self._begun(first, solve)
        job, self._job = self._job, None
        if job is not None:
            self._go_on(job, evaluation, at_once=first == now + pace)

    def _expect(self, first: float, evaluation: float) -> None:
        """Read what some frames from `first` on will be computed from."""
        self._expected.clear()
        frames = [first + self._pace * k for k in range(max(self._read.count, self._portion if self._steps else READ))]
        start = time.perf_counter()
        numbers = self._numbers_at(frames)
        self._read.adapt(len(frames), time.perf_counter() - start, evaluation)
        if numbers is None:
            self._surprises = SURPRISES
        else:
            self._expected.update(zip(frames, numbers, strict=True))

    @property
    def _portion(self) -> int:
        """Number of frames of a job; with a portion for each step, few frames have any work."""
        return self._solved.count * self._steps or FIRST

    def _begun(self, first: float, solve: Solve) -> Job | None:
        """Begin to solve some frames from `first` on, as far as their numbers are known."""
        coming = (first + self._pace * k for k in range(self._portion))
        frames = [frame for frame in takewhile(self._expected.__contains__, coming) if frame not in self._frames]
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
        return Job(frames, index, solve(np.array(numbers))) if frames else None

    def _go_on(self, job: Job, evaluation: float, *, at_once: bool) -> None:
        """Go on with a job as long as the budget allows, or until it is done."""
        known = job.go_on(math.inf if at_once else budget_of(evaluation))
        if known is None:
            self._job = job
            return
        self._solved.adapt(len(job.frames) // job.taken, job.slowest, evaluation)
        self._end, self._steps = job.frames[-1], job.taken
        self._remember(job.frames, known)

    def _remember(self, frames: Sequence[float], known: Sequence[Known]) -> None:
        for frame, own in zip(frames, known, strict=True):
            self._frames.pop(frame, None)
            self._frames[frame] = own
        size = known[0].channels.nbytes + known[0].block.numbers[0].nbytes
        while len(self._frames) > max(FRAMES, MEMORY // size):
            del self._frames[next(iter(self._frames))]
