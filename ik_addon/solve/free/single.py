"""Solve one free chain in plain floats: for a few chains numpy's calls would cost more than the computation.

Every step does the arithmetic of its counterpart in `chains`, `axes` and `even_bend`, so a chain comes out the same
alone or in a batch. Rare cases are left to the arrays there: members that are not valid,
chains whose tip is at their root or that share out their bend unevenly, and those that must be laid out by
construction.

Vectors and quaternions are those of `vectors`; everything is relative to the root, in chain lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import cos, isfinite, sin, sqrt
from typing import Any, NamedTuple

import numpy as np

from ..maths.numbers import ONE, between
from ..maths.vectors import (
    Quaternion,
    Vector,
    cross,
    dot,
    minus,
    multiply,
    norm,
    over,
    plus,
    reject,
    rotate,
    times,
    unit,
)
from ..problem import Problem, Solution, Solver, Status
from . import fabrik
from .axes import STRAIGHT
from .bend_side import side_bend
from .even_bend import NO_CHORD
from .folds import folded, side_axes
from .reach import reachable_for_one
from .single_bend import Axes, centroid, chain_axes, first_guess, flattened, hinge, solve_directions, tip_of
from .two_bone import triangle

NO_LENGTH = 1e-6
"""Segments shorter than this fraction of the chain count as having no length: the segment before carries them."""
NO_DISTANCE = 1e-12
"""A point nearer to the root than this fraction of the chain gives no direction."""
SAME = 1e-12
"""A chain whose distance from root to tip should change by no more than this, in chain lengths, keeps its shape."""

Rows = Sequence[Sequence[float]]
"""A matrix (3, 3), row by row."""

_IDENTITY: Quaternion = (1.0, 0.0, 0.0, 0.0)
_ORIGIN: Vector = (0.0, 0.0, 0.0)


def solve_single(problem: Problem, solution: Solution, index: int) -> bool:
    """Solve one member and write the result into the solution; return False if it is left to the arrays, untouched."""
    goal, by_tip = problem.goal, problem.solver is Solver.FABRIK
    joints = _member(problem.joints, index)
    chain = Chain.of(
        joints,
        _member(problem.frames, index),
        _member(goal.target, index),
        pole=None if goal.pole is None else _member(goal.pole, index),
        side=None if problem.bend_side is None else _member(problem.bend_side, index),
        folds=None if by_tip or problem.folds is None else _member(problem.folds, index),
        pole_angle=0.0 if goal.pole_angle is None else _number(goal.pole_angle, index),
        softness=_number(problem.softness, index),
        push_limit=_number(problem.push_limit, index),
        tolerance=_number(problem.tolerance, index),
    )
    found = None if chain is None else chain.solved(problem)
    if chain is None or found is None:
        return False
    joints = [plus(times(found.root, chain.scale), joints[0])]
    for turn, rest, length in zip(found.turns, chain.directions, found.lengths, strict=True):
        joints.append(plus(joints[-1], times(times(rotate(turn, rest), length), chain.scale)))
    solution.joints[index] = joints
    solution.rotations[index] = [_matrix(turn) for turn in found.turns]
    solution.stretch[index] = found.stretch
    solution.error[index] = found.error
    solution.iterations[index] = found.iterations
    solution.status[index] = found.status
    return True


class Bent(NamedTuple):
    """The solution of one chain; see `Solution`."""

    turns: list[Quaternion]
    """How the frames turn from FK."""
    root: Vector
    """How far the root is pushed, in chain lengths."""
    lengths: list[float]
    """The lengths of the stretched bones, in chain lengths."""
    stretch: list[float]
    error: float
    status: Status
    iterations: int


@dataclass
class Chain:
    """One member; see `chains.Chains`."""

    scale: float
    directions: list[Vector]
    lengths: list[float]
    frames: Sequence[Rows]
    target: Vector
    pole: Vector | None
    side: Vector | None
    folds: list[Vector] | None
    """None if all are zero."""
    pole_angle: float
    softness: float
    push_limit: float
    tolerance: float

    @classmethod
    def of(
        cls,
        joints: Sequence[Sequence[float]],
        frames: Sequence[Rows],
        target: Sequence[float],
        *,
        pole: Sequence[float] | None,
        side: Sequence[float] | None,
        folds: Sequence[Sequence[float]] | None,
        pole_angle: float,
        softness: float,
        push_limit: float,
        tolerance: float,
    ) -> Chain | None:
        """Read a member, with frames as three rows each, see `Problem`; return None if it is not valid."""
        root = joints[0]
        segments = [minus(b, a) for a, b in pairwise(joints)]
        sizes = [norm(segment) for segment in segments]
        scale = sum(sizes)
        if not (isfinite(scale) and scale > 1e-100):
            return None
        chain = cls(
            scale=scale,
            directions=[over(segment, max(size, 1e-200)) for segment, size in zip(segments, sizes, strict=True)],
            lengths=[size / scale for size in sizes],
            frames=frames,
            target=over(minus(target, root), scale),
            pole=None if pole is None else over(minus(pole, root), scale),
            side=None if side is None else (side[0], side[1], side[2]),
            folds=[(x, y, z) for x, y, z in folds] if folds is not None and any(map(any, folds)) else None,
            pole_angle=pole_angle,
            softness=softness,
            push_limit=push_limit,
            tolerance=tolerance,
        )
        places = (chain.target, chain.pole, chain.side, *(chain.folds or ()))
        finite = all(vector is None or isfinite(norm(vector)) for vector in places)
        settings = isfinite(pole_angle + softness) and push_limit + tolerance >= 0.0
        return chain if finite and settings and all(map(_is_frame, frames)) else None

    def solved(self, problem: Problem) -> Bent | None:
        """Solve the chain as `chains.solve_chains` does, with the settings of a problem; None: left to the arrays."""
        carried = [length <= NO_LENGTH for length in self.lengths]
        two_bone = problem.solver not in {Solver.FABRIK, Solver.EVEN_BEND} and carried.count(False) == 2
        by_tip = problem.solver is Solver.FABRIK
        if problem.solver is Solver.TWO_BONE and not two_bone:
            return None
        is_shared = problem.bend_lead != 0.0 or problem.stiffness is not None
        if is_shared and not (two_bone or by_tip):
            return None
        folds = None if two_bone else self.folds
        axes = chain_axes(self.directions, self.lengths, self.frames[0], self.side if by_tip else None)
        if axes is None:
            return None
        if folds is not None and self.side is not None:
            axes = side_axes(ONE, axes[0], axes[2], self.side, self.directions[carried.index(False)])
        distance, push, stretch, shortfall = reachable_for_one(
            self.lengths, norm(self.target), self.softness, self.push_limit, problem
        )
        lengths = [length * factor for length, factor in zip(self.lengths, stretch, strict=True)]
        line, bend, normal, chain_turn, bends_as_fk = self._aimed(
            axes, carried, distance, None if by_tip or folds is not None else self.side
        )
        if self.pole is not None:
            turn = _about(line, cos(self.pole_angle / 2.0), sin(self.pole_angle / 2.0))
            wanted = rotate(turn, self._pole_bend(line, bend))
            wanted = unit(reject(wanted, line))
            chain_turn = multiply(between(ONE, bend, wanted, line), chain_turn)
            bend, normal = wanted, cross(wanted, line)
        passes = 0
        if two_bone:
            directions = _two_bone(lengths, carried, distance, line, bend)
        else:
            if by_tip:
                chain_turn = _IDENTITY
                found = self._led_by_tip(lengths, axes, line, normal, distance, problem.iterations)
            else:
                if folds is None:
                    start = first_guess(self.directions, lengths, axes, (line, bend, normal), distance)
                else:
                    start, bends_as_fk = folded(ONE, self.directions, lengths, carried, folds, distance)
                    turn = multiply(chain_turn, between(ONE, unit(tip_of(start, lengths)), axes[0], axes[2]))
                    start = flattened(lengths, line, distance) or [rotate(turn, direction) for direction in start]
                found = solve_directions(start, lengths, line, normal, distance, self.tolerance, problem.iterations)
            if found is None:
                return None
            directions, passes = found
            if self.pole is not None and folds is None:
                directions, roll = _rolled(directions, lengths, line, bend)
                chain_turn = multiply(roll, chain_turn)
        chord = norm(tip_of(self.directions, self.lengths))
        if bends_as_fk and not by_tip and abs(distance - chord) <= SAME and all(factor == 1.0 for factor in stretch):
            directions = [rotate(chain_turn, direction) for direction in self.directions]
        inherits = None if problem.inherits is None else np.asarray(problem.inherits).tolist()
        turns = self._bone_rotations(chain_turn, directions, carried, inherits)
        root = times(line, push)
        end = _ORIGIN
        for turn, rest, length in zip(turns, self.directions, lengths, strict=True):
            end = plus(end, times(rotate(turn, rest), length))
        error = norm(minus(minus(self.target, root), end))
        if error <= self.tolerance:
            status = Status.REACHED
        elif shortfall > self.tolerance:
            status = Status.TOO_FAR
        else:
            status = Status.TOO_NEAR if shortfall < -self.tolerance else Status.NOT_CONVERGED
        return Bent(turns, root, lengths, stretch, error * self.scale, status, passes)

    def _led_by_tip(
        self, lengths: list[float], own: Axes, line: Vector, normal: Vector, distance: float, iterations: int
    ) -> tuple[list[Vector], int] | None:
        """See `chains._led_by_tip`."""
        start, target = self.directions, times(line, distance)
        along = [dot(direction, own[0]) for direction in start]
        lean = sum(length * (1.0 - x * x) for length, x in zip(self.lengths, along, strict=True))
        tip = tip_of(start, lengths)
        way = minus(tip, target)
        share = fabrik.folding(ONE, lean, dot(way, own[0]), norm(reject(way, own[0])))
        if share > 0.0:
            chord = norm(tip)
            start = first_guess(start, lengths, own, own, chord - share * max(chord - distance, 0.0))
        start = flattened(lengths, line, distance) or start
        tolerance, passes = max(self.tolerance, fabrik.FINEST * sum(lengths)), min(fabrik.PASSES, iterations)
        found, used, left = fabrik.reach(ONE, start, lengths, target, tolerance, passes)
        if passes == iterations or not left:
            return found, int(used)
        whole = sum(lengths)
        now = chain_axes(found, [length / whole for length in lengths], self.frames[0])
        if now is None:
            return None
        start = first_guess(found, lengths, now, now, distance, bow=False)
        if abs(norm(tip_of(start, lengths)) - distance) > tolerance:
            start = first_guess(found, lengths, now, now, distance)
        return solve_directions(start, lengths, line, normal, distance, tolerance, iterations, passes + 1)

    def _aimed(
        self, axes: Axes, carried: list[bool], reached: float, side: Vector | None
    ) -> tuple[Vector, Vector, Vector, Quaternion, bool]:
        """See `chains.aimed`: axes towards the target, the smallest rotation onto them, whether the bend is FK's."""
        distance = norm(self.target)
        line = over(self.target, max(distance, NO_DISTANCE)) if distance > NO_DISTANCE else axes[0]
        aim = between(ONE, axes[0], line, axes[2])
        natural, kept = axes[1], True
        if side is not None:
            first = self.directions[carried.index(False)]
            chord = norm(tip_of(self.directions, self.lengths))
            natural, kept, _ = side_bend(ONE, axes[0], axes[1], side, first, chord, reached)
        bend = unit(reject(rotate(aim, natural), line))
        return line, bend, cross(bend, line), aim, kept

    def _pole_bend(self, line: Vector, natural: Vector) -> Vector:
        """See `axes.pole_bend`."""
        assert self.pole is not None
        across = reject(self.pole, line)
        return unit(across) if norm(across) > 1e-6 * norm(self.pole) + 1e-9 else natural

    def _bone_rotations(
        self, chain_turn: Quaternion, solved: list[Vector], carried: list[bool], inherits: list[bool] | None
    ) -> list[Quaternion]:
        """See `axes.bone_rotations`."""
        found = []
        parent, begun = _IDENTITY, False
        for i, rest in enumerate(self.directions):
            if i > 0 and inherits is not None and not inherits[i]:
                parent = start = _IDENTITY
            else:
                start = parent if begun else chain_turn
            if not carried[i]:
                now = unit(rotate(start, rest))
                turn = between(ONE, now, solved[i], partial(_turned_hinge, start, self.frames[i], rest))
                parent = multiply(turn, start)
                begun = True
            found.append(parent)
        sizes = [sqrt(w * w + (x * x + y * y + z * z)) for w, x, y, z in found]
        return [(w / size, x / size, y / size, z / size) for (w, x, y, z), size in zip(found, sizes, strict=True)]


# ---- rotations, as in `rotations`


def _about(axis: Vector, cosine: float, sine: float) -> Quaternion:
    return cosine, sine * axis[0], sine * axis[1], sine * axis[2]


def _turned_hinge(turn: Quaternion, frame: Rows, direction: Vector) -> Vector:
    return rotate(turn, hinge(frame, direction))


def _is_frame(frame: Rows) -> bool:
    (xx, yx, zx), (xy, yy, zy), (xz, yz, zz) = frame
    sizes = norm((xx, xy, xz)), norm((zx, zy, zz))
    return isfinite(yx + yy + yz) and min(sizes) > 0.5 and isfinite(sizes[0] + sizes[1])


def _matrix(q: Quaternion) -> tuple[Vector, Vector, Vector]:
    w, x, y, z = q
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def _member(array: Any, index: int) -> Any:
    """Return one member of an array as nested lists of floats."""
    return np.asarray(array[index], dtype=np.float64).tolist()


def _number(value: Any, index: int) -> float:
    """Return a setting of one member; it may be one number for all."""
    return float(value[index] if np.ndim(value) else value)


# ---- directions


def _two_bone(lengths: list[float], carried: list[bool], distance: float, line: Vector, bend: Vector) -> list[Vector]:
    upper, lower = (i for i, is_carried in enumerate(carried) if not is_carried)
    directions = [_ORIGIN] * len(lengths)
    directions[upper], directions[lower] = triangle(ONE, lengths[upper], lengths[lower], distance, line, bend)
    return directions


def _rolled(
    directions: list[Vector], lengths: list[float], line: Vector, bend: Vector
) -> tuple[list[Vector], Quaternion]:
    """See `chains._rolled`."""
    tip = tip_of(directions, lengths)
    straight = unit(tip) if norm(tip) > NO_CHORD else line
    side = reject(centroid(fabrik.joints_of(directions, lengths), lengths), straight)
    if norm(side) <= STRAIGHT:
        return directions, _IDENTITY
    roll = between(ONE, unit(side), unit(reject(bend, straight)), straight)
    return [rotate(roll, direction) for direction in directions], roll
