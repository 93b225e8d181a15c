"""Legs whose joints fold to alternate sides, within limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .free.bend_shares import folds_by, mobility_of
from .free.chains import Chain, aimed, at_pole, bent, write
from .free.folds import Legs
from .limb.folds import folded_within
from .maths.numbers import MANY, members
from .maths.rotations import stacked
from .problem import Ints, Problem, Solution
from .side_start import search_from


def fold_within(problem: Problem, solution: Solution, index: Ints) -> None:
    """Solve the legs `index` by folding them within their limits; where that misses, search on from the folded pose."""
    chosen = np.zeros(len(problem.joints), dtype=bool)
    chosen[index] = True
    chains = members(Chain.read(problem), chosen)
    assert problem.limits is not None
    assert chains.folds is not None
    carried, reach = chains.carried, chains.reach(problem)
    own, axes, chain_turn, _ = at_pole(chains, *aimed(chains, reach.distance, None))
    mobility = mobility_of(MANY, chains.lengths, carried, problem.stiffness, problem.bend_lead)
    shares = chains.folds if mobility is None else folds_by(MANY, chains.folds, chains.frames, mobility)
    lengths = [length * factor for length, factor in zip(chains.lengths, reach.stretch, strict=True)]
    legs = Legs.of(MANY, chains.directions, lengths, carried, shares)
    frames = np.asarray(problem.frames, dtype=np.float64)[index].transpose(2, 3, 1, 0)
    within = folded_within(problem.limits.of(chosen), frames, legs, reach.distance, own, stacked(*chain_turn))
    turns = [tuple(turn) for turn in within.turns.swapaxes(0, 1)]
    write(chains, bent(chains, reach, axes.line, turns, 0), solution, index)
    solution.at_limit[index] = within.at_limit
    shortfall = np.abs(reach.shortfall) + chains.tolerance
    left = ~(within.holds & (solution.error[index] <= shortfall * chains.scale))
    if not left.any():
        return
    # The folded pose stands in for the FK pose; it is rolled to the pole already.
    without_pole = replace(problem, goal=replace(problem.goal, pole=None, pole_angle=None))
    search_from(without_pole, solution.rotations.copy(), solution, index[left])
