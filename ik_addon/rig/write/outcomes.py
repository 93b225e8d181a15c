"""How solves ended: status, error, iterations and joints at limits of each chain, on F frames."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from ...solve import OutOfReach, Solution, Status
from ...solve.problem import Bools, Floats, Ints
from ..plan.groups import Wave
from ..plan.plan import Plan
from ..read.sample import Goals
from .alone import Output
from .limb import Limbs


class Outcomes:
    """How the solves of all chains of a plan ended, on F frames."""

    def __init__(self, plan: Plan, frames: int) -> None:
        """Begin with nothing solved."""
        shape = frames, len(plan.chains)
        self.status: NDArray[np.int8] = np.full(shape, Status.INVALID, dtype=np.int8)
        """(F, C) values of `Status`."""
        self.error: Floats = np.full(shape, np.nan)
        """(F, C) distance from effector to target, in chain lengths; NaN where INVALID."""
        self.iterations: Ints = np.zeros(shape, dtype=np.int64)
        """(F, C) number of solver steps."""
        self.at_limit: Bools = np.zeros((frames, len(plan.live)), dtype=bool)
        """(F, k) which bones of `Plan.live` are at a limit."""

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

    def put_alone(self, rows: Ints, chains: Ints, found: Sequence[Output]) -> None:
        """Set the outcomes of single chains (G,) on the only frame; `rows` (G, n) are those of their bones."""
        status, error, iterations, at_limit = zip(*(each[2:] for each in found), strict=True)
        self.status[0, chains], self.error[0, chains], self.iterations[0, chains] = status, error, iterations
        self.at_limit[0, rows] = at_limit

    def keep(self, wave: Wave, before: Outcomes) -> None:
        """Set the outcomes of a wave's groups to earlier ones."""
        for name, own in vars(self).items():
            chosen = wave.rows if name == "at_limit" else wave.chains
            own[:, chosen] = getattr(before, name)[:, chosen]

    def frames(self, chosen: slice) -> Outcomes:
        """Return the outcomes on only some of the frames."""
        some = copy(self)
        vars(some).update({name: own[chosen] for name, own in vars(self).items()})
        return some


def _lengths(limbs: Limbs, solution: Solution) -> Floats:
    """Return the lengths (B, E) of the chains in a solution; rigid chains keep their FK lengths."""
    rigid = limbs.rigid()
    if limbs.wave.shape.out_of_reach is OutOfReach.STRETCH or not rigid.any():
        return limbs.lengths(solution.joints)
    return limbs.length() if rigid.all() else np.where(rigid[:, None], limbs.length(), limbs.lengths(solution.joints))
