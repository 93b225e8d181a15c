"""Free chains whose FK pose stands still: what `solve` makes of them, looked up in a table.

How such a chain bends depends on the distance from its root to its target alone; the direction only turns the chain as
a whole, by the smallest rotation, and a pole rolls it about the line to the target. So the joints' rotations are
tabulated over the distance, as `solve` finds them, and interpolated by polynomials of the fifth degree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .calculus import MANY
from .problem import Bools, Floats, Goal, Ints, Problem
from .products import combined, times
from .reach import ease, inner_radius
from .rotations import cross, dot, multiply, norm, quaternions, reject, rotate, unit
from .sides import CLEAR, NO_BEND, side_bend
from .single import NO_LENGTH
from .solver import solve
from .twist import STRAIGHT, chain_axes, total

NODES = 64
"""Intervals of the table for distances shorter than in the FK pose, and again for longer ones."""
FEWER = (12, 32)
"""Intervals that are tried where the table is for targets that are known."""
POWERS = np.arange(5, -1, -1)
NEAR = 0.02
"""Targets nearer to the root than this, in parts of the FK pose's distance, are left to `solve`."""
FLAT_END = 1e-4
"""Root of the slack, in chain lengths, below which the table is continued: rounding would show there."""
TRIES = 5
"""How often the table is begun farther up where neighbouring distances are too different near the root."""
SMOOTH = 1e-6
"""What an interpolated quaternion may be off."""
ARRIVED = 1e-9
"""What may be missing, in chain lengths, at a distance that is tabulated."""
NEARLY_OPPOSITE = 1e-2
"""Where the chain's line and that to the target come so near to being opposite, as their sum, `solve` is asked."""
MOST = 10_000
"""Bones that are tabulated at the most, for which 12 kB are needed each."""


class Found(NamedTuple):
    """What was looked up for C chains on F frames."""

    turns: NDArray[np.float32]
    """(C, F, n, 4) quaternions of the joints."""
    distance: Floats
    """(C, F) from root to target, in chain lengths."""
    wanted: Floats
    """(C, F) from root to where the tip comes."""
    usual: Bools
    """(C, F) where these can be used; elsewhere they hold anything, and `solve` must be asked."""


@dataclass(frozen=True)
class Tabulated:
    """C chains of n bones, each in a space of its own with the root in the origin."""

    scale: Floats
    """(C,) chain lengths."""
    line: Floats
    """(3, C) from root to tip in the FK pose, as the next ones unit vectors."""
    bend: Floats
    """(3, C) to where the chain bends."""
    first: Floats
    """(C, 4) quaternions of the root joints in the FK pose."""
    chord: Floats
    """(C,) distance from root to tip in the FK pose."""
    inner: Floats
    """(C,) what the tips come near at the most."""
    least: Floats
    """(C,) from this distance on the table holds."""
    most: Floats
    """(C,) and up to this one."""
    roots: Floats
    """(3, C) root of the slack at the chord, and what makes a share of the table of the difference to it, for longer
    and for shorter distances."""
    table: NDArray[np.float32]
    """(C, 2 k, 6, 4 n) polynomials for the joints' quaternions: k longer than the chord, then k shorter."""

    @classmethod
    def of(cls, problem: Problem, fk: Floats, only: tuple[Floats, Floats] | None = None) -> Tabulated | None:
        """Tabulate chains; None if one of them has no length, is closed, or has no smooth way to its full length.

        Args:
            problem: C free chains of one shape with their roots in the origin; the goal is left out of account.
            fk: (C, n, 4) unit quaternions of the joints in the FK pose, which are turned further.
            only: targets and softness, as in `look_up`, where nothing else will be looked up: that is less to solve.
        """
        count, bones = np.shape(problem.frames)[:2]
        joints = np.asarray(problem.joints, dtype=np.float64)
        segments = np.ascontiguousarray(np.diff(joints, axis=1).transpose(2, 1, 0))
        sizes = norm(segments)
        scale = total(sizes)
        if not (np.isfinite(sizes).all() and (scale > 1e-100).all() and count * bones <= MOST):
            return None
        directions, parts = unit(segments), sizes / scale
        tip = total(segments)
        chord = np.minimum(norm(tip) / scale, 1.0)
        if (chord < 10.0 * STRAIGHT).any():
            return None
        line, bend, _ = chain_axes(directions, parts, np.asarray(problem.frames)[:, 0].transpose(1, 2, 0))
        if problem.bend_side is not None:
            sided = _side_bend(problem.bend_side, directions, parts, line, bend, chord)
            if sided is None:
                return None
            bend = sided
        inner = inner_radius(parts)
        nodes = _Nodes(problem, fk, chord, line, bend)
        least, most = np.maximum(inner, NEAR * chord), np.ones_like(chord)
        sides: _Sides | None = None
        if only is not None:
            _, wanted = _distances(np.moveaxis(only[0] / scale[:, None, None], -1, 0), only[1], inner)
            low = np.maximum(least, np.minimum(np.where(np.isfinite(wanted), wanted, np.inf).min(axis=1), chord))
            high = np.maximum(np.where(np.isfinite(wanted), wanted, -np.inf).max(axis=1), chord)
            sides = nodes.few(np.minimum(low, chord), high)
        if sides is None:
            sides = nodes.both(least, most)
        if sides is None:
            return None
        least, most = sides.least, sides.most
        start = _root(chord)
        shares = (_share(start, _root(most)), _share(start, _root(least)))
        return cls(
            scale=scale,
            line=line,
            bend=bend,
            first=fk[:, 0],
            chord=chord,
            inner=inner,
            least=least,
            most=most,
            roots=np.stack([start, *shares]),
            table=np.concatenate([sides.longer, sides.shorter], axis=1),
        )

    def look_up(
        self, target: Floats, softness: Floats, pole: Floats | None = None, pole_angle: Floats | None = None
    ) -> Found:
        """Return the pose that brings the tips to their targets, or as near as they come.

        A frame gets the same bits alone as among others.

        Args:
            target: (C, F, 3) places for the tips, seen from the roots.
            softness: (C, 1) or (C, F) last fraction of the reach, over which a chain eases into extension.
            pole: (C, F, 3) points to bend towards, seen from the roots.
            pole_angle: (C, F) radians that turn the bend plane.
        """
        with np.errstate(all="ignore"):
            place = np.moveaxis(target / self.scale[:, None, None], -1, 0)
            distance, wanted = _distances(place, softness, self.inner)
            usual = (wanted >= self.least[:, None]) & (wanted <= self.most[:, None])
            row, share = self._rows(wanted)
            powers = (share[..., None] ** POWERS).astype(np.float32)
            turns: NDArray[np.float32] = combined(powers, self.table[np.arange(len(wanted))[:, None], row]).reshape(
                *wanted.shape, -1, 4
            )
            # Twice the smallest rotation to the target, but for its length.
            line = np.broadcast_to(self.line[:, :, None], place.shape)
            aim = np.concatenate([(distance + dot(line, place))[None], cross(line, place)])
            size = np.sqrt(_dot(aim, aim))
            usual &= size > NEARLY_OPPOSITE * distance
            if pole is not None:
                aim, rolled = self._rolled(aim / size, target, pole, pole_angle)
                usual &= rolled
            root = multiply(aim, np.moveaxis(turns[..., 0, :].astype(np.float64), -1, 0))
            size = np.sqrt(_dot(root, root))
            size = np.where(_dot(root, self.first.T[..., None]) < 0.0, -size, size)
            turns[..., 0, :] = np.moveaxis(root / size, 0, -1)
            return Found(turns, distance, wanted, usual)

    def _rows(self, wanted: Floats) -> tuple[Ints, Floats]:
        """Rows (C, F) of the table for distances, and where (C, F) in their intervals those are, from 0 to 1."""
        start, longer, shorter = self.roots[..., None]
        root = np.sqrt(np.maximum(1.0 - wanted, 0.0))
        beyond = root < start
        nodes = self.table.shape[1] // 2
        share = nodes * np.maximum((root - start) * np.where(beyond, longer, shorter), 0.0)
        node = np.clip(share.astype(np.int64), 0, nodes - 1)
        return np.where(beyond, node, node + nodes), share - node

    def _rolled(self, aim: Floats, target: Floats, pole: Floats, pole_angle: Floats | None) -> tuple[Floats, Bools]:
        """Roll rotations (4, C, F) to the targets to the poles, and tell where (C, F) there is one."""
        line = unit(np.moveaxis(target, -1, 0))
        across = np.moveaxis(pole, -1, 0)
        wanted = reject(across, line)
        size = norm(wanted)
        bend = rotate(aim, np.broadcast_to(self.bend[:, :, None], line.shape))
        roll: Any = (dot(bend, wanted) + 1j * dot(cross(bend, wanted), line)) / size
        if pole_angle is not None:
            roll = roll * np.exp(1j * pole_angle)
        half = roll + 1.0
        length = np.abs(half)
        half = half / length
        turn = np.concatenate([half.real[None], half.imag * line])
        clear = size > 1e-6 * norm(across) + 1e-9 * self.scale[:, None]
        return multiply(turn, aim), clear & (length > NEARLY_OPPOSITE)


@dataclass(frozen=True)
class _Sides:
    """The two sides of a table."""

    longer: NDArray[np.float32]
    """(C, k, 6, 4 n), as the next one."""
    shorter: NDArray[np.float32]
    least: Floats
    """(C,) where the shorter side ends, as the next one the longer side."""
    most: Floats


class _Nodes:
    """Solves chains at the distances of a table."""

    def __init__(self, problem: Problem, fk: Floats, chord: Floats, line: Floats, bend: Floats) -> None:
        self._problem, self._fk, self._chord, self._line, self._bend = problem, fk, chord, line, bend

    def both(self, least: Floats, most: Floats) -> _Sides | None:
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
        return _Sides(longer, shorter, np.where(good.all(axis=0), least, self._chord), most)

    def few(self, least: Floats, most: Floats) -> _Sides | None:
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
                return _Sides(longer, shorter, least, most)
        return None

    def _distances(self, end: Floats, count: int) -> Floats:
        """Distances (2 count + 1, C), in chain lengths, from the chord to an end (C,), even in the slack's root."""
        start = _root(self._chord)
        shares = np.linspace(0.0, 1.0, 2 * count + 1)[:, None]
        return np.asarray(1.0 - (start + shares * (_root(end) - start)) ** 2)

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


def _side_bend(
    side: Floats, directions: Floats, parts: Floats, line: Floats, bend: Floats, chord: Floats
) -> Floats | None:
    """Bends (3, C) of chains with bend sides (C, 3); None where one of them would have others at other distances."""
    first = directions[:, np.argmax(parts > NO_LENGTH, axis=0), np.arange(len(chord))]
    vectors = tuple(line), tuple(bend), tuple(np.asarray(side, dtype=np.float64).T), tuple(first)
    (x, y, z), _, right = side_bend(MANY, *vectors, chord, np.zeros_like(chord))
    straight = 2.0 * np.sqrt(np.maximum(1.0 - chord * chord, 0.0)) <= NO_BEND
    return np.stack([x, y, z]) if (straight | (right >= CLEAR)).all() else None


def _distances(place: Floats, softness: Floats, inner: Floats) -> tuple[Floats, Floats]:
    """Distances (C, F) from root to target (3, C, F), and from root to where the tip comes, in chain lengths."""
    distance = norm(place)
    if softness.any():
        return distance, ease(distance, np.minimum(softness, 1.0 - inner[:, None]))
    return distance, np.minimum(distance, 1.0)


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


def _dot(p: Floats, q: Floats) -> Floats:
    """Dot products (...) of quaternions (4, ...)."""
    return np.asarray(p[0] * q[0] + dot(p[1:], q[1:]))


def _root(distance: Floats) -> Floats:
    """Root of the slack at distances."""
    return np.maximum(np.sqrt(np.maximum(1.0 - distance, 0.0)), FLAT_END)


def _share(start: Floats, end: Floats) -> Floats:
    """What makes a share of the way to the end of a difference from the start; 0 where there is no way."""
    span = end - start
    return np.where(span == 0.0, 0.0, 1.0 / np.where(span == 0.0, 1.0, span))
