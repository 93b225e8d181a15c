"""The tables of `lookup`: what `solve` finds at some distances, as polynomials between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .maths.products import combined, times
from .maths.rotations import multiply, norm, quaternions
from .maths.sums import total
from .problem import Bools, Floats, Goal, Problem
from .solver import solve

NODES = 64
"""Intervals of the table for distances shorter than in the FK pose, and again for longer ones."""
FEWER = (12, 32)
"""Intervals that are tried where the table is for targets that are known."""
POWERS = np.arange(5, -1, -1)
FLAT_END = 1e-4
"""Root of the slack, in chain lengths, below which the table is continued: rounding would show there."""
TRIES = 5
"""How often the table is begun farther up where neighbouring distances are too different near the root."""
SMOOTH = 1e-6
"""What an interpolated quaternion may be off."""
ARRIVED = 1e-9
"""What may be missing, in chain lengths, at a distance that is tabulated."""


@dataclass(frozen=True)
class Sides:
    """The two sides of a table."""

    longer: NDArray[np.float32]
    """(C, k, 6, 4 n), as the next one."""
    shorter: NDArray[np.float32]
    least: Floats
    """(C,) where the shorter side ends, as the next one the longer side."""
    most: Floats


class Nodes:
    """Solves chains at the distances of a table."""

    def __init__(self, problem: Problem, fk: Floats, chord: Floats, line: Floats, bend: Floats) -> None:
        """Begin with chains as in `Tabulated.of`, and how they stand in the FK pose."""
        self._problem, self._fk, self._chord, self._line, self._bend = problem, fk, chord, line, bend

    def both(self, least: Floats, most: Floats) -> Sides | None:
        """Tabulate both sides as far as they are smooth, if the longer one is so to its end."""
        (longer, reached), (shorter, good) = self._sides((most, least), NODES)
        if not reached.all():
            return None
        for _ in range(TRIES):
            if good.all():
                break
            # Down to the last distance before the first that is not good.
            last = np.argmin(good, axis=0) - 1
            there = self._distances(least, NODES)[np.maximum(last, 0), np.arange(len(least))]
            least = np.where(good.all(axis=0), least, np.where(last < 0, self._chord, there))
            ((shorter, good),) = self._sides((least,), NODES)
        return Sides(longer, shorter, np.where(good.all(axis=0), least, self._chord), most)

    def few(self, least: Floats, most: Floats) -> Sides | None:
        """Tabulate as few distances between two as do; None where these would have to be many."""
        used = [(end != self._chord).any() for end in (most, least)]
        ends = [end for end, is_used in zip((most, least), used, strict=True) if is_used]
        for count in FEWER:
            sides = self._sides(ends, count) if ends else []
            if all(good.all() for _, good in sides):
                # At the chord itself there is the FK pose.
                still = np.zeros((len(most), count, len(POWERS), self._fk[0].size), dtype=np.float32)
                still[:, :, POWERS == 0] = self._fk.reshape(len(most), 1, 1, -1)
                found = iter(sides)
                longer, shorter = (next(found)[0] if is_used else still for is_used in used)
                return Sides(longer, shorter, least, most)
        return None

    def _distances(self, end: Floats, count: int) -> Floats:
        """Distances (2 count + 1, C), in chain lengths, from the chord to an end (C,), even in the slack's root."""
        start = root_of(self._chord)
        shares = np.linspace(0.0, 1.0, 2 * count + 1)[:, None]
        return np.asarray(1.0 - (start + shares * (root_of(end) - start)) ** 2)

    def _sides(self, ends: Sequence[Floats], count: int) -> list[tuple[NDArray[np.float32], Bools]]:
        """Polynomials (C, count, 6, 4 n) from the chord to each end, and where (2 count + 1, C) they are good."""
        both, reached = self._solved(np.concatenate([self._distances(end, count) for end in ends]))
        sides = []
        for turns, good in zip(np.split(both, len(ends)), np.split(reached, len(ends)), strict=True):
            found = _polynomials(turns[::2])
            halfway = combined(np.asarray(0.5**POWERS, dtype=np.float64), found).swapaxes(0, 1)
            good[1::2] &= (np.abs(halfway - turns[1::2]) < SMOOTH).all(axis=-1)
            sides.append((found.astype(np.float32), good))
        return sides

    def _solved(self, distances: Floats) -> tuple[Floats, Bools]:
        """Quaternions (k, C, 4 n) of the joints with the targets at distances (k, C), and where they reach them."""
        problem, count = self._problem, len(distances)
        frames = np.asarray(problem.frames, dtype=np.float64)
        chains, bones = frames.shape[:2]
        joints = np.asarray(problem.joints, dtype=np.float64)
        scale = total(norm(np.diff(joints, axis=1).transpose(2, 1, 0)))
        target = distances[..., None] * (self._line * scale).T
        # A pole rolls what 3-D poses lose of their side on the way back to it.
        pole = None if problem.goal.pole is None else (target + (self._bend * scale).T).reshape(-1, 3)
        solution = solve(
            replace(
                problem,
                joints=np.tile(joints, (count, 1, 1)),
                frames=np.tile(frames, (count, 1, 1, 1)),
                goal=Goal(target.reshape(-1, 3), pole),
                bend_side=None if problem.bend_side is None else np.tile(problem.bend_side, (count, 1)),
                softness=0.0,
                tolerance=ARRIVED / 10.0,
            )
        )
        good = solution.error.reshape(count, chains) <= ARRIVED * scale
        # As quaternions, because products of that many small matrices take longer than the solve.
        turned = quaternions(solution.rotations.reshape(count, chains, bones, 3, 3).transpose(3, 4, 0, 1, 2))
        own = quaternions(frames.transpose(2, 3, 0, 1))[:, None, :, 1:]
        turns = turned.copy()
        bend = multiply(_conjugate(turned[..., :-1]), turned[..., 1:])
        turns[..., 1:] = multiply(multiply(_conjugate(own), bend), own)
        fk = self._fk.transpose(2, 0, 1)[:, None]
        turns = np.concatenate([multiply(turns[..., :1], fk[..., :1]), multiply(fk[..., 1:], turns[..., 1:])], axis=-1)
        turns = np.where((turns * fk).sum(axis=0) < 0.0, -turns, turns)
        return turns.transpose(1, 2, 3, 0).reshape(count, chains, -1), good


def _polynomials(values: Floats) -> Floats:
    """Polynomials (C, k, 6, m) between values (k+1, C, m) at 0, 1, ..., each from 0 to 1."""
    intervals = len(values) - 1
    out = np.empty((values.shape[1], intervals, 6, values.shape[2]))
    first = np.clip(np.arange(intervals) - 2, 0, intervals - 5)
    for before in range(6):
        own = np.flatnonzero(np.arange(intervals) - first == before)
        if len(own):
            around = values[first[own][:, None] + np.arange(6)].transpose(2, 0, 1, 3)
            out[:, own] = times(_weights(before), around)
    return out


def _weights(before: int) -> Floats:
    """Return the matrix (6, 6) that makes polynomials of values at six whole numbers, of which some are below 0."""
    places = [float(i - before) for i in range(6)]
    weights = np.zeros((6, 6))
    for column, place in zip(weights.T, places, strict=True):
        # One factor after another of the polynomial that is 1 at its own place and 0 at the others.
        column[-1] = 1.0
        for other in places:
            if other != place:
                column[:] = (np.append(column[1:], 0.0) - other * column) / (place - other)
    return weights


def _conjugate(q: Floats) -> Floats:
    """Quaternions (4, ...) that turn back."""
    return np.concatenate([q[:1], -q[1:]])


def root_of(distance: Floats) -> Floats:
    """Root of the slack at distances."""
    return np.maximum(np.sqrt(np.maximum(1.0 - distance, 0.0)), FLAT_END)


def share_of(start: Floats, end: Floats) -> Floats:
    """What makes a share of the way to the end of a difference from the start; 0 where there is no way."""
    span = end - start
    return np.where(span == 0.0, 0.0, 1.0 / np.where(span == 0.0, 1.0, span))
