"""A step of Newton's method on joint angles.

If a residual remains, Gauss-Newton steps crawl: then the curvature of the effectors' paths counts, which is known
exactly for joints, and that of the limits along which joints slide. The cost of a joint and all below it depends only
on the twist of the joint above, so one sweep from the tips to the root eliminates all joints, and one sweep back finds
their steps, see `body.sweep`. A pole is the exception: it feels all joints of its branch at once, in one or two
directions, which are added to the swept equations (M. Woodbury, "Inverting modified matrices", Princeton 1950).

A direction of negative curvature is followed like one of positive curvature, away from the saddle (Y. Dauphin et al.,
"Identifying and attacking the saddle point problem in high-dimensional non-convex optimization", arXiv 1406.2572).
"""

from __future__ import annotations

from math import sqrt
from operator import add
from typing import NamedTuple

from ..body.forms import NOTHING, Form
from ..body.sweep import STILL, Column, Six, Swept, hung, of_three, substituted
from ..body.sweep import Joint as Equation
from ..maths.vectors import Vector, dot
from .descent import State, solved
from .goals import System
from .objectives import Pole, couplings_of, moments_of
from .skeleton import STEEPEST_SQUARE, Angles, Joint, Nine, Pose, Skeleton

ON_RIM = 1e-9
"""A swing is on the rim of its cone if it is within about this fraction of the half-axes."""
STEEP = 0.1
"""Without an anchor, pivots are raised to this fraction of what would be safe for all matrices (P. Gill and W. Murray,
"Newton-type methods for unconstrained and linearly constrained optimization", Mathematical Programming 7, 1974, doi
10.1007/bf01585529)."""
Unknowns = list[Vector]
"""Of each joint: the twist, the second coordinate of its swing, and the first."""
CLOSED: Column = (0.0,) * 9


class Anchor(NamedTuple):
    """A pose to stay near where nothing else decides: of all the best poses, the one nearest to it is taken."""

    angles: Angles
    share: float
    """Weight of the squared distance from it, in radians, relative to the squared residual."""


def away_from(angle: Vector, kept: Vector) -> Vector:
    """Return the difference between two angles of a joint, in radians."""
    return 2.0 * (angle[0] - kept[0]), 2.0 * (angle[1] - kept[1]), angle[2] - kept[2]


def newton_step(
    system: System, now: State, kept: list[float], damping: float, anchor: Anchor | None
) -> tuple[Angles, float]:
    """Return a Newton step in radians, and the rate at which half the cost falls along it.

    Args:
        system: the body and its objectives.
        now: where it is.
        kept: the residual from which to take the curvature.
        damping: added to the curvature.
        anchor: the pose to stay near; None: none.
    """
    skeleton, pose = system.skeleton, now.pose
    slopes = slopes_of(system, pose, now.residual)
    curving = slopes if kept is now.residual else slopes_of(system, pose, kept)
    share, away = 0.0, [(0.0, 0.0, 0.0)] * len(slopes)
    if anchor is not None:
        share = anchor.share
        away = list(map(away_from, now.angles, anchor.angles))
    couplings = couplings_of(skeleton, pose, system.pulls(pose, kept))
    equations, ways = [], []
    for i, (angle, slope, bend, way) in enumerate(zip(now.angles, slopes, curving, away, strict=True)):
        x, z, twist = way
        slopes[i] = slope = slope[0] + share * x, slope[1] + share * z, slope[2] + share * twist
        held = bend[0] + share * x, bend[1] + share * z, bend[2] + share * twist
        room = room_of(skeleton.joints[i], angle, held)
        ways.append(room.along)
        turns = _Turns(pose.axes[i], pose.points[i], couplings[i])
        equations.append(_equation(turns, room, angle, (slope, bend), share))
    found = _solved(system, pose, kept, equations, ways, damping, None if anchor is None else 0.0)
    move = []
    for (twist, second, first), (along_x, along_z) in zip(found, ways, strict=True):
        move.append((first * along_x, first * along_z + second, twist))
    return move, -sum(map(dot, slopes, move))


def slopes_of(system: System, pose: Pose, residual: list[float]) -> list[Vector]:
    """Return how half the cost grows with the angles of each joint."""
    found = []
    moments = moments_of(system.skeleton, pose, system.pulls(pose, residual))
    for (a, b, c, d, e, f, g, h, i), (x, y, z) in zip(pose.axes, moments, strict=True):
        found.append((-(a * x + d * y + g * z), -(b * x + e * y + h * z), -(c * x + f * y + i * z)))
    return found


def twists_of(skeleton: Skeleton, pose: Pose, move: Angles) -> list[Six]:
    """Return how bones turn, and move the point at the origin, while joints turn by small angles in radians."""
    found: list[Six] = []
    for i, ((p, q, r), axes, (x, y, z)) in enumerate(zip(move, pose.axes, pose.points, strict=True)):
        parent = skeleton.parents[i]
        u, v, w, k, m, n = STILL if parent < 0 else found[parent]
        if skeleton.free[i]:
            k, m, n = k + v * z - w * y, m + w * x - u * z, n + u * y - v * x
            u = v = w = 0.0
        a, b, c, d, e, f, g, h, j = axes
        a, d, g = a * p + b * q + c * r, d * p + e * q + f * r, g * p + h * q + j * r
        found.append((u + a, v + d, w + g, k + y * g - z * d, m + z * a - x * g, n + x * d - y * a))
    return found


class Room(NamedTuple):
    """How a joint can move."""

    along: tuple[float, float]
    """Direction of the first coordinate of a swing: along the rim of its cone, if it is pushed against it."""
    across: float
    """What the curvature of the rim adds to that of the cost along it."""
    free: tuple[bool, bool, bool]
    """Which of the coordinates can change at all; on a rim the second can't."""


def room_of(joint: Joint, angle: Vector, slope: Vector) -> Room:
    """Return how a joint can move down the slope of a cost."""
    (x, z, twist), (low_x, low_z), (high_x, high_z) = angle, joint.low, joint.high
    moves_x, moves_z, moves_twist = (mobility > 0.0 for mobility in joint.mobility)
    # At zero the slope decides which quadrant a swing would enter.
    half_x = low_x if x < 0.0 or (x == 0.0 and slope[0] > 0.0) else high_x
    half_z = low_z if z < 0.0 or (z == 0.0 and slope[1] > 0.0) else high_z
    # An axis with no room on the side that the slope points to is fixed too.
    room_x, room_z = moves_x and (half_x > 0.0 or x != 0.0), moves_z and (half_z > 0.0 or z != 0.0)
    at_end = (twist <= joint.twist_low and slope[2] > 0.0) or (twist >= joint.twist_high and slope[2] < 0.0)
    turns = moves_twist and not at_end
    half_x, half_z = max(half_x, 1e-9), max(half_z, 1e-9)
    share_x, share_z = x / half_x * moves_x, z / half_z * moves_z
    if share_x * share_x + share_z * share_z > 1.0 - ON_RIM:
        a, b = share_x / half_x, share_z / half_z
        size = sqrt(a * a + b * b)
        a, b = a / size, b / size
        push = -(a * slope[0] + b * slope[1])
        if push > 0.0:
            over, under = b / half_x, a / half_z
            bend = push * (over * over + under * under) / size / 2.0
            return Room((-b * room_x, a * room_z), bend, (room_x or room_z, False, turns))
    return Room((float(room_x), 0.0), 0.0, (room_x, room_z, turns))


class _Turns(NamedTuple):
    """What a joint does to all that it carries."""

    axes: Nine
    head: Vector
    coupling: Nine

    def columns(self, along: tuple[float, float]) -> tuple[Column, Column, Column]:
        """Return the columns of the twist, of the second coordinate, and of a direction of the swing."""
        a, b, c, d, e, f, g, h, i = self.axes
        x, z = along
        return self._column(c, f, i), self._column(b, e, h), self._column(a * x + b * z, d * x + e * z, g * x + h * z)

    def _column(self, u: float, v: float, w: float) -> Column:
        (x, y, z), (a, b, c, d, e, f, g, h, i) = self.head, self.coupling
        return (
            *(u, v, w, y * w - z * v, z * u - x * w, x * v - y * u),
            *(a * u + b * v + c * w, d * u + e * v + f * w, g * u + h * v + i * w),
        )


def _equation(turns: _Turns, room: Room, angle: Vector, slopes: tuple[Vector, Vector], share: float) -> Equation:
    """Return the equation of a joint: of its twist, the second coordinate of its swing, then the first.

    The twist comes after the swing, which carries its axis along.

    Args:
        turns: what it does to all that it carries.
        room: how it can move.
        angle: its angles.
        slopes: how the cost grows, and how the part grows from which the curvature is taken.
        share: of the curvature that an anchor adds.
    """
    (first_x, first_z), across, (is_first, is_second, is_twist) = room
    (x, z, _), (slope, bend) = angle, slopes
    one, two, both = swing_curvature(x, z, max(1.0 - x * x - z * z, STEEPEST_SQUARE), bend)
    twist, second, first = turns.columns(room.along)
    on_twist = on_second = on_first = 1.0
    twist_second = twist_first = second_first = 0.0
    if is_twist:
        on_twist = share
        if is_second:
            twist_second = _said(twist, second)
        if is_first:
            twist_first = _said(twist, first)
    else:
        twist = CLOSED
    if is_first:
        on_first = across + first_x * first_x * one + first_z * first_z * two + 2.0 * first_x * first_z * both + share
        if is_second:
            second_first = 0.5 * _said(second, first) + both
    else:
        first = CLOSED
    if is_second:
        on_second = two + share
    else:
        second = CLOSED
    own = (
        (on_twist, twist_second, twist_first),
        (twist_second, on_second, second_first),
        (twist_first, second_first, on_first),
    )
    right = (
        -slope[2] if is_twist else 0.0,
        -slope[1] if is_second else 0.0,
        -(slope[0] * first_x + slope[1] * first_z) if is_first else 0.0,
    )
    return Equation((twist, second, first), own, right)


def _said(one: Column, other: Column) -> float:
    """Return how much more a column couples with another one than the other couples with it."""
    a, b, c, _, _, _, d, e, f = one
    x, y, z, _, _, _, u, v, w = other
    return d * x + e * y + f * z - (u * a + v * b + w * c)


def swing_curvature(x: float, z: float, rest: float, slope: Vector) -> Vector:
    """Return what a swing adds to the curvature of a cost as its axes change with it, in the units of `Pose.axes`.

    For its first coordinate, for its second, and between the two.

    Args:
        x: first coordinate of the swing.
        z: the second.
        rest: the square of the cosine of half its angle, at least `STEEPEST_SQUARE`.
        slope: the slope of the cost.
    """
    share = 0.5 * (x * slope[0] + z * slope[1])
    return share * (1.0 + x * x / rest), share * (1.0 + z * z / rest), share * (x * z / rest)


def _solved(
    system: System,
    pose: Pose,
    kept: list[float],
    equations: list[Equation],
    ways: list[tuple[float, float]],
    damping: float,
    least: float | None,
) -> Unknowns:
    """Solve the equations of all joints, damped, with pivots made positive; `least` see `sweep.of_three`."""
    forms: list[Form | None] = [None] * len(equations)
    ranks, stiffness = [], 0.0
    for objective, own in zip(system.objectives, system.split(kept), strict=True):
        objective.stiffen(forms, pose, own)
        stiffness += objective.factor**2
        if isinstance(objective, Pole):
            ranks += objective.ranks(pose, own)
    least = STEEP / stiffness if least is None else least
    if not ranks:
        return _swept(system.skeleton, pose, equations, forms, least, damping)[0]
    rows = []
    for _, pulls in ranks:
        moments = moments_of(system.skeleton, pose, pulls)
        rows.append([_row(*each) for each in zip(equations, moments, strict=True)])
    factors = [factor for factor, _ in ranks]
    found = _with_rows(system.skeleton, pose, equations, forms, rows, factors, None, damping)
    if found is None:
        some = [i for i, factor in enumerate(factors) if factor > 0.0]
        rows, factors = [rows[i] for i in some], [factors[i] for i in some]
        found = _with_rows(system.skeleton, pose, equations, forms, rows, factors, least, damping)
    assert found is not None
    return found


def _row(equation: Equation, moment: Vector) -> Vector:
    """Return the row of forces with a moment about a joint's head, for the unknowns of the joint."""
    x, y, z = moment
    a, b, c = (column[0] * x + column[1] * y + column[2] * z for column in equation.columns)
    return a, b, c


def _with_rows(
    skeleton: Skeleton,
    pose: Pose,
    equations: list[Equation],
    forms: list[Form | None],
    rows: list[Unknowns],
    factors: list[float],
    least: float | None,
    damping: float,
) -> Unknowns | None:
    """Solve equations to whose matrix the squares of rows are added, each times a factor.

    Return None if `least` is None and the whole matrix is not positive.
    """
    plain, below = _swept(skeleton, pose, equations, forms, least, damping)
    ways = []
    for row in rows:
        rights = [equation._replace(right=right) for equation, right in zip(equations, row, strict=True)]
        ways.append(_swept(skeleton, pose, rights, forms, least, damping)[0])
    matrix: list[list[float]] = [[sum(map(dot, row, way)) for way in ways[: i + 1]] for i, row in enumerate(rows)]
    for own, factor in zip(matrix, factors, strict=True):
        own[-1] += 1.0 / factor
    shares = solved(matrix, [sum(map(dot, row, plain)) for row in rows])
    above = sum(own[-1] > 0.0 for own in matrix) - sum(factor > 0.0 for factor in factors)
    if least is None and below + above != 0:
        return None
    found = []
    for i, (x, y, z) in enumerate(plain):
        for share, way in zip(shares, ways, strict=True):
            u, v, w = way[i]
            x, y, z = x - share * u, y - share * v, z - share * w
        found.append((x, y, z))
    return found


def _swept(
    skeleton: Skeleton,
    pose: Pose,
    equations: list[Equation],
    forms: list[Form | None],
    least: float | None,
    damping: float,
) -> tuple[Unknowns, int]:
    """Sweep up and down the joints; return their unknowns, and how many pivots are negative."""
    forms, swept, below = list(forms), {}, 0
    for i in range(len(equations) - 1, -1, -1):
        equation, form, parent = equations[i], forms[i] or NOTHING, skeleton.parents[i]
        found = of_three(equation, form, least, damping)
        assert found is not None
        left, above, pivots = found
        below += sum(pivot < 0.0 for pivot in pivots)
        swept[i] = Swept(equation, form, left, above, 0.0)
        if parent >= 0:
            above = hung(above, pose.points[i]) if skeleton.free[i] else above
            beside = forms[parent]
            forms[parent] = above if beside is None else list(map(add, beside, above))
    heads = {i: pose.points[i] for i, is_free in enumerate(skeleton.free) if is_free and skeleton.parents[i] >= 0}
    return [(x, y, z) for x, y, z in substituted(skeleton.parents, swept, heads)[0]], below
