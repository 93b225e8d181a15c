"""Chains within limits whose FK pose does not change: from target positions to channels, one by one.

Everything but the goals is stored once.
Limbs of two bones are solved in closed form, longer chains by a search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.channels import FIELDS
from ...solve import Problem, Solver, Status
from ...solve.alone import SolvedAlone, solved_alone
from ...solve.bodies import Checked
from ...solve.limb.folds import can_fold
from ...solve.limb.limb import Aim, Solved, solved_limb
from ...solve.limited.body import FEW
from ...solve.maths.products import back_times, times
from ...solve.maths.rotations import quaternion_of
from ...solve.maths.vectors import Vector
from ...solve.problem import Bools, Floats, Ints
from ...solve.side_start import begin_on_side
from ..plan.groups import Shape, Wave
from ..read.sample import Goals
from .limb import Limbs
from .outcomes import Outcomes
from .solving import fixed, goals_of, tips_of

_FARTHEST = 1e50
"""A target farther away than this, in chain lengths, counts as invalid, see `bodies.valid_members`."""


def can_be_held(shape: Shape) -> bool:
    """Whether the groups of a shape are chains within limits whose tips take no orientation."""
    is_long = len(shape.parents) > 1 and shape.solver is not Solver.FABRIK
    return shape.is_chain and is_long and shape.limits is not None and not any(shape.turns)


class _Held(NamedTuple):
    """What stays the same for one chain."""

    fk: Floats
    """(n, 3, 3) the frames of its bones, root first."""
    kept: Floats
    """(n, 3, 3) see `Limbs.kept`."""
    old: list[list[float]]
    """The quaternions of its channels in the FK pose."""
    root: Vector
    tip: Vector
    near: float
    """How near the tip a target counts as on it, see `solving.tips_of`."""
    length: float


class _Last(NamedTuple):
    """The last goal of one chain, and its solution."""

    aim: Aim | None
    solved: Solved | SolvedAlone | None
    turns: Sequence[Sequence[float]]
    """The quaternions of its channels."""


class Found(NamedTuple):
    """Solutions of C chains on F frames."""

    turns: NDArray[np.float32]
    """(C, F, n, 4) quaternions of the joints' channels."""
    solved: list[Solved | SolvedAlone | None]
    """C times F solutions, chain by chain; None: could not be solved."""
    usual: Bools
    """(C, F) where the solutions can be used; elsewhere their values are arbitrary, and `solve` is needed."""


@dataclass(frozen=True)
class HeldLimbs:
    """The chains of one wave."""

    wave: Wave
    problem: Problem
    known: Checked
    held: list[_Held]
    columns: slice | Ints
    """Indices of their chains in the plan."""
    last: dict[int, _Last] = field(default_factory=dict)
    """The last goal and solution of each chain, by its index: mostly only one of several targets moves."""

    @classmethod
    def of(cls, limbs: Limbs, goals: Goals) -> HeldLimbs | None:
        """Store a wave in its FK pose, with any goals (C, 1); return None if it needs the general solver."""
        wave = limbs.wave
        if set(wave.modes.ravel()) != {"QUATERNION"}:
            return None
        if limbs.skew().off is not None or not limbs.is_exact():
            return None
        problem, known = fixed(limbs, *goals_of(limbs, goals))
        if known is None or not known.fk.valid.all() or (known.fk.side < 0.0).any():
            return None
        if can_fold(problem).any() or begin_on_side(problem).any():
            return None
        tips, near = tips_of(limbs)
        fk, kept = limbs.frames(), limbs.kept()
        parts = zip(
            fk,
            kept,
            limbs.rows[:, :, FIELDS["rotation_quaternion"]].tolist(),
            problem.joints[:, 0].tolist(),
            tips[:, 0].tolist(),
            near[:, 0].tolist(),
            limbs.length()[:, 0].tolist(),
            strict=True,
        )
        own = wave.chains[:, 0]
        in_a_row = slice(int(own[0]), int(own[-1]) + 1)
        columns = in_a_row if np.array_equal(own, np.arange(in_a_row.start, in_a_row.stop)) else own
        return cls(wave, problem, known.fk, [_Held(*each) for each in parts], columns)

    @property
    def are_limbs(self) -> bool:
        """Whether the chains are solved in closed form."""
        return self.known.limbs is not None and len(self.wave.shape.parents) == 2

    def takes(self, frames: int) -> bool:
        """Whether this many frames are solved sooner here than all at once."""
        return self.are_limbs or (frames == 1 and len(self.held) <= FEW)

    def find(self, goals: Goals, *, hurried: bool = False) -> Found:
        """Solve for goals (F, C) of the armature's chains; `hurried` as in `solve_limbs`."""
        found = [self._found(i, aim, hurried=hurried) for i, aim in self._asked(goals)]
        solved, shape = [each.solved for each in found], (len(self.held), len(goals.target))
        turns = np.array([each.turns for each in found], dtype=np.float32)
        usual = np.array([each is not None for each in solved])
        return Found(turns.reshape(*shape, -1, 4), solved, usual.reshape(shape))

    def _found(self, i: int, aim: Aim | None, *, hurried: bool) -> _Last:
        last = self.last.get(i)
        if last is None or last.aim != aim:
            solved = None if aim is None else self._solved(i, aim, hurried=hurried)
            held = self.held[i]
            last = _Last(aim, solved, held.old if solved is None else _turned(held, solved))
            if self.are_limbs or not hurried:
                self.last[i] = last
        return last

    def _solved(self, i: int, aim: Aim, *, hurried: bool) -> Solved | SolvedAlone | None:
        if self.known.limbs is not None and self.are_limbs:
            return solved_limb(self.problem, self.known.limbs, i, aim)
        return solved_alone(self.problem, self.known.searched.alone, i, aim, is_first_attempt=hurried)

    def put(self, outcomes: Outcomes, found: Found, goals: Goals) -> None:
        """Set the outcomes of all chains on all frames."""
        shape, own, bones = found.usual.shape, self.columns, len(self.wave.shape.parents)
        ended = [
            (Status.INVALID, np.nan, 0, [False] * bones)
            if each is None
            else (each.status, each.error, each.iterations, each.at_limit)
            for each in found.solved
        ]
        status, error, iterations, at_limit = zip(*ended, strict=True)
        lengths = np.array([held.length for held in self.held])
        outcomes.error[:, own] = errors = (np.array(error).reshape(shape) / lengths[:, None]).T
        reached = errors <= goals.tolerance[:, own]
        outcomes.status[:, own] = np.where(reached, Status.REACHED, np.array(status, dtype=np.int8).reshape(shape).T)
        outcomes.iterations[:, own] = np.array(iterations).reshape(shape).T
        outcomes.at_limit[:, self.wave.rows] = np.array(at_limit).reshape(*shape, bones).swapaxes(0, 1)

    def _asked(self, goals: Goals) -> Iterator[tuple[int, Aim | None]]:
        """Yield the index and the goal of each chain on each frame; None: it cannot be solved."""
        own = self.columns
        targets, settings = goals.target[:, own].swapaxes(0, 1).tolist(), goals.settings[:, own].swapaxes(0, 1).tolist()
        poles = goals.pole[:, own].swapaxes(0, 1).tolist() if self.wave.shape.poles[0] else None
        for i, held in enumerate(self.held):
            root, farthest = held.root, _FARTHEST * held.length
            for f, (target, (angle, softness, push, tolerance, _)) in enumerate(
                zip(targets[i], settings[i], strict=True)
            ):
                pole = None if poles is None else poles[i][f]
                is_there = all(abs(a - b) < farthest for a, b in zip(target, root, strict=True)) and (
                    pole is None or all(abs(a - b) < farthest for a, b in zip(pole, root, strict=True))
                )
                if not (is_there and isfinite(softness + angle) and push == push and tolerance == tolerance):
                    yield i, None
                    continue
                stands = all(abs(a - b) <= held.near for a, b in zip(target, held.tip, strict=True))
                yield i, Aim(held.tip if stands else target, pole, angle, None, softness, push, tolerance)


def _turned(held: _Held, solved: Solved | SolvedAlone) -> list[tuple[float, ...]]:
    """Return the quaternions of the channels, each with the sign nearer to FK."""
    frames = times(np.array(solved.rotations), held.fk)
    local = frames.copy()
    local[1:] = back_times(frames[:-1], frames[1:])
    found: list[tuple[float, ...]] = []
    turns = times(held.kept, local).reshape(-1, 9).tolist()
    for turn, (a, b, c, d) in zip(turns, held.old, strict=True):
        w, x, y, z = quaternion_of(turn)
        near = w * a + x * b + y * c + z * d
        away = near < 0.0 or (near == 0.0 and w < 0.0)
        found.append((-w, -x, -y, -z) if away else (w, x, y, z))
    return found
