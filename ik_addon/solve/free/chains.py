"""Solve many free chains at once: aim them at their targets, then bend them with the solver that suits them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..maths.numbers import MANY
from ..maths.rotations import (
    about,
    between,
    cross,
    dot,
    identity,
    matrices,
    multiply,
    norm,
    reject,
    rotate,
    stacked,
    unit,
)
from ..problem import Bools, Floats, Ints, Problem, Solution, Solver, Status
from . import fabrik
from .axes import (
    STRAIGHT,
    Axes,
    add_up,
    bone_rotations,
    centroid,
    chain_axes,
    joints_of,
    pole_bend,
    tip_of,
)
from .bend_shares import mobility_of, shared_guess
from .bend_side import side_bend
from .even_bend import NO_CHORD, apart, first_guess, flattened, solve_directions, together
from .folds import folded, side_axes
from .reach import Reach, reachable
from .single import NO_DISTANCE, NO_LENGTH, SAME
from .two_bone import triangle


@dataclass(frozen=True)
class Chains:
    """The input as the kernels need it: relative to the root, in chain lengths, components first, members last."""

    scale: Floats
    """(B,) chain length in the problem's unit."""
    directions: Floats
    """(3, n, B) unit; zero where a segment has no length at all."""
    lengths: Floats
    """(n, B), adding up to 1 over n."""
    frames: Floats
    """(3, 3, n, B)"""
    target: Floats
    """(3, B)"""
    pole: Floats | None
    """(3, B)"""
    side: Floats | None
    """(3, B) see `Problem.bend_side`."""
    folds: Floats | None
    """(3, n, B) see `Problem.folds`; None with FABRIK too."""
    pole_angle: Floats
    softness: Floats
    push_limit: Floats
    tolerance: Floats

    @classmethod
    def of(cls, problem: Problem) -> Chains:
        """Read a problem with valid shapes; members that are not valid may hold anything, even NaN."""
        members = len(problem.joints)
        with np.errstate(all="ignore"):
            joints = np.asarray(problem.joints, dtype=np.float64).transpose(2, 1, 0)
            root = joints[:, 0]
            segments = np.ascontiguousarray(joints[:, 1:] - joints[:, :-1])
            sizes = norm(segments)
            scale = sizes.sum(axis=-2)
            target = (np.asarray(problem.goal.target, dtype=np.float64).T - root) / scale
            pole = problem.goal.pole
            sides, folds = problem.bend_side, None if problem.solver is Solver.FABRIK else problem.folds
            return cls(
                scale=scale,
                directions=unit(segments),
                lengths=sizes / scale,
                frames=np.ascontiguousarray(np.asarray(problem.frames, dtype=np.float64).transpose(2, 3, 1, 0)),
                target=target,
                pole=None if pole is None else (np.asarray(pole, dtype=np.float64).T - root) / scale,
                side=None if sides is None else np.asarray(sides, dtype=np.float64).T,
                folds=None if folds is None else np.asarray(folds, dtype=np.float64).T,
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
            if self.folds is not None:
                ok &= np.isfinite(norm(self.folds)).all(axis=0)
        return np.asarray(ok)

    def reach(self, problem: Problem) -> Reach:
        """Return what the chains can reach, as the out-of-reach policy has it."""
        weights = problem.stretch_weights
        weights = np.ones(len(self.lengths)) if weights is None else np.asarray(weights, dtype=np.float64)
        distance = norm(self.target)
        return reachable(self.lengths, distance, self.softness, self.push_limit, weights, problem.out_of_reach)

    def folding(self) -> Bools:
        """Return which members (B,) have joints with fold shares of their own."""
        if self.folds is None:
            return np.zeros(len(self.scale), dtype=bool)
        return np.asarray((self.folds != 0.0).any(axis=(0, 1)))

    def stays_closed(self, solver: Solver | None) -> Bools:
        """Return which members (B,) are closed, tip at root, and have their tip at the target: they keep their pose.

        Between root and target there is no line then that could aim the chain. Two bones are solved exactly.
        """
        if solver is Solver.TWO_BONE:
            return np.zeros(len(self.scale), dtype=bool)
        tip = tip_of(self.directions, self.lengths)
        return np.asarray((norm(tip) < STRAIGHT) & (norm(self.target - tip) <= self.tolerance))

    def shares(self, mobility: Floats | None) -> Floats:
        """Return the folds (3, n, B) scaled by the mobility (3, n, B) about the bones' axes; None: all alike."""
        assert self.folds is not None
        if mobility is None:
            return self.folds
        local = np.stack([dot(self.frames[:, k], self.folds) * mobility[k] for k in range(3)])
        x, y, z = (self.frames[:, k] * local[k] for k in range(3))
        return np.asarray(x + y + z)

    def members(self, chosen: Bools) -> Chains:
        """Return the chosen (B,) members alone."""
        return Chains(
            *(None if value is None else value[..., chosen] for value in vars(self).values()),  # type: ignore[arg-type]
        )


def _per_member(value: Floats | float, members: int) -> Floats:
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (members,))


def takes_two_bone(asked: Solver, counts: Ints, valid: Bools) -> Bools:
    """Return which members (B,), with `counts` (B,) segments that have length, take the two-bone solver.

    Raises:
        ValueError: if the two-bone solver is requested for a valid member that it cannot solve.
    """
    fit = np.asarray(counts == 2)
    if asked is Solver.TWO_BONE and (valid & ~fit).any():
        found = int(counts[valid & ~fit][0])
        raise ValueError(f"the two-bone solver needs exactly two segments with length, but the chain has {found}")
    return fit & (asked not in {Solver.FABRIK, Solver.EVEN_BEND})


def aimed(chains: Chains, reached: Floats, solver: Solver | None) -> tuple[Axes, Axes, Floats, Bools]:
    """Return the axes of chains in their FK pose, and aimed at their targets.

    Args:
        chains: the chains to aim.
        reached: (B,) distance from root to tip in the solved pose, in chain lengths.
        solver: with FABRIK only straight chains bend to their side; None: by folds, where the joints' own bend does not
            show the side.

    Returns:
        The axes in the FK pose; the same turned onto the line to the target, with the bend on the chain's own side; the
        smallest rotation (4, B) onto that line; and which chains (B,) bend as in the FK pose.
    """
    by_tip, folds = solver is Solver.FABRIK, solver is None
    axes = chain_axes(chains.directions, chains.lengths, chains.frames[:, :, 0], chains.side if by_tip else None)
    first = np.argmax(chains.lengths > NO_LENGTH, axis=0)
    begins = chains.directions[:, first, np.arange(len(first))]
    if folds and chains.side is not None:
        sided = side_axes(MANY, *map(tuple, (axes.line, axes.normal, chains.side, begins)))
        axes = Axes(*(stacked(*axis) for axis in sided))
    distance = norm(chains.target)
    line = np.where(
        (distance > NO_DISTANCE) & ~chains.stays_closed(solver),
        chains.target / np.maximum(distance, NO_DISTANCE),
        axes.line,
    )
    aim = between(axes.line, line, axes.normal)
    natural, kept = axes.bend, np.ones(len(distance), dtype=bool)
    if chains.side is not None and not (folds or by_tip):
        chord = norm(tip_of(chains.directions, chains.lengths))
        (x, y, z), kept, _ = side_bend(
            MANY, tuple(axes.line), tuple(axes.bend), tuple(chains.side), tuple(begins), chord, reached
        )
        natural = stacked(x, y, z)
    bend = unit(reject(rotate(aim, natural), line))
    return axes, Axes(line, bend, cross(bend, line)), aim, kept


def solve_chains(
    problem: Problem, solver: Solver | None, chains: Chains, solution: Solution, index: Ints | slice
) -> None:
    """Solve chains with a solver (None: by their folds) and write the result into members `index` of the solution."""
    carried = chains.lengths <= NO_LENGTH
    reach = chains.reach(problem)
    lengths = chains.lengths * reach.stretch
    own, axes, chain_turn, bends_as_fk = at_poles(chains, *aimed(chains, reach.distance, solver))
    if solver is Solver.TWO_BONE:
        directions = _two_bone(lengths, carried, reach.distance, axes)
        passes = np.zeros(len(chains.scale), dtype=np.int64)
    elif solver is Solver.FABRIK:
        directions, passes = _led_by_tip(problem, chains, lengths, reach.distance, own, axes)
        directions, chain_turn = _rolled(directions, lengths, chains.pole, axes)
    else:
        mobility = mobility_of(chains.lengths, ~carried, problem.stiffness, problem.bend_lead)
        if solver is None:
            shares = chains.shares(mobility)
            found, bends_as_fk = folded(
                MANY, apart(chains.directions), list(lengths), list(carried), apart(shares), reach.distance
            )
            start = together(found)
            back = between(unit(tip_of(start, lengths)), own.line, own.normal)
            start = flattened(rotate(multiply(chain_turn, back)[:, None], start), lengths, axes.line, reach.distance)
        elif mobility is None:
            start = first_guess(chains.directions, lengths, own, axes, reach.distance)
        else:
            start = shared_guess(chains.directions, lengths, ~carried, own, reach.distance, chains.frames, mobility)
            start = flattened(rotate(chain_turn[:, None], start), lengths, axes.line, reach.distance)
        directions, passes = solve_directions(
            start, lengths, axes, reach.distance, chains.tolerance, problem.iterations
        )
        if solver is not None:
            directions, roll = _rolled(directions, lengths, chains.pole, axes)
            chain_turn = multiply(roll, chain_turn)
    # Keep the FK shape exactly: nearly straight, rounding of the distance would show as its square root.
    chord = norm(tip_of(chains.directions, chains.lengths))
    kept = (np.abs(reach.distance - chord) <= SAME) & (reach.stretch == 1.0).all(axis=0) & bends_as_fk
    kept |= chains.stays_closed(solver)
    if kept.any() and solver is not Solver.FABRIK:
        directions = np.where(kept, rotate(chain_turn[:, None], chains.directions), directions)
    inherits = np.ones(len(lengths), dtype=bool) if problem.inherits is None else np.asarray(problem.inherits, bool)
    turns = bone_rotations(chain_turn, chains.directions, directions, chains.frames, carried, inherits)
    write(chains, reach, axes.line, turns, passes, solution, index)


def at_poles(
    chains: Chains, own: Axes, axes: Axes, chain_turn: Floats, bends_as_fk: Bools
) -> tuple[Axes, Axes, Floats, Bools]:
    """Return the results of `aimed`, with chains that have poles rolled to them."""
    if chains.pole is None:
        return own, axes, chain_turn, bends_as_fk
    bend = rotate(about(axes.line, chains.pole_angle), pole_bend(chains.pole, axes.line, axes.bend))
    bend = unit(reject(bend, axes.line))
    chain_turn = multiply(between(axes.bend, bend, axes.line), chain_turn)
    return own, Axes(axes.line, bend, cross(bend, axes.line)), chain_turn, bends_as_fk


def write(
    chains: Chains,
    reach: Reach,
    line: Floats,
    turns: Floats,
    passes: Ints,
    solution: Solution,
    index: Ints | slice,
) -> None:
    """Write poses, given as bone rotations (4, n, B), into the members `index` of the solution."""
    # From the rotations, not the directions: bones without length are where the bones before them carry them.
    segments = rotate(turns, chains.directions) * (chains.lengths * reach.stretch)
    root = line * reach.push
    error = norm(chains.target - root - segments.sum(axis=-2))
    solution.rotations[index] = matrices(turns).transpose(3, 2, 0, 1)
    solution.stretch[index] = reach.stretch.T
    steps = np.concatenate([root[:, None], segments], axis=1) * chains.scale
    steps[:, 0] += solution.joints[index, 0].T
    add_up(steps)
    solution.joints[index] = steps.transpose(2, 1, 0)
    solution.error[index] = error * chains.scale
    solution.iterations[index] = passes
    # Too far or too near is only what the policy leaves unreached; any other error is the solver's own.
    far, near = reach.shortfall > chains.tolerance, reach.shortfall < -chains.tolerance
    missed = np.where(far, Status.TOO_FAR, np.where(near, Status.TOO_NEAR, Status.NOT_CONVERGED))
    solution.status[index] = np.where(error <= chains.tolerance, Status.REACHED, missed)


def _two_bone(lengths: Floats, carried: Bools, distance: Floats, axes: Axes) -> Floats:
    """Return the solved directions (3, n, B) of chains in which two segments have length."""
    first = np.argmax(~carried, axis=0)
    last = len(carried) - 1 - np.argmax(~carried[::-1], axis=0)
    members = np.arange(len(distance))
    line, bend = tuple(axes.line), tuple(axes.bend)
    upper, lower = triangle(MANY, lengths[first, members], lengths[last, members], distance, line, bend)
    directions = np.zeros((3, *lengths.shape))
    directions[:, first, members] = upper
    directions[:, last, members] = lower
    return directions


def _rolled(directions: Floats, lengths: Floats, pole: Floats | None, axes: Axes) -> tuple[Floats, Floats]:
    """Return directions (3, n, B) rolled about the line to the target so that they bend to the pole, and the roll."""
    roll = identity(lengths.shape[1])
    if pole is None:
        return directions, roll
    tip = tip_of(directions, lengths)
    line = np.where(norm(tip) > NO_CHORD, unit(tip), axes.line)
    side = reject(centroid(joints_of(directions, lengths), lengths), line)
    rolled = between(unit(side), unit(reject(axes.bend, line)), line)
    roll = np.where(norm(side) > STRAIGHT, rolled, roll)
    return rotate(roll[:, None], directions), roll


def _led_by_tip(
    problem: Problem, chains: Chains, lengths: Floats, distance: Floats, own: Axes, axes: Axes
) -> tuple[Floats, Ints]:
    """Return the directions (3, n, B) that FABRIK finds for targets at `distance` (B,), and the passes (B,) used."""
    start, target = chains.directions, axes.line * distance
    lean = (chains.lengths * (1.0 - dot(start, own.line[:, None]) * dot(start, own.line[:, None]))).sum(axis=-2)
    tip = tip_of(start, lengths)
    back, aside = dot(tip - target, own.line), norm(reject(tip - target, own.line))
    share = np.asarray(fabrik.folding(MANY, lean, back, aside))
    if share.any():
        chord = norm(tip)
        bowed = first_guess(start, lengths, own, own, chord - share * np.maximum(chord - distance, 0.0))
        start = np.where(share > 0.0, bowed, start)
    start = flattened(start, lengths, axes.line, distance)
    tolerance, passes = (
        np.maximum(chains.tolerance, fabrik.FINEST * lengths.sum(axis=0)),
        min(fabrik.PASSES, problem.iterations),
    )
    x, y, z = target
    led, used, left = fabrik.reach(MANY, apart(start), list(lengths), (x, y, z), tolerance, passes)
    found, used = together(led), used.astype(np.int64)
    if passes == problem.iterations or not left.any():
        return found, used
    parts = lengths / lengths.sum(axis=-2)
    now = chain_axes(found, parts, chains.frames[:, :, 0])
    pushed = first_guess(found, lengths, now, now, distance, bow=False)
    off = np.abs(norm(tip_of(pushed, lengths)) - distance) > tolerance
    start = np.where(off, first_guess(found, lengths, now, now, distance), pushed)
    finished, more = solve_directions(start, lengths, axes, distance, tolerance, problem.iterations, passes + 1)
    return np.where(left, finished, found), np.where(left, more, used)
