"""`solve`: turn a problem into its solution, with the kernel that suits the chain.

What is more than chains of free joints is checked once (`Known`), mirrored where frames are left-handed, and begun on
its bend side.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from .free.axes import corner_of, pole_bend
from .free.chains import Chain, aimed, write
from .legs import can_fold, fold_within
from .limb.limb import solve_limbs
from .limb.two_bones import Hinge, KnownLimbs, unfollowed_by
from .limited.crowd import solve_together, suits
from .limited.search import Alone, solve_alone
from .limited.skeleton import FEW as FEW_BODIES
from .limited.skeleton import Standing
from .maths import products, rotations
from .maths.numbers import MANY, members
from .maths.products import applied, back_applied, determinants, lengths_of, times_back
from .maths.vectors import cross, dot, size_of
from .planar import laid_flat, lifted
from .problem import (
    Bools,
    Floats,
    Goal,
    Ints,
    OutOfReach,
    Problem,
    Solution,
    Solver,
    Status,
    chain_lengths,
    check_input,
)

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
        for solver, fits in chain.kinds(problem.solver, valid):
            taken = fits & valid
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
        missed = fold_within(problem, solution, index[is_leg])
        if len(missed):
            # The folded pose stands in for the FK pose; it is rolled to the pole already.
            without_pole = replace(problem, goal=replace(problem.goal, pole=None, pole_angle=None))
            solve_bodies(without_pole, solution, missed, known, solution.rotations.copy())
        index = index[~is_leg]
    if problem.bend_side is not None and (on_side := begin_on_side(problem)[index]).any():
        solve_bodies(problem, solution, index[on_side], known, free_pose(problem))
        index = index[~on_side]
    if len(index):
        solve_bodies(problem, solution, index, known)
    return solution


_FARTHEST = 1e50
"""Points farther away than this, in chain lengths, count as infinite: computing with their squares could overflow."""


class Known(NamedTuple):
    """What `solver.check` finds in a problem that is more than chains of free joints; it holds for any goals."""

    valid: Bools
    """(B,) whether all but the goals is valid: everything is finite, and no chain has zero length."""
    longest: Floats
    """(B,) length of the longest chain."""
    side: Floats
    """(B,) -1 if frames are left-handed."""
    limbs: KnownLimbs | None
    """Members that may be solved in closed form."""
    unsolved: Solution
    """The members in their FK pose."""
    alone: dict[Hashable, Alone]
    """Members that were searched for, by index and by the bones and weights of their goals."""


def known_of(problem: Problem) -> Known:
    """Check everything but the goals of members."""
    with np.errstate(all="ignore"):
        frames = np.asarray(problem.frames, dtype=np.float64)
        proper, lengths = determinants(frames), chain_lengths(problem)
        # No number of frames or joints that is not finite passes these.
        ok = ((np.abs(np.abs(proper) - 1.0) < 0.1) & (proper * proper[:, :1] > 0.0)).all(axis=1)
        ok &= ((lengths > 1e-100) & (lengths < np.inf)).all(axis=0)
        longest = lengths.max(axis=0)
        joints = np.asarray(problem.joints, dtype=np.float64)
        ok &= np.abs(joints - joints[:, :1]).max(axis=(1, 2)) < _FARTHEST * longest
        if problem.limits is not None:
            ok &= np.isfinite(problem.limits.root).all(axis=(1, 2))
            if np.ndim(problem.limits.rest) == 4:
                ok &= np.isfinite(problem.limits.rest).all(axis=(1, 2, 3))
            sides = np.sign(determinants(np.asarray(problem.limits.root, dtype=np.float64)))
            ok &= sides == np.sign(proper[:, 0])
            # A bone that does not inherit rotation is measured from a rest frame that has no mirror image.
            ok &= (sides > 0.0) | (problem.inherits is None or bool(np.all(problem.inherits)))
    limbs = KnownLimbs.of(problem) if proper.shape[1] in (2, 3) else None
    return Known(np.asarray(ok), longest, np.sign(proper[:, 0]), limbs, Solution.unsolved(problem), {})


def valid_members(problem: Problem, known: Known) -> Bools:
    """Return which members (B,) can be solved, from their goals and the check of everything else."""
    ok, root = known.valid, np.asarray(problem.joints, dtype=np.float64)[:, 0]
    with np.errstate(all="ignore"):
        ok = ok & np.isfinite(problem.softness) & ~np.isnan(problem.push_limit) & ~np.isnan(problem.tolerance)
        farthest = _FARTHEST * known.longest
        for goal in problem.goals:
            for place in (goal.target, goal.pole):
                if place is not None:
                    ok &= np.abs(place - root).max(axis=1) < farthest
            if goal.pole_angle is not None:
                ok &= np.isfinite(goal.pole_angle)
            if goal.rotation is not None:
                ok &= np.isfinite(goal.rotation).all(axis=(1, 2))
    return np.asarray(ok)


def solve_bodies(problem: Problem, solution: Solution, index: Ints, known: Known, turns: Floats | None = None) -> None:
    """Solve members and write them into the solution.

    Args:
        problem: the problem.
        solution: what the members are written into.
        index: (k,) the members, whose input is already checked.
        known: of this problem, or of one that differs only in its goals.
        turns: (B, n, 3, 3) rotations of bones from FK to the pose from which to search; None: from FK, if at all.
    """
    side = np.ones(len(problem.joints))
    side[index] = known.side[index]
    if (side < 0.0).any():
        mirrored = _reflected(problem, side)
        own = known._replace(side=np.ones_like(side), limbs=known.limbs and KnownLimbs.of(mirrored), alone={})
        solve_bodies(mirrored, solution, index, own, None if turns is None else _both_sides(turns, side))
        solution.joints[..., 0] *= side[:, None]
        solution.rotations[:] = _both_sides(solution.rotations, side)
        return
    if known.limbs is not None and turns is None:
        if len(index) > FEW:
            index = solve_free_feet(problem, solution, index)
        index = solve_limbs(problem, known.limbs, solution, index)
    standing = Standing.of(problem, index) if len(index) > FEW_BODIES and suits(problem) else None
    if standing is not None and standing.suits:
        solve_together(problem, solution, index, standing, turns)
    elif len(index):
        solve_alone(problem, known.alone, solution, index, turns)


def _reflected(problem: Problem, side: Floats) -> Problem:
    """Return a problem with members whose `side` (B,) is -1 mirrored at X = 0, so that frames are right-handed.

    The motion of a joint relative to its bones, and so the meaning of its limits, stays the same.
    """
    across = np.stack([side, np.ones_like(side), np.ones_like(side)], axis=-1)

    def goal_of(goal: Goal) -> Goal:
        # A mirrored bone can't have right-handed axes: Y and Z are as wanted, X is opposite.
        return replace(
            goal,
            target=goal.target * across,
            pole=None if goal.pole is None else goal.pole * across,
            pole_angle=None if goal.pole_angle is None else goal.pole_angle * side,
            rotation=None if goal.rotation is None else _both_sides(goal.rotation, side),
        )

    limits = problem.limits
    return replace(
        problem,
        joints=problem.joints * across[:, None],
        frames=problem.frames * across[:, None, :, None],
        goal=goal_of(problem.goal),
        others=tuple(map(goal_of, problem.others)),
        limits=None if limits is None else replace(limits, root=limits.root * across[:, :, None]),
    )


def _both_sides(matrix: Floats, side: Floats) -> Floats:
    """Return matrices (B, ..., 3, 3), with X mirrored before and after for members whose `side` (B,) is -1."""
    across = np.ones((len(side), 3, 3))
    across[:, 0, 1:] = across[:, 1:, 0] = side[:, None]
    return np.asarray(matrix * across.reshape(len(side), *[1] * (np.ndim(matrix) - 3), 3, 3))


SHORT = 3
"""Chains of fewer bones, and chains of this many with an orientation, are solved in closed form."""


def begin_on_side(problem: Problem) -> Bools:
    """Return which members (B,) of a problem that needs a search start it on their bend side."""
    bones = np.shape(problem.frames)[1]
    is_chain = problem.parents is None and not problem.others and problem.goal.segment is None
    is_long = bones > SHORT or (bones == SHORT and problem.goal.rotation is None)
    if problem.bend_side is None or problem.solver is Solver.FABRIK or not (is_chain and is_long):
        return np.zeros(len(problem.joints), dtype=bool)
    return np.asarray((np.asarray(problem.bend_side) != 0.0).any(axis=1))


def free_pose(problem: Problem) -> Floats:
    """Return the bone rotations (B, n, 3, 3) with which chains reach their goals if limits are ignored."""
    if problem.goal.rotation is None:
        return solve(replace(problem, limits=None, plane=None)).rotations
    before, _, last = without_last(problem)
    return np.concatenate([solve(before).rotations, last[:, None]], axis=1)


def without_last(problem: Problem) -> tuple[Problem, Floats, Floats]:
    """Return chains without the last bone, which takes an orientation: the others bring its head to its place.

    Returns:
        The problem of the others without limits, the way (B, 3) from the head of the last bone to its end, and its
        rotation (B, 3, 3).
    """
    joints, frames = np.asarray(problem.joints, np.float64), np.asarray(problem.frames, np.float64)
    goal, rotation = problem.goal, np.asarray(problem.goal.rotation, dtype=np.float64)
    tip = applied(rotation, back_applied(frames[:, -1], joints[:, -1] - joints[:, -2]))
    before = replace(
        problem,
        joints=joints[:, :-1],
        frames=frames[:, :-1],
        goal=Goal(np.asarray(goal.target) - tip, goal.pole, goal.pole_angle),
        inherits=None if problem.inherits is None else problem.inherits[:-1],
        stretch_weights=None if problem.stretch_weights is None else problem.stretch_weights[:-1],
        stiffness=None if problem.stiffness is None else problem.stiffness[:-1],
        folds=None if problem.folds is None else problem.folds[:, :-1],
        limits=None,
        plane=None,
    )
    return before, tip, times_back(rotation, frames[:, -1])


_ARRIVED = 1e-9
"""Maximum miss of the head of a foot, in chain lengths, for the foot to have both its place and its orientation."""


def solve_free_feet(problem: Problem, solution: Solution, index: Ints) -> Ints:
    """Solve free limbs whose feet or hands take an orientation, on arrays, and return the other members `index` (k,).

    Left out are limits and bend sides, and what has more than one answer, from which `limb.limb` chooses: targets that
    are not simply in reach, and poles that none or two of the poses follow. 64 limbs take a fourth of the time so.
    """
    has_feet = np.shape(problem.frames)[1] == 3 and problem.goal.rotation is not None
    is_free = problem.limits is None and problem.bend_side is None and problem.goal.segment in (None, 2)
    if not (has_feet and is_free):
        return index
    own = problem.members(index)
    before, tip, last = without_last(own)
    joints = np.asarray(own.joints, dtype=np.float64)
    root, sizes = joints[:, 0], lengths_of(np.diff(joints, axis=1)).T
    whole = sizes.sum(axis=0)
    target, ankle = np.asarray(own.goal.target) - root, np.asarray(before.goal.target) - root
    away = lengths_of(target) / whole
    good = (away > 2.0 * sizes.max(axis=0) / whole - 1.0) & (away <= 1.0 - own.softness)
    if own.goal.pole is not None:
        bend, is_clear = bend_with_foot(own.goal, sizes / whole, (target.T, ankle.T), root, whole)
        good &= is_clear
        before = replace(before, goal=Goal(before.goal.target, root + (bend * whole).T))
    found = solve(replace(before, softness=0.0, out_of_reach=OutOfReach.EXTEND))
    ends = found.joints[:, -1] + tip
    error = lengths_of(own.goal.target - ends)
    good &= (found.error <= _ARRIVED * whole) & (error <= own.tolerance * whole)
    taken = index[good]
    solution.joints[taken] = np.concatenate([found.joints, ends[:, None]], axis=1)[good]
    solution.rotations[taken] = np.concatenate([found.rotations, last[:, None]], axis=1)[good]
    solution.error[taken], solution.status[taken] = error[good], Status.REACHED
    left: Ints = index[~good]
    return left


def bend_with_foot(
    goal: Goal, lengths: Floats, places: tuple[Floats, Floats], root: Floats, whole: Floats
) -> tuple[Floats, Bools]:
    """Return to which side (3, B) limbs bend that bring the centroid of limb and foot to the side of their pole.

    See `limb.towards_with_foot`, which decides where the second result (B,) is False.

    Args:
        goal: with a pole.
        lengths: (3, B) of the bones, in chain lengths.
        places: (3, B) of the target and of the foot's head, relative to the root.
        root: (B, 3)
        whole: (B,) the lengths of the chains.
    """
    unit, reject, dot = rotations.unit, rotations.reject, rotations.dot
    assert goal.pole is not None
    with np.errstate(all="ignore"):
        target, ankle, pole = (place / whole for place in (*places, (goal.pole - root).T))
        distance = rotations.norm(ankle)
        aim, line = unit(target), ankle / distance
        side = reject(pole, aim)
        is_clear = rotations.norm(side) > 1e-6 * rotations.norm(pole) + 1e-9
        angle = 0.0 if goal.pole_angle is None else goal.pole_angle
        wanted = unit(reject(rotations.rotate(rotations.about_vectors(aim * angle), side), aim))
        across, one = rotations.cross(aim, wanted), unit(reject(wanted, line))
        other = rotations.cross(line, one)
        along, beside = corner_of(MANY, lengths[0], lengths[1], distance)
        masses = (lengths[0] + lengths[1]) / 2.0, (lengths[1] + lengths[2]) / 2.0
        middle, size = line * masses[0] * along + ankle * masses[1], masses[0] * beside
        constant, c, s = dot(across, middle), size * dot(across, one), size * dot(across, other)
        half, turn = np.arccos(-constant / np.hypot(c, s)), np.arctan2(s, c)
        bends = [one * np.cos(roll) + other * np.sin(roll) for roll in (turn + half, turn - half)]
        first, second = (dot(wanted, middle + size * bend) > 0.0 for bend in bends)
    return np.where(first, *bends), is_clear & (first != second)


def posed_by(problem: Problem, turns: Floats) -> Problem:
    """Return a problem with its FK pose turned by rotations (B, n, 3, 3) of its bones."""
    joints, frames = (np.asarray(array, dtype=np.float64) for array in (problem.joints, problem.frames))
    bones = frames.shape[1]
    parents = list(range(-1, bones - 1)) if problem.parents is None else np.asarray(problem.parents).tolist()
    ends = [bones - 1 if goal.segment is None else goal.segment for goal in problem.goals]
    turned = joints.copy()
    for joint, parent in enumerate([*parents, *ends]):
        if parent >= 0:
            turned[:, joint] = turned[:, parent] + applied(turns[:, parent], joints[:, joint] - joints[:, parent])
    above = turns[:, [0, *range(bones - 1)]]
    return replace(
        problem,
        joints=turned,
        frames=products.times(turns, frames),
        bend_side=None if problem.bend_side is None else applied(turns[:, 0], np.asarray(problem.bend_side)),
        folds=None if problem.folds is None else applied(above, np.asarray(problem.folds)),
    )


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
