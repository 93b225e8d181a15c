"""Frames that are solved before they are played, and frames that were played: neither is solved again.

Many frames at once take a fraction of what they take one by one, and what is known before Blender evaluates a frame
can be evaluated with it. Nothing depends on the foresight, nor on what is remembered: a frame is what its numbers make
of it, and a solution is taken for those of the same bits alone, see `following`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..pose.channels import Row
from ..rig.plan.inputs import Numbers
from ..rig.write.waves import Outcomes

FRAMES = 256
"""How many frames are solved ahead at most."""
FIRST = 32
"""How many at first; each time that they are played to the end it may be four times as many."""
BUDGET = 0.02
"""Seconds that solving ahead may take at once, so that playback does not falter."""
AMONG_OTHERS, CROWD = (0.25, 0.5), 8
"""What a frame takes among others at most, as a part of what it takes alone: with few chains, and with more."""
SURPRISES = 3
"""After so many frames that were other than foreseen nothing is foreseen any more."""
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
        """Whether it was computed from these numbers (1, w), to the bit."""
        return self.block.numbers[self.index].tobytes() == numbers.tobytes()


Foresee = Callable[[Sequence[float]], Numbers | None]
"""Tells the numbers (F, w) of F frames; None where they cannot be known."""
Solve = Callable[[Numbers], Solved]
"""Solves frames with these numbers (F, w)."""


class Ahead:
    """Remembers frames, and foresees what comes on the next ones."""

    def __init__(self, foresee: Foresee, chains: int) -> None:
        """Begin with nothing.

        Args:
            foresee: tells what frames will be computed from.
            chains: how many are solved on each frame.
        """
        self._foresee = foresee
        self._share = AMONG_OTHERS[chains > CROWD]
        self._frames: dict[float, Known] = {}
        self._last: float | None = None
        self._end: float | None = None
        self._pace = 0.0
        self._count = FIRST
        self._took = 0.0
        self._surprises = 0

    def find(self, frame: float) -> Known | None:
        """What a frame will be, or was."""
        return self._frames.get(frame)

    def surprised(self) -> None:
        """A frame was not what was foreseen or remembered: what that depends on has changed, for other frames too."""
        self._surprises += 1
        self._frames.clear()
        self._end = None

    def solved(self, frame: float, numbers: Numbers, solve: Solve) -> Known:
        """Solve one frame by its numbers (1, w)."""
        start = time.perf_counter()
        found = solve(numbers)
        self._took = self._share * (time.perf_counter() - start)
        known = Known(found, 0)
        self._remember([frame], [known])
        return known

    def look(self, now: float, solve: Solve) -> None:
        """Solve the next frames, if frames are played one after the other.

        Args:
            now: the frame that was posed.
            solve: solves others.
        """
        if self._last is None or now == self._last:
            self._last = now
            return
        pace, before = now - self._last, self._pace
        self._last, self._pace = now, pace
        is_played, self._end = now == self._end, None if now == self._end else self._end
        if is_played:
            self._surprises = 0
        if now + pace in self._frames:
            return
        steadily = abs(pace) == 1.0 or (pace == before and pace.is_integer())
        if not steadily or self._surprises >= SURPRISES:
            self._count = FIRST
            return
        if is_played:
            self._count = min(4 * self._count, FRAMES)
        count = min(self._count, int(BUDGET / max(self._took, 1e-9)))
        if count < 2:
            return
        coming = [now + pace * (k + 1) for k in range(count)]
        frames = [frame for frame in coming if frame not in self._frames]
        start = time.perf_counter()
        numbers = self._foresee(frames)
        if numbers is None:
            self._surprises = SURPRISES
            return
        # Frames on which everything stands alike are solved once.
        order: dict[bytes, int] = {}
        first: list[int] = []
        index: list[int] = []
        for i, row in enumerate(numbers):
            place = order.setdefault(row.tobytes(), len(order))
            index.append(place)
            if place == len(first):
                first.append(i)
        found = solve(numbers[first])
        self._took = (time.perf_counter() - start) / len(frames)
        self._end = coming[-1]
        self._remember(frames, [Known(found, place) for place in index])

    def _remember(self, frames: Sequence[float], known: Sequence[Known]) -> None:
        for frame, own in zip(frames, known, strict=True):
            self._frames.pop(frame, None)
            self._frames[frame] = own
        size = known[0].channels.nbytes + known[0].block.numbers[0].nbytes
        while len(self._frames) > max(FRAMES, MEMORY // size):
            del self._frames[next(iter(self._frames))]
