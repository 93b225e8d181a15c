"""A free chain alone, in plain floats: for a few chains numpy's calls would cost more than what they compute.

Every step does the arithmetic of its counterpart in `solver`, `reach`, `twist`, `two_bone` and `even_bend` in the same
order, so that a chain comes out the same to the bit, alone or in a batch. What is rare is left to the arrays there:
members that are not valid, chains whose tip stands on their root or that share their bend out unevenly, and those
that have to be laid out by construction.

Vectors and quaternions are `tuples`; everything is seen from the root, in chain lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from . import arc, even_bend, fabrik, rotations, twist
from .calculus import ONE
from .problem import OutOfReach, Problem, Solution, Solver, Status
from .reach import ROUNDING
from .sides import side_bend
from .tuples import (
    Quaternion,
    Vector,
    added,
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

NO_LENGTH = 1e-6
"""Segments shorter than this fraction of the chain have no length of their own: they are carried along."""
NO_DISTANCE = 1e-12
"""What is nearer to the root than this fraction of the chain shows no direction."""
SAME = 1e-12
"""A chain that is to be as long as it is, to within this fraction of its length, keeps its shape."""

Axes = tuple[Vector, Vector, Vector]
"""Line, bend and normal of a chain, see `twist.Axes`."""

_IDENTITY: Quaternion = (1.0, 0.0, 0.0, 0.0)
_ORIGIN: Vector = (0.0, 0.0, 0.0)


def solve_single(problem: Problem, solution: Solution, index: int) -> bool:
    """Solve one member of a problem and write the result into the solution; False: left to the arrays, untouched."""
    chain = _Chain.of(problem, index)
    return chain is not None and chain.solve(problem, solution, index)


@dataclass
class _Chain:
    """One member; see `solver._Chains`."""

    scale: float
    directions: list[Vector]
    lengths: list[float]
    frames: list[list[list[float]]]
    target: Vector
    pole: Vector | None
    side: Vector | None
    pole_angle: float
    softness: float
    push_limit: float
    tolerance: float

    @classmethod
    def of(cls, problem: Problem, index: int) -> _Chain | None:
        """Read a member whose shapes are right; None where it is not valid."""
        joints = _member(problem.joints, index)
        frames = _member(problem.frames, index)
        root = joints[0]
        segments = [minus(b, a) for a, b in pairwise(joints)]
        sizes = [norm(segment) for segment in segments]
        scale = added(sizes)
        if not (isfinite(scale) and scale > 1e-100):
            return None
        goal = problem.goal
        target = over(minus(_member(goal.target, index), root), scale)
        pole = None if goal.pole is None else over(minus(_member(goal.pole, index), root), scale)
        sides = None if problem.solver is Solver.FABRIK else problem.bend_side
        side = None if sides is None else tuple(_member(sides, index))
        chain = cls(
            scale=scale,
            directions=[over(segment, max(size, 1e-200)) for segment, size in zip(segments, sizes, strict=True)],
            lengths=[size / scale for size in sizes],
            frames=frames,
            target=target,
            pole=pole,
            side=side,
            pole_angle=0.0 if goal.pole_angle is None else _number(goal.pole_angle, index),
            softness=_number(problem.softness, index),
            push_limit=_number(problem.push_limit, index),
            tolerance=_number(problem.tolerance, index),
        )
        finite = all(vector is None or isfinite(norm(vector)) for vector in (target, pole, side))
        settings = isfinite(chain.pole_angle + chain.softness) and chain.push_limit + chain.tolerance >= 0.0
        return chain if finite and settings and all(map(_is_frame, frames)) else None

    def solve(self, problem: Problem, solution: Solution, index: int) -> bool:
        """Solve the chain as `solver._solve_valid` does."""
        carried = [length <= NO_LENGTH for length in self.lengths]
        two_bone = problem.solver not in {Solver.FABRIK, Solver.EVEN_BEND} and carried.count(False) == 2
        by_tip = problem.solver is Solver.FABRIK
        if problem.solver is Solver.TWO_BONE and not two_bone:
            return False
        is_shared = problem.bend_lead != 0.0 or problem.stiffness is not None
        if is_shared and not (two_bone or by_tip):
            return False
        axes = _chain_axes(self.directions, self.lengths, self.frames[0])
        if axes is None:
            return False
        distance, push, stretch, missing = self._reachable(problem)
        lengths = [length * factor for length, factor in zip(self.lengths, stretch, strict=True)]
        line, bend, normal, base, bends_as_fk = self._aimed(axes, carried, distance)
        if self.pole is not None:
            half = np.float64(self.pole_angle) / 2
            turn = _about(line, float(np.cos(half)), float(np.sin(half)))
            wanted = rotate(turn, self._pole_bend(line, bend))
            wanted = unit(reject(wanted, line))
            base = multiply(_between(bend, wanted, line), base)
            bend, normal = wanted, cross(wanted, line)
        passes = 0
        if two_bone:
            directions = _two_bone(lengths, carried, distance, line, bend)
        else:
            if by_tip:
                base = _IDENTITY
                found = self._led_by_tip(lengths, axes, line, normal, distance, problem.iterations)
            else:
                start = _first_guess(self.directions, lengths, axes, (line, bend, normal), distance)
                found = _solve_directions(start, lengths, line, normal, distance, self.tolerance, problem.iterations)
            if found is None:
                return False
            directions, passes = found
            if self.pole is not None:
                tip = _tip(directions, lengths)
                straight = unit(tip) if norm(tip) > NO_DISTANCE else line
                side = reject(_centroid(_joints(directions, lengths), lengths), straight)
                if norm(side) > twist.STRAIGHT:
                    roll = _between(unit(side), unit(reject(bend, straight)), straight)
                    directions = [rotate(roll, direction) for direction in directions]
                    base = multiply(roll, base)
        chord = norm(_tip(self.directions, self.lengths))
        if bends_as_fk and not by_tip and abs(distance - chord) <= SAME and all(factor == 1.0 for factor in stretch):
            directions = [rotate(base, direction) for direction in self.directions]
        inherits = None if problem.inherits is None else np.asarray(problem.inherits).tolist()
        turns = self._bone_rotations(base, directions, carried, inherits)
        root = times(line, push)
        segments = [
            times(rotate(turn, rest), length)
            for turn, rest, length in zip(turns, self.directions, lengths, strict=True)
        ]
        joints = [plus(times(root, self.scale), tuple(solution.joints[index, 0].tolist()))]
        end = None
        for segment in segments:
            end = segment if end is None else plus(end, segment)
            joints.append(plus(joints[-1], times(segment, self.scale)))
        assert end is not None
        error = norm(minus(minus(self.target, root), end))
        solution.joints[index] = joints
        solution.rotations[index] = [_matrix(turn) for turn in turns]
        solution.stretch[index] = stretch
        solution.error[index] = error * self.scale
        solution.iterations[index] = passes
        if error <= self.tolerance:
            solution.status[index] = Status.REACHED
        elif missing > self.tolerance:
            solution.status[index] = Status.TOO_FAR
        else:
            solution.status[index] = Status.TOO_NEAR if missing < -self.tolerance else Status.NOT_CONVERGED
        return True

    def _reachable(self, problem: Problem) -> tuple[float, float, list[float], float]:
        """See `reach.reachable`: distance, push, stretch of each bone and what is missing."""
        distance, lengths = norm(self.target), self.lengths
        inner = max(0.0, 2.0 * max(lengths) - 1.0)
        softness = min(self.softness, 1.0 - inner)
        start = 1.0 - softness
        eased = distance
        if distance > start:
            width = max(softness, 1e-12)
            eased = start - width * float(np.expm1(-(distance - start) / width)) if softness > 0 else start
        goal = max(eased, inner)
        push, stretch = 0.0, [1.0] * len(lengths)
        if problem.out_of_reach is OutOfReach.PUSH_ROOT:
            push = min(max(distance - goal, -self.push_limit), self.push_limit)
        elif problem.out_of_reach is OutOfReach.STRETCH and distance > goal:
            weights = problem.stretch_weights
            shares = stretch if weights is None else np.asarray(weights, dtype=np.float64).tolist()
            total = added([share * length for share, length in zip(shares, lengths, strict=True)])
            if not total > 0:
                shares, total = stretch, 1.0
            lack = max(distance / max(goal, 1e-12) - 1.0, 0.0)
            stretch = [1.0 + share * (lack / total) for share in shares]
            goal = distance
        missing = distance - push - goal
        return goal, push, stretch, 0.0 if abs(missing) <= ROUNDING * max(distance, goal) else missing

    def _led_by_tip(
        self, lengths: list[float], own: Axes, line: Vector, normal: Vector, distance: float, iterations: int
    ) -> tuple[list[Vector], int] | None:
        """See `solver._led_by_tip`."""
        start, target = self.directions, times(line, distance)
        along = [dot(direction, own[0]) for direction in start]
        lean = added([length * (1.0 - x * x) for length, x in zip(self.lengths, along, strict=True)])
        tip = _tip(start, lengths)
        way = minus(tip, target)
        share = fabrik.folding(ONE, lean, dot(way, own[0]), norm(reject(way, own[0])))
        if share > 0.0:
            chord = norm(tip)
            start = _first_guess(start, lengths, own, own, chord - share * max(chord - distance, 0.0))
        start = _flattened(lengths, line, distance) or start
        tolerance, passes = max(self.tolerance, fabrik.FINEST), min(fabrik.PASSES, iterations)
        found, used, left = fabrik.reach(ONE, start, lengths, target, tolerance, passes)
        if passes == iterations or not left:
            return found, int(used)
        whole = added(lengths)
        now = _chain_axes(found, [length / whole for length in lengths], self.frames[0])
        if now is None:
            return None
        start = _first_guess(found, lengths, now, now, distance, bow=False)
        if abs(norm(_tip(start, lengths)) - distance) > tolerance:
            start = _first_guess(found, lengths, now, now, distance)
        return _solve_directions(start, lengths, line, normal, distance, tolerance, iterations, passes + 1)

    def _aimed(
        self, axes: Axes, carried: list[bool], reached: float
    ) -> tuple[Vector, Vector, Vector, Quaternion, bool]:
        """See `solver._aimed`: axes towards the target, the smallest rotation to there, whether it bends as FK."""
        distance = norm(self.target)
        line = over(self.target, max(distance, NO_DISTANCE)) if distance > NO_DISTANCE else axes[0]
        aim = _between(axes[0], line, axes[2])
        natural, kept = axes[1], True
        if self.side is not None:
            first = self.directions[carried.index(False)]
            chord = norm(_tip(self.directions, self.lengths))
            natural, kept, _ = side_bend(ONE, axes[0], axes[1], self.side, first, chord, reached)
        bend = unit(reject(rotate(aim, natural), line))
        return line, bend, cross(bend, line), aim, kept

    def _pole_bend(self, line: Vector, natural: Vector) -> Vector:
        """See `twist.pole_bend`."""
        assert self.pole is not None
        across = reject(self.pole, line)
        return unit(across) if norm(across) > 1e-6 * norm(self.pole) + 1e-9 else natural

    def _bone_rotations(
        self, base: Quaternion, solved: list[Vector], carried: list[bool], inherits: list[bool] | None
    ) -> list[Quaternion]:
        """See `twist.bone_rotations`."""
        found = []
        parent, begun = _IDENTITY, False
        for i, rest in enumerate(self.directions):
            if i > 0 and inherits is not None and not inherits[i]:
                parent = start = _IDENTITY
            else:
                start = parent if begun else base
            if not carried[i]:
                now = unit(rotate(start, rest))
                if _nearly_opposite(now, solved[i]):
                    turn = _between(now, solved[i], rotate(start, _hinge(self.frames[i], rest)))
                else:
                    turn = _smallest(now, solved[i])
                parent = multiply(turn, start)
                begun = True
            found.append(parent)
        sizes = [sqrt(w * w + (x * x + y * y + z * z)) for w, x, y, z in found]
        return [(w / size, x / size, y / size, z / size) for (w, x, y, z), size in zip(found, sizes, strict=True)]


# ---- rotations, as in `rotations`


def _about(axis: Vector, cosine: float, sine: float) -> Quaternion:
    return cosine, sine * axis[0], sine * axis[1], sine * axis[2]


def _nearly_opposite(a: Vector, b: Vector) -> bool:
    return norm(plus(a, b)) < rotations.NEARLY_OPPOSITE


def _smallest(a: Vector, b: Vector) -> Quaternion:
    middle = unit(plus(a, b))
    return dot(a, middle), *cross(a, middle)


def _between(a: Vector, b: Vector, axis: Vector) -> Quaternion:
    if not _nearly_opposite(a, b):
        return _smallest(a, b)
    if norm(plus(a, b)) >= rotations.OPPOSITE:
        axis = unit(cross(a, b))
    axis = unit(reject(axis, a))
    return multiply(_smallest((-a[0], -a[1], -a[2]), b), (0.0, *axis))


def _hinge(frame: list[list[float]], direction: Vector) -> Vector:
    (xx, _, zx), (xy, _, zy), (xz, _, zz) = frame
    across = reject((xx, xy, xz), direction)
    return unit(across if norm(across) > 1e-4 else cross(direction, (zx, zy, zz)))


def _is_frame(frame: list[list[float]]) -> bool:
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
    """One member of an array as nested lists of floats."""
    return np.asarray(array[index], dtype=np.float64).tolist()


def _number(value: Any, index: int) -> float:
    """A setting of one member, which may be the same for all."""
    return float(value[index] if np.ndim(value) else value)


# ---- chains, as in `twist`, `two_bone` and `even_bend`


def _joints(directions: list[Vector], lengths: list[float]) -> list[Vector]:
    x = y = z = 0.0
    joints = [_ORIGIN]
    for (dx, dy, dz), length in zip(directions, lengths, strict=True):
        x, y, z = x + dx * length, y + dy * length, z + dz * length
        joints.append((x, y, z))
    return joints


def _tip(directions: list[Vector], lengths: list[float]) -> Vector:
    x = y = z = 0.0
    for (dx, dy, dz), length in zip(directions, lengths, strict=True):
        x += dx * length
        y += dy * length
        z += dz * length
    return x, y, z


def _centroid(joints: list[Vector], lengths: list[float]) -> Vector:
    x = y = z = 0.0
    for i, length in enumerate(lengths):
        (ax, ay, az), (bx, by, bz), half = joints[i], joints[i + 1], length / 2.0
        x, y, z = x + (bx + ax) * half, y + (by + ay) * half, z + (bz + az) * half
    return x, y, z


def _chain_axes(directions: list[Vector], lengths: list[float], root_frame: list[list[float]]) -> Axes | None:
    """See `twist.chain_axes`: line, bend and normal; None for a closed chain."""
    joints = _joints(directions, lengths)
    if norm(joints[-1]) < twist.STRAIGHT:
        return None
    line = unit(joints[-1])
    bend = reject(_centroid(joints, lengths), line)
    if norm(bend) < twist.STRAIGHT:
        bend = cross(line, _hinge(root_frame, line))
    bend = unit(bend)
    return line, bend, cross(bend, line)


def _two_bone(lengths: list[float], carried: list[bool], distance: float, line: Vector, bend: Vector) -> list[Vector]:
    """See `two_bone.triangle`."""
    upper, lower = (i for i, is_carried in enumerate(carried) if not is_carried)
    first, second = lengths[upper], lengths[lower]
    twice = 2.0 * max(distance, 1e-200)
    difference = first - second
    if distance < 1e-15:
        along, across = 0.0, first
    else:
        along = distance / 2.0 + difference * ((first + second) / twice)
        before = max(distance - difference, 0.0) * (max(first + second - distance, 0.0) / twice)
        after = max(distance + difference, 0.0) * ((first + second + distance) / twice)
        across = sqrt(before * after)
    middle = times(unit(plus(times(line, along), times(bend, across))), first)
    directions = [_ORIGIN] * len(lengths)
    directions[upper] = unit(middle)
    directions[lower] = unit(minus(times(line, distance), middle))
    return directions


def _arc(chord: float) -> float:
    """See `arc.arc_of`."""
    missing = min(max(1.0 - arc.SLACK - chord, 0.0), 1.0)
    return 2.0 * sqrt(6.0 * missing) * (1.0 + 0.15 * missing + 0.1325 * (missing * missing * missing))


def _cosines(angles: Any) -> tuple[list[float], list[float]]:
    """Cosines and sines; numpy's are not to the bit those of the standard library."""
    return np.cos(angles).tolist(), np.sin(angles).tolist()


Plane = list[tuple[float, float, float]]
"""Directions of bones along the chain's line, towards its bend and along its normal."""


def _bowed(plane: Plane, turn: float, places: Any) -> Plane:
    cosines, sines = _cosines(turn * places)
    return [(x * c + y * s, y * c - x * s, z) for (x, y, z), c, s in zip(plane, cosines, sines, strict=True)]


def _pull_of(plane: Plane, parts: list[float], chord: float, wanted: float, least: float) -> float:
    """See `arc.pull_of`."""
    slack = max(1.0 - wanted, arc.SLACK)
    goal = 1.0 / sqrt(slack)
    pull = sqrt(max(max(1.0 - chord, arc.SLACK) / slack, 1.0)) - 1.0
    low, high = least, inf
    across = [y * y + z * z for _x, y, z in plane]
    for _ in range(arc.STEPS):
        tip_x = tip_y = tip_z = slope_x = slope_y = slope_z = 0.0
        for (x, y, z), part, beside in zip(plane, parts, across, strict=True):
            along = x + pull
            length = max(sqrt(along * along + beside), 1e-12)
            share = part / length
            right, up, out = share * along, share * y, share * z
            tip_x, tip_y, tip_z = tip_x + right, tip_y + up, tip_z + out
            drift = along / (length * length)
            slope_x, slope_y, slope_z = slope_x + (share - drift * right), slope_y + drift * up, slope_z + drift * out
        size = sqrt(tip_x * tip_x + tip_y * tip_y + tip_z * tip_z)
        missing = size - wanted
        if not abs(missing) > arc.PRECISE:
            break
        low, high = (pull, high) if missing < 0.0 else (low, pull)
        slope = (tip_x * slope_x - tip_y * slope_y - tip_z * slope_z) / max(size, 1e-200)
        now = max(1.0 - size, 1e-16)
        ahead = pull + (goal - 1.0 / sqrt(now)) * (2.0 * now * sqrt(now)) / max(slope, 1e-30)
        if not (low < ahead < high and ahead < 4.0 * pull + 3.0):
            ahead = min((low + high) / 2.0, 4.0 * low + 3.0)
        pull = ahead
    return pull


def _first_guess(
    directions: list[Vector], lengths: list[float], own: Axes, axes: Axes, distance: float, *, bow: bool = True
) -> list[Vector]:
    """See `even_bend.first_guess`."""
    line, bend, normal = axes
    ends = []
    total = 0.0
    for length in lengths:
        total += length
        ends.append(total)
    tip = _tip(directions, lengths)
    chord, wanted = norm(tip) / total, distance / total
    flat = _flattened(lengths, line, distance)
    if flat is not None:
        return flat
    plane = [(dot(direction, own[0]), dot(direction, own[1]), dot(direction, own[2])) for direction in directions]
    pull = 0.0
    if abs(chord - wanted) > arc.SLACK:
        parts = [length / total for length in lengths]
        if bow:
            places = np.array([(end - length / 2.0) / total - 0.5 for end, length in zip(ends, lengths, strict=True)])
            give = added([part * (1.0 - x * x) for part, (x, _y, _z) in zip(parts, plane, strict=True)])
            turn = max(_arc(wanted) - _arc(chord), arc.KICK if give < arc.STIFF and chord < arc.FOLDED else 0.0)
            plane = _bowed(plane, turn, places)
        pull = _pull_of(plane, parts, chord, wanted, arc.LEAST if bow else arc.FARTHER)
    guess = []
    for x, y, z in plane:
        along = x + pull
        size = sqrt(along * along + y * y + z * z)
        if not size > 1e-12:
            along, size = x, 1.0
        a, b, c = along / size, y / size, z / size
        guess.append(
            (
                a * line[0] + b * bend[0] + c * normal[0],
                a * line[1] + b * bend[1] + c * normal[1],
                a * line[2] + b * bend[2] + c * normal[2],
            )
        )
    return guess


def _flattened(lengths: list[float], line: Vector, distance: float) -> list[Vector] | None:
    """See `even_bend.flattened`; None: the chain is not at an end of its reach."""
    total, longest = added(lengths), max(lengths)
    straight = distance / total >= 1.0 - arc.SLACK
    if straight or (2.0 * longest > total and 2.0 * longest - total >= distance - arc.SLACK):
        back = (-1.0 * line[0], -1.0 * line[1], -1.0 * line[2])
        return [line if straight or length == longest else back for length in lengths]
    return None


def _solve_directions(
    start: list[Vector],
    lengths: list[float],
    line: Vector,
    normal: Vector,
    distance: float,
    tolerance: float,
    iterations: int,
    begun: int = 0,
) -> tuple[list[Vector], int] | None:
    """See `even_bend.solve_directions`; None where the chain has to be laid out by construction."""
    directions, tip, step = start, _tip(start, lengths), 1.0
    done = begun
    while not (abs(distance - norm(tip)) <= tolerance or done == iterations):
        if done == even_bend.REACHING:
            directions = _turned_to_line(directions, lengths, line, normal)
            directions, tip = fabrik.pass_once(ONE, directions, lengths, times(line, distance))
        elif done < even_bend.PATIENCE:
            directions, tip, step = _newton(directions, lengths, tip, distance, step)
        else:
            return None
        done += 1
    return _turned_to_line(directions, lengths, line, normal), done


def _turned_to_line(directions: list[Vector], lengths: list[float], line: Vector, normal: Vector) -> list[Vector]:
    tip = unit(_tip(directions, lengths))
    turn = _between(tip, line, unit(reject(normal, tip)))
    return [rotate(turn, direction) for direction in directions]


def _newton(
    directions: list[Vector], lengths: list[float], tip: Vector, distance: float, step: float
) -> tuple[list[Vector], Vector, float]:
    """See `even_bend._Running.newton_pass`."""
    line = unit(tip)
    give = [reject(line, direction) for direction in directions]
    speed = _tip(give, lengths)
    along, square = dot(tip, speed), dot(speed, speed)
    missing = distance * distance - dot(tip, tip)
    pull = missing / max(along + sqrt(max(along * along + square * missing, 0.0)), 1e-30)
    size = step * min(max(pull, -1.0), 1.0)
    tried = [unit(plus(direction, times(give[i], size))) for i, direction in enumerate(directions)]
    end = _tip(tried, lengths)
    if abs(distance - norm(end)) < abs(distance - norm(tip)):
        return tried, end, min(2.0 * step, 1.0)
    return directions, tip, step / 2.0
