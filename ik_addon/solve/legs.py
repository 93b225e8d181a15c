"""Legs whose joints fold to alternate sides, within limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .free.bend_shares import mobility_of
from .free.chains import Chains, aimed, at_poles, write
from .free.even_bend import apart
from .free.folds import Legs
from .free.single import NO_LENGTH
from .limb.folds import folded_within
from .maths.numbers import MANY
from .problem import Ints, Problem, Solution
from .side_start import search_from


def fold_within(problem: Problem, solution: Solution, index: Ints) -> None:
    """Solve the legs `index` by folding them within their limits; where that misses, search on from the folded pose."""
    chosen = np.zeros(len(problem.joints), dtype=bool)
    chosen[index] = True
    chains = Chains.of(problem).members(chosen)
    carried = chains.lengths <= NO_LENGTH
    reach = chains.reach(problem)
    own, axes, chain_turn, _ = at_poles(chains, *aimed(chains, reach.distance, None))
    shares = chains.shares(mobility_of(chains.lengths, ~carried, problem.stiffness, problem.bend_lead))
    lengths = list(chains.lengths * reach.stretch)
    legs = Legs.of(MANY, apart(chains.directions), lengths, list(carried), apart(shares))
    assert problem.limits is not None
    within = folded_within(problem.limits.of(chosen), chains.frames, legs, reach.distance, own, chain_turn)
    write(chains, reach, axes.line, within.turns, np.zeros(len(index), dtype=np.int64), solution, index)
    solution.at_limit[index] = within.at_limit
    shortfall = np.abs(reach.shortfall) + chains.tolerance
    left = ~(within.holds & (solution.error[index] <= shortfall * chains.scale))
    if not left.any():
        return
    # The folded pose stands in for the FK pose; it is rolled to the pole already.
    without_pole = replace(problem, goal=replace(problem.goal, pole=None, pole_angle=None))
    search_from(without_pole, solution.rotations.copy(), solution, index[left])
