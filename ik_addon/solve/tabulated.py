"""Free chains whose FK pose stands still: what `solve` makes of them, looked up in a table.

How such a chain bends depends on the distance from its root to its target alone; the direction only turns the chain as
a whole, by the smallest rotation, and a pole rolls it about the line to the target. So the joints' rotations are
tabulated over the distance, as `solve` finds them, and interpolated by polynomials of the fifth degree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import expm1, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .problem import Bools, Floats, Goal, Ints, Problem
from .reach import ease, inner_radius
from .rotations import cross, dot, multiply, norm, quaternions, reject, rotate, unit
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


@dataclass(frozen=True)
class Found:
    """What was looked up for C chains on F frames."""

    turns: NDArray[np.float32]
    """(C, F, n, 4) quaternions of the joints."""
    distance: Floats
    """(C, F) from root to target, in chain lengths."""
    wanted: Floats
    """(C, F) from root to where the tip comes."""
    usual: Bools
    """(C, F) where these can be used; elsewhere they hold anything, and `solve` must be asked."""


class FoundFew(NamedTuple):
    """What was looked up for a few chains on one frame."""

    turns: NDArray[np.float32]
    """(C, 4 n) quaternions of the joints."""
    distance: list[float]
    """(C,) from root to target, in chain lengths, as the next one."""
    wanted: list[float]


@dataclass(frozen=True)
class Tabulated:
    """C chains of n bones, each in a space of its own with the root in the origin."""

    scale: Floats
    """(C,) chain lengths."""
    line: Floats
    """(3, C) from root to tip in the FK pose, as the next ones unit vectors."""
    bend: Floats
    """(3, C) to where the chain bends."""
    towards: Floats
    """(C, 4, 4) what makes the smallest rotation of distance and place of a target, but for its length."""
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
        inner = inner_radius(parts)
        nodes = _Nodes(problem, fk, chord, line, bend)
        least, most = np.maximum(inner, NEAR * chord), np.ones_like(chord)
        sides: _Sides | None = None
        if only is not None:
            _, wanted = _distances(only[0], scale, only[1], inner)
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
            towards=_towards(line),
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

        Args:
            target: (C, F, 3) places for the tips, seen from the roots.
            softness: (C, 1) or (C, F) last fraction of the reach, over which a chain eases into extension.
            pole: (C, F, 3) points to bend towards, seen from the roots.
            pole_angle: (C, F) radians that turn the bend plane.
        """
        with np.errstate(all="ignore"):
            place = np.empty((*target.shape[:2], 4))
            distance, wanted = _distances(target, self.scale, softness, self.inner)
            place[..., 0] = distance
            place[..., 1:] = target / self.scale[:, None, None]
            usual = (wanted >= self.least[:, None]) & (wanted <= self.most[:, None])
            row, share = self._rows(wanted)
            members = np.arange(len(wanted))[:, None]
            powers = (share[..., None, None] ** POWERS).astype(np.float32)
            turns: NDArray[np.float32] = (powers @ self.table[members, row]).reshape(*wanted.shape, -1, 4)
            aim = place @ self.towards.swapaxes(-1, -2)
            size = np.sqrt((aim * aim).sum(axis=-1))
            usual &= size > NEARLY_OPPOSITE * distance
            if pole is not None:
                aim, rolled = self._rolled(aim / size[..., None], target, pole, pole_angle)
                usual &= rolled
            root = (aim[..., :, None] * turns[..., 0, None, :]).reshape(*wanted.shape, 16) @ _PRODUCT
            size = np.sqrt((root * root).sum(axis=-1))
            size = np.where((root * self.first[:, None]).sum(axis=-1) < 0.0, -size, size)
            turns[..., 0, :] = root / size[..., None]
            return Found(turns, distance, wanted, usual)

    def look_up_few(self, targets: Sequence[Sequence[float]], softness: Sequence[float]) -> FoundFew | None:
        """Return what `look_up` does for all chains on one frame without poles, mostly in plain floats.

        numpy takes about a microsecond for each call, and a few chains have a frame's time of some hundred.

        Args:
            targets: (C, 3) places for the tips, seen from the roots, in chain lengths.
            softness: (C,) last fraction of the reach.

        Returns:
            None where `solve` must be asked for one of them.
        """
        nodes = self.table.shape[1] // 2
        rows, powers, aims, distances, all_wanted = [], [], [], [], []
        for (x, y, z), soft, plain in zip(targets, softness, self._plain, strict=True):
            (ux, uy, uz), (start, longer, shorter), least, most, inner, _first = plain
            distance = sqrt(x * x + y * y + z * z)
            wanted = min(distance, 1.0)
            soft = min(soft, 1.0 - inner)
            if distance > 1.0 - soft and soft > 0.0:
                wanted = 1.0 - soft - soft * expm1(-(distance - 1.0 + soft) / soft)
            aim = distance + ux * x + uy * y + uz * z
            if not (least <= wanted <= most and 2.0 * aim > NEARLY_OPPOSITE**2 * distance):
                return None
            root = sqrt(max(1.0 - wanted, 0.0))
            beyond = root < start
            share = nodes * max((root - start) * (longer if beyond else shorter), 0.0)
            node = min(int(share), nodes - 1)
            f = share - node
            square = f * f
            rows.append(node if beyond else node + nodes)
            powers.append((square * square * f, square * square, square * f, square, f, 1.0))
            aims.append((aim, uy * z - uz * y, uz * x - ux * z, ux * y - uy * x))
            distances.append(distance)
            all_wanted.append(wanted)
        turns = (np.array(powers, dtype=np.float32)[:, None] @ self.table[self._members, rows])[:, 0]
        roots = []
        for (aim, i, j, k), (w, a, b, c), plain in zip(aims, turns[:, :4].tolist(), self._plain, strict=True):
            first = plain[-1]
            p = aim * w - i * a - j * b - k * c
            q = aim * a + i * w + j * c - k * b
            r = aim * b - i * c + j * w + k * a
            s = aim * c + i * b - j * a + k * w
            size = sqrt(p * p + q * q + r * r + s * s)
            if p * first[0] + q * first[1] + r * first[2] + s * first[3] < 0.0:
                size = -size
            roots.append((p / size, q / size, r / size, s / size))
        turns[:, :4] = roots
        return FoundFew(turns, distances, all_wanted)

    @cached_property
    def _members(self) -> Ints:
        return np.arange(len(self.scale))

    @cached_property
    def _plain(self) -> list[tuple[list[float], list[float], float, float, float, list[float]]]:
        """Line, roots, least, most and inner distance and first quaternion of each chain."""
        lists = (self.line.T, self.roots.T, self.least, self.most, self.inner, self.first)
        return list(zip(*(np.asarray(values).tolist() for values in lists), strict=True))

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
        """Rotations (C, F, 4) to the targets after they were rolled to the poles, and where (C, F) there is one."""
        line = unit(np.moveaxis(target, -1, 0))
        across = np.moveaxis(pole, -1, 0)
        wanted = reject(across, line)
        size = norm(wanted)
        bend = rotate(np.moveaxis(aim, -1, 0), np.broadcast_to(self.bend[:, :, None], line.shape))
        roll: Any = (dot(bend, wanted) + 1j * dot(cross(bend, wanted), line)) / size
        if pole_angle is not None:
            roll = roll * np.exp(1j * pole_angle)
        half = roll + 1.0
        length = np.abs(half)
        half = half / length
        turn = np.concatenate([half.real[None], half.imag * line])
        rolled = np.moveaxis(multiply(turn, np.moveaxis(aim, -1, 0)), 0, -1)
        clear = size > 1e-6 * norm(across) + 1e-9 * self.scale[:, None]
        return rolled, clear & (length > NEARLY_OPPOSITE)


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
        longer, reached = self._side(most, NODES)
        if not reached.all():
            return None
        for _ in range(TRIES):
            shorter, reached = self._side(least, NODES)
            if reached.all():
                break
            # Down to the last distance before the first that is not good.
            last = np.argmin(reached, axis=0) - 1
            there = self._distances(least, NODES)[np.maximum(last, 0), np.arange(len(least))]
            least = np.where(reached.all(axis=0), least, np.where(last < 0, self._chord, there))
        return _Sides(longer, shorter, np.where(reached.all(axis=0), least, self._chord), most)

    def few(self, least: Floats, most: Floats) -> _Sides | None:
        """Tabulate as few distances between two as do; None where these would have to be many."""
        for count in FEWER:
            sides: list[NDArray[np.float32]] = []
            for end in (most, least):
                if (end == self._chord).all():
                    sides.append(np.zeros((len(end), count, len(POWERS), self._fk[0].size), dtype=np.float32))
                    continue
                found, reached = self._side(end, count)
                if not reached.all():
                    break
                sides.append(found)
            else:
                return _Sides(sides[0], sides[1], least, most)
        return None

    def _distances(self, end: Floats, count: int) -> Floats:
        """Distances (2 count + 1, C), in chain lengths, from the chord to an end (C,), even in the slack's root."""
        start = _root(self._chord)
        shares = np.linspace(0.0, 1.0, 2 * count + 1)[:, None]
        return np.asarray(1.0 - (start + shares * (_root(end) - start)) ** 2)

    def _side(self, end: Floats, count: int) -> tuple[NDArray[np.float32], Bools]:
        """Polynomials (C, count, 6, 4 n) from the chord to an end, and where (2 count + 1, C) they are good."""
        turns, reached = self._solved(self._distances(end, count))
        found = _polynomials(turns[::2])
        halfway = ((0.5**POWERS) @ found).swapaxes(0, 1)
        reached[1::2] &= (np.abs(halfway - turns[1::2]) < SMOOTH).all(axis=-1)
        return found.astype(np.float32), reached

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
                softness=0.0,
                tolerance=ARRIVED / 10.0,
            )
        )
        good = solution.error.reshape(count, chains) <= ARRIVED * scale
        turned = solution.rotations.reshape(count, chains, bones, 3, 3)
        joint = turned.copy()
        joint[:, :, 1:] = turned[:, :, :-1].swapaxes(-1, -2) @ turned[:, :, 1:]
        joint[:, :, 1:] = frames[:, 1:].swapaxes(-1, -2) @ joint[:, :, 1:] @ frames[:, 1:]
        turns = quaternions(joint.transpose(3, 4, 0, 1, 2))
        fk = self._fk.transpose(2, 0, 1)[:, None]
        turns = np.concatenate([multiply(turns[..., :1], fk[..., :1]), multiply(fk[..., 1:], turns[..., 1:])], axis=-1)
        turns = np.where((turns * fk).sum(axis=0) < 0.0, -turns, turns)
        return turns.transpose(1, 2, 3, 0).reshape(count, chains, -1), good


def _distances(target: Floats, scale: Floats, softness: Floats, inner: Floats) -> tuple[Floats, Floats]:
    """Distances (C, F) from root to target, and from root to where the tip comes, in chain lengths."""
    x, y, z = np.moveaxis(target / scale[:, None, None], -1, 0)
    distance = np.sqrt(x * x + y * y + z * z)
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
            weights = np.linalg.inv((np.arange(6.0) - before)[:, None] ** POWERS)
            around = values[first[own][:, None] + np.arange(6)].transpose(2, 0, 1, 3)
            out[:, own] = weights @ around
    return out


def _product() -> Floats:
    """What makes the quaternion product (4,) of all products (16,) of their components."""
    units = np.eye(4)
    return np.stack([multiply(p, q) for p in units for q in units])


_PRODUCT = _product()


def _towards(line: Floats) -> Floats:
    """What makes quaternions (C, 4), of any length, of distances and places (C, 4): from lines (3, C) to the places."""
    out = np.zeros((line.shape[1], 4, 4))
    x, y, z = line
    out[:, 0, 0] = 1.0
    out[:, 0, 1:] = line.T
    out[:, 1, 2], out[:, 1, 3] = -z, y
    out[:, 2, 1], out[:, 2, 3] = z, -x
    out[:, 3, 1], out[:, 3, 2] = -y, x
    return out


def _root(distance: Floats) -> Floats:
    """Root of the slack at distances."""
    return np.maximum(np.sqrt(np.maximum(1.0 - distance, 0.0)), FLAT_END)


def _share(start: Floats, end: Floats) -> Floats:
    """What makes a share of the way to the end of a difference from the start; 0 where there is no way."""
    span = end - start
    return np.where(span == 0.0, 0.0, 1.0 / np.where(span == 0.0, 1.0, span))
