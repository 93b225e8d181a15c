"""How solves ended: status, error, iterations and joints at limits of each chain, on F frames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...solve import OutOfReach, Solution, Status
from ...solve.problem import Bools, Floats, Ints
from ..plan.groups import Wave
from ..plan.plan import Plan
from ..read.sample import Goals
from .alone import Output
from .limb import Limbs


@dataclass(frozen=True)
class Outcome:
    """How the solves of one chain ended, on F frames."""

    status: NDArray[np.int8]
    """(F,) values of `Status`."""
    error: Floats
    """(F,) distance from effector to target, in chain lengths; NaN where INVALID."""
    iterations: Ints
    """(F,)"""
    at_limit: Bools
    """(F, n) which bones that the chain poses, root first, are at a limit."""


class _Arrays(NamedTuple):
    """See `Outcomes`."""

    status: NDArray[np.int8]
    error: Floats
    iterations: Ints
    at_limit: Bools


OUTCOMES = _Arrays._fields


class Outcomes:
    """How the solves of all chains of a plan ended, on F frames."""

    def __init__(self, plan: Plan, frames: int) -> None:
        """Begin with nothing solved."""
        self._plan, self._frames = plan, frames
        self._alone: list[tuple[Ints, int, Output]] = []
        """Solutions of single chains, which are put into arrays only if they are asked for."""

    @cached_property
    def _arrays(self) -> _Arrays:
        shape = self._frames, len(self._plan.chains)
        return _Arrays(
            np.full(shape, Status.INVALID, dtype=np.int8),
            np.full(shape, np.nan),
            np.zeros(shape, dtype=np.int64),
            np.zeros((self._frames, len(self._plan.live)), dtype=bool),
        )

    def _asked(self) -> _Arrays:
        arrays, alone = self._arrays, self._alone
        self._alone = []
        for rows, chain, found in alone:
            arrays.status[0, chain], arrays.error[0, chain] = found.status, found.error
            arrays.iterations[0, chain], arrays.at_limit[0, rows] = found.iterations, found.at_limit
        return arrays

    @property
    def status(self) -> NDArray[np.int8]:
        """(F, C) values of `Status`."""
        return self._asked().status

    @property
    def error(self) -> Floats:
        """(F, C) see `Outcome`."""
        return self._asked().error

    @property
    def iterations(self) -> Ints:
        """(F, C) number of solver steps."""
        return self._asked().iterations

    @property
    def at_limit(self) -> Bools:
        """(F, k) which bones of `Plan.live` are at a limit."""
        return self._asked().at_limit

    def put(self, limbs: Limbs, solution: Solution, goals: Goals) -> None:
        """Set the outcomes of a wave, whose goals are (B, E)."""
        wave = limbs.wave
        lengths = _lengths(limbs, solution)
        distance = solution.error[:, None] if wave.shape.is_chain else solution.error
        with np.errstate(all="ignore"):
            error = distance / lengths
        # A tree has one status, but some of its chains may have reached their targets.
        reached, own = error <= goals.tolerance, solution.status[:, None]
        status = np.where(reached & (own != Status.INVALID), np.int8(Status.REACHED), own)
        self.status[:, wave.chains] = wave.as_frames(status)
        self.error[:, wave.chains] = wave.as_frames(error)
        self.iterations[:, wave.chains] = wave.as_frames(solution.iterations[:, None])
        self.at_limit[:, wave.rows] = wave.as_frames(solution.at_limit)

    def put_alone(self, rows: Ints, chain: int, found: Output) -> None:
        """Set the outcome of one chain on the only frame, by its index; `rows` (n,) are those of its bones."""
        self._alone.append((rows, chain, found))

    def put_end(self, wave: Wave, at_limit: Bools) -> None:
        """Set which end bones (B,) of a wave of end bones are at a limit."""
        self.at_limit[:, wave.rows] = wave.as_frames(at_limit[:, None])

    def keep(self, wave: Wave, before: Outcomes) -> None:
        """Set the outcomes of a wave's groups to earlier ones."""
        for name in OUTCOMES:
            chosen = wave.rows if name == "at_limit" else wave.chains
            getattr(self, name)[:, chosen] = getattr(before, name)[:, chosen]

    def frames(self, chosen: slice) -> Outcomes:
        """Return the outcomes on only some of the frames."""
        some = Outcomes(self._plan, 0)
        status, error, iterations, at_limit = self._asked()
        some._arrays = _Arrays(status[chosen], error[chosen], iterations[chosen], at_limit[chosen])
        return some

    def __getitem__(self, chain: int) -> Outcome:
        """Return the outcome of one chain, by its index in the plan."""
        rows = [self._plan.rows[bone] for bone in self._plan.chains[chain].posed]
        return Outcome(self.status[:, chain], self.error[:, chain], self.iterations[:, chain], self.at_limit[:, rows])


def _lengths(limbs: Limbs, solution: Solution) -> Floats:
    """Return the lengths (B, E) of the chains in a solution; rigid chains keep their FK lengths."""
    rigid = limbs.rigid()
    if limbs.wave.shape.out_of_reach is OutOfReach.STRETCH or not rigid.any():
        return limbs.lengths(solution.joints)
    return limbs.length() if rigid.all() else np.where(rigid[:, None], limbs.length(), limbs.lengths(solution.joints))
