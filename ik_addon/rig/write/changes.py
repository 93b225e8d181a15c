"""What differs between two frames, and which chains it affects: on a still frame only these are solved again."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...solve.problem import Bools
from ..plan.groups import Wave
from ..plan.plan import Plan
from ..read.sample import Sample


class Changes:
    """The differences between two single frames (F = 1)."""

    def __init__(self, plan: Plan, now: Sample, before: Sample) -> None:
        """Compare everything that a solve depends on."""
        self._plan = plan
        self._everything = not _is_same(now.world, before.world)
        self._moved: set[int] = set()
        """Bones whose sampled pose differs, and bones that are solved again."""
        if not _is_same(now.poses, before.poses):
            self._moved.update(plan.sampled[(now.poses != before.poses).any(axis=(0, 2, 3))].tolist())
        self._rows = np.zeros(len(plan.live), dtype=bool)
        if not _is_same(now.channels, before.channels):
            self._rows = (now.channels != before.channels).any(axis=(0, 2))
        self._goals = np.zeros(len(plan.chains), dtype=bool)
        for name, value in vars(now.goals).items():
            was = vars(before.goals)[name]
            if value is not was:
                self._goals |= (value != was).any(axis=(0, *range(2, value.ndim)))

    def concern(self, wave: Wave) -> tuple[Bools, Bools]:
        """Return which groups (G,) of the next wave to solve again, and which have a different FK pose."""
        posed_anew = self._posed_anew(wave)
        again: Bools = posed_anew | np.asarray(self._goals[wave.chains].any(axis=1))
        if self._moved and self._plan.goals_are_moved:
            again[:] = True  # a goal may be attached to a bone that is solved again
        self._moved.update(wave.bones[again].ravel().tolist())
        return again, posed_anew

    def _posed_anew(self, wave: Wave) -> Bools:
        """Return which groups (G,) of a wave have a different FK pose."""
        if self._everything or not (self._moved or self._rows.any()):
            return np.full(len(wave.rows), self._everything)
        posed_anew: Bools = np.asarray(self._rows[wave.rows].any(axis=1))
        # The effector of a loose chain is the head of its unconnected end bone, whatever moves that bone.
        for group, chain in np.argwhere(wave.loose).tolist():
            end = self._plan.chains[wave.chains[group, chain]].end
            if end is not None:
                above = takewhile(lambda bone: bone not in self._plan.solved, self._plan.skeleton.ancestors(end))
                posed_anew[group] |= self._rows[self._plan.rows[end]] or not self._moved.isdisjoint(above)
        for group, bones in enumerate(wave.bones.tolist() if self._moved else ()):
            posed_anew[group] |= not self._moved.isdisjoint(self._plan.skeleton.ancestors(bones[0]))
        return posed_anew


def _is_same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one is other or np.array_equal(one, other)
