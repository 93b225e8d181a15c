"""Limbs, chains of two bones whose joints have limits: which problems are such, and what comes of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .cone_arcs import Range, stands_at_limit
from .cones import cone_of
from .limb_pose import Frame, Limb, applied, back_product, posed, product
from .problem import Ints, OutOfReach, Problem, Solution, Solver, Status
from .reach import reachable
from .tuples import Vector, minus, norm, over, plus, times

_NO_LENGTH = 1e-6
"""A segment shorter than this fraction of its chain has no length of its own."""
_ARRIVED = 1e-9
"""What may be missing, in lengths of the limb, in a pose that counts as one that reaches its target."""


def solve_limbs(problem: Problem, solution: Solution, index: Ints) -> Ints:
    """Solve those of the members `index` (k,) that are limbs, write them into the solution and return the others.

    Their frames are right-handed and all they have is finite.
    """
    limits = _Limits.of(problem)
    if limits is None:
        return index
    return np.array([i for i in index.tolist() if not _solved(problem, limits, solution, i)], dtype=np.int64)


class _Limits(NamedTuple):
    """What the joints of all members have in common."""

    ranges: list[Range]
    limited: list[bool]
    """Which joints have a limit, but are not locked altogether."""
    hangs: bool
    """Whether the root bone inherits the rotation of what it hangs on."""

    @classmethod
    def of(cls, problem: Problem) -> _Limits | None:
        """Return None for what is not a limb."""
        if problem.limits is None or problem.others or problem.solver is Solver.FABRIK or problem.plane is not None:
            return None
        bones = np.shape(problem.frames)[1]
        goal = problem.goal
        if bones != 2 or goal.segment not in (None, bones - 1) or goal.rotation is not None:
            return None
        if problem.parents is not None and list(problem.parents) != list(range(-1, bones - 1)):
            return None
        inherits = [True] * bones if problem.inherits is None else [bool(value) for value in problem.inherits]
        if not all(inherits[1:]) or (problem.stiffness is not None and np.any(problem.stiffness)):
            return None
        cones = np.asarray(problem.limits.cones, dtype=np.float64)
        twists = np.asarray(problem.limits.twist, dtype=np.float64)
        cone = cone_of(cones, twists)
        parts = (cone.low.T.tolist(), cone.high.T.tolist(), cone.twist_low.tolist(), cone.twist_high.tolist())
        ranges = [Range(tuple(low), tuple(high), least, most) for low, high, least, most in zip(*parts, strict=True)]
        every = np.concatenate([cones, twists], axis=1)
        limited = np.isfinite(every).any(axis=1) & (every != 0.0).any(axis=1)
        if ranges[0].low == ranges[0].high == (0.0, 0.0):
            # A root that turns about itself alone, or not at all, has no roll to choose.
            return None
        return cls(ranges, limited.tolist(), inherits[0])


def _solved(problem: Problem, limits: _Limits, solution: Solution, i: int) -> bool:
    """Solve member i and write it into the solution; False: left to the search, untouched."""
    joints: list[Vector] = [tuple(point) for point in _member(problem.joints, i)]
    frames = [_frame(rows) for rows in _member(problem.frames, i)]
    root, goal = joints[0], problem.goal
    segments = [minus(b, a) for a, b in pairwise(joints)]
    lengths = [norm(segment) for segment in segments]
    scale = lengths[0] + lengths[1]
    if min(lengths) <= _NO_LENGTH * scale:
        return False
    target = over(minus(_member(goal.target, i), root), scale)
    tolerance = _number(problem.tolerance, i)
    distance, stretch, beyond = _reach(problem, i, [length / scale for length in lengths], norm(target))
    arms = [
        times(back_product(frame, (segment, segment, segment))[0], factor / scale)
        for frame, segment, factor in zip(frames, segments, stretch, strict=True)
    ]
    grown = norm(arms[0]) + norm(arms[1])
    arms = [over(arm, grown) for arm in arms]
    unit_ = scale * grown
    wanted = over(target, grown)
    if distance is not None:
        wanted = times(wanted, distance / max(norm(wanted), 1e-200))
    target = over(target, grown)

    zero, rest = _rest_frames(problem, limits, frames, i)
    limb = Limb(zero, rest, arms[0], arms[1], limits.ranges[0], limits.ranges[1], frames[0], frames[1])
    pole = None if goal.pole is None else over(minus(_member(goal.pole, i), root), unit_)
    pose = posed(limb, wanted, pole, 0.0 if goal.pole_angle is None else _number(goal.pole_angle, i))
    if pose is None:
        return False
    middle = applied(pose.upper, arms[0])
    end = plus(middle, applied(pose.lower, arms[1]))
    if not norm(minus(wanted, end)) <= _ARRIVED:
        return False
    push = (0.0, 0.0, 0.0)
    missed = minus(target, end)
    if problem.out_of_reach is OutOfReach.PUSH_ROOT:
        push = times(missed, min(1.0, _number(problem.push_limit, i) / max(norm(missed), 1e-200)))
        missed = minus(missed, push)
    error = norm(missed) * unit_
    solution.joints[i] = [plus(times(plus(point, push), unit_), root) for point in ((0.0, 0.0, 0.0), middle, end)]
    solution.rotations[i] = [_turned(frame, fk) for frame, fk in zip((pose.upper, pose.lower), frames, strict=True)]
    solution.stretch[i] = stretch
    solution.error[i] = error
    solution.iterations[i] = 0
    solution.at_limit[i] = [
        limited and stands_at_limit(turn, range_)
        for turn, range_, limited in zip((pose.hip, pose.knee), limits.ranges, limits.limited, strict=True)
    ]
    if error <= tolerance * scale:
        solution.status[i] = Status.REACHED
    elif beyond > tolerance:
        solution.status[i] = Status.TOO_FAR
    else:
        solution.status[i] = Status.TOO_NEAR if beyond < -tolerance else Status.LIMITED
    return True


def _rest_frames(problem: Problem, limits: _Limits, frames: list[Frame], i: int) -> tuple[Frame, Frame]:
    """Return the frame of the first bone with its joint at rest, and that of the second one seen from the first.

    A joint without any limit, or locked altogether, is at rest in the FK pose.
    """
    assert problem.limits is not None
    rests = problem.limits.rest
    at_rest = _member(rests, i) if np.ndim(rests) == 4 else np.asarray(rests, dtype=np.float64).tolist()
    zero = frames[0]
    if limits.limited[0]:
        zero = _frame(at_rest[0])
        if limits.hangs:
            zero = product(_frame(_member(problem.limits.root, i)), zero)
    rest = _frame(at_rest[1]) if limits.limited[1] else back_product(frames[0], frames[1])
    return zero, rest


def _reach(problem: Problem, i: int, lengths: list[float], distance: float) -> tuple[float | None, list[float], float]:
    """Return what becomes of a limb whose target may be out of reach, see `reach.reachable`.

    That is the distance at which to bring the end, None: that of the target; the stretch of the bones; and by how much
    the target is out of reach.
    """
    softness = _number(problem.softness, i)
    inner = abs(lengths[0] - lengths[1])
    if problem.out_of_reach is OutOfReach.EXTEND and softness == 0.0:
        return None, [1.0, 1.0], max(distance - 1.0, 0.0) + min(distance - inner, 0.0)
    weights = np.ones(2) if problem.stretch_weights is None else np.asarray(problem.stretch_weights, np.float64)
    away, soft, push = (np.array([value]) for value in (distance, softness, _number(problem.push_limit, i)))
    reach = reachable(np.array(lengths)[:, None], away, soft, push, weights, problem.out_of_reach)
    return (
        float(reach.distance[0]) if softness > 0.0 else None,
        reach.stretch[:, 0].tolist(),
        float(reach.missing[0]),
    )


def _member(array: Any, i: int) -> Any:
    return np.asarray(array[i], dtype=np.float64).tolist()


def _number(value: Any, i: int) -> float:
    return float(value) if np.ndim(value) == 0 else float(value[i])


def _frame(rows: list[list[float]]) -> Frame:
    x, y, z = zip(*rows, strict=True)
    return x, y, z


def _turned(frame: Frame, fk: Frame) -> list[list[float]]:
    """Return the rotation that takes the one frame to the other, as rows."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = frame
    (ux, uy, uz), (vx, vy, vz), (wx, wy, wz) = fk
    return [
        [a * u + b * v + c * w for u, v, w in ((ux, vx, wx), (uy, vy, wy), (uz, vz, wz))]
        for a, b, c in ((ax, bx, cx), (ay, by, cy), (az, bz, cz))
    ]
