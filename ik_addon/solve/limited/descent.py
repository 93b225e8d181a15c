"""Damped Gauss-Newton steps on joint angles that stay inside the limits.

The Levenberg-Marquardt method in its dual form, for few objectives and many joints: of all steps with the same effect
it takes the shortest. A joint that a step would take out of its limits goes to their boundary and may only slide along
it; the step is then computed again for the other joints, so that they make up for it. P. Baerlocher and R. Boulic, "An
inverse kinematics architecture enforcing an arbitrary number of strict priority levels", The Visual Computer 20, 2004,
doi 10.1007/s00371-004-0244-4, do so with limits that are intervals.

The pull of a distant target is capped, so that the effector goes to it on a nearly straight line, and neighboring
targets lead to neighboring poses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ..maths.calculus import Calculus, Path, Row
from ..maths.crowd import Crowd
from ..maths.reaching import Reach, reach_of, step_to
from ..maths.vectors import Number, Vector, times
from ..problem import Floats, Ints
from .body import STEEPEST_SQUARE, Joint, Pose, axes_of, inside, pose_of
from .goals import System

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


class State(NamedTuple):
    """Members posed by joint angles, and their residual."""

    angles: Row
    pose: Pose
    residual: list[Number]
    error: Number
    """Norm of the residual."""

    @classmethod
    def of(cls, system: System, angles: Row) -> State:
        """Pose the members and compute their residual."""
        pose = pose_of(system.skeleton, angles)
        residual = system.residual(pose)
        return cls(angles, pose, residual, system.skeleton.do.sqrt(sum(part * part for part in residual)))


@dataclass(frozen=True)
class Reaching:
    """The state of one chain that has nothing but a place to reach: the pose is computed on demand."""

    system: System
    angles: Row
    reach: Reach

    @classmethod
    def of(cls, system: System, angles: Row) -> Reaching:
        """Find out how the chain reaches."""
        skeleton = system.skeleton
        (end,), halves = skeleton.ends, [skeleton.do.tan(0.5 * twist) for _, _, twist in angles]
        place = system.objectives[0].target
        reach = reach_of(skeleton.bones, end, skeleton.joints, angles, halves, place, STEEPEST_SQUARE)
        return cls(system, angles, reach)

    @cached_property
    def pose(self) -> Pose:
        """See `State`."""
        return pose_of(self.system.skeleton, self.angles)

    @property
    def residual(self) -> Vector:
        """See `State`."""
        return self.reach.residual

    @property
    def error(self) -> float:
        """See `State`."""
        return self.reach.error


def descended(system: System, angles: Row, most: int) -> tuple[State | Reaching, int]:
    """Return where a descent takes one member after at most this many steps, and how many it took."""
    _, last, steps = _descend(system, angles, 1, most, PULL)
    return last, steps


def descend(system: System, angles: Row, members: int, most: Number, pull: float) -> tuple[Floats, Floats, Ints]:
    """Return the joint angles at which further steps bring the members no nearer to their objectives.

    Args:
        system: B members, or one.
        angles: where to start, inside the limits.
        members: the number of members.
        most: (B,) maximum number of steps.
        pull: maximum length of the residual that a step aims to remove.

    Returns:
        angles: (3, n, B) inside the limits.
        error: (B,) norm of the residual.
        steps: (B,) number of steps taken.
    """
    return _descend(system, angles, members, most, pull)[0].found


def _descend(
    system: System, angles: Row, members: int, most: Number, pull: float
) -> tuple[Crowd, State | Reaching, int]:
    do = system.skeleton.do
    common = shared_paths(system.paths())
    patience, gain = (PATIENCE, GAIN) if system.only_places else THOROUGH
    state_of = Reaching.of if system.is_chain_to_place else State.of
    now: State | Reaching = state_of(system, angles)
    damping, idle = 0.0 * now.error + DAMPING, 0.0 * now.error
    crowd = Crowd(do, len(system.skeleton.parents), members)
    done = 0
    while True:
        ended = (now.error <= EXACT) | (idle >= patience) | (done == most)
        if do.any(ended):
            chosen = crowd.leave(ended, done, now.angles, now.error)
            if not crowd.left:
                return crowd, now, done
            if chosen is not None:
                system = system.members(chosen)
                now, damping, idle, most = do.members((now, damping, idle, most), chosen)
        move = _direction(system, common, now, damping, pull)
        size = do.largest([do.most(do.most(abs(x), abs(z)), abs(twist)) for x, z, twist in move])
        share = do.least(1.0, LONGEST / do.most(size, 1e-30))
        tried = [
            inside(do, joint, x * share + old_x, z * share + old_z, twist * share + old)
            for joint, (x, z, twist), (old_x, old_z, old) in zip(system.skeleton.joints, move, now.angles, strict=True)
        ]
        there, before = state_of(system, tried), now.error
        better = there.error < before
        now = do.choose(better, there, now)
        damping = do.least(do.most(damping * do.where(better, 0.2, 6.0), SOFTEST), HARDEST)
        idle = do.where(before - now.error > gain * do.least(before, pull), 0.0, idle + 1.0)
        done += 1


Shared = tuple[Path, Path]
"""The joints that two paths share, by their positions in the one and in the other; none: ()."""


def shared_paths(paths: list[Path]) -> list[list[Shared]]:
    """Return for each path what it shares with each path before it."""

    def both(one: Path, other: Path) -> Shared:
        if one == other:
            return None, None
        if one is None or other is None:
            return (other, None) if one is None else (None, one)
        same = sorted(set(one) & set(other))
        return tuple(map(one.index, same)), tuple(map(other.index, same))

    return [[both(one, other) for other in paths[:i]] for i, one in enumerate(paths)]


def _direction(system: System, common: list[list[Shared]], now: State | Reaching, damping: Number, pull: float) -> Row:
    """Return the step in joint angles."""
    if isinstance(now, Reaching):
        step = step_to(now.reach, system.skeleton.joints, now.angles, damping, pull)
        if step is not None:
            return step
    do, joints, paths = system.skeleton.do, system.skeleton.joints, system.paths()
    bones = len(system.skeleton.parents)
    axes = [
        ((ax * u, bx * v, cx * w), (ay * u, by * v, cy * w), (az * u, bz * v, cz * w))
        for ((ax, bx, cx), (ay, by, cy), (az, bz, cz)), (_, _, _, _, _, (u, v, w), _) in zip(
            axes_of(do, now.pose, now.angles), joints, strict=True
        )
    ]
    blocks = system.jacobian(now.pose, axes)
    share = do.least(1.0, pull / do.most(now.error, 1e-30))
    wanted = [part * share for part in now.residual]
    found = _damped(do, blocks, paths, common, bones, wanted, damping)
    found = [(a * u, b * v, c * w) for (a, b, c), (_, _, _, _, _, _, (u, v, w)) in zip(found, joints, strict=True)]
    # Move joints that leave their limits to the boundary, and compute the step again for the others.
    move, some, angles, left = found, None, now.angles, blocks
    fixed: Row = [None] * len(joints)
    held: Row = [(1.0, False)] * len(joints)
    for _ in range(ROUNDS):
        prepared = [_prepared(do, *each) for each in zip(joints, angles, found, held, strict=True)]
        again = do.marked([leaving | over for leaving, over, *_ in prepared])
        if again is None:
            break
        some = again if some is None else do.members(some, again)
        parts = angles, damping, wanted, blocks, left, fixed, held, prepared
        angles, damping, wanted, blocks, left, fixed, held, prepared = do.members(parts, again)
        gone: Row = [None] * len(joints)
        for i, (joint, (leaving, over, off_x, off_z, way_x, way_z, way)) in enumerate(
            zip(joints, prepared, strict=True)
        ):
            if not do.any(leaving | over):
                continue
            u, v, w = joint.units
            # The outward normal of the cone, in the coordinates of the step.
            a, b = do.where(leaving, off_x * u, 0.0), do.where(leaving, off_z * v, 0.0)
            size = do.most(do.sqrt(a * a + b * b), 1e-200)
            a, b = a / size, b / size
            depth = a * (way_x / do.most(u, 1e-12)) + b * (way_z / do.most(v, 1e-12))
            x, z, twist = fixed[i] or (0.0, 0.0, 0.0)
            fixed[i] = x + depth * a, z + depth * b, do.where(over, way / do.most(w, 1e-12), twist)
            goes, stopped = held[i]
            held[i] = do.where(leaving, 0.0, goes), stopped | over
            gone[i] = a, b, over
        left = [
            [lot if lock is None else _kept(do, lot, *lock) for lot, lock in zip(block, do.on(gone, path), strict=True)]
            for block, path in zip(left, paths, strict=True)
        ]
        rest = [number - part for number, part in zip(wanted, _brought(do, blocks, paths, fixed), strict=True)]
        found = [
            (a * u, b * v, c * w) if fix is None else ((a + fix[0]) * u, (b + fix[1]) * v, (c + fix[2]) * w)
            for (a, b, c), fix, (_, _, _, _, _, _, (u, v, w)) in zip(
                _damped(do, left, paths, common, bones, rest, damping), fixed, joints, strict=True
            )
        ]
        move = do.put(move, some, found)
    return move


def _prepared(do: Calculus, joint: Joint, angle: Vector, step: Vector, held: tuple[Number, Any]) -> tuple[Number, ...]:
    """Return where a step takes a joint.

    Returns:
        leaving: whether its swing leaves the cone.
        over: whether its twist leaves the interval.
        off: how far the swing is outside the cone, about X and Z.
        way: from the current angles to the nearest ones within the limits: about X, about Z, the twist.
    """
    (goes, stopped), (low, high, least, most, _, _, _), (old_x, old_z, old) = held, joint, angle
    # Joints that are held stay where they were put.
    x, z, twist = (old_x + step[0]) * goes, (old_z + step[1]) * goes, old + step[2]
    end = do.least(do.most(twist, least), most)
    near_x, near_z = do.nearest_swing(x, z, low, high)
    off_x, off_z = x - near_x, z - near_z
    leaving = do.most(abs(off_x), abs(off_z)) > OUTSIDE
    # ">" between booleans: the first and not the second.
    return leaving, (twist != end) > stopped, off_x, off_z, near_x - old_x, near_z - old_z, end - old


def _kept(do: Calculus, lot: Any, a: Number, b: Number, over: Any) -> Any:
    """Return rows of a Jacobian without a direction of a joint's swing, and without its twist where `over`."""
    found = []
    for x, z, twist in lot:
        across = x * a + z * b
        found.append((x - across * a, z - across * b, do.where(over, 0.0, twist)))
    return tuple(found)


def _brought(do: Calculus, blocks: list[Row], paths: list[Path], fixed: Row) -> list[Number]:
    """Return the product of a Jacobian and steps of the joints; None: a joint makes no step."""
    found: list[Number] = []
    for block, path in zip(blocks, paths, strict=True):
        parts = [
            [a * fix[0] + b * fix[1] + c * fix[2] for a, b, c in lot]
            for lot, fix in zip(block, do.on(fixed, path), strict=True)
            if fix is not None
        ]
        found += do.totals(parts) if parts else [0.0] * len(block[0])
    return found


def _damped(
    do: Calculus,
    blocks: list[Row],
    paths: list[Path],
    common: list[list[Shared]],
    joints: int,
    wanted: Row,
    damping: Number,
) -> Row:
    """Return the shortest steps that nearly achieve the wanted change, damped, from the blocks of a Jacobian."""
    matrix: list[list[Number]] = []
    for block, shared in zip(blocks, common, strict=True):
        size = len(block[0])
        rows: list[list[Number]] = [[] for _ in range(size)]
        for other, (places, others) in zip(blocks, shared, strict=False):
            width = len(other[0])
            sums = [0.0] * (size * width)
            if places != ():
                pairs = zip(do.on(block, places), do.on(other, others), strict=True)
                sums = do.totals([[a * x + b * y + c * z for a, b, c in one for x, y, z in two] for one, two in pairs])
            for i, row in enumerate(rows):
                row += sums[i * width : (i + 1) * width]
        sums = do.totals([_square(lot) for lot in block])
        for i, row in enumerate(rows):
            row += sums[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
            row[-1] = row[-1] + damping
        matrix += rows
    factors = _solved_three(matrix, wanted) if len(wanted) == 3 else do.solved(matrix, wanted)
    parts, r = [], 0
    for block in blocks:
        size = len(block[0])
        parts.append([_combined(lot, factors[r : r + size]) for lot in block])
        r += size
    return do.added_on(joints, paths, parts)


def _solved_three(matrix: list[list[Number]], wanted: list[Number]) -> list[Number]:
    """Solve three equations, as `Calculus.solved` does any number."""
    (xx,), (yx, yy), (zx, zy, zz) = matrix
    a, b, c = wanted
    first, second = yx / xx, zx / xx
    yy, zy = yy - first * yx, zy - second * yx
    third = zy / yy
    b, c = b - first * a, c - second * a
    z = (c - third * b) / (zz - second * zx - third * zy)
    y = b / yy - third * z
    return [a / xx - first * y - second * z, y, z]


def _square(lot: Any) -> list[Number]:
    """Return the products of a Jacobian's rows at a joint with each other: the lower half."""
    if len(lot) == 1:
        ((a, b, c),) = lot
        return [a * a + b * b + c * c]
    (ax, bx, cx), (ay, by, cy), (az, bz, cz) = lot
    return [
        ax * ax + bx * bx + cx * cx,
        ay * ax + by * bx + cy * cx,
        ay * ay + by * by + cy * cy,
        az * ax + bz * bx + cz * cx,
        az * ay + bz * by + cz * cy,
        az * az + bz * bz + cz * cz,
    ]


def _combined(lot: Any, factors: list[Number]) -> Vector:
    """Return the sum of a Jacobian's rows at a joint, each times a factor."""
    if len(lot) == 1:
        return times(lot[0], factors[0])
    (ax, bx, cx), (ay, by, cy), (az, bz, cz) = lot
    x, y, z = factors
    return ax * x + ay * y + az * z, bx * x + by * y + bz * z, cx * x + cy * y + cz * z
