"""Frames that are played one after the other: solved some at a time before they come, where goals can be foreseen.

Many frames at once take a fraction of what they take one by one, and what is known before Blender evaluates a frame
can be evaluated with it. Nothing hangs on the foresight: a frame is what its goals make of it, see `following`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..rig.read.goals import FreeGoals
from ..rig.read.sample import Sample
from ..rig.write.waves import Posed
from ..solve.problem import Floats

FRAMES = 256
"""How many frames are solved ahead at the most."""
FIRST = 32
"""How many at first; each time that they are played to the end it may be four times as many."""
BUDGET = 0.02
"""Seconds that solving ahead may take at once, so that playback does not falter."""
AMONG_OTHERS, CROWD = (0.25, 0.5), 8
"""What a frame takes among others at the most, as a part of what it takes alone: with few chains, and with more."""
SURPRISES = 3
"""After so many frames on which goals were elsewhere than foreseen nothing is foreseen any more."""

Solve = Callable[[Floats], tuple[Sample, Posed]]
"""Solves F frames with the goals at places (F, G, 3) of world space."""


@dataclass(frozen=True)
class Block:
    """Frames that are solved before they are played."""

    index: Mapping[float, int]
    """Frame to place in `sample` and `posed`: frames on which the goals stand alike share one."""
    places: list[bytes]
    """Where the goals (G, 3) are foreseen in each of these."""
    sample: Sample
    posed: Posed


class Ahead:
    """Foresees what comes on the next frames."""

    def __init__(self, goals: FreeGoals, chains: int) -> None:
        """Begin with nothing.

        Args:
            goals: what is to be foreseen.
            chains: how many are solved on each frame.
        """
        self.block: Block | None = None
        self._goals = goals
        self._share = AMONG_OTHERS[chains > CROWD]
        self._last: float | None = None
        self._pace = 0.0
        self._count = FIRST
        self._took = 0.0
        self._surprises = 0

    def drop(self) -> None:
        """Forget what was foreseen: it depends on something that changed."""
        self.block = None

    def surprised(self) -> None:
        """The goals were not where they were foreseen."""
        self._surprises += 1
        self.block = None

    def timed(self, solve: Solve, places: Floats) -> tuple[Sample, Posed]:
        """Solve frames, and see how long that takes for each of many."""
        start = time.perf_counter()
        found = solve(places)
        self._took = (time.perf_counter() - start) / len(places)
        if len(places) == 1:
            self._took *= self._share
        return found

    def look(self, now: float, solve: Solve) -> bool:
        """Solve the next frames, if frames are played one after the other; return whether that was done.

        Args:
            now: the frame that was posed.
            solve: solves others.
        """
        if self._last is None or now == self._last:
            self._last = now
            return False
        pace, before = now - self._last, self._pace
        self._last, self._pace = now, pace
        if self.block is not None and now + pace in self.block.index:
            return False
        played, self.block = self.block is not None, None
        if played:
            self._surprises = 0
        steadily = abs(pace) == 1.0 or (pace == before and pace.is_integer())
        if not steadily or self._surprises >= SURPRISES:
            self._count = FIRST
            return False
        if played:
            self._count = min(4 * self._count, FRAMES)
        count = min(self._count, int(BUDGET / max(self._took, 1e-9)))
        if count < 2:
            return False
        frames = [now + pace * (k + 1) for k in range(count)]
        places = self._goals.at(frames)
        if places is None:
            self._surprises = SURPRISES
            return False
        keys = [place.tobytes() for place in places]
        order: dict[bytes, int] = {}
        first: list[int] = []
        for i, key in enumerate(keys):
            if key not in order:
                order[key] = len(first)
                first.append(i)
        sample, posed = self.timed(solve, places[first])
        index = {frame: order[key] for frame, key in zip(frames, keys, strict=True)}
        self.block = Block(index, list(order), sample, posed)
        return True
