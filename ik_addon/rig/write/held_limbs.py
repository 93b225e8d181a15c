"""Limbs of two bones within limits whose FK pose does not change: from target positions to channels, one by one.

Everything but the goals is stored once, in plain floats. The operations are those of `solve_limbs`, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...pose.channels import FIELDS
from ...solve import Problem, Status
from ...solve.limb.folds import can_fold
from ...solve.limb.limb import Aim, KnownLimbs, Solved, solved_limb
from ...solve.maths.rotations import quaternion_of
from ...solve.maths.vectors import Matrix, Vector, product
from ...solve.problem import Bools, Ints
from ...solve.side_start import begin_on_side
from ..plan.groups import Shape, Wave
from ..read.sample import Goals
from .limb import Limbs
from .outcomes import Outcomes
from .solving import fixed, goals_of, tips_of

_FARTHEST = 1e50
"""A target farther away than this, in chain lengths, counts as invalid, see `bodies.valid_members`."""


def are_limbs(shape: Shape) -> bool:
    """Whether the groups of a shape are chains of two bones within limits whose tips take no orientation."""
    return shape.is_chain and len(shape.parents) == 2 and shape.limits is not None and not any(shape.turns)


class _Held(NamedTuple):
    """What stays the same for one limb."""

    fk: list[Matrix]
    """The frames of its bones, root first."""
    kept: list[Matrix]
    """See `Limbs.kept`, for each bone."""
    old: list[list[float]]
    """The quaternions of its channels in the FK pose."""
    tip: Vector
    near: float
    """How near the tip a target counts as on it, see `solving.tips_of`."""
    length: float


class _Last(NamedTuple):
    """The last goal of one limb, and its solution."""

    aim: Aim | None
    solved: Solved | None
    turns: Sequence[Sequence[float]]
    """The quaternions of its channels."""


class Looked(NamedTuple):
    """Solutions of C limbs on F frames."""

    turns: NDArray[np.float32]
    """(C, F, 2, 4) quaternions of the joints' channels."""
    solved: list[Solved | None]
    """C times F solutions, limb by limb; None: could not be solved."""
    usual: Bools
    """(C, F) where the solutions can be used; elsewhere their values are arbitrary, and `solve` is needed."""


@dataclass(frozen=True)
class HeldLimbs:
    """The limbs of one wave."""

    wave: Wave
    problem: Problem
    known: KnownLimbs
    held: list[_Held]
    columns: slice | Ints
    """Indices of their chains in the plan."""
    last: dict[int, _Last] = field(default_factory=dict)
    """The last goal and solution of each limb, by its index: mostly only one of several targets moves."""

    @classmethod
    def of(cls, limbs: Limbs, goals: Goals) -> HeldLimbs | None:
        """Store a wave in its FK pose, with any goals (C, 1); return None if it needs the general solver."""
        wave = limbs.wave
        if not are_limbs(wave.shape) or set(wave.modes.ravel()) != {"QUATERNION"}:
            return None
        if limbs.skew().off is not None or not limbs.is_exact():
            return None
        problem, known = fixed(limbs, *goals_of(limbs, goals))
        if known is None or known.fk.limbs is None or not known.fk.valid.all() or (known.fk.side < 0.0).any():
            return None
        if can_fold(problem).any() or begin_on_side(problem).any():
            return None
        tips, near = tips_of(limbs)
        parts = zip(
            limbs.frames().tolist(),
            limbs.kept().tolist(),
            limbs.rows[:, :, FIELDS["rotation_quaternion"]].tolist(),
            tips[:, 0].tolist(),
            near[:, 0].tolist(),
            limbs.length()[:, 0].tolist(),
            strict=True,
        )
        own = wave.chains[:, 0]
        in_a_row = slice(int(own[0]), int(own[-1]) + 1)
        columns = in_a_row if np.array_equal(own, np.arange(in_a_row.start, in_a_row.stop)) else own
        return cls(wave, problem, known.fk.limbs, [_Held(*each) for each in parts], columns)

    def find(self, goals: Goals) -> Looked:
        """Solve for goals (F, C) of the armature's chains."""
        found = [self._found(i, aim) for i, aim in self._asked(goals)]
        solved, shape = [each.solved for each in found], (len(self.held), len(goals.target))
        turns = np.array([each.turns for each in found], dtype=np.float32)
        usual = np.array([each is not None for each in solved])
        return Looked(turns.reshape(*shape, 2, 4), solved, usual.reshape(shape))

    def _found(self, i: int, aim: Aim | None) -> _Last:
        last = self.last.get(i)
        if last is None or last.aim != aim:
            solved = None if aim is None else solved_limb(self.problem, self.known, i, aim)
            held = self.held[i]
            last = self.last[i] = _Last(aim, solved, held.old if solved is None else _turned(held, solved))
        return last

    def put(self, outcomes: Outcomes, looked: Looked, goals: Goals) -> None:
        """Set the outcomes of all limbs on all frames."""
        shape, own = looked.usual.shape, self.columns
        ended = [
            (Status.INVALID, np.nan, (False, False)) if each is None else (each.status, each.error, each.at_limit)
            for each in looked.solved
        ]
        status, error, at_limit = zip(*ended, strict=True)
        lengths = np.array([held.length for held in self.held])
        outcomes.error[:, own] = errors = (np.array(error).reshape(shape) / lengths[:, None]).T
        reached = errors <= goals.tolerance[:, own]
        outcomes.status[:, own] = np.where(reached, Status.REACHED, np.array(status, dtype=np.int8).reshape(shape).T)
        outcomes.at_limit[:, self.wave.rows] = np.array(at_limit).reshape(*shape, 2).swapaxes(0, 1)

    def _asked(self, goals: Goals) -> Iterator[tuple[int, Aim | None]]:
        """Yield the index and the goal of each limb on each frame; None: it cannot be solved."""
        own = self.columns
        targets, settings = goals.target[:, own].swapaxes(0, 1).tolist(), goals.settings[:, own].swapaxes(0, 1).tolist()
        poles = goals.pole[:, own].swapaxes(0, 1).tolist() if self.wave.shape.poles[0] else None
        for i, held in enumerate(self.held):
            root, farthest = self.known.member(self.problem, i).root, _FARTHEST * held.length
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


def _turned(held: _Held, solved: Solved) -> list[tuple[float, ...]]:
    """Return the quaternions of the channels, each with the sign nearer to FK."""
    upper, lower = (product(*pair) for pair in zip(solved.rotations, held.fk, strict=True))
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = upper
    back = (xx, yx, zx), (xy, yy, zy), (xz, yz, zz)
    found: list[tuple[float, ...]] = []
    for kept, local, (a, b, c, d) in zip(held.kept, (upper, product(back, lower)), held.old, strict=True):
        one, two, three = product(kept, local)
        w, x, y, z = quaternion_of((*one, *two, *three))
        near = w * a + x * b + y * c + z * d
        away = near < 0.0 or (near == 0.0 and w < 0.0)
        found.append((-w, -x, -y, -z) if away else (w, x, y, z))
    return found
