"""The tables of `lookup`: polynomials between the poses that `solve` finds at chosen distances."""

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
"""Intervals of the table for distances shorter than in the FK pose, and as many for longer ones."""
FEWER = (12, 32)
"""Numbers of intervals to try first where all targets are known."""
POWERS = np.arange(5, -1, -1)
FLAT_END = 1e-4
"""Square root of the slack, in chain lengths, where the table ends and is extrapolated: rounding would show below."""
TRIES = 5
"""How often to restart a table farther from the root, where poses near the root vary too much to interpolate."""
SMOOTH = 1e-6
"""Tolerated error of the components of an interpolated quaternion."""
ARRIVED = 1e-9
"""Tolerated distance from tip to target at a tabulated distance, in chain lengths."""


@dataclass(frozen=True)
class Sides:
    """The two sides of a table: distances longer than the chord, and shorter ones."""

    longer: NDArray[np.float32]
    """(C, k, 6, 4 n) polynomials; `shorter` has the same shape."""
    shorter: NDArray[np.float32]
    least: Floats
    """(C,) distance at which the shorter side ends; the longer side ends at `most`."""
    most: Floats


class Nodes:
    """Solves chains at the distances of a table."""

    def __init__(self, problem: Problem, fk: Floats, chord: Floats, line: Floats, bend: Floats) -> None:
        """Keep the chains, as in `Tabulated.of`, and their chord, line and bend in the FK pose."""
        self._problem, self._fk, self._chord, self._line, self._bend = problem, fk, chord, line, bend

    def both(self, least: Floats, most: Floats) -> Sides | None:
        """Tabulate both sides as far as they are smooth; return None if the longer side is not smooth to its end."""
        (longer, reached), (shorter, good) = self._sides((most, least), NODES)
        if not reached.all():
            return None
        for _ in range(TRIES):
            if good.all():
                break
            # End the side at the last good distance before the first bad one.
            last = np.argmin(good, axis=0) - 1
            there = self._distances(least, NODES)[np.maximum(last, 0), np.arange(len(least))]
            least = np.where(good.all(axis=0), least, np.where(last < 0, self._chord, there))
            ((shorter, good),) = self._sides((least,), NODES)
        return Sides(longer, shorter, np.where(good.all(axis=0), least, self._chord), most)

    def few(self, least: Floats, most: Floats) -> Sides | None:
        """Tabulate the range between two distances with as few intervals as suffice; None if `FEWER` do not."""
        used = [(end != self._chord).any() for end in (most, least)]
        ends = [end for end, is_used in zip((most, least), used, strict=True) if is_used]
        for count in FEWER:
            sides = self._sides(ends, count) if ends else []
            if all(good.all() for _, good in sides):
                # An unused side holds the pose at the chord, which is the FK pose.
                still = np.zeros((len(most), count, len(POWERS), self._fk[0].size), dtype=np.float32)
                still[:, :, POWERS == 0] = self._fk.reshape(len(most), 1, 1, -1)
                found = iter(sides)
                longer, shorter = (next(found)[0] if is_used else still for is_used in used)
                return Sides(longer, shorter, least, most)
        return None

    def _distances(self, end: Floats, count: int) -> Floats:
        """Return distances (2 count + 1, C) in chain lengths, from chord to end (C,), even in the root of the slack."""
        start = root_of(self._chord)
        shares = np.linspace(0.0, 1.0, 2 * count + 1)[:, None]
        return np.asarray(1.0 - (start + shares * (root_of(end) - start)) ** 2)

    def _sides(self, ends: Sequence[Floats], count: int) -> list[tuple[NDArray[np.float32], Bools]]:
        """Return polynomials (C, count, 6, 4 n) from the chord to each end, and where (2 count + 1, C) it is good."""
        both, reached = self._solved(np.concatenate([self._distances(end, count) for end in ends]))
        sides = []
        for turns, good in zip(np.split(both, len(ends)), np.split(reached, len(ends)), strict=True):
            found = _polynomials(turns[::2])
            halfway = combined(np.asarray(0.5**POWERS, dtype=np.float64), found).swapaxes(0, 1)
            good[1::2] &= (np.abs(halfway - turns[1::2]) < SMOOTH).all(axis=-1)
            sides.append((found.astype(np.float32), good))
        return sides

    def _solved(self, distances: Floats) -> tuple[Floats, Bools]:
        """Return joint quaternions (k, C, 4 n) for targets at distances (k, C), and where the tips reach them."""
        problem, count = self._problem, len(distances)
        frames = np.asarray(problem.frames, dtype=np.float64)
        chains, bones = frames.shape[:2]
        joints = np.asarray(problem.joints, dtype=np.float64)
        scale = total(norm(np.diff(joints, axis=1).transpose(2, 1, 0)))
        target = distances[..., None] * (self._line * scale).T
        # With a pole, 3-D poses, whose bend drifts with the distance, are rolled back to the bend of the FK pose.
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
    """Return polynomials (C, k, 6, m), each over 0 to 1, between values (k+1, C, m) at 0, 1, and so on."""
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
    """Return the matrix (6, 6) from values at six whole numbers, `before` of them negative, to coefficients."""
    places = [float(i - before) for i in range(6)]
    weights = np.zeros((6, 6))
    for column, place in zip(weights.T, places, strict=True):
        # Multiply the factors of the Lagrange polynomial, which is 1 at its own place and 0 at the others.
        column[-1] = 1.0
        for other in places:
            if other != place:
                column[:] = (np.append(column[1:], 0.0) - other * column) / (place - other)
    return weights


def _conjugate(q: Floats) -> Floats:
    """Return the conjugates of quaternions (4, ...)."""
    return np.concatenate([q[:1], -q[1:]])


def root_of(distance: Floats) -> Floats:
    """Return the square root of the slack at distances, at least `FLAT_END`."""
    return np.maximum(np.sqrt(np.maximum(1.0 - distance, 0.0)), FLAT_END)


def share_of(start: Floats, end: Floats) -> Floats:
    """Return the factor that turns a difference from start into a fraction of the way to end; 0 if they are equal."""
    span = end - start
    return np.where(span == 0.0, 0.0, 1.0 / np.where(span == 0.0, 1.0, span))
