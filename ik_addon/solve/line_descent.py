"""The steps of `descent` for chains that only have to bring their end to a place."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cones import nearest_swing
from .descent import DAMPING, EXACT, GAIN, HARDEST, LONGEST, OUTSIDE, PATIENCE, ROUNDS, SOFTEST
from .lines import CROWD, Lines, allowed_angles, axes_of, pose_of, speeds_of
from .problem import Bools, Floats, Ints
from .rotations import dot
from .twist import total

_UNITS = np.array([0.5, 0.5, 1.0])[:, None, None]


def descend(lines: Lines, angles: Floats, iterations: int, pull: float) -> tuple[Floats, Floats, Ints]:
    """Return joint angles from which steps of this kind bring the chains' ends no nearer to their targets.

    Args:
        lines: B chains.
        angles: (3, n, B) to start from, inside the limits.
        iterations: cap on the steps.
        pull: how much of what is missing a step goes after.

    Returns:
        angles: (3, n, B) inside the limits.
        missing: (B,) distance from end to target.
        steps: (B,) how many were taken.
    """
    members = angles.shape[2]
    descent = _Descent(lines, angles, pull)
    solved, missing = np.empty_like(angles), np.empty(members)
    steps, idle = np.zeros(members, dtype=np.int64), np.zeros(members, dtype=np.int64)
    index, running = np.arange(members), np.ones(members, dtype=bool)
    for done in range(iterations + 1):
        ended = running & ((descent.missing <= EXACT) | (idle >= PATIENCE))
        if done == iterations:
            ended = running
        if ended.any():
            where = index[ended]
            solved[..., where], missing[where] = descent.angles[..., ended], descent.missing[ended]
            steps[where] = done
            running &= ~ended
            left = np.count_nonzero(running)
            if not left:
                break
            if left < CROWD * len(running):
                descent.keep(running)
                index, idle, running = index[running], idle[running], running[running]
        before = descent.missing
        descent.step()
        idle = np.where(before - descent.missing > GAIN * np.minimum(before, pull), 0, idle + 1)
    return solved, missing, steps


class _Descent:
    """The members of a batch that are still on their way."""

    def __init__(self, lines: Lines, angles: Floats, pull: float) -> None:
        self.lines, self.angles, self.pull = lines, angles, pull
        self.damping = np.full(angles.shape[2], DAMPING)
        self.pose = pose_of(lines, angles)
        self.missing = np.sqrt(dot(self.pose.missing, self.pose.missing))

    def keep(self, chosen: Bools) -> None:
        """Let the members go that are not chosen (B,)."""
        self.lines, self.pose = self.lines.members(chosen), self.pose.members(chosen)
        self.angles, self.damping, self.missing = self.angles[..., chosen], self.damping[chosen], self.missing[chosen]

    def step(self) -> None:
        """Take one step, or where it would not help none, and the next one shorter."""
        move = self._direction()
        size = np.abs(move).max(axis=(0, 1))
        move *= np.minimum(1.0, LONGEST / np.maximum(size, 1e-30))
        move += self.angles
        angles = allowed_angles(self.lines, move)
        pose = pose_of(self.lines, angles)
        missing = np.sqrt(dot(pose.missing, pose.missing))
        better = missing < self.missing
        self.damping = np.minimum(np.maximum(self.damping * np.where(better, 0.2, 6.0), SOFTEST), HARDEST)
        worse = np.flatnonzero(~better)
        if len(worse):
            missing[worse], angles[..., worse] = self.missing[worse], self.angles[..., worse]
            for part, old in zip(pose, self.pose, strict=True):
                part[..., worse] = old[..., worse]
        self.angles, self.pose, self.missing = angles, pose, missing

    def _direction(self) -> Floats:
        """Return the step (3, n, B) in joint angles."""
        cone, angles, damping = self.lines.cone, self.angles, self.damping
        ease = np.sqrt(self.lines.ease)
        units = ease * _UNITS
        matrix = speeds_of(self.pose, axes_of(self.pose, angles)) * ease
        wanted = self.pose.missing * np.minimum(1.0, self.pull / np.maximum(self.missing, 1e-30))
        move = units * _damped(matrix, wanted, damping)
        # What leaves its limits is put to their boundary, and the step found again for the others.
        some, found, left = np.arange(len(damping)), move, matrix
        fixed, held, stopped = np.zeros_like(move), np.zeros(move.shape[1:], bool), np.zeros(move.shape[1:], bool)
        for _ in range(ROUNDS):
            ahead = angles + found
            # Those that are held stay where they were put.
            swing = np.where(held, 0.0, ahead[:2])
            inside = nearest_swing(swing, cone)
            end = np.minimum(np.maximum(ahead[2], cone.twist_low), cone.twist_high)
            off = swing - inside
            leaving = np.maximum(np.abs(off[0]), np.abs(off[1])) > OUTSIDE
            over = (ahead[2] != end) & ~stopped
            again = np.flatnonzero((leaving | over).any(axis=0))
            if not len(again):
                break
            some, leaving, over = some[again], leaving[:, again], over[:, again]
            held, stopped = held[:, again] | leaving, stopped[:, again] | over
            angles, damping, wanted = angles[..., again], damping[again], wanted[:, again]
            matrix, left, fixed = matrix[..., again], left[..., again], fixed[..., again]
            # Out of the cone is the way back into it, seen in the units of the step.
            normal = np.where(leaving, off[..., again] * units[:2], 0.0)
            normal /= np.maximum(np.sqrt(normal[0] * normal[0] + normal[1] * normal[1]), 1e-200)
            way = (inside[..., again] - angles[:2]) / np.maximum(units[:2], 1e-12)
            out = left[:, 0] * normal[0] + left[:, 1] * normal[1]
            left[:, 0] -= out * normal[0]
            left[:, 1] -= out * normal[1]
            left[:, 2] *= ~over
            fixed[:2] += (normal[0] * way[0] + normal[1] * way[1]) * normal
            fixed[2] = np.where(over, (end[:, again] - angles[2]) / np.maximum(units[2], 1e-12), fixed[2])
            brought = matrix * fixed
            rest = wanted - total(brought[:, 0] + brought[:, 1] + brought[:, 2])
            found = units * (fixed + _damped(left, rest, damping))
            move[..., some] = found
        return np.asarray(move)


def _damped(matrix: Floats, wanted: Floats, damping: Floats) -> Floats:
    """Return the shortest steps (3, n, B) that nearly bring what is wanted (3, B), for matrices (3, 3, n, B)."""
    products = np.empty((6, *matrix.shape[2:]))
    for k, (i, j) in enumerate(((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))):
        pair = matrix[i] * matrix[j]
        np.add(pair[0], pair[1], out=products[k])
        products[k] += pair[2]
    xx, yx, yy, zx, zy, zz = total(products)
    x, y, z = solved_symmetric(xx + damping, yx, yy + damping, zx, zy, zz + damping, wanted)
    return np.asarray(matrix[0] * x + matrix[1] * y + matrix[2] * z)


def solved_symmetric(xx: Any, yx: Any, yy: Any, zx: Any, zy: Any, zz: Any, wanted: Any) -> tuple[Any, Any, Any]:
    """Return x, y and z of three equations with a symmetric positive matrix, of floats or of arrays (B,) alike.

    Cholesky's way, without roots.
    """
    yx1, zx1 = yx / xx, zx / xx
    second = yy - yx1 * yx
    cross_term = zy - zx1 * yx
    zy1 = cross_term / second
    third = zz - zx1 * zx - zy1 * cross_term
    a = wanted[0]
    b = wanted[1] - yx1 * a
    z = (wanted[2] - zx1 * a - zy1 * b) / third
    y = b / second - zy1 * z
    x = a / xx - yx1 * y - zx1 * z
    return x, y, z
