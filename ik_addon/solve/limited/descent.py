"""Damped Gauss-Newton steps on joint angles that stay inside the limits.

The Levenberg-Marquardt method in its dual form, for few objectives and many joints: of all steps with the same effect
it takes the shortest. A joint that a step would take out of its limits goes to their boundary and may only slide along
it; the step is then computed again for the other joints, so that they make up for it. P. Baerlocher and R. Boulic, "An
inverse kinematics architecture enforcing an arbitrary number of strict priority levels", The Visual Computer 20, 2004,
doi 10.1007/s00371-004-0244-4, do so with limits that are intervals.

The pull of a distant target is capped, so that the effector goes to it on a nearly straight line, and neighboring
targets lead to neighboring poses.

Bodies descend one by one, in floats; many chains to places descend together, in arrays, see `crowd`. Both take the same
steps, which are written once.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple, Self, TypeVar

import numpy as np

from ..maths.numbers import ONE, Nested, Number, Numbers
from ..maths.vectors import Vector
from .objectives import Rows, System
from .skeleton import Angles, Pose, inside, pose_of

EXACT = 1e-8
"""Residuals up to this, in chain lengths, count as zero."""
PULL = 0.1
"""Maximum length of the residual, in chain lengths, that a step aims to remove."""
LONGEST = 0.7
"""Maximum angle, in radians, that a joint turns in one step."""
DAMPING, SOFTEST, HARDEST = 1e-3, 1e-9, 1e4
ROUNDS = 3
"""Maximum number of times a step is computed again for joints that leave their limits; then these are clamped."""
PATIENCE, GAIN = 3, 0.1
"""A descent ends after `PATIENCE` steps that each bring less than `GAIN` of what they aimed for."""
THOROUGH = 6, 0.005
"""The same if there are poles or orientations too, which converge later than places."""
OUTSIDE = 1e-13
"""A swing farther out of its limits than this has left them; less is rounding."""


Going = TypeVar("Going")
"""A run, of descents or of Newton's method."""
Advance = Callable[[System, Going], tuple[Going, Number]]
"""Returns a run after one step, and which members (B,) have come to their end."""


class State(NamedTuple):
    """A body posed by joint angles, and its residual."""

    angles: Angles
    pose: Pose
    residual: list[Number]
    error: Number
    """Norm of the residual."""

    @classmethod
    def of(cls, system: System, angles: Angles) -> Self:
        """Pose the body and compute its residual."""
        pose = pose_of(system.skeleton, angles)
        residual = [number for objective in system.objectives for number in objective.residual(pose)]
        error = system.skeleton.do.sqrt(sum(part * part for part in residual))
        if system.skeleton.do is ONE:
            return cls(angles, pose, residual, error)
        # One array (..., B) for all joints: it is picked from as fast as one for a single number.
        packed: Callable[[Nested], Nested] = np.array
        return cls(packed(angles), Pose._make([*map(packed, pose[:4]), {}]), packed(residual), error)


def finished(system: System, run: Going, advance: Advance[Going], most: float, done: int = 0) -> tuple[Going, int]:
    """Return a run of one body where it ends, and the number of steps, of which some may be done already."""
    is_ended = False
    while not is_ended and done < most:
        run, is_ended = advance(system, run)
        done += 1
    return run, done


class Run(NamedTuple):
    """A descent."""

    best: State
    """Where it is."""
    damping: Number
    idle: Number
    """Number of the last steps that brought little."""


def begun(state: State) -> Run:
    """Return a descent of one body, or of many, that begins at a state."""
    return Run(state, 0.0 * state.error + DAMPING, 0.0 * state.error)


def advanced(system: System, run: Run, pull: float) -> tuple[Run, Number]:
    """Return a descent after one step, and whether it has come to its end.

    Args:
        system: the bodies and their objectives.
        run: where they are.
        pull: maximum length of the residual, in chain lengths, that the step aims to remove.
    """
    do, (now, damping, idle) = system.skeleton.do, run
    patience, gain = (PATIENCE, GAIN) if system.only_places else THOROUGH
    share = do.least(1.0, pull / do.most(now.error, 1e-30))
    rows, wanted = system.rows(now.pose), [part * share for part in now.residual]
    step = damped(system, rows, wanted, damping)
    angles, leaving = _stepped(system, now.angles, step)
    if do.any(leaving):
        step = do.redone(slid, leaving, (system, now.angles, rows, wanted, damping, step), step)
        angles, _ = _stepped(system, now.angles, step)
    there, before = State.of(system, angles), now.error
    better = there.error < before
    now = do.choose(better, there, now)
    damping = do.least(do.most(damping * do.where(better, 0.2, 6.0), SOFTEST), HARDEST)
    idle = do.where(before - now.error > gain * do.least(before, pull), 0.0, idle + 1.0)
    return Run(now, damping, idle), (now.error <= EXACT) | (idle >= patience)


def _stepped(system: System, angles: Angles, step: Angles) -> tuple[Angles, Number]:
    """Return the joint angles after a step, or after the part of it that turns no joint too far.

    Also return whether the limits held it back.
    """
    do = system.skeleton.do
    share = do.least(1.0, LONGEST / do.most(longest(do, step), 1e-30))
    found: Angles = []
    held: Number = False
    for joint, (x, z, twist), (old_x, old_z, old) in zip(system.skeleton.joints, step, angles, strict=True):
        x, z, twist = x * share + old_x, z * share + old_z, twist * share + old
        inner_x, inner_z, inner = inside(do, joint, x, z, twist)
        held = held | (inner_x != x) | (inner_z != z) | (inner != twist)
        found.append((inner_x, inner_z, inner))
    return found, held


def longest(do: Numbers, step: Angles) -> Number:
    """Return the largest angle of a step."""
    return reduce(do.most, [abs(angle) for own in step for angle in own])


def damped(system: System, rows: Rows, wanted: list[Number], damping: Number) -> Angles:
    """Return the shortest step in joint angles that nearly achieves the wanted change of the residual, damped."""
    joints = system.skeleton.joints
    if system.size == 3 and all(rows):
        x, y, z = _three(rows, wanted, damping)
        found = []
        for ((a, b, c), (d, e, f), (g, h, i)), joint in zip(rows, joints, strict=True):
            u, v, w = joint.units
            found.append(((a * x + d * y + g * z) * u, (b * x + e * y + h * z) * v, (c * x + f * y + i * z) * w))
        return found
    factors = solved(_square(system, rows, damping), wanted)
    found = []
    for own, lot, joint in zip(system.equations, rows, joints, strict=True):
        a = b = c = 0.0
        for number, (x, y, z) in zip(own, lot, strict=True):
            factor = factors[number]
            a, b, c = a + factor * x, b + factor * y, c + factor * z
        u, v, w = joint.units
        found.append((a * u, b * v, c * w))
    return found


def _three(rows: Rows, wanted: list[Number], damping: Number) -> Vector:
    """Solve the three equations of a chain to a place."""
    xx = yx = yy = zx = zy = zz = 0.0
    for (a, b, c), (d, e, f), (g, h, i) in rows:
        xx = xx + (a * a + b * b + c * c)
        yx = yx + (d * a + e * b + f * c)
        yy = yy + (d * d + e * e + f * f)
        zx = zx + (g * a + h * b + i * c)
        zy = zy + (g * d + h * e + i * f)
        zz = zz + (g * g + h * h + i * i)
    a, b, c = wanted
    xx, yy, zz = xx + damping, yy + damping, zz + damping
    first, second = yx / xx, zx / xx
    yy, zy = yy - first * yx, zy - second * yx
    third = zy / yy
    b, c = b - first * a, c - second * a
    z = (c - third * b) / (zz - second * zx - third * zy)
    y = b / yy - third * z
    return a / xx - first * y - second * z, y, z


def _square(system: System, rows: Rows, damping: float) -> list[list[float]]:
    """Return the lower half of the product of the Jacobian with itself, damped."""
    matrix = [[0.0] * number + [damping] for number in range(system.size)]
    for own, lot in zip(system.equations, rows, strict=True):
        parts = list(zip(own, lot, strict=True))
        for number, (x, y, z) in parts:
            row = matrix[number]
            for other, (a, b, c) in parts:
                row[other] += x * a + y * b + z * c
                if other == number:
                    break
    return matrix


def solved(matrix: list[list[float]], wanted: list[float]) -> list[float]:
    """Solve equations with a symmetric positive matrix, given by its lower half: Cholesky without square roots."""
    found, rows = list(wanted), matrix
    for k in range(len(found)):
        pivot, column, first = rows[k][k], [row[k] for row in rows[k + 1 :]], found[k]
        for i, value in enumerate(column, start=k + 1):
            row, factor = rows[i], value / pivot
            for j in range(k + 1, i + 1):
                row[j] -= factor * column[j - k - 1]
            row[k] = factor
            found[i] -= factor * first
    found = [value / row[k] for k, (value, row) in enumerate(zip(found, rows, strict=True))]
    for k in range(len(found) - 1, 0, -1):
        row, value = rows[k], found[k]
        for j in range(k):
            found[j] -= row[j] * value
    return found


def slid(system: System, angles: Angles, rows: Rows, wanted: list[Number], damping: Number, found: Angles) -> Angles:
    """Move joints that leave their limits to the boundary, and compute the step again for the others.

    Args:
        system: the body and its objectives.
        angles: the joint angles.
        rows: see `System.rows`.
        wanted: the change of the residual.
        damping: see `damped`.
        found: the step without limits.
    """
    do, joints = system.skeleton.do, system.skeleton.joints
    left = list(rows)
    fixed: list[Vector | None] = [None] * len(joints)
    held: list[tuple[Number, Number]] = [(1.0, False)] * len(joints)
    for _ in range(ROUNDS):
        is_done = True
        for i, joint in enumerate(joints):
            (goes, stopped), (low, high, least, most, *_), (old_x, old_z, old) = held[i], joint, angles[i]
            # Joints that are held stay where they were put.
            new_x, new_z, twist = (old_x + found[i][0]) * goes, (old_z + found[i][1]) * goes, old + found[i][2]
            end, (near_x, near_z) = do.least(do.most(twist, least), most), do.nearest_swing(new_x, new_z, low, high)
            off_x, off_z = new_x - near_x, new_z - near_z
            leaving = do.most(abs(off_x), abs(off_z)) > OUTSIDE
            # ">" between booleans: the first and not the second.
            over = (twist != end) > stopped
            if not do.any(leaving | over):
                continue
            is_done = False
            u, v, w = joint.units
            # The outward normal of the cone, in the coordinates of the step.
            a, b = do.where(leaving, off_x * u, 0.0), do.where(leaving, off_z * v, 0.0)
            size = do.most(do.sqrt(a * a + b * b), 1e-200)
            a, b = a / size, b / size
            depth = a * ((near_x - old_x) / max(u, 1e-12)) + b * ((near_z - old_z) / max(v, 1e-12))
            x, z, twist = fixed[i] or (0.0, 0.0, 0.0)
            fixed[i] = x + depth * a, z + depth * b, do.where(over, (end - old) / max(w, 1e-12), twist)
            held[i] = do.where(leaving, 0.0, goes), stopped | over
            left[i] = _kept(do, left[i], a, b, over)
        if is_done:
            break
        rest = list(wanted)
        for own, lot, fix in zip(system.equations, rows, fixed, strict=True):
            if fix is not None:
                x, y, z = fix
                for number, (a, b, c) in zip(own, lot, strict=True):
                    rest[number] = rest[number] - (a * x + b * y + c * z)
        found = damped(system, left, rest, damping)
        for i, fix in enumerate(fixed):
            if fix is not None:
                (a, b, c), (u, v, w) = found[i], joints[i].units
                found[i] = a + fix[0] * u, b + fix[1] * v, c + fix[2] * w
    return found


def _kept(do: Numbers, lot: Sequence[Vector], a: Number, b: Number, over: Number) -> tuple[Vector, ...]:
    """Return rows of a Jacobian without a direction of a joint's swing, and without its twist where `over`."""
    found = []
    for x, z, twist in lot:
        across = x * a + z * b
        found.append((x - across * a, z - across * b, do.where(over, 0.0, twist)))
    return tuple(found)
