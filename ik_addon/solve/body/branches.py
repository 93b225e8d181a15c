"""Symmetric equations for the joints of a tree, in which a joint has to do with those above and below it alone.

Eliminated from the ends to the root they stay like that, so each joint needs the columns of those above it and no
others. Joints that are equally deep are eliminated at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..maths.products import times, times_back
from ..problem import Floats, Ints


@dataclass(frozen=True)
class _Wave:
    """Joints that are equally deep, in the order of the joints above them."""

    joints: Ints
    """(k,)"""
    unknowns: Ints
    """(k, w) those on their ways: of the offset, then of the joints from the root to each."""
    starts: Ints
    """Where those begin that have the same joint above them."""
    above: Ints
    """These joints, as places in the next wave."""


@dataclass(frozen=True)
class Branches:
    """Which of n unknowns have to do with each other: three for each of m joints, then three for the offset of all."""

    waves: tuple[_Wave, ...]
    """The deepest joints first."""
    ways: Ints
    """(m, w) the unknowns on the way to each joint, in order; n: none."""
    steps: Ints
    """(m, w / 3) the joints of these unknowns; m: the offset, or none."""
    own: Ints
    """(m, 3) where on its way a joint has its own unknowns."""

    @classmethod
    def of(cls, parents: Sequence[int]) -> Branches:
        """Find them for joints, by the joint above each, an earlier one, or -1."""
        m = len(parents)
        ways: list[list[int]] = []
        for joint, parent in enumerate(parents):
            ways.append([*(ways[parent] if parent >= 0 else ()), joint])
        depths = [len(way) for way in ways]
        steps = np.full((m, 1 + max(depths, default=0)), m, dtype=np.int64)
        for joint, way in enumerate(ways):
            steps[joint, 1 : 1 + len(way)] = way
        unknowns = (3 * steps[:, :, None] + np.arange(3)).reshape(m, -1)
        unknowns[:, 3:][unknowns[:, 3:] >= 3 * m] = 3 * m + 3
        waves, upper = [], [-1]
        for depth in range(1, 1 + max(depths, default=0)):
            joints = sorted((j for j in range(m) if depths[j] == depth), key=lambda j: upper.index(parents[j]))
            above, starts = np.unique([upper.index(parents[j]) for j in joints], return_index=True)
            chosen = np.array(joints, dtype=np.int64)
            waves.append(_Wave(chosen, unknowns[chosen, : 3 * (depth + 1)], starts, above))
            upper = joints
        own = 3 * np.array(depths, dtype=np.int64).reshape(m, 1) + np.arange(3)
        return cls(tuple(reversed(waves)), unknowns, steps, own)

    def along(self, matrix: Floats) -> Floats:
        """Return what a symmetric matrix (n, n) says of each joint and those on its way, (m, 3, w)."""
        m = len(self.ways)
        wide = np.concatenate([matrix[: 3 * m], np.zeros((3 * m, 1))], axis=1).reshape(m, 3, -1)
        return np.asarray(wide[np.arange(m)[:, None, None], np.arange(3)[:, None], self.ways[:, None]])

    def sums(self, matrix: Floats) -> Floats:
        """Return the sums (m, 3) of the rows of the matrix of which `along` has (m, 3, w)."""
        m = len(self.ways)
        below = matrix.sum(axis=1)
        below[np.arange(m)[:, None], self.own] = 0.0
        found = np.bincount(self.ways.ravel(), below.ravel(), 3 * m + 4)[: 3 * m].reshape(m, 3)
        return np.asarray(found + matrix.sum(axis=2))

    def projected(self, matrix: Floats, project: Floats) -> Floats:
        """Return a matrix (m, 3, w) as `along` has it, projected on both sides by (m, 3, 3) of the joints."""
        m = len(self.ways)
        rows = times(project, matrix).reshape(m, 3, -1, 3).transpose(0, 2, 1, 3)
        on_way = np.concatenate([project, np.eye(3)[None]])[self.steps]
        return times(np.ascontiguousarray(rows), on_way).transpose(0, 2, 1, 3).reshape(m, 3, -1)

    def squared(self, rows: Floats, yields: Floats) -> Floats:
        """Return the same of the squares of rows (r, n), each divided by its own number (r,)."""
        m = len(self.ways)
        columns = np.concatenate([rows.T, np.zeros((1, len(rows)))])
        return times_back((columns[: 3 * m] / yields).reshape(m, 3, -1), columns[self.ways])

    def solved(self, matrix: Floats, offset: Floats, right: Floats, least: float) -> Floats | None:
        """Solve equations.

        Args:
            matrix: (m, 3, w) as `along` has it.
            offset: (3, 3) what the matrix says of the offset alone.
            right: (n,) the right side.
            least: no pivot may be less.

        Returns:
            The unknowns (n,); None: a pivot is less.
        """
        done: list[tuple[Ints, Ints, Floats]] = []
        below = None
        for wave in self.waves:
            k, width = wave.unknowns.shape
            front = np.zeros((k, width + 1, width + 1))  # the right side comes first
            if below is not None:
                front[below[0]] = below[1]
            front[:, -3:, 1:] += matrix[wave.joints, :, :width]
            front[:, -3:, 0] += right[wave.unknowns[:, -3:]]
            if not _eliminated(front, wave.unknowns, least, done):
                return None
            below = wave.above, np.add.reduceat(front[:, :-3, :-3], wave.starts)
        front = np.zeros((1, 4, 4)) if below is None else below[1]
        front[0, 1:, 1:] += offset
        front[0, 1:, 0] += right[-3:]
        if not _eliminated(front, np.arange(len(right) - 3, len(right))[None], least, done):
            return None
        found = np.zeros(len(right))
        for unknown, above, row in reversed(done):
            found[unknown] = row[:, 0] - (row[:, 1:] * found[above]).sum(axis=1)
        return found


def _eliminated(front: Floats, unknowns: Ints, least: float, done: list[tuple[Ints, Ints, Floats]]) -> bool:
    """Eliminate the last three unknowns of equations (k, w + 1, w + 1), in place; whether no pivot is less.

    What remains to be said of each unknown is put into `done`: which ones (k,), those that it is told by, and how.
    """
    for last in range(unknowns.shape[1], unknowns.shape[1] - 3, -1):
        pivot, row = front[:, last, last], front[:, last, :last]
        if pivot.min() < least:
            return False
        share = row / pivot[:, None]
        front[:, :last, :last] -= share[:, :, None] * row[:, None]
        done.append((unknowns[:, last - 1], unknowns[:, : last - 1], share))
    return True
