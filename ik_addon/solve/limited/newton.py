"""Newton's method for targets that cannot be reached: it comes as near as possible, the same way every time.

If a residual remains, Gauss-Newton steps crawl: then the curvature of the effectors' paths counts, which is known
exactly for joints, and that of the limits along which joints slide. The cost of a joint and all below it depends only
on the twist of the joint above, so one sweep from the tips to the root eliminates all joints, and one sweep back finds
their steps, see `maths.sweep`. A pole is the exception: it feels all joints of its branch at once, in one or two
directions, which are added to the swept equations (M. Woodbury, "Inverting modified matrices", Princeton 1950).

A direction of negative curvature is followed like one of positive curvature, away from the saddle (Y. Dauphin et al.,
"Identifying and attacking the saddle point problem in high-dimensional non-convex optimization", arXiv 1406.2572).
With poles, such steps would lead far astray: there, the damping grows until no curvature is negative.

With several objectives, an anchor makes narrow, curved valleys. They would be left if joints just stopped at their
limits, so springs hold such joints there, and the step is solved again for all others, as active sets do for bounds. A
step that leaves the valley is brought back by a second one (J. Nocedal and S. Wright, "Numerical Optimization", 2nd
edition, Springer 2006, sections 16.5 and 15.5). Where a place is reached but limits keep its orientation from being
met, all that takes 26 steps instead of 83, on 176 problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, sqrt
from typing import NamedTuple

from ..maths.numbers import ONE, Number, Numbers
from ..maths.sweep import NOTHING, RESTING, Form, Swept, eliminated, of_many, substituted
from ..maths.sweep import Joint as Equation
from ..maths.turns import Quaternion, inverse, multiply, rotate, turn_of
from ..maths.vectors import ZERO, Vector, cross, dot, plus, times
from .descent import OUTSIDE, State, finished, longest, solved
from .objectives import Pole, System, couplings_of, moments_of
from .skeleton import (
    STEEPEST_SQUARE,
    Angles,
    Bone,
    Joint,
    Nine,
    Pose,
    Skeleton,
    each_joint,
    inside,
    is_unlimited,
    nearest_angles,
)

ON_RIM = 1e-9
"""A swing is on the rim of its cone if it is within about this fraction of the half-axes."""
STEEP = 0.1
"""Without an anchor, pivots are raised to this fraction of what would be safe for all matrices (P. Gill and W. Murray,
"Newton-type methods for unconstrained and linearly constrained optimization", Mathematical Programming 7, 1974, doi
10.1007/bf01585529)."""
STIFF = 1e6
"""How stiff the springs are that hold joints at their limits."""
ROUNDS = 4
"""Maximum number of times a step is computed again for joints that leave their limits; then these are clamped."""
CORRECTING = 1e-2
"""Damping of the step back into a valley, so large that it moves nothing along it. With a tenth of that, one of 62
straight chains is not settled after 200 steps."""
Held = tuple[bool, bool]
"""Whether the swing and the twist of a joint are held at its limits."""
Unknowns = list[Vector]
"""Of each joint: the twist, the second coordinate of its swing, and the first."""


class Anchor(NamedTuple):
    """A pose to stay near where nothing else decides: of all the best poses, the one nearest to it is taken."""

    angles: Angles
    share: Number
    """Weight of the squared distance from it, in radians, relative to the squared residual."""


def away_from(angle: Vector, kept: Vector) -> Vector:
    """Return the difference between two angles of a joint, in radians."""
    return 2.0 * (angle[0] - kept[0]), 2.0 * (angle[1] - kept[1]), angle[2] - kept[2]


class Step(NamedTuple):
    """A Newton step."""

    move: Angles
    """In radians."""
    fall: Number
    """The rate at which half the cost falls along it."""
    damping: Number
    """The one that it took."""
    equations: Sequence[Equation]
    rooms: Sequence[Room]


def newton_step(system: System, now: State, damping: Number, anchor: Anchor | None) -> Step:
    """Return a Newton step.

    Args:
        system: the body and its objectives.
        now: where it is.
        damping: added to the curvature.
        anchor: the pose to stay near; None: none.
    """
    skeleton, pose, do = system.skeleton, now.pose, system.skeleton.do
    couplings = couplings_of(skeleton, pose, system.pulls(pose, now.residual))
    slopes = slopes_of(pose, [(h - f, c - g, d - b) for _, b, c, d, _, f, g, h, _ in couplings])
    whole = _with_anchor(slopes, now, anchor)

    def laid_out(
        joint: Joint, angle: Vector, slope: Vector, whole: Vector, axes: Nine, head: Vector, coupling: Nine
    ) -> tuple[Equation, Room]:
        room, share = room_of(do, joint, angle, whole), 0.0 if anchor is None else anchor.share
        return equation_of(do, (axes, head, coupling), room, angle, (whole, slope), share), room

    parts = skeleton.joints, now.angles, slopes, whole, pose.axes, pose.points, couplings
    equations, rooms = zip(*each_joint(do, laid_out, *parts), strict=True)
    found, damping = _solved(system, now, equations, damping, anchor)
    if anchor is not None and len(system.objectives) > 1:
        held = [(bool(room.is_on_rim), False) for room in rooms]
        for _ in range(ROUNDS):
            stopped = map(_stopped, skeleton.joints, now.angles, rooms, found, equations, held)
            equations, after = zip(*stopped, strict=True)
            if held == list(after):
                break
            held = list(after)
            found, damping = _solved(system, now, equations, damping, anchor)
    move = _move_of(found, rooms)
    return Step(move, -sum(map(dot, whole, move)), damping, equations, rooms)


def corrected(system: System, now: State, step: Step, there: State, anchor: Anchor | None) -> Angles:
    """Return a step and what brings it back into a curved valley: another step by the same equations, from `there`."""
    pulls = system.pulls(there.pose, there.residual)
    slopes = _with_anchor(slopes_of(there.pose, moments_of(system.skeleton, there.pose, pulls)), there, anchor)
    parts = zip(step.equations, step.rooms, slopes, strict=True)
    equations = [equation._replace(right=_right_of(room, slope)) for equation, room, slope in parts]
    found, _ = _solved(system, now, equations, CORRECTING, anchor)
    return list(map(plus, step.move, _move_of(found, step.rooms)))


def _with_anchor(slopes: list[Vector], now: State, anchor: Anchor | None) -> list[Vector]:
    if anchor is None:
        return slopes
    away = map(away_from, now.angles, anchor.angles)
    return [plus(slope, times(way, anchor.share)) for slope, way in zip(slopes, away, strict=True)]


def _right_of(room: Room, slope: Vector) -> Vector:
    """Return how fast the cost falls with each unknown of a joint."""
    (first_x, first_z), (_, is_second, is_twist) = room.along, room.free
    return -slope[2] * is_twist, -slope[1] * is_second, -(slope[0] * first_x + slope[1] * first_z)


def _move_of(found: Unknowns, rooms: Sequence[Room]) -> Angles:
    move: Angles = []
    for (twist, second, first), room in zip(found, rooms, strict=True):
        along_x, along_z = room.along
        move.append((first * along_x, first * along_z + second, twist))
    return move


def slopes_of(pose: Pose, moments: Iterable[Vector]) -> list[Vector]:
    """Return how half the cost grows with the angles of each joint, from the moments of the forces that reduce it."""
    found = []
    for (a, b, c, d, e, f, g, h, i), (x, y, z) in zip(pose.axes, moments, strict=True):
        found.append((-a * x - d * y - g * z, -b * x - e * y - h * z, -c * x - f * y - i * z))
    return found


class Room(NamedTuple):
    """How a joint can move."""

    along: tuple[Number, Number]
    """Direction of the first coordinate of a swing: along the rim of its cone, if it is pushed against it."""
    across: Number
    """What the curvature of the rim adds to that of the cost along it."""
    free: tuple[Number, Number, Number]
    """Which of the coordinates can change at all; on a rim the second can't."""
    is_on_rim: Number


def room_of(do: Numbers, joint: Joint, angle: Vector, slope: Vector) -> Room:
    """Return how a joint can move down the slope of a cost."""
    (x, z, twist), (low_x, low_z), (high_x, high_z) = angle, joint.low, joint.high
    moves_x, moves_z, moves_twist = (mobility > 0.0 for mobility in joint.mobility)
    # At zero the slope decides which quadrant a swing would enter.
    half_x = do.where((x < 0.0) | ((x == 0.0) & (slope[0] > 0.0)), low_x, high_x)
    half_z = do.where((z < 0.0) | ((z == 0.0) & (slope[1] > 0.0)), low_z, high_z)
    # An axis with no room on the side that the slope points to is fixed too.
    room_x, room_z = moves_x & ((half_x > 0.0) | (x != 0.0)), moves_z & ((half_z > 0.0) | (z != 0.0))
    at_end = ((twist <= joint.twist_low) & (slope[2] > 0.0)) | ((twist >= joint.twist_high) & (slope[2] < 0.0))
    # ">" between booleans: the first and not the second.
    turns = moves_twist > at_end
    half_x, half_z = do.most(half_x, 1e-9), do.most(half_z, 1e-9)
    share_x, share_z = x / half_x * moves_x, z / half_z * moves_z
    rim = share_x * share_x + share_z * share_z > 1.0 - ON_RIM
    if not do.any(rim):
        return Room((1.0 * room_x, 0.0), 0.0, (room_x, room_z, turns), rim)
    a, b = share_x / half_x, share_z / half_z
    size = do.most(do.sqrt(a * a + b * b), 1e-200)
    a, b = a / size, b / size
    push = -(a * slope[0] + b * slope[1])
    rim = rim & (push > 0.0)
    over, under = b / half_x, a / half_z
    bend = push * (over * over + under * under) / size / 2.0
    along = do.where(rim, -b, 1.0) * room_x, do.where(rim, a, 0.0) * room_z
    return Room(along, do.where(rim, bend, 0.0), (room_x | (rim & room_z), room_z > rim, turns), rim)


def equation_of(
    do: Numbers,
    turns: tuple[Nine, Vector, Nine],
    room: Room,
    angle: Vector,
    slopes: tuple[Vector, Vector],
    share: Number,
) -> Equation:
    """Return the equation of a joint: of its twist, the second coordinate of its swing, then the first.

    The twist comes after the swing, which carries its axis along.

    Args:
        do: floats or arrays.
        turns: what it does to all that it carries: its axes, its head, and how forces couple it with joints above.
        room: how it can move.
        angle: its angles.
        slopes: how the cost grows, and how the part grows from which the curvature is taken.
        share: of the curvature that an anchor adds.
    """
    (first_x, first_z), across, (is_first, is_second, is_twist), _ = room
    (a, b, c, d, e, f, g, h, i), (x, y, z), (j, k, m, n, o, p, q, r, s) = turns
    (slope, bend), (u, v, w) = slopes, (r - p, m - q, n - k)
    a, d, g = a * first_x + b * first_z, d * first_x + e * first_z, g * first_x + h * first_z
    b, e, h, c, f, i = b * is_second, e * is_second, h * is_second, c * is_twist, f * is_twist, i * is_twist
    # How much more each of two columns couples with the other than the other with it.
    twist_second = u * (f * h - i * e) + v * (i * b - c * h) + w * (c * e - f * b)
    twist_first = u * (f * g - i * d) + v * (i * a - c * g) + w * (c * d - f * a)
    second_first = u * (e * g - h * d) + v * (h * a - b * g) + w * (b * d - e * a)
    u, v, w = j * c + k * f + m * i, n * c + o * f + p * i, q * c + r * f + s * i
    twist = c, f, i, y * i - z * f, z * c - x * i, x * f - y * c, u, v, w
    u, v, w = j * b + k * e + m * h, n * b + o * e + p * h, q * b + r * e + s * h
    second = b, e, h, y * h - z * e, z * b - x * h, x * e - y * b, u, v, w
    u, v, w = j * a + k * d + m * g, n * a + o * d + p * g, q * a + r * d + s * g
    first = a, d, g, y * g - z * d, z * a - x * g, x * d - y * a, u, v, w
    # The axes of a swing change with it.
    p, q = angle[0], angle[1]
    rest, half = do.most(1.0 - p * p - q * q, STEEPEST_SQUARE), 0.5 * (p * bend[0] + q * bend[1])
    one, two, both = half * (1.0 + p * p / rest), half * (1.0 + q * q / rest), half * (p * q / rest)
    on_first = across + first_x * first_x * one + first_z * first_z * two + 2.0 * first_x * first_z * both + share
    second_first = 0.5 * second_first + both * (is_first & is_second)
    own = (
        (do.where(is_twist, share, 1.0), twist_second, twist_first),
        (twist_second, do.where(is_second, two + share, 1.0), second_first),
        (twist_first, second_first, do.where(is_first, on_first, 1.0)),
    )
    return Equation((twist, second, first), own, _right_of(room, slope))


def _stopped(
    joint: Joint, angle: Vector, room: Room, step: Vector, equation: Equation, held: Held
) -> tuple[Equation, Held]:
    """Hold a joint that a step takes out of its limits at their boundary, by springs.

    Args:
        joint: its limits.
        angle: its angles.
        room: how it can move.
        step: its unknowns.
        equation: of these.
        held: whether its swing and its twist are held already.

    Returns:
        The equation, and what is held now.
    """
    (is_swing, is_twist), (twist, second, first), (along_x, along_z) = held, step, room.along
    ((t0, t1, t2), (_, s1, s2), (_, _, f2)), (on_twist, on_second, on_first) = equation.own, equation.right
    if not is_swing:
        # Half of a step, as coordinates of a swing are.
        x, z = angle[0] + 0.5 * first * along_x, angle[1] + 0.5 * (first * along_z + second)
        near_x, near_z = ONE.nearest_swing(x, z, joint.low, joint.high)
        a, b = x - near_x, z - near_z
        size = sqrt(a * a + b * b)
        if size > OUTSIDE:
            a, b, is_swing = a / size, b / size, True
            force = 2.0 * STIFF * (a * (near_x - angle[0]) + b * (near_z - angle[1]))
            s1, s2, f2 = s1 + STIFF * b * b, s2 + STIFF * a * b, f2 + STIFF * a * a
            on_second, on_first = on_second + force * b, on_first + force * a
    end = min(max(angle[2] + twist, joint.twist_low), joint.twist_high)
    if not is_twist and abs(angle[2] + twist - end) > OUTSIDE:
        t0, on_twist, is_twist = t0 + STIFF, on_twist + STIFF * (end - angle[2]), True
    own = (t0, t1, t2), (t1, s1, s2), (t2, s2, f2)
    return Equation(equation.columns, own, (on_twist, on_second, on_first)), (is_swing, is_twist)


def _solved(
    system: System, now: State, joints: Sequence[Equation], damping: Number, anchor: Anchor | None
) -> tuple[Unknowns, Number]:
    """Solve the equations of all joints, damped; return the unknowns, and the damping that this took.

    With poles, the damping grows until the equations are those of a minimum; otherwise pivots are made positive, for
    `least` see `sweep.of_three`.
    """
    skeleton, pose, stiffness = system.skeleton, now.pose, 0.0
    if skeleton.do is not ONE:
        return of_many(joints, pose.ends[0], STEEP if anchor is None else 0.0, damping), damping
    forms: list[Form | None] = [None] * len(joints)
    ranks = []
    for objective, own in zip(system.objectives, system.split(now.residual), strict=True):
        stiffness += objective.factor**2
        if isinstance(objective, Pole):
            ranks += objective.ranks(pose, own)
        else:
            form = forms[objective.bone] = forms[objective.bone] or NOTHING[:]
            objective.stiffen(form, pose, own)
    rows = []
    for _, pulls in ranks:
        # The forces of each joint's unknowns.
        each = zip(joints, moments_of(skeleton, pose, pulls), strict=True)
        rows.append([tuple(dot(column, moment) for column in joint.columns) for joint, moment in each])
    heads = {i: pose.points[i] for i, free in enumerate(skeleton.free) if free and i}
    least, is_least = None if rows else STEEP / stiffness if anchor is None else 0.0, False
    while True:
        swept = eliminated(skeleton.parents, joints, forms, least, damping, heads)
        if rows:
            swept, is_least = _with_rows(skeleton.parents, swept, rows, [factor for factor, _ in ranks], heads)
        if is_least or not rows or damping >= HARDEST:
            return substituted(skeleton.parents, swept, heads), damping
        damping *= STIFFENED


def _with_rows(
    parents: Sequence[int], swept: list[Swept], rows: list[Unknowns], factors: list[float], heads: dict[int, Vector]
) -> tuple[list[Swept], bool]:
    """Add the squares of rows to equations that are swept already, each times a factor.

    Return the result at each joint, to be swept back, and whether the whole matrix is positive.
    """
    pivots, plain = [each.pivots for each in swept], [each.left[3][:3] for each in swept]
    ways = [_again(parents, swept, row, heads) for row in rows]
    # What a row makes of a solution needs no sweep back.
    weighed = [[(x * a, y * b, z * c) for (x, y, z), (a, b, c) in zip(way, pivots, strict=True)] for way in ways]
    matrix: list[list[float]] = [[sum(map(dot, row, way)) for way in ways[: i + 1]] for i, row in enumerate(weighed)]
    for own, factor in zip(matrix, factors, strict=True):
        own[-1] += 1.0 / factor
    shares = solved(matrix, [sum(map(dot, row, plain)) for row in weighed])
    for share, way in zip(shares, ways, strict=True):
        plain = [(x - share * a, y - share * b, z - share * c) for (x, y, z), (a, b, c) in zip(plain, way, strict=True)]
    # By the law of inertia, this is how many pivots of the whole matrix are negative.
    below = sum(pivot < 0.0 for each in pivots for pivot in each) + sum(own[-1] > 0.0 for own in matrix)
    left = [(*each.left[:3], (*own, *each.left[3][3:])) for each, own in zip(swept, plain, strict=True)]
    found = [each._replace(left=own) for each, own in zip(swept, left, strict=True)]
    return found, below <= sum(factor > 0.0 for factor in factors)


def _again(parents: Sequence[int], swept: list[Swept], row: Unknowns, heads: dict[int, Vector]) -> Unknowns:
    """Return what is left of other right-hand sides after the same sweep, divided by the pivots."""
    forces, found = [RESTING] * len(swept), [ZERO] * len(swept)
    for i in range(len(swept) - 1, -1, -1):
        (columns, *_), (first, second, third, (_, _, _, n01, n02, n12)), _, (m00, m11, m22) = swept[i]
        (p0, p1, p2, p3, p4, p5), (r0, r1, r2), parent = forces[i], row[i], parents[i]
        (x0, x1, x2, x3, x4, x5, *_), (y0, y1, y2, y3, y4, y5, *_), (z0, z1, z2, z3, z4, z5, *_) = columns
        r0 += x0 * p0 + x1 * p1 + x2 * p2 + x3 * p3 + x4 * p4 + x5 * p5
        r1 += y0 * p0 + y1 * p1 + y2 * p2 + y3 * p3 + y4 * p4 + y5 * p5 - n01 * r0
        r2 += z0 * p0 + z1 * p1 + z2 * p2 + z3 * p3 + z4 * p4 + z5 * p5 - n02 * r0 - n12 * r1
        found[i] = r0 / m00, r1 / m11, r2 / m22
        if parent >= 0:
            parts = zip(forces[i], first, second, third, strict=True)
            p0, p1, p2, p3, p4, p5 = (p - a * r0 - b * r1 - c * r2 for p, a, b, c in parts)
            if i in heads:
                p0, p1, p2 = cross(heads[i], (p3, p4, p5))
            q0, q1, q2, q3, q4, q5 = forces[parent]
            forces[parent] = p0 + q0, p1 + q1, p2 + q2, p3 + q3, p4 + q4, p5 + q5
    return found


SAME = 2e-4
"""Poses that miss by no more than this, in chain lengths, beyond the best one are as good."""
STILL = 1e-6
"""Radians: a shorter step that improves shows that there is nothing left to gain."""
ROUNDING = 1e-6
"""Radians: so does a step that does not improve and is shorter than this."""
LITTLE, HARDLY = 1e-6, 1e-4
"""Without an anchor, a step that gains less than this fraction of the cost shows that there is nothing left to gain;
the second is used if it is enough to know roughly how near such a pose comes."""
HOPELESS = 0.05
"""So does one that gains less than this fraction of what is missing to a pose that is known. With 0.4 poses end farther
from targets that limits keep out of reach; without, chains of three bones search a fifth longer for such targets."""
SHORT, ROUNDED = 1e-3, 1e-13
"""A step shorter than the first, in radians, may raise the cost by the second, as a fraction of the cost."""
LONGEST = 0.5
"""Maximum angle, in radians, that a joint turns in one step."""
DAMPING, SOFTEST, HARDEST = 1e-1, 1e-9, 1e3
EASED = 0.1
"""Least factor of the damping after a better step."""
HARDENED, HARDER = 8.0, 2.0
"""Factors of the damping after a worse step, and if a part of the step is better. With 1 and 3 for the last, 491 chains
of eleven rigs settle in 6,803 and 6,666 steps instead of 6,694."""
STIFFENED = 4.0
"""Factor of the damping while equations are not those of a minimum."""
SHORTEST, FARTHEST = 0.05, 0.7
"""Bounds of the part of a worse step that is tried. With half of the step instead, these take 7,183 steps."""


def polished(
    system: System, angles: Angles, most: int, still: float = STILL, anchor: Anchor | None = None, known: float = inf
) -> tuple[State, int]:
    """Return the pose that is a local minimum of the cost inside the limits, and the number of steps to it.

    Args:
        system: one body.
        angles: where to start, inside the limits.
        most: maximum number of steps.
        still: radians; a shorter step shows that little is left to gain, in a body that is not nearly there.
        anchor: the pose to stay near where nothing else decides.
        known: the error of another pose; the run ends if it is unlikely to come as near.
    """
    chart, own = Chart.at(system.skeleton, angles), system
    if chart is not None:
        own, angles = system._replace(skeleton=chart.skeleton), chart.enter(angles)
        anchor = anchor and anchor._replace(angles=chart.enter(anchor.angles))
    run = begun(State.of(own, angles), anchor, known)
    run, steps = finished(own, run, partial(advanced, still=still), most)
    return run.best if chart is None else State.of(system, chart.leave(run.best.angles)), steps


class Run(NamedTuple):
    """A run of Newton's method."""

    best: State
    """Where it is."""
    least: Number
    """The cost there."""
    damping: Number
    anchor: Anchor | None
    known: Number
    """See `polished`."""


def begun(state: State, anchor: Anchor | None, known: Number) -> Run:
    """Return a run of one body, or of many, that begins at a state."""
    least = _cost(state, anchor)
    # If places are settled already, the rest of the cost is small.
    damping = 0.0 * least + DAMPING * (1.0 if anchor is None else anchor.share)
    return Run(state, least, damping, anchor, known)


def advanced(system: System, run: Run, still: float) -> tuple[Run, Number]:
    """Return a run after one step, and whether it has come to its end; `still` see `polished`."""
    do, (now, least, damping, anchor, known) = system.skeleton.do, run
    step = newton_step(system, now, damping, anchor)
    move, fall, damping = step[:3]
    size = longest(do, move)
    share = do.least(1.0, LONGEST / do.most(size, 1e-30))
    half = 0.5 * share
    bending = fall - damping * sum(map(dot, move, move))
    there, cost = _moved(system, now.angles, move, share, anchor)
    failed: Number = False
    if anchor is not None:
        rise = do.most(cost - least + share * (2.0 * fall - share * bending), 1e-30)
        if len(system.objectives) > 1 and cost >= least and ROUNDING < size < LONGEST:
            there, cost = _moved(system, now.angles, corrected(system, now, step, there, anchor), 1.0, anchor)
        failed = (cost >= least) & (size > SHORT)
        if do.any(failed):
            # In a curved valley the cost rises with the fourth power of a step: stop where it is least.
            back = do.least(do.most((0.5 * share * do.most(fall, 0.0) / rise) ** (1.0 / 3.0), SHORTEST), FARTHEST)
            there, cost = do.redone(_moved, failed, (system, now.angles, move, share * back, anchor), (there, cost))
    # Rounding may hide the gain of a short step, so accept it.
    better = cost < least + do.where(size < SHORT, ROUNDED * least, 0.0)
    gain = least - cost
    little = better & (gain < (LITTLE if still == STILL else HARDLY) * least) & (least > SAME**2)
    least = do.where(better, cost, least)
    now = do.choose(better, there, now)
    # A step that gains less than predicted went too far (H. Nielsen, "Damping parameter in Marquardt's method",
    # IMM-REP-1999-05, Technical University of Denmark).
    foretold = share * (fall - half * bending)
    off = do.most(gain / do.most(foretold, 1e-30) - 1.0, -1.0)
    eased = do.where(failed, HARDER, do.least(do.most(1.0 - off * off * off, EASED), 1.0))
    damping = do.least(do.most(damping * do.where(better, eased, HARDENED), SOFTEST), HARDEST)
    short = do.where(better, do.where(least > SAME**2, still, STILL), ROUNDING)
    ended = (size < short) | (damping >= HARDEST)
    if anchor is None:
        ended = ended | little | (better & (gain < HOPELESS * (least - known * known)))
    return Run(now, least, damping, anchor, known), ended


def _moved(system: System, angles: Angles, move: Angles, share: Number, anchor: Anchor | None) -> tuple[State, Number]:
    """Return where a share of a step leads, inside the limits, and the cost there."""
    do, half = system.skeleton.do, 0.5 * share

    def moved(joint: Joint, angle: Vector, step: Vector) -> Vector:
        return inside(do, joint, angle[0] + step[0] * half, angle[1] + step[1] * half, angle[2] + step[2] * share)

    there = State.of(system, each_joint(do, moved, system.skeleton.joints, angles, move))
    return there, _cost(there, anchor)


def _cost(state: State, anchor: Anchor | None) -> Number:
    cost = state.error * state.error
    if anchor is not None:
        cost = cost + anchor.share * sum(dot(way, way) for way in map(away_from, state.angles, anchor.angles))
    return cost


@dataclass(frozen=True)
class Chart:
    """A body whose joints without limits are measured from another pose, so that they stay clear of half a turn.

    Near half a turn the coordinates of a swing say least about where a bone points, and steps get short.
    """

    skeleton: Skeleton
    swings: dict[int, Quaternion]
    """Swings of joints in the original body at which they are at rest in this one."""

    @classmethod
    def at(cls, skeleton: Skeleton, angles: Angles) -> Chart | None:
        """Measure joints without limits from where they are swung; return None if all have limits."""
        swings, bones = {}, list(skeleton.bones)
        for i, (joint, (x, z, _)) in enumerate(zip(skeleton.joints, angles, strict=True)):
            if is_unlimited(joint):
                swings[i] = turn = turn_of(ONE, (x, z, 0.0))
                bones[i] = Bone(_turned(bones[i].rest, turn), bones[i].head)
        return cls(skeleton._replace(bones=bones), swings) if swings else None

    def enter(self, angles: Angles) -> Angles:
        """Convert angles of the original body to angles of this one."""
        return self._turned({joint: inverse(swing) for joint, swing in self.swings.items()}, angles)

    def leave(self, angles: Angles) -> Angles:
        """Convert angles of this body to angles of the original one."""
        return self._turned(self.swings, angles)

    def _turned(self, swings: dict[int, Quaternion], angles: Angles) -> Angles:
        found = list(angles)
        for i, swing in swings.items():
            found[i] = nearest_angles(ONE, self.skeleton.joints[i], multiply(swing, turn_of(ONE, angles[i])))
        return found


def _turned(matrix: Nine, turn: Quaternion) -> Nine:
    columns = [rotate(turn, axis) for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    rows = matrix[:3], matrix[3:6], matrix[6:]
    return tuple(dot(row, column) for row in rows for column in columns)
