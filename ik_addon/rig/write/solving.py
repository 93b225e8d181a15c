"""Solve the chains or trees of one wave: FK limbs and their goals in, solved limbs out."""

from __future__ import annotations

import numpy as np

from ...solve import Goal, Problem, Solution, Status, solve
from ...solve.problem import Bools, Floats
from ...solve.rotations import norm
from ..plan.groups import paths
from ..read.sample import Goals
from .limb import Limbs
from .outcomes import Outcomes

REFINEMENTS = 4
"""How often a chain is solved again where inherited scale made the written pose miss the solved one."""
WRITTEN_TOLERANCE = 1e-6
"""The miss, in chain lengths, from which that is worthwhile."""


def solve_limbs(limbs: Limbs, goals: Goals, outcomes: Outcomes) -> Limbs:
    """Solve groups, whose goals are (B, E), write the solution to their channels and record how the solves ended."""
    solution, posed = _solve_once(limbs, goals)
    for _ in range(REFINEMENTS):
        missed = posed.misses(solution, WRITTEN_TOLERANCE)
        if not missed.any():
            break
        # Inherited non-uniform scale changes the lengths as the bones turn: go on from the pose that resulted.
        better, again = _solve_once(posed.members(missed), goals.members(missed))
        # In that pose a chain may have lost its length: then it stays there.
        usable = better.status != Status.INVALID
        missed[missed] = usable
        posed.put(missed, again.members(usable))
        for name in ("joints", "error", "status", "at_limit"):
            getattr(solution, name)[missed] = getattr(better, name)[usable]
    else:
        missed = posed.misses(solution, WRITTEN_TOLERANCE)
    if missed.any():
        _correct_outcome(solution, posed, goals, missed)
    outcomes.put(limbs, solution, goals)
    if (goals.influence < 1.0).any():
        posed = posed.blended(limbs, _influence(limbs, goals))
    return posed


def _correct_outcome(solution: Solution, posed: Limbs, goals: Goals, missed: Bools) -> None:
    """Set error and status to those of the written pose, for the members (B,) where it `missed` the solved one."""
    joints = posed.joints()[:, posed.wave.bones.shape[1] :]
    distances = norm((joints - goals.target).T).T
    solution.error[missed] = (distances if solution.error.ndim == 2 else distances[:, 0])[missed]
    away = (distances > goals.tolerance * posed.lengths(posed.joints())).any(axis=1)
    solution.status[missed & away & (solution.status == Status.REACHED)] = Status.NOT_CONVERGED


def _solve_once(limbs: Limbs, goals: Goals) -> tuple[Solution, Limbs]:
    shape, frames = limbs.wave.shape, limbs.frames()
    tree = not shape.is_chain
    wanted = [
        Goal(
            target=goals.target[:, e],
            pole=goals.pole[:, e] if shape.poles[e] else None,
            pole_angle=goals.pole_angle[:, e],
            rotation=goals.rotation[:, e] if shape.turns[e] else None,
            segment=shape.segments[e] if tree else None,
            weight=shape.weights[e],
        )
        for e in range(len(shape.segments))
    ]
    solution = solve(
        Problem(
            joints=limbs.joints(),
            frames=frames,
            goal=wanted[0],
            others=tuple(wanted[1:]),
            parents=np.array(shape.parents) if tree else None,
            inherits=np.array(shape.inherits),
            solver=shape.solver,
            out_of_reach=shape.out_of_reach,
            softness=0.0 if tree else goals.softness[:, 0],
            push_limit=goals.push_limit[:, 0],
            stretch_weights=np.array(shape.stretch_weights),
            tolerance=goals.tolerance.min(axis=1),
            iterations=shape.iterations,
            limits=limbs.limits(),
            bend_side=limbs.bend_side(frames),
            plane=limbs.plane(),
            stiffness=None if shape.stiffness is None else np.array(shape.stiffness),
            bend_lead=shape.bend_lead,
        )
    )
    return solution, limbs.solved(solution.rotations @ frames, solution)


def _influence(limbs: Limbs, goals: Goals) -> Floats:
    """Influence (B, n) on each bone: that of its chain, the greatest where chains share it."""
    shape = limbs.wave.shape
    influence = np.zeros((len(limbs.group), len(shape.parents)))
    for e, path in enumerate(paths(shape.parents, shape.segments)):
        own = list(path[:-1])
        influence[:, own] = np.maximum(influence[:, own], goals.influence[:, e, None])
    return influence
