"""Solve free chains: aim them at their targets, then bend them with the solver that suits them.

Written once for one chain in plain floats and for many in arrays, see `numbers`. Everything is relative to the root, in
chain lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from operator import and_, or_
from typing import NamedTuple

import numpy as np

from ..maths.numbers import MANY, ONE, Nested, Number, Numbers
from ..maths.turns import (
    Frame,
    Matrix,
    Quaternion,
    about,
    between,
    matrix_of,
    multiply,
    product,
    rotate,
    seen,
    transposed,
    turned,
)
from ..maths.vectors import Vector, cross, dot, either, minus, norm, over, plus, reject, size_of, times, unit, unit_of
from ..problem import Aim, Floats, Ints, Problem, Reach, Solution, Solver, Status, reachable, status_of
from . import fabrik
from .axes import (
    STRAIGHT,
    Axes,
    bone_rotations,
    centroid,
    chain_axes,
    joints_of,
    pole_bend,
    side_bend,
    side_hinge,
    triangle,
)
from .bend_shares import mobility_of, shared, shared_guess
from .even_bend import NO_CHORD, first_guess, flattened, solve_directions
from .folds import folded

NO_LENGTH = 1e-6
"""Segments shorter than this fraction of the chain count as having no length: the segment before carries them."""
NO_DISTANCE = 1e-12
"""A point nearer to the root than this fraction of the chain gives no direction."""
CLEAR = 1e-2
"""Below this, a sine or a length as a fraction of the chain's is too small to give a plane that is right to 1e-12."""
SAME = 1e-12
"""A chain whose distance from root to tip should change by no more than this, in chain lengths, keeps its shape."""


class Bent(NamedTuple):
    """The solution of chains; see `Solution`."""

    turns: list[Frame]
    """How the frames turn from FK."""
    joints: list[Vector]
    """Relative to where the root was, in chain lengths."""
    stretch: Sequence[Number]
    error: Number
    status: Number
    iterations: Number


class Chain(NamedTuple):
    """One chain or many, as the kernels need them: relative to the root, in chain lengths."""

    do: Numbers
    scale: Number
    """Chain length in the problem's unit."""
    directions: list[Vector]
    """Unit; zero where a segment has no length at all."""
    lengths: list[Number]
    """They add up to 1."""
    carried: list[Number]
    """Which bones have no length and follow the bone before them."""
    tip: Vector
    """Where its tip is in the FK pose."""
    frames: Sequence[Matrix]
    aim: Aim
    """Relative to the root, in chain lengths."""
    side: Vector | None
    """See `Problem.bend_side`."""
    folds: Sequence[Vector] | None
    """See `Problem.folds`; None with FABRIK too."""

    @classmethod
    def read(cls, problem: Problem, member: int | None = None) -> Chain:
        """Read a problem with valid shapes: one member in floats; None: all of them in arrays."""

        def own(value: Floats | float | None) -> Nested:
            if value is None:
                return None
            array = np.asarray(value, dtype=np.float64)
            if member is not None:
                return (array[member] if array.ndim else array).tolist()
            each = array if array.ndim else np.full(len(problem.joints), array)
            return _nested(np.ascontiguousarray(np.moveaxis(each, 0, -1)))

        goal, folds = problem.goal, None if problem.solver is Solver.FABRIK else problem.folds
        angle = 0.0 if goal.pole_angle is None else goal.pole_angle
        settings = angle, None, problem.softness, problem.push_limit, problem.tolerance
        with np.errstate(all="ignore"):
            aim = Aim(own(goal.target), own(goal.pole), *map(own, settings))
            do = MANY if member is None else ONE
            return cls.of(do, own(problem.joints), own(problem.frames), aim, own(problem.bend_side), own(folds))

    @classmethod
    def of(
        cls,
        do: Numbers,
        joints: Sequence[Sequence[Number]],
        frames: Sequence[Matrix],
        aim: Aim,
        side: Vector | None,
        folds: Sequence[Vector] | None,
    ) -> Chain:
        """Return valid chains from their joints and goals in the problem's space, with frames as three rows each."""
        root, segments = joints[0], [minus(b, a) for a, b in pairwise(joints)]
        sizes = [size_of(do, segment) for segment in segments]
        scale = do.most(sum(sizes), 1e-200)
        target = over(minus(aim.target, root), scale)
        pole = None if aim.pole is None else over(minus(aim.pole, root), scale)
        directions = [over(segment, do.most(size, 1e-200)) for segment, size in zip(segments, sizes, strict=True)]
        lengths, tip = [size / scale for size in sizes], over(minus(joints[-1], root), scale)
        carried = [length <= NO_LENGTH for length in lengths]
        return cls(do, scale, directions, lengths, carried, tip, frames, Aim(target, pole, *aim[2:]), side, folds)

    @property
    def is_valid(self) -> Number:
        """Whether it can be solved; if not, it may hold anything, even NaN."""
        do, aim, vectors = self.do, self.aim, [self.aim.target, self.aim.pole, self.side, *(self.folds or ())]
        with np.errstate(all="ignore"):
            measure = self.scale + aim.pole_angle + aim.softness + sum(size_of(do, v) for v in vectors if v is not None)
            is_valid = do.isfinite(measure) & (self.scale > 1e-100) & (aim.push_limit + aim.tolerance >= 0.0)
            for (xx, yx, zx), (xy, yy, zy), (xz, yz, zz) in self.frames:
                # Finite, and with X and Z axes.
                x, z = xx * xx + xy * xy + xz * xz, zx * zx + zy * zy + zz * zz
                is_valid = is_valid & (x > 0.25) & (z > 0.25) & do.isfinite(x + z + (yx + yy + yz))
        return is_valid

    def kinds(self, asked: Solver, valid: Number) -> list[tuple[Solver | None, Number]]:
        """Return the solvers, None: by folds, and whether each of them suits.

        Raises:
            ValueError: if the two-bone solver is requested for a valid chain that it cannot solve.
        """
        bones = sum(1 * (length > NO_LENGTH) for length in self.lengths)
        fit = bones == 2
        if asked is Solver.TWO_BONE and np.any(wrong := valid > fit):
            found = int(np.atleast_1d(bones)[np.atleast_1d(wrong)][0])
            raise ValueError(f"the two-bone solver needs exactly two segments with length, but the chain has {found}")
        takes_two = fit & (asked in (Solver.AUTO, Solver.TWO_BONE))
        folds = bones < 0
        if self.folds is not None:
            folds = reduce(or_, [part != 0.0 for fold in self.folds for part in fold]) & (takes_two == False)  # noqa: E712
        longer = Solver.FABRIK if asked is Solver.FABRIK else Solver.EVEN_BEND
        return [(Solver.TWO_BONE, takes_two), (longer, (takes_two | folds) == False), (None, folds)]  # noqa: E712

    def solved(self, problem: Problem, solver: Solver | None) -> Bent:
        """Return the solution of valid chains by a solver; None: by their folds."""
        inherits = [True] * len(self.lengths) if problem.inherits is None else list(problem.inherits)
        if solver is Solver.TWO_BONE and self.do is ONE and len(self.lengths) == 2 and all(inherits):
            found = _in_plane(self, problem)
            if found is not None:
                return found
        do, carried = self.do, self.carried
        reach = reachable(do, self.lengths, size_of(do, self.aim.target), self.aim, problem)
        distance = reach.distance
        lengths = [length * factor for length, factor in zip(self.lengths, reach.stretch, strict=True)]
        # Aim the chain at its target,
        own, axes, chain_turn, bends_as_fk, closed = aimed(self, distance, solver)
        if self.aim.pole is not None:
            axes, chain_turn = at_pole(self, self.aim.pole, axes, chain_turn)
        # then bend it until the distance is right.
        passes: Number = 0
        if solver is Solver.TWO_BONE:
            directions = _two_bone(do, lengths, carried, distance, axes)
        elif solver is Solver.FABRIK:
            directions, passes = _led_by_tip(self, problem, lengths, distance, own, axes)
            zero = 0.0 * self.scale
            chain_turn = zero + 1.0, zero, zero, zero
        else:
            mobility = None
            if not problem.bends_evenly:
                mobility = mobility_of(do, self.lengths, carried, problem.stiffness, problem.bend_lead)
            if solver is None:
                assert self.folds is not None
                shares = self.folds if mobility is None else list(map(shared, self.folds, self.frames, mobility))
                start, bends_as_fk = folded(do, self.directions, lengths, carried, shares, distance)
                back = between(do, unit_of(do, joints_of(start, lengths)[-1]), own.line, own.normal)
                start = flattened(do, turned(multiply(chain_turn, back), start), lengths, axes.line, distance)
            elif mobility is None:
                start = first_guess(do, self.directions, lengths, own, axes, distance)
            else:
                start = shared_guess(do, self.directions, lengths, carried, own, distance, self.frames, mobility)
                start = flattened(do, turned(chain_turn, start), lengths, axes.line, distance)
            tolerance, most = self.aim.tolerance, problem.iterations
            directions, passes = solve_directions(do, start, lengths, axes, distance, tolerance, most)
        if self.aim.pole is not None and solver in (Solver.FABRIK, Solver.EVEN_BEND):
            directions, roll = _rolled(self, directions, lengths, axes)
            chain_turn = multiply(roll, chain_turn)
        # Keep the FK shape exactly: nearly straight, rounding of the distance would show as its square root.
        kept = bends_as_fk & (abs(distance - size_of(do, self.tip)) <= SAME)
        kept = reduce(and_, [factor == 1.0 for factor in reach.stretch], kept) | closed
        if solver is not Solver.FABRIK and do.any(kept):
            directions = do.choose(kept, turned(chain_turn, self.directions), directions)
        turns = bone_rotations(do, chain_turn, self.directions, directions, self.frames, carried, inherits)
        return bent(self, reach, axes.line, list(map(matrix_of, turns)), passes)


def _nested(array: Floats) -> Nested:
    """Return an array (..., B) as nested lists of arrays (B,)."""
    return array if array.ndim == 1 else list(map(_nested, array))


def _in_plane(chain: Chain, problem: Problem) -> Bent | None:
    """Return the solution of a chain of two bones, in floats, whose joints stay in one plane; None: they may not.

    Most do: they bend clearly, as in the FK pose. The plane turns to the pole, or as the line to the target does, and
    each bone turns within it. That takes half the time; on arrays it would save nothing.
    """
    (upper, lower), aim = chain.directions, chain.aim
    across, chord, distance = cross(upper, lower), norm(chain.tip), norm(aim.target)
    sine, reach = norm(across), reachable(ONE, chain.lengths, distance, aim, problem)
    first, second = (length * factor for length, factor in zip(chain.lengths, reach.stretch, strict=True))
    if min(sine, chord, distance, first, second) <= CLEAR:
        return None
    before, own, line = over(across, sine), over(chain.tip, chord), over(aim.target, distance)
    if chain.side is not None:
        _, keeps, _ = side_bend(ONE, own, cross(own, before), chain.side, upper, chord, reach.distance)
        if not keeps:
            return None
    if aim.pole is None:
        middle = plus(own, line)
        room = dot(middle, middle) / 2.0
        if room <= CLEAR:
            return None
        normal = minus(before, times(middle, dot(before, line) / room))
        bend = cross(line, normal)
    else:
        bend = reject(aim.pole, line)
        if norm(bend) <= CLEAR * norm(aim.pole):
            return None
        bend = rotate(about(ONE, times(line, aim.pole_angle)), unit(bend))
        normal = cross(bend, line)
    directions = triangle(ONE, first, second, reach.distance, line, bend)
    turns = [
        product((old, cross(before, old), before), transposed((new, cross(normal, new), normal)))
        for old, new in zip((upper, lower), directions, strict=True)
    ]
    return bent(chain, reach, line, turns, 0)


def aimed(chain: Chain, reached: Number, solver: Solver | None) -> tuple[Axes, Axes, Quaternion, Number, Number]:
    """Return the axes of chains in their FK pose, and aimed at their targets.

    Args:
        chain: the chains to aim.
        reached: distance from root to tip in the solved pose, in chain lengths.
        solver: with FABRIK only straight chains bend to their side; None: by folds, where the joints' own bend does not
            show the side.

    Returns:
        The axes in the FK pose; the same turned onto the line to the target, with the bend on the chain's own side; the
        smallest rotation onto that line; which chains bend as in the FK pose; and which are closed, tip at root, and
        have their tip at the target: there is no line then that could aim them, and they keep their pose. Two bones
        are solved exactly.
    """
    do, side, by_tip = chain.do, chain.side, solver is Solver.FABRIK
    own = chain_axes(do, chain.directions, chain.lengths, chain.frames[0], side if by_tip else None)
    distance, chord = size_of(do, chain.aim.target), size_of(do, chain.tip)
    natural, kept = own.bend, distance >= 0.0
    if side is not None and not by_tip:
        first = chain.directions[-1]
        for direction, skipped in zip(chain.directions[-2::-1], chain.carried[-2::-1], strict=True):
            first = do.choose(skipped, first, direction)
        if solver is None:
            # Such a leg lies on both sides of its line, so its own bend does not show the side.
            hinge, known = side_hinge(do, own.line, side, first)
            normal = either(do, known, hinge, own.normal)
            natural = cross(own.line, normal)
            own = Axes(own.line, natural, normal)
        else:
            natural, kept, _ = side_bend(do, own.line, own.bend, side, first, chord, reached)
    closed = (chord < STRAIGHT) & (solver is not Solver.TWO_BONE)
    if do.any(closed):
        closed = closed & (size_of(do, minus(chain.aim.target, chain.tip)) <= chain.aim.tolerance)
    goes = (distance > NO_DISTANCE) > closed
    line = either(do, goes, over(chain.aim.target, do.most(distance, NO_DISTANCE)), own.line)
    aim = between(do, own.line, line, own.normal)
    bend = unit_of(do, reject(rotate(aim, natural), line))
    return own, Axes(line, bend, cross(bend, line)), aim, kept, closed


def at_pole(chain: Chain, pole: Vector, axes: Axes, chain_turn: Quaternion) -> tuple[Axes, Quaternion]:
    """Return axes and rotation of `aimed` chains, rolled to poles."""
    do, line = chain.do, axes.line
    bend = pole_bend(do, pole, line, axes.bend)
    if do.any(chain.aim.pole_angle):
        bend = rotate(about(do, times(line, chain.aim.pole_angle)), bend)
    bend = unit_of(do, reject(bend, line))
    chain_turn = multiply(between(do, axes.bend, bend, line), chain_turn)
    return Axes(line, bend, cross(bend, line)), chain_turn


def bent(chain: Chain, reach: Reach, line: Vector, turns: list[Frame], passes: Number) -> Bent:
    """Return the solution of chains from the rotations of their bones."""
    do, joints = chain.do, [times(line, reach.push)]
    # From the rotations, not the directions: bones without length are where the bones before them carry them.
    for turn, rest, length, factor in zip(turns, chain.directions, chain.lengths, reach.stretch, strict=True):
        joints.append(plus(joints[-1], times(seen(turn, rest), length * factor)))
    error = size_of(do, minus(chain.aim.target, joints[-1]))
    status = status_of(do, error <= chain.aim.tolerance, reach.shortfall, chain.aim.tolerance, Status.NOT_CONVERGED)
    return Bent(turns, joints, reach.stretch, error * chain.scale, status, passes)


def write(chain: Chain, found: Bent, solution: Solution, index: int | Ints | slice) -> None:
    """Write the solution of chains into the members `index`."""
    if chain.do is ONE:
        origin = solution.joints[index, 0].tolist()
        solution.joints[index] = [plus(times(joint, chain.scale), origin) for joint in found.joints]
        solution.rotations[index] = found.turns
    else:
        joints = np.array(found.joints) * chain.scale
        solution.joints[index] = np.moveaxis(joints, -1, 0) + solution.joints[index, :1]
        solution.rotations[index] = np.moveaxis(np.array(found.turns), -1, 0)
    solution.stretch[index] = np.array(found.stretch).T
    solution.error[index], solution.status[index] = found.error, found.status
    solution.iterations[index] = found.iterations


def _two_bone(
    do: Numbers, lengths: Sequence[Number], carried: Sequence[Number], distance: Number, axes: Axes
) -> list[Vector]:
    """Return the solved directions of chains in which two segments have length."""
    first = second = 0.0 * distance
    lead = []
    for length, skipped in zip(lengths, carried, strict=True):
        lead.append(first == 0.0)
        first, second = do.where(skipped | (first != 0.0), first, length), do.where(skipped, second, length)
    upper, lower = triangle(do, first, second, distance, axes.line, axes.bend)
    return [do.choose(is_first, upper, lower) for is_first in lead]


def _rolled(
    chain: Chain, directions: list[Vector], lengths: Sequence[Number], axes: Axes
) -> tuple[list[Vector], Quaternion]:
    """Return directions rolled about the line to the target so that they bend to the pole, and the roll."""
    do, zero = chain.do, 0.0 * chain.scale
    tip = joints_of(directions, lengths)[-1]
    line = either(do, size_of(do, tip) > NO_CHORD, unit_of(do, tip), axes.line)
    side = reject(centroid(joints_of(directions, lengths), lengths), line)
    turn = between(do, unit_of(do, side), unit_of(do, reject(axes.bend, line)), line)
    # Far beyond its length, a stretched chain is straight to within the rounding of its joints.
    roll = do.choose(
        size_of(do, side) > STRAIGHT * do.most(size_of(do, tip), 1.0), turn, (zero + 1.0, zero, zero, zero)
    )
    return turned(roll, directions), roll


def _led_by_tip(
    chain: Chain, problem: Problem, lengths: list[Number], distance: Number, own: Axes, axes: Axes
) -> tuple[list[Vector], Number]:
    """Return the directions that FABRIK finds for targets at a distance, and the passes used."""
    do, start, target = chain.do, chain.directions, times(axes.line, distance)
    aside = [1.0 - dot(direction, own.line) ** 2 for direction in start]
    lean = sum(length * square for length, square in zip(chain.lengths, aside, strict=True))
    tip = joints_of(start, lengths)[-1]
    way = minus(tip, target)
    share = fabrik.folding(do, lean, dot(way, own.line), size_of(do, reject(way, own.line)))
    if do.any(share):
        chord = size_of(do, tip)
        bowed = first_guess(do, start, lengths, own, own, chord - share * do.most(chord - distance, 0.0))
        start = do.choose(share > 0.0, bowed, start)
    start = flattened(do, start, lengths, axes.line, distance)
    whole, passes = sum(lengths), min(fabrik.PASSES, problem.iterations)
    tolerance = do.most(chain.aim.tolerance, fabrik.FINEST * whole)
    found, used, left = fabrik.reach(do, start, lengths, target, tolerance, passes)
    if passes == problem.iterations or not do.any(left):
        return found, used
    now = chain_axes(do, found, [length / whole for length in lengths], chain.frames[0])
    pushed = first_guess(do, found, lengths, now, now, distance, bow=False)
    off = abs(size_of(do, joints_of(pushed, lengths)[-1]) - distance) > tolerance
    if do.any(off):
        pushed = do.choose(off, first_guess(do, found, lengths, now, now, distance), pushed)
    more = solve_directions(do, pushed, lengths, axes, distance, tolerance, problem.iterations, passes + 1)
    chosen: tuple[list[Vector], Number] = do.choose(left, more, (found, used))
    return chosen
