"""A step of Newton's method on joint angles.

If a residual remains, Gauss-Newton steps crawl: then the curvature of the effectors' paths counts, which is known
exactly for joints, and that of the limits along which joints slide. A joint turns the effect of the joints after it. So
the curvature between two joints is a product of a few numbers of the one with as many of the other, and the equations
are solved in one sweep up and one sweep down the bones (R. Vandebril, M. Van Barel, N. Mastronardi, "Matrix
computations and semiseparable matrices", 2008). A direction of negative curvature is followed like one of positive
curvature, away from the saddle (Y. Dauphin et al., "Identifying and attacking the saddle point problem in
high-dimensional non-convex optimization", arXiv 1406.2572).
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

from ..maths.calculus import Calculus, Row
from ..maths.vectors import Number, Vector, dot
from .body import STEEPEST, Joint, axes_of
from .descent import State
from .goals import Curve, System

ON_RIM = 1e-9
"""A swing is on the rim of its cone if it is within about this fraction of the half-axes."""
STEEP = 0.1
"""Without an anchor, pivots are raised to this fraction of what would be safe for all matrices."""


class Anchor(NamedTuple):
    """A pose to stay near where nothing else decides: of all the best poses, the one nearest to it is taken."""

    angles: Row
    share: Number
    """Weight of the squared distance from it, in radians, relative to the squared residual."""


def away_from(angle: Vector, kept: Vector) -> Vector:
    """Return the difference between two angles of a joint, in radians."""
    return 2.0 * (angle[0] - kept[0]), 2.0 * (angle[1] - kept[1]), angle[2] - kept[2]


class _Equation(NamedTuple):
    """The equation of one joint, in the coordinates that limits leave free."""

    free: Vector
    """Which coordinates are free."""
    diagonal: Vector
    skew: Number
    """Correction of the entry between the first two coordinates, neither of which comes before the other."""
    wanted: Vector


class Held(NamedTuple):
    """Members posed by joint angles, with the residual from which their curvature is computed."""

    state: State
    kept: list[Number]
    """The residual, or what it would be if the last step had gone straight: where a residual remains, this keeps a
    step away from a narrow valley from making it look like a ridge."""


def newton_step(system: System, held: Held, damping: Number, anchor: Anchor | None) -> tuple[Row, list[Row], Number]:
    """Return Newton steps in radians, the exact Jacobian, and the rate at which half the cost falls along the steps."""
    do, joints, paths = system.skeleton.do, system.skeleton.joints, system.paths()
    now, kept = held
    count = len(system.skeleton.parents)
    axes = axes_of(do, now.pose, now.angles)
    jacobian = system.exact_jacobian(now.pose, axes)
    exact = [[_columns(lot) for lot in block] for block in jacobian]
    away = None if anchor is None else [away_from(*pair) for pair in zip(now.angles, anchor.angles, strict=True)]
    share: Number = 0.0 if anchor is None else anchor.share

    def slopes_of(residual: list[Number]) -> Row:
        parts = []
        for block, (x, y, z) in zip(exact, system.pulls(now.pose, residual), strict=True):
            parts.append(
                [
                    (-(ax * x + ay * y + az * z), -(bx * x + by * y + bz * z), -(cx * x + cy * y + cz * z))
                    for (ax, ay, az), (bx, by, bz), (cx, cy, cz) in block
                ]
            )
        return do.added_on(count, paths, parts)

    def held_to(slopes: Row) -> Row:
        if away is None:
            return slopes
        return [
            (a + share * x, b + share * z, c + share * t) for (a, b, c), (x, z, t) in zip(slopes, away, strict=True)
        ]

    slopes = slopes_of(now.residual)
    curving = slopes if kept is now.residual else slopes_of(kept)
    slopes = held_to(slopes)
    rooms = [_room(do, *each) for each in zip(joints, now.angles, held_to(curving), strict=True)]
    curves, parts = [], []
    for path, *sides in system.curves(now.pose, axes, jacobian, kept):
        there = do.on(rooms, path)
        bends, factors = (
            [_along(_columns(lot), *room[0]) for lot, room in zip(side, there, strict=True)] for side in sides
        )
        curves.append(Curve(path, bends, factors))
        parts.append([_diagonal(*pair) for pair in zip(bends, factors, strict=True)])
    equations = []
    diagonals = do.added_on(count, [curve.path for curve in curves], parts)
    for (x, z, _), slope, curve, room, own in zip(now.angles, slopes, curving, rooms, diagonals, strict=True):
        (first_x, first_z), across, free = room
        one, two, both = swing_curvature(x, z, do.most(1.0 - x * x - z * z, STEEPEST**2), curve)
        on_first = own[0] + across + first_x * first_x * one + first_z * first_z * two + 2.0 * first_x * first_z * both
        equations.append(
            _Equation(
                free,
                (on_first + share, own[1] + two + share, own[2] + share),
                do.where(free[0] & free[1], 0.5 * own[3] + both, 0.0),
                (-(slope[0] * first_x + slope[1] * first_z), -slope[1], -slope[2]),
            )
        )
    steep = _steepness(do, equations, curves) if anchor is None else None
    found = _solved(do, equations, curves, damping, steep)
    move = [(x * along[0], x * along[1] + z, twist) for (x, z, twist), (along, _, _) in zip(found, rooms, strict=True)]
    (fall,) = do.totals([[dot(slope, turn)] for slope, turn in zip(slopes, move, strict=True)])
    return move, jacobian, -fall


def _steepness(do: Calculus, equations: Row, curves: list[Curve]) -> Number:
    """Return how small pivots may be in `_solved`, so that none near zero makes the step huge.

    The entries beside a pivot are at most the product of its row with the longest factor of another joint. See P. Gill
    and W. Murray, "Newton-type methods for unconstrained and linearly constrained optimization", Mathematical
    Programming 7, 1974, doi 10.1007/bf01585529.
    """
    longest: Number = 0.0
    for curve in curves:
        sizes = [do.most(do.most(dot(a, a), dot(b, b)), dot(c, c)) for a, b, c in curve.bends]
        longest = do.most(longest, do.largest(sizes))
    tallest = do.largest([do.most(do.most(abs(a), abs(b)), abs(c)) for _, (a, b, c), _, _ in equations])
    return STEEP * longest / do.most(tallest, 1e-30)


def _columns(lot: Any) -> tuple[Vector, Vector, Vector]:
    """Return the columns of a Jacobian's block at a joint."""
    (ax, bx, cx), (ay, by, cy), (az, bz, cz) = lot
    return (ax, ay, az), (bx, by, bz), (cx, cy, cz)


def _along(columns: Any, first: Number, second: Number) -> Any:
    """Return columns, the first replaced by that of a direction in the plane of the swing."""
    (a, b, c), (x, y, z), twist = columns
    return (a * first + x * second, b * first + y * second, c * first + z * second), columns[1], twist


def _diagonal(bends: Any, factors: Any) -> tuple[Number, ...]:
    """Return the product of each joint angle with itself, and how far that of the two swing angles depends on order."""
    (a, b, c), (d, e, f), (g, h, i) = bends
    (p, q, r), (s, t, u), (x, y, z) = factors
    return (
        a * p + b * q + c * r,
        d * s + e * t + f * u,
        g * x + h * y + i * z,
        d * p + e * q + f * r - (a * s + b * t + c * u),
    )


def _room(do: Calculus, joint: Joint, angle: Vector, slope: Vector) -> tuple[tuple[Number, Number], Number, Vector]:
    """Return how a joint can move.

    Returns:
        along: direction of the first coordinate of a swing: along the rim of its cone, if it is pushed against it.
        across: what the curvature of the rim adds to that of the cost along it.
        free: which of the coordinates can change at all; on a rim the second can't.
    """
    (x, z, twist), (low_x, low_z), (high_x, high_z) = angle, joint.low, joint.high
    moves_x, moves_z, moves_twist = (mobility > 0.0 for mobility in joint.mobility)
    # At zero the slope decides which quadrant a swing would enter.
    half_x = do.where((x < 0.0) | ((x == 0.0) & (slope[0] > 0.0)), low_x, high_x)
    half_z = do.where((z < 0.0) | ((z == 0.0) & (slope[1] > 0.0)), low_z, high_z)
    safe_x, safe_z = do.most(half_x, 1e-9), do.most(half_z, 1e-9)
    share_x, share_z = x / safe_x * moves_x, z / safe_z * moves_z
    a, b = share_x / safe_x, share_z / safe_z
    size = do.most(do.sqrt(a * a + b * b), 1e-200)
    a, b = a / size, b / size
    push = -(a * slope[0] + b * slope[1])
    rim = (share_x * share_x + share_z * share_z > 1.0 - ON_RIM) & (push > 0.0)
    over, under = b / safe_x, a / safe_z
    bend = push * (over * over + under * under) / size / 2.0
    # An axis with no room on the side that the slope points to is fixed too.
    room_x = moves_x & ((half_x > 0.0) | (x != 0.0))
    room_z = moves_z & ((half_z > 0.0) | (z != 0.0))
    at_end = ((twist <= joint.twist_low) & (slope[2] > 0.0)) | ((twist >= joint.twist_high) & (slope[2] < 0.0))
    along = do.where(rim, -b, 1.0) * room_x, do.where(rim, a, 0.0) * room_z
    # ">" between booleans: the first and not the second.
    return along, do.where(rim, bend, 0.0), (room_x | (rim & room_z), room_z > rim, moves_twist > at_end)


def swing_curvature(x: Number, z: Number, rest: Number, slope: Vector) -> Vector:
    """Return what a swing adds to the curvature of a cost as its axes change with it, in the units of `axes_of`.

    For its first coordinate, for its second, and between the two.

    Args:
        x: first coordinate of the swing.
        z: the second.
        rest: the square of the cosine of half its angle, at least `STEEPEST` squared.
        slope: the slope of the cost.
    """
    share = 0.5 * (x * slope[0] + z * slope[1])
    return share * (1.0 + x * x / rest), share * (1.0 + z * z / rest), share * (x * z / rest)


def _solved(do: Calculus, equations: Row, curves: list[Curve], damping: Number, steep: Number | None) -> Row:
    """Solve the equations of all joints, damped, with pivots made positive.

    From the tips to the root each unknown is eliminated from the equations of those before it. A small matrix and a
    vector, in blocks of three for each of the curves, sum up what the eliminated unknowns leave in these. Then the
    unknowns follow from the root on.

    Args:
        do: the kernel.
        equations: a row of diagonals and right-hand sides.
        curves: the terms of the curvature, with columns in place of rows.
        damping: added to the pivots.
        steep: pivots are at least this times the square of the entries beside them; None: no minimum.
    """
    parts = do.each_joint(equations)
    columns: list[list[Any]] = [[] for _ in parts]
    for p, (path, bends, factors) in enumerate(curves):
        there = zip(do.columns(bends), do.columns(factors), strict=True)
        for i, (bend, factor) in zip(range(len(parts)) if path is None else path, there, strict=True):
            columns[i].append((p, bend, factor))
    matrix: list[list[Any]] = [[do.no_matrix] * len(curves) for _ in curves]
    vector: list[Any] = [do.no_vector] * len(curves)
    taken: list[Any] = []
    for (free, diagonal, skew, wanted), own in zip(reversed(parts), reversed(columns), strict=True):
        kept: list[Any] = [None, None, None]
        for k in (2, 1, 0):
            if not own or not do.any(free[k]):
                continue
            rows = []
            pivot, value = diagonal[k], wanted[k]
            for p, bend, factor in own:
                row = reduce(do.plus, [do.turned(matrix[p][q], other[k]) for q, other, _ in own])
                pivot = pivot - do.dot(bend[k], row)
                value = value - do.dot(bend[k], vector[p])
                rows.append(do.minus(factor[k], row))
            if k == 0 and kept[1] is not None:
                others, share, there = kept[1]
                side = skew * share
                pivot, value = pivot - side * skew, value - skew * there
                for j, ((_, bend, _), other) in enumerate(zip(own, others, strict=True)):
                    pivot = pivot - 2.0 * side * do.dot(bend[0], other)
                    rows[j] = do.minus(rows[j], do.times(other, side))
            pivot = abs(pivot)
            if steep is not None:
                pivot = do.most(pivot, steep * sum(do.dot(row, row) for row in rows))
            share = do.where(free[k], 1.0 / (pivot + damping), 0.0)
            value = value * share
            for (p, _, _), row in zip(own, rows, strict=True):
                vector[p] = do.plus(vector[p], do.times(row, value))
                scaled = do.times(row, share)
                for (q, _, _), other in zip(own, rows, strict=True):
                    matrix[p][q] = do.with_dyad(matrix[p][q], scaled, other)
            kept[k] = rows, share, value
        taken.append(kept)
    above: list[Any] = [do.no_vector] * len(curves)
    found = []
    for (_, _, skew, _), own, kept in zip(parts, columns, reversed(taken), strict=True):
        values: list[Number] = [0.0 * damping] * 3
        for k in range(3):
            if kept[k] is None:
                continue
            rows, share, value = kept[k]
            less = skew * values[0] if k == 1 else 0.0
            for (p, _, _), row in zip(own, rows, strict=True):
                less = less + do.dot(row, above[p])
            values[k] = value = value - less * share
            for p, bend, _ in own:
                above[p] = do.plus(above[p], do.times(bend[k], value))
        found.append((values[0], values[1], values[2]))
    return do.together(found)
