"""Legs whose joints fold to alternate sides, within limits: a joint that reaches its limit stays there.

The limits are part of how a leg folds, see `folds`: each joint is clamped at every step of the fold. If the root joint
is then within its limits too, this is the pose; if not, the search continues from there.
"""

from __future__ import annotations

import numpy as np

from .free.axes import joints_of
from .free.bend_shares import mobility_of, shared
from .free.chains import Bent, Chain, aimed, at_pole, bent, write
from .free.folds import joints_in, place_of
from .limited.skeleton import Angles, Joint, Standing, arrays_of, nearest_angles, rows_of
from .maths.cones import at_limit
from .maths.numbers import Number, members
from .maths.products import determinants
from .maths.rotations import quaternions
from .maths.turns import Quaternion, between, inverse, matrix_of, multiply, rotate, turn_of
from .maths.vectors import Vector, either, size_of, unit_of
from .problem import Bools, Ints, Problem, Solution, Solver, reachable

FEW = 8
"""Up to this many legs are folded one by one in plain floats."""
WITHIN = 1e-9
"""Radians by which rounding may put a root joint outside its limits."""


def can_fold(problem: Problem) -> Bools:
    """Return which members (B,) are chains within limits whose joints fold by shares of their own."""
    is_leg = problem.limits is not None and problem.parents is None and problem.goal.rotation is None
    is_leg = is_leg and problem.solver is not Solver.FABRIK and not problem.others and problem.goal.segment is None
    is_leg = is_leg and np.shape(problem.frames)[1] > 2
    if problem.folds is None or not (is_leg and (problem.inherits is None or np.all(problem.inherits))):
        return np.zeros(len(problem.joints), dtype=bool)
    folds = np.asarray(problem.folds, dtype=np.float64)
    upright = (determinants(np.asarray(problem.frames, dtype=np.float64)) > 0.0).all(axis=1)
    return np.asarray(upright & (folds != 0.0).any(axis=(1, 2)) & np.isfinite(folds).all(axis=(1, 2)))


def fold_within(problem: Problem, solution: Solution, index: Ints) -> Ints:
    """Solve the legs `index` (k,) by folding them within their limits; return those that this does not bring there."""
    standing = Standing.of(problem, index)
    frames, rests = quaternions(standing.frames.transpose(2, 3, 1, 0)), quaternions(standing.body.rest)
    angles, misses = np.empty((3, *frames.shape[1:])), np.zeros(len(index), dtype=bool)
    for i in range(len(index)) if len(index) <= FEW else [None]:
        some: int | slice = np.s_[:] if i is None else i
        chain = members(Chain.read(problem), index) if i is None else Chain.read(problem, int(index[i]))
        joints = standing.body.skeleton(i).joints
        found, own, reaches = _folded(chain, problem, joints, *(rows_of(turns[..., some]) for turns in (frames, rests)))
        write(chain, found, solution, index[some])
        angles[..., some], misses[some] = arrays_of(own), np.logical_not(reaches)
    solution.at_limit[index] = at_limit(angles[:2], angles[2], standing.body.cone).T & standing.limited
    return index[misses]


def _folded(
    chain: Chain, problem: Problem, joints: list[Joint], frames: list[Quaternion], rests: list[Quaternion]
) -> tuple[Bent, Angles, Number]:
    """Return legs folded within their limits, their joint angles, and whether their tips are where they should be.

    Args:
        chain: the legs.
        problem: their settings.
        joints: the limits.
        frames: the bones' orientations in the FK pose.
        rests: their orientations at rest relative to the bone above; that of the root in space.
    """
    do, carried = chain.do, chain.carried
    reach = reachable(do, chain.lengths, size_of(do, chain.aim.target), chain.aim, problem)
    own, axes, chain_turn, _, _ = aimed(chain, reach.distance, None)
    if chain.aim.pole is not None:
        axes, chain_turn = at_pole(chain, chain.aim.pole, axes, chain_turn)
    shares = chain.folds
    assert shares is not None
    if not problem.bends_evenly:
        mobility = mobility_of(do, chain.lengths, carried, problem.stiffness, problem.bend_lead)
        shares = list(map(shared, shares, chain.frames, mobility))
    lengths = [length * factor for length, factor in zip(chain.lengths, reach.stretch, strict=True)]
    folding = joints_in(do, chain.directions, carried, shares)

    def clamped(i: int, zero: Quaternion, turn: Quaternion) -> tuple[Quaternion, Vector]:
        angles = nearest_angles(do, joints[i], multiply(inverse(zero), multiply(turn, frames[i])))
        return multiply(multiply(zero, turn_of(do, angles)), inverse(frames[i])), angles

    def turned_at(place: Number) -> tuple[list[Quaternion], Angles]:
        """Return the rotations of the bones at a place, with the root bone not turned, and the joint angles."""
        none = 0.0 * chain.scale
        turns, angles = [(none + 1.0, none, none, none)], [(none, none, none)]
        for i, joint in enumerate(folding[1:], 1):
            zero = multiply(multiply(turns[-1], frames[i - 1]), rests[i])
            turn, own = clamped(i, zero, multiply(turns[-1], joint.turn(do, place)))
            turns.append(turn)
            angles.append(own)
        return turns, angles

    def tip_at(turns: list[Quaternion]) -> Vector:
        return joints_of(list(map(rotate, turns, chain.directions)), lengths)[-1]

    place = place_of(do, lambda place: size_of(do, tip_at(turned_at(place)[0])) - reach.distance)
    turns, angles = turned_at(place)
    root = multiply(chain_turn, between(do, unit_of(do, tip_at(turns)), own.line, own.normal))
    # The root joint is clamped only at the end: its rotation depends on those of the others.
    held, angles[0] = clamped(0, rests[0], root)
    holds = 2.0 * size_of(do, multiply(inverse(held), root)[1:]) <= WITHIN
    whole = either(do, holds, root, held)
    found = bent(chain, reach, axes.line, [matrix_of(multiply(whole, turn)) for turn in turns], 0)
    return found, angles, holds & (found.error <= (abs(reach.shortfall) + chain.aim.tolerance) * chain.scale)
