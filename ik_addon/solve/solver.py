"""`solve`: from a problem to its solution, by the kernel that suits the chain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import fabrik
from .bend_shares import mobility_of, shared_guess
from .bodies import check_ranges, solve_bodies, valid_members, wants_body
from .calculus import MANY
from .even_bend import apart, first_guess, flattened, solve_directions, together
from .fabrik_body import led_by_tips
from .planar import laid_flat, lifted
from .problem import Bools, Floats, Goal, Ints, Problem, Solution, Solver, Status
from .reach import reachable
from .rotations import about, between, cross, dot, identity, matrices, multiply, norm, reject, rotate, stacked, unit
from .sides import side_bend
from .single import NO_DISTANCE, NO_LENGTH, SAME, solve_single
from .twist import (
    STRAIGHT,
    Axes,
    add_up,
    bone_rotations,
    centroid,
    chain_axes,
    joints_of,
    pole_bend,
    signed_angle,
    tip_of,
    total,
)
from .two_bone import triangle

FEW = 8
"""Up to this many chains are solved one by one in plain floats."""


def solve(problem: Problem) -> Solution:
    """Return the pose of each chain of `problem` in which its tip stands on its target, or as near as it can.

    The result depends on nothing but the problem, and a member of a batch is solved as it would be alone. A member
    that is not finite or has no length comes back as it was, with `Status.INVALID`, and disturbs no other.

    Args:
        problem: B chains of n bones; see `Problem` for shapes, units and space.

    Raises:
        ValueError: if shapes do not fit together, if settings are outside their range, or if `Solver.TWO_BONE` is
            asked of chains that do not have two segments with length.
    """
    bones, members = _checked_shape(problem)
    if problem.plane is not None and not wants_body(problem):
        flat, turns = laid_flat(problem)
        return lifted(problem, flat, turns, solve(flat))
    solution = Solution(
        joints=np.array(problem.joints, dtype=np.float64),
        rotations=np.full((members, bones, 3, 3), np.eye(3)),
        stretch=np.ones((members, bones)),
        error=np.full((members, len(problem.goals)) if problem.others else members, np.nan),
        status=np.full(members, Status.INVALID, dtype=np.int8),
        iterations=np.zeros(members, dtype=np.int64),
        at_limit=np.zeros((members, bones), dtype=bool),
    )
    if wants_body(problem):
        index = np.flatnonzero(valid_members(problem))
        if len(index):
            solve_bodies(problem, solution, index, led_by_tips if problem.solver is Solver.FABRIK else None)
        return solution
    left = np.ones(members, dtype=bool)
    if members <= FEW:
        left[:] = [not solve_single(problem, solution, i) for i in range(members)]
        if not left.any():
            return solution
    chains = _Chains.of(problem)
    valid = left & chains.valid()
    two_bone = _takes_two_bone(problem.solver, np.count_nonzero(chains.lengths > NO_LENGTH, axis=0), valid)
    longer = Solver.FABRIK if problem.solver is Solver.FABRIK else Solver.EVEN_BEND
    for solver, chosen in ((Solver.TWO_BONE, valid & two_bone), (longer, valid & ~two_bone)):
        if chosen.any():
            own = chains if chosen.all() else chains.members(chosen)
            _solve_valid(problem, solver, own, solution, np.s_[:] if chosen.all() else np.flatnonzero(chosen))
    return solution


def pole_angle(joints: Floats, frames: Floats, target: Floats, pole: Floats, bend_side: Floats | None = None) -> Floats:
    """Return the `Goal.pole_angle` (B,) in radians with which chains keep their present bend.

    A chain bends towards the perpendicular part of its centroid as a curve, seen from the line from root to tip: for
    two bones that is where the elbow points. A straight chain bends about the X axis of its root bone; one with a bend
    side to that side, as well where it is bent to another one. The result is 0 where the pole lies on the line from
    root to target, and for members that are not finite or have no length.

    Args:
        joints: (B, n+1, 3) joints, root first.
        frames: (B, n, 3, 3) orientation of the bones.
        target: (B, 3) where the tip should be.
        pole: (B, 3) the point to bend towards.
        bend_side: (B, 3) see `Problem.bend_side`.

    Raises:
        ValueError: if shapes do not fit together.
    """
    problem = Problem(joints, frames, Goal(target, pole), bend_side=bend_side)
    _, members = _checked_shape(problem)
    chains = _Chains.of(problem)
    valid = chains.valid()
    angles = np.zeros(members)
    if valid.any():
        own = chains.members(valid)
        _, axes, _, _ = _aimed(own, np.minimum(norm(own.target), 1.0))
        towards = np.asarray(pole, dtype=np.float64).T[:, valid] - np.asarray(joints, dtype=np.float64)[valid, 0].T
        angles[valid] = signed_angle(pole_bend(towards, axes.line, axes.bend), axes.bend, axes.line)
    return angles


@dataclass(frozen=True)
class _Chains:
    """The input as the kernels want it: seen from the root, in chain lengths, components first, members last."""

    scale: Floats
    """(B,) chain length in the problem's unit."""
    directions: Floats
    """(3, n, B) unit; zero where a segment has no length at all."""
    lengths: Floats
    """(n, B), the sum over n being 1."""
    frames: Floats
    """(3, 3, n, B)"""
    target: Floats
    """(3, B)"""
    pole: Floats | None
    """(3, B)"""
    side: Floats | None
    """(3, B) see `Problem.bend_side`; None also where FABRIK is asked for."""
    pole_angle: Floats
    softness: Floats
    push_limit: Floats
    tolerance: Floats

    @classmethod
    def of(cls, problem: Problem) -> _Chains:
        """Read a problem whose shapes are right; members that are not valid may hold anything, NaN too."""
        members = len(problem.joints)
        with np.errstate(all="ignore"):
            joints = np.asarray(problem.joints, dtype=np.float64).transpose(2, 1, 0)
            root = joints[:, 0]
            segments = np.ascontiguousarray(joints[:, 1:] - joints[:, :-1])
            sizes = norm(segments)
            scale = total(sizes)
            target = (np.asarray(problem.goal.target, dtype=np.float64).T - root) / scale
            pole = problem.goal.pole
            sides = None if problem.solver is Solver.FABRIK else problem.bend_side
            return cls(
                scale=scale,
                directions=unit(segments),
                lengths=sizes / scale,
                frames=np.ascontiguousarray(np.asarray(problem.frames, dtype=np.float64).transpose(2, 3, 1, 0)),
                target=target,
                pole=None if pole is None else (np.asarray(pole, dtype=np.float64).T - root) / scale,
                side=None if sides is None else np.asarray(sides, dtype=np.float64).T,
                pole_angle=_per_member(0.0 if problem.goal.pole_angle is None else problem.goal.pole_angle, members),
                softness=_per_member(problem.softness, members),
                push_limit=_per_member(problem.push_limit, members),
                tolerance=_per_member(problem.tolerance, members),
            )

    def valid(self) -> Bools:
        """Return which members (B,) can be solved."""
        with np.errstate(all="ignore"):
            ok = np.isfinite(self.lengths).all(axis=0) & (self.scale > 1e-100) & np.isfinite(norm(self.target))
            columns = self.frames[:, ::2]
            ok &= np.isfinite(self.frames).all(axis=(0, 1, 2)) & (norm(columns) > 0.5).all(axis=(0, 1))
            ok &= np.isfinite(self.pole_angle) & np.isfinite(self.softness)
            ok &= ~np.isnan(self.push_limit) & ~np.isnan(self.tolerance)
            if self.pole is not None:
                ok &= np.isfinite(norm(self.pole))
            if self.side is not None:
                ok &= np.isfinite(norm(self.side))
        return np.asarray(ok)

    def members(self, chosen: Bools) -> _Chains:
        """Return the chosen (B,) members alone."""
        return _Chains(
            *(None if value is None else value[..., chosen] for value in vars(self).values()),  # type: ignore[arg-type]
        )


def _per_member(value: Floats | float, members: int) -> Floats:
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (members,))


def _checked_shape(problem: Problem) -> tuple[int, int]:
    """Return the number of bones and of members, or raise ValueError saying what does not fit."""
    shape = np.shape(problem.joints)
    goals = problem.goals
    if len(shape) != 3 or shape[2] != 3 or shape[1] < 1 + len(goals):
        ends = f"{len(goals)}" if len(goals) > 1 else "1"
        raise ValueError(f"joints must have the shape (B, n+{ends}, 3) with n of at least 1, not {shape}")
    members, bones = shape[0], shape[1] - len(goals)
    wanted = [
        ("frames", problem.frames, (members, bones, 3, 3)),
        ("inherits", problem.inherits, (bones,)),
        ("bend_side", problem.bend_side, (members, 3)),
        ("plane", problem.plane, (members, 3)),
        ("stretch_weights", problem.stretch_weights, (bones,)),
        ("parents", problem.parents, (bones,)),
        ("stiffness", problem.stiffness, (bones, 3)),
    ]
    for e, goal in enumerate(goals):
        name = f"others[{e - 1}]" if e else "goal"
        wanted.append((f"{name}.target", goal.target, (members, 3)))
        wanted.append((f"{name}.pole", goal.pole, (members, 3)))
        wanted.append((f"{name}.rotation", goal.rotation, (members, 3, 3)))
        if goal.segment is not None and not 0 <= goal.segment < bones:
            raise ValueError(f"{name}.segment must be the index of one of the {bones} bones, not {goal.segment}")
        if not (np.isfinite(goal.weight) and goal.weight > 0.0):
            raise ValueError(f"{name}.weight must be greater than 0, not {goal.weight}")
    limits = problem.limits
    if limits is not None:
        wanted += [
            ("limits.rest", limits.rest, (members, bones, 3, 3) if np.ndim(limits.rest) == 4 else (bones, 3, 3)),
            ("limits.root", limits.root, (members, 3, 3)),
            ("limits.cones", limits.cones, (bones, 4)),
            ("limits.twist", limits.twist, (bones, 2)),
        ]
    for name, array, expected in wanted:
        if array is not None and np.shape(array) != expected:
            raise ValueError(f"{name} must have the shape {expected} to go with the joints, not {np.shape(array)}")
    if limits is not None:
        check_ranges(limits)
    if problem.parents is not None and (np.asarray(problem.parents) >= np.arange(bones)).any():
        raise ValueError("parents must name an earlier bone for each bone, or -1")
    stiffness = problem.stiffness
    if stiffness is not None and not ((np.asarray(stiffness) >= 0.0) & (np.asarray(stiffness) < 1.0)).all():
        raise ValueError("stiffness must be at least 0 and less than 1")
    if not -1.0 <= problem.bend_lead <= 1.0:
        raise ValueError("bend_lead must be between -1 and 1")
    per_member = [
        *(("goal.pole_angle", goal.pole_angle) for goal in goals),
        ("softness", problem.softness),
        ("push_limit", problem.push_limit),
        ("tolerance", problem.tolerance),
    ]
    for name, value in per_member:
        if value is not None and np.shape(value) not in ((), (members,)):
            raise ValueError(f"{name} must be one number or have the shape ({members},), not {np.shape(value)}")
    if ((np.asarray(problem.softness) < 0) | (np.asarray(problem.softness) > 1)).any():
        raise ValueError("softness must be between 0 and 1")
    if (np.asarray(problem.push_limit) < 0).any() or (np.asarray(problem.tolerance) < 0).any():
        raise ValueError("push_limit and tolerance must not be negative")
    if problem.iterations < 0:
        raise ValueError("iterations must not be negative")
    weights = problem.stretch_weights
    if weights is not None and not (np.isfinite(weights).all() and (np.asarray(weights) >= 0).all()):
        raise ValueError("stretch_weights must be finite and not negative")
    return bones, members


def _takes_two_bone(asked: Solver, counts: Ints, valid: Bools) -> Bools:
    """Return which members, with `counts` (B,) segments with length, take the two-bone solver, each by itself.

    Raises:
        ValueError: if it is asked of a valid member that cannot be solved with it.
    """
    fit = np.asarray(counts == 2)
    if asked is Solver.TWO_BONE and (valid & ~fit).any():
        found = int(counts[valid & ~fit][0])
        raise ValueError(f"the two-bone solver needs exactly two segments with length, but the chain has {found}")
    return fit & (asked not in {Solver.FABRIK, Solver.EVEN_BEND})


def _aimed(chains: _Chains, reached: Floats) -> tuple[Axes, Axes, Floats, Bools]:
    """Return how chains stand in their FK pose and how they are aimed at their targets.

    Args:
        chains: to be aimed.
        reached: (B,) distance from root to tip in the solved pose, in chain lengths.

    Returns:
        Their axes in the FK pose; the same turned onto the line to the target, with the bend on the chain's own side;
        that smallest rotation (4, B); and which chains (B,) bend as in the FK pose.
    """
    axes = chain_axes(chains.directions, chains.lengths, chains.frames[:, :, 0])
    distance = norm(chains.target)
    line = np.where(distance > NO_DISTANCE, chains.target / np.maximum(distance, NO_DISTANCE), axes.line)
    aim = between(axes.line, line, axes.normal)
    natural, kept = axes.bend, np.ones(len(distance), dtype=bool)
    if chains.side is not None:
        first = np.argmax(chains.lengths > NO_LENGTH, axis=0)
        begins = chains.directions[:, first, np.arange(len(first))]
        chord = norm(tip_of(chains.directions, chains.lengths))
        (x, y, z), kept, _ = side_bend(
            MANY, tuple(axes.line), tuple(axes.bend), tuple(chains.side), tuple(begins), chord, reached
        )
        natural = stacked(x, y, z)
    bend = unit(reject(rotate(aim, natural), line))
    return axes, Axes(line, bend, cross(bend, line)), aim, kept


def _solve_valid(problem: Problem, solver: Solver, chains: _Chains, solution: Solution, index: Ints | slice) -> None:
    """Solve the given chains and write the result into the members `index` of the solution."""
    bones = len(chains.lengths)
    carried = chains.lengths <= NO_LENGTH
    weights = np.ones(bones) if problem.stretch_weights is None else np.asarray(problem.stretch_weights, np.float64)
    distance = norm(chains.target)
    reach = reachable(chains.lengths, distance, chains.softness, chains.push_limit, weights, problem.out_of_reach)
    lengths = chains.lengths * reach.stretch
    own, axes, base, bends_as_fk = _aimed(chains, reach.distance)
    if chains.pole is not None:
        bend = rotate(about(axes.line, chains.pole_angle), pole_bend(chains.pole, axes.line, axes.bend))
        bend = unit(reject(bend, axes.line))
        base = multiply(between(axes.bend, bend, axes.line), base)
        axes = Axes(axes.line, bend, cross(bend, axes.line))
    if solver is Solver.TWO_BONE:
        directions = _two_bone(lengths, carried, reach.distance, axes)
        passes = np.zeros(len(distance), dtype=np.int64)
    elif solver is Solver.FABRIK:
        directions, passes = _led_by_tip(problem, chains, lengths, reach.distance, own, axes)
        directions, base = _rolled(directions, lengths, chains.pole, axes)
    else:
        mobility = mobility_of(chains.lengths, ~carried, problem.stiffness, problem.bend_lead)
        if mobility is None:
            start = first_guess(chains.directions, lengths, own, axes, reach.distance)
        else:
            start = shared_guess(chains.directions, lengths, ~carried, own, reach.distance, chains.frames, mobility)
            start = flattened(rotate(base[:, None], start), lengths, axes.line, reach.distance)
        directions, passes = solve_directions(
            start, lengths, axes, reach.distance, chains.tolerance, problem.iterations
        )
        directions, roll = _rolled(directions, lengths, chains.pole, axes)
        base = multiply(roll, base)
    # Nearly straight, rounding of the distance would show as its square root.
    chord = norm(tip_of(chains.directions, chains.lengths))
    kept = (np.abs(reach.distance - chord) <= SAME) & (reach.stretch == 1.0).all(axis=0) & bends_as_fk
    if kept.any() and solver is not Solver.FABRIK:
        directions = np.where(kept, rotate(base[:, None], chains.directions), directions)
    inherits = np.ones(bones, dtype=bool) if problem.inherits is None else np.asarray(problem.inherits, dtype=bool)
    turns = bone_rotations(base, chains.directions, directions, chains.frames, carried, inherits)
    # From the rotations and not from the directions: bones without a say in the solution are where they are carried.
    segments = rotate(turns, chains.directions) * lengths
    root = axes.line * reach.push
    error = norm(chains.target - root - total(segments))
    solution.rotations[index] = matrices(turns).transpose(3, 2, 0, 1)
    solution.stretch[index] = reach.stretch.T
    steps = np.concatenate([root[:, None], segments], axis=1) * chains.scale
    steps[:, 0] += solution.joints[index, 0].T
    add_up(steps)
    solution.joints[index] = steps.transpose(2, 1, 0)
    solution.error[index] = error * chains.scale
    solution.iterations[index] = passes
    # Too far or too near is only what the policy leaves over; the rest of an error is the solver's own.
    far, near = reach.missing > chains.tolerance, reach.missing < -chains.tolerance
    missed = np.where(far, Status.TOO_FAR, np.where(near, Status.TOO_NEAR, Status.NOT_CONVERGED))
    solution.status[index] = np.where(error <= chains.tolerance, Status.REACHED, missed)


def _two_bone(lengths: Floats, carried: Bools, distance: Floats, axes: Axes) -> Floats:
    """Return the solved directions (3, n, B) of chains with two segments with length among any number."""
    first = np.argmax(~carried, axis=0)
    last = len(carried) - 1 - np.argmax(~carried[::-1], axis=0)
    members = np.arange(len(distance))
    upper, lower = triangle(lengths[first, members], lengths[last, members], distance, axes.line, axes.bend)
    directions = np.zeros((3, *lengths.shape))
    directions[:, first, members] = upper
    directions[:, last, members] = lower
    return directions


def _rolled(directions: Floats, lengths: Floats, pole: Floats | None, axes: Axes) -> tuple[Floats, Floats]:
    """Return directions (3, n, B) rolled about the line to the target to have their bend at the pole, and the roll."""
    roll = identity(lengths.shape[1])
    if pole is None:
        return directions, roll
    tip = tip_of(directions, lengths)
    line = np.where(norm(tip) > NO_DISTANCE, unit(tip), axes.line)
    side = reject(centroid(joints_of(directions, lengths), lengths), line)
    rolled = between(unit(side), unit(reject(axes.bend, line)), line)
    roll = np.where(norm(side) > STRAIGHT, rolled, roll)
    return rotate(roll[:, None], directions), roll


def _led_by_tip(
    problem: Problem, chains: _Chains, lengths: Floats, distance: Floats, own: Axes, axes: Axes
) -> tuple[Floats, Ints]:
    """Return the directions (3, n, B) that FABRIK finds for targets at `distance` (B,), and the passes (B,)."""
    start, target = chains.directions, axes.line * distance
    lean = total(chains.lengths * (1.0 - dot(start, own.line[:, None]) * dot(start, own.line[:, None])))
    tip = tip_of(start, lengths)
    back, aside = dot(tip - target, own.line), norm(reject(tip - target, own.line))
    share = np.asarray(fabrik.folding(MANY, lean, back, aside))
    if share.any():
        chord = norm(tip)
        bowed = first_guess(start, lengths, own, own, chord - share * np.maximum(chord - distance, 0.0))
        start = np.where(share > 0.0, bowed, start)
    start = flattened(start, lengths, axes.line, distance)
    tolerance, passes = np.maximum(chains.tolerance, fabrik.FINEST), min(fabrik.PASSES, problem.iterations)
    x, y, z = target
    led, used, left = fabrik.reach(MANY, apart(start), list(lengths), (x, y, z), tolerance, passes)
    found, used = together(led), used.astype(np.int64)
    if passes == problem.iterations or not left.any():
        return found, used
    parts = lengths / total(lengths)
    now = chain_axes(found, parts, chains.frames[:, :, 0])
    pushed = first_guess(found, lengths, now, now, distance, bow=False)
    off = np.abs(norm(tip_of(pushed, lengths)) - distance) > tolerance
    start = np.where(off, first_guess(found, lengths, now, now, distance), pushed)
    finished, more = solve_directions(start, lengths, axes, distance, tolerance, problem.iterations, passes + 1)
    return np.where(left, finished, found), np.where(left, more, used)
