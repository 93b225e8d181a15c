"""`solve`: turn a problem into its solution, with the kernel that suits the chain."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from .bodies import Known, begin_on_side, free_pose, known_of, search_from, solve_alone, solve_bodies, valid_members
from .free.axes import pole_bend
from .free.chains import Chain, aimed, write
from .legs import can_fold, fold_within
from .limb.two_bones import Hinge, unfollowed_by
from .maths.numbers import MANY, members
from .maths.vectors import cross, dot, size_of
from .planar import laid_flat, lifted
from .problem import Floats, Goal, OutOfReach, Problem, Solution, Solver, check_input

LARGE = 32_000_000
"""Bytes; a little less than the largest block to which glibc's malloc adapts."""


@cache
def keep_freed_memory() -> None:
    """Make glibc's malloc keep freed memory for the next arrays, instead of giving it back to the system.

    Does so once a process. The solvers allocate and free arrays of some hundred kilobytes all the time. Memory from the
    system is mapped page by page, which takes longer than the computation in it. malloc keeps blocks up to the size of
    the largest one freed so far (mallopt(3), M_MMAP_THRESHOLD), so it is enough to free one large block; nothing is
    ever written to it.
    """
    np.empty(LARGE, dtype=np.uint8)


FEW = 8
"""Up to this many chains are solved one by one in plain floats."""
CROWD = 256
"""From this many chains on, arrays are so large that it matters where their memory comes from."""


def check(problem: Problem) -> Known | None:
    """Check everything but the goals of a problem once, so that `solve` need not repeat it for each set of goals.

    Return None for chains of free joints, which have nothing to prepare.

    Raises:
        ValueError: as `solve` does.
    """
    if problem.is_free:
        return None
    check_input(problem)
    return known_of(problem)


def solve(problem: Problem, known: Known | None = None) -> Solution:
    """Return the pose of each chain of `problem` with its tip at its target, or as near as it can get.

    The result depends only on the problem, and each member of a batch is solved as it would be alone. A member that
    is not finite or has no length is returned unchanged, with `Status.INVALID`, and does not affect the others.

    Args:
        problem: B chains of n bones; see `Problem` for shapes, units and space.
        known: what `check` found in a problem that differs only in its goals; then only the goals are checked.

    Raises:
        ValueError: if shapes do not fit together, if settings are outside their range, or if `Solver.TWO_BONE` is
            requested for chains without exactly two segments that have length.
    """
    if known is None:
        check_input(problem)
    if len(problem.joints) >= CROWD:
        keep_freed_memory()
    if not problem.is_free:
        return _solved_body(problem, known_of(problem) if known is None else known)
    if problem.plane is not None:
        flat, turns = laid_flat(problem)
        return lifted(problem, flat, turns, solve(flat))
    solution, count = Solution.unsolved(problem), len(problem.joints)
    for i in range(count) if count <= FEW else [None]:
        chain = Chain.read(problem, i)
        valid = chain.is_valid
        for solver, suits in chain.kinds(problem.solver, valid):
            taken = suits & valid
            if i is not None and taken:
                write(chain, chain.solved(problem, solver), solution, i)
            elif i is None and taken.any():
                index = np.s_[:] if taken.all() else np.flatnonzero(taken)
                own = members(chain, index)
                write(own, own.solved(problem, solver), solution, index)
    return solution


def _solved_body(problem: Problem, known: Known) -> Solution:
    """Return the solution of a problem that is more than chains of free joints."""
    solution = known.unsolved.copy()
    valid = valid_members(problem, known)
    if problem.solver is Solver.TWO_BONE and problem.parents is None:
        Chain.read(problem).kinds(problem.solver, valid)  # raises an error if a chain does not suit
    index = np.flatnonzero(valid)
    if problem.folds is not None and (is_leg := can_fold(problem)[index]).any():
        fold_within(problem, solution, index[is_leg])
        index = index[~is_leg]
    if problem.bend_side is not None and (on_side := begin_on_side(problem)[index]).any():
        own, pose = index[on_side], free_pose(problem, solve)
        if len(own) <= FEW and problem.out_of_reach is OutOfReach.EXTEND and (known.side[own] > 0.0).all():
            solve_alone(problem, known, solution, own, pose)
        else:
            search_from(problem, pose, solution, own)
        index = index[~on_side]
    if len(index):
        solve_bodies(problem, solution, index, known)
    return solution


def pole_angle(
    joints: Floats,
    frames: Floats,
    target: Floats,
    pole: Floats,
    bend_side: Floats | None = None,
    *,
    folds: bool = False,
    hinge: Hinge | None = None,
) -> Floats:
    """Return the `Goal.pole_angle` (B,) in radians with which chains keep their current bend.

    A chain bends towards the part of its centroid, as a curve, that is perpendicular to the line from root to tip: for
    two bones that is where the elbow points. A straight chain bends about the X axis of its root bone. A chain with a
    bend side bends to that side, even where it is currently bent to another. The result is 0 where the pole lies on
    the line from root to target, and for members that are not finite or have no length.

    Args:
        joints: (B, n+1, 3) joints, root first.
        frames: (B, n, 3, 3) orientation of the bones.
        target: (B, 3) where the tip should be.
        pole: (B, 3) the point to bend towards.
        bend_side: (B, 3) see `Problem.bend_side`.
        folds: whether the chains have `Problem.folds`; their bend side then points to the pole, however they are bent.
        hinge: the knee of limbs whose limits make it a hinge; see `limb.two_bones`.

    Raises:
        ValueError: if shapes do not fit together.
    """
    problem = Problem(joints, frames, Goal(target, pole), bend_side=bend_side)
    check_input(problem)
    angles = np.zeros(len(problem.joints))
    if hinge is not None:
        # Where a hinge is bent, it decides the direction of the bend.
        rolls = unfollowed_by(np.asarray(joints), np.asarray(frames), hinge)
        if bend_side is not None:
            problem = replace(problem, bend_side=np.where(np.isnan(rolls)[:, None], bend_side, 0.0))
        angles -= np.nan_to_num(rolls)
    chains = Chain.read(problem)
    valid = chains.is_valid
    if valid.any():
        own = members(chains, valid)
        reached = np.minimum(size_of(MANY, own.aim.target), 1.0)
        _, axes, *_ = aimed(own, reached, None if folds else Solver.EVEN_BEND)
        bend = pole_bend(MANY, own.aim.pole, axes.line, axes.bend)
        angles[valid] += np.arctan2(dot(cross(bend, axes.bend), axes.line), dot(bend, axes.bend))
    return np.where(valid, angles, 0.0)
