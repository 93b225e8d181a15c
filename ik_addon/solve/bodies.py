"""Chains and trees whose joints have limits: from a problem to its solution.

Every attempt is a descent (see `descent`). The first one starts near the FK pose, so that neighbouring targets lead to
neighbouring poses. Where it does not arrive, others start from a fixed table of poses inside the limits, and of all
that arrive the one nearest to the FK pose is taken: restarts are what takes Newton's method with joint limits from a
quarter of all targets missed to none (P. Beeson and B. Ames, "TRAC-IK", Humanoids 2015, doi
10.1109/HUMANOIDS.2015.7363472), here without a random generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .aims import Aims, Bend, Turn, masses_of
from .articulated import Body, angles_of, pose_of, split
from .choice import ARRIVED, SAME, nearest_to_fk
from .cones import Cone, at_limit, cone_of
from .descent import PULL, descend
from .guess import bent_towards, table
from .limb import solve_limbs
from .line_search import search
from .lines import are_lines
from .polish import Anchor, polish
from .problem import Bools, Floats, Goal, Ints, Limits, OutOfReach, Problem, Solution, Status
from .products import back_applied, back_times, determinants, times, times_back
from .reach import reachable
from .rotations import norm, quaternions, unit

_RESTARTS = (8, 24)
"""How many poses of the table are tried at a time."""
_PULL = 1.0
"""What a restart goes after in a step: it is not to be near anything."""
_BRIEF = 10
"""Steps of a restart; what comes near in these is brought to its end by Newton's method."""
_ENOUGH = 3
"""When so many poses are among the best, none will be better."""
_FINALISTS = 120, 6, 32
"""How many of the best poses for an unreachable target are brought nearly as near as they can come: so many divided by
the number of joint angles, but at least and at most so many. With few joints there are fewer ways round a bad pose."""
_FARTHEST = 1e50
"""What is further away than this, in chain lengths, is as good as infinite: its square could not be computed with."""
_POLISH = 60
"""Newton steps that may be spent on coming as near as possible to a target that cannot be reached."""
_CLEAR, _STILL = 12, 1e-2
"""How near a restart can come is clear after so many Newton steps, or when they are as short as this, in radians."""
_HOLD = 1e-3
"""What poles, orientations and being a radian away from the FK pose count, as a part of the square of what is missing:
they decide where a target out of reach leaves joints a choice, as it does the twist of a straight branch."""
_LARGE = 300
"""With more joint angles than this the first restarts are the last."""


def wants_body(problem: Problem) -> bool:
    """Return whether a problem is more than chains of free joints."""
    return (
        problem.limits is not None
        or problem.parents is not None
        or bool(problem.others)
        or problem.goal.rotation is not None
        or problem.goal.segment is not None
    )


def check_ranges(limits: Limits) -> None:
    """Raise ValueError, naming joint and axis, if a range of limits is not one."""
    ranges = np.concatenate([limits.cones, limits.twist], axis=1).astype(np.float64)
    wrong = ~((ranges[:, ::2] <= 0.0) & (ranges[:, 1::2] >= 0.0)).all(axis=1)
    for joint, values in zip(np.flatnonzero(wrong), ranges[wrong], strict=True):
        for axis, low, high in zip("XZY", values[::2], values[1::2], strict=True):
            if np.isnan(low) or np.isnan(high):
                raise ValueError(f"joint {joint}: a limit about {axis} is not a number")
            if low > high:
                raise ValueError(f"joint {joint}: the least rotation about {axis} is above the greatest")
            if low > 0.0 or high < 0.0:
                raise ValueError(f"joint {joint}: the limits about {axis} do not contain the rest pose")
    if np.ndim(limits.rest) == 3 and not np.isfinite(limits.rest).all():
        raise ValueError("limits.rest must be finite")


def valid_members(problem: Problem) -> Bools:
    """Return which members (B,) can be solved: all they have is finite, and their chains have a length."""
    members = len(problem.joints)
    with np.errstate(all="ignore"):
        frames = np.asarray(problem.frames, dtype=np.float64)
        ok = np.isfinite(problem.joints).all(axis=(1, 2)) & np.isfinite(frames).all(axis=(1, 2, 3))
        proper = determinants(frames)
        ok &= (np.abs(np.abs(proper) - 1.0) < 0.1).all(axis=1) & (np.ptp(np.sign(proper), axis=1) == 0.0)
        lengths = _lengths(problem)
        ok &= np.isfinite(lengths).all(axis=0) & (lengths > 1e-100).all(axis=0)
        places = [goal.target for goal in problem.goals] + [goal.pole for goal in problem.goals]
        points = [np.asarray(place, dtype=np.float64)[:, None] for place in places if place is not None]
        away = np.concatenate([problem.joints, *points], axis=1) - np.asarray(problem.joints)[:, :1]
        ok &= np.abs(away).max(axis=(1, 2)) < _FARTHEST * lengths.max(axis=0)
        values: list[Floats | float | None] = [problem.softness]
        if problem.limits is not None:
            values += [problem.limits.root, problem.limits.rest if np.ndim(problem.limits.rest) == 4 else None]
            sides = np.sign(determinants(np.asarray(problem.limits.root, dtype=np.float64)))
            ok &= sides == np.sign(proper[:, 0])
            # What a bone that does not inherit rotation is measured from has no mirror image.
            ok &= (sides > 0.0) | (problem.inherits is None or bool(np.all(problem.inherits)))
        for goal in problem.goals:
            values += [goal.target, goal.pole, goal.pole_angle, goal.rotation]
        for value in values:
            if value is not None:
                array = np.asarray(value, dtype=np.float64)
                ok &= np.isfinite(array.reshape(members, -1)).all(axis=1) if array.ndim else np.isfinite(array)
        ok &= ~np.isnan(_per_member(problem.push_limit, members)) & ~np.isnan(_per_member(problem.tolerance, members))
    return np.asarray(ok)


Begin = Callable[[Body, Floats, Aims, Floats, int], tuple[Floats, Ints]]
"""Makes the pose that the search starts from, and says how many passes (B,) it took: of bodies, their FK pose, aims,
tolerance (B,) and a cap on the passes; see `fabrik_body.led_by_tips`."""


def solve_bodies(problem: Problem, solution: Solution, index: Ints, begin: Begin | None = None) -> None:
    """Solve the members `index` (k,) and write them into the solution; None: the search begins near the FK pose."""
    side = np.ones(len(problem.joints))
    side[index] = np.sign(determinants(np.asarray(problem.frames, dtype=np.float64)[index, 0]))
    if (side < 0.0).any():
        _solve_upright(_reflected(problem, side), solution, index, begin)
        solution.joints[..., 0] *= side[:, None]
        solution.rotations[:] = _both_sides(solution.rotations, side)
    else:
        _solve_upright(problem, solution, index, begin)


def _reflected(problem: Problem, side: Floats) -> Problem:
    """Return a problem with the members whose `side` (B,) is -1 mirrored at X = 0, and so their frames upright.

    What a joint does seen from its bones, and so what its limits mean, stays the same.
    """
    across = np.stack([side, np.ones_like(side), np.ones_like(side)], axis=-1)

    def goal_of(goal: Goal) -> Goal:
        # A mirrored bone cannot have the axes of an upright one: Y and Z are as wanted, X is opposite.
        return replace(
            goal,
            target=goal.target * across,
            pole=None if goal.pole is None else goal.pole * across,
            pole_angle=None if goal.pole_angle is None else goal.pole_angle * side,
            rotation=None if goal.rotation is None else _both_sides(goal.rotation, side),
        )

    limits = problem.limits
    return replace(
        problem,
        joints=problem.joints * across[:, None],
        frames=problem.frames * across[:, None, :, None],
        goal=goal_of(problem.goal),
        others=tuple(map(goal_of, problem.others)),
        limits=None if limits is None else replace(limits, root=limits.root * across[:, :, None]),
    )


def _both_sides(matrix: Floats, side: Floats) -> Floats:
    """Return matrices (B, ..., 3, 3), those whose `side` (B,) is -1 with X mirrored before and after."""
    across = np.ones((len(side), 3, 3))
    across[:, 0, 1:] = across[:, 1:, 0] = side[:, None]
    return np.asarray(matrix * across.reshape(len(side), *[1] * (np.ndim(matrix) - 3), 3, 3))


def _solve_upright(problem: Problem, solution: Solution, index: Ints, begin: Begin | None) -> None:
    """Solve the members `index` (k,), whose frames are right-handed, and write them into the solution."""
    index = solve_limbs(problem, solution, index)
    if not len(index):
        return
    task = _Task.of(problem, index)
    if begin is not None:
        fk = angles_of(task.body, task.turns)
        start, passes = begin(task.body, fk, task.aims, task.tolerance, problem.iterations)
        angles, steps = _solved(task, fk, problem.iterations, start)
        steps = steps + passes
    elif are_lines(task.body) and not task.aims.turns and not task.aims.bends:
        angles, steps = search(task.body, task.turns, task.aims.target[:, 0], problem.iterations)
    else:
        angles, steps = _solved(task, angles_of(task.body, task.turns), problem.iterations)
    pose = pose_of(task.body, angles)
    ends = pose.points[len(task.body.parents) :].transpose(1, 0, 2)
    missed = task.target - ends
    push = np.zeros_like(task.origin)
    if problem.out_of_reach is OutOfReach.PUSH_ROOT and len(task.body.segments) == 1:
        gap = missed[:, 0]
        size = np.sqrt(gap[:, 0] ** 2 + gap[:, 1] ** 2 + gap[:, 2] ** 2)
        push = gap * np.minimum(1.0, task.push_limit / np.maximum(size, 1e-200))[:, None]
        missed = missed - push[:, None]
    error = np.sqrt(missed[..., 0] ** 2 + missed[..., 1] ** 2 + missed[..., 2] ** 2)
    frames = pose.frames.transpose(1, 0, 2, 3)
    solution.rotations[index] = times_back(frames, task.frames)
    solution.stretch[index] = task.stretch
    points = pose.points.transpose(1, 0, 2) + push[:, None]
    solution.joints[index] = points * task.scale[:, None, None] + task.origin[:, None]
    distances = error * task.scale[:, None]
    solution.error[index] = distances if solution.error.ndim == 2 else distances[:, 0]
    solution.iterations[index] = steps
    swing, twist = split(angles)
    solution.at_limit[index] = at_limit(swing, twist, task.body.cone) & task.limited
    reached = (error * task.scale[:, None] <= task.tolerance[:, None] * task.lengths).all(axis=1)
    far, near = task.beyond > task.tolerance, task.beyond < -task.tolerance
    missing = np.where(far, Status.TOO_FAR, np.where(near, Status.TOO_NEAR, Status.LIMITED))
    solution.status[index] = np.where(reached, Status.REACHED, missing)


@dataclass(frozen=True)
class _Task:
    """A problem as the descents want it: seen from the root, in units of the longest chain."""

    body: Body
    aims: Aims
    turns: Floats
    """(4, B, n) rotations of the joints in the FK pose."""
    frames: Floats
    """(B, n, 3, 3)"""
    target: Floats
    """(B, E, 3) what the goals ask for, which may be more than what the aims go for."""
    origin: Floats
    """(B, 3)"""
    scale: Floats
    """(B,)"""
    lengths: Floats
    """(B, E) of the chains to the effectors, in the problem's unit."""
    stretch: Floats
    """(B, n)"""
    beyond: Floats
    """(B,) how far a target is outside of the reach of a chain, negative: inside of the inner reach."""
    push_limit: Floats
    tolerance: Floats
    limited: Bools
    """(n,) joints with a limit, but not locked altogether."""

    @classmethod
    def of(cls, problem: Problem, index: Ints) -> _Task:
        """Read the valid members `index` (k,) of a problem."""
        bones, members = np.shape(problem.frames)[1], len(index)
        joints = np.asarray(problem.joints, dtype=np.float64)[index]
        frames = np.asarray(problem.frames, dtype=np.float64)[index]
        parents, free, segments = _shape_of(problem)
        lengths = _lengths(problem, index).T
        scale = lengths.max(axis=1)
        origin = joints[:, 0]
        points = (joints - origin[:, None]) / scale[:, None, None]
        target = np.stack([np.asarray(goal.target, np.float64)[index] for goal in problem.goals], axis=1)
        target = (target - origin[:, None]) / scale[:, None, None]

        rest, cone, ease, limited, locked = _joints_of(problem, index, parents, free)
        zeros = np.where(free[:, None, None], rest, times(frames[:, parents], rest))
        zeros[:, locked] = frames[:, locked]
        turns = quaternions(back_times(zeros, frames).transpose(2, 3, 0, 1))

        push_limit = _per_member(problem.push_limit, len(problem.joints))[index]
        tolerance = _per_member(problem.tolerance, len(problem.joints))[index]
        stretch, beyond, wanted = np.ones((members, bones)), np.zeros(members), target
        if len(segments) == 1:
            stretch, beyond, wanted, grown = _reach(
                problem, points, target, parents, int(segments[0]), push_limit, index
            )
            # A lengthened chain is solved in units of what it has become.
            scale = scale * grown
            points, target, wanted = (array / grown[:, None, None] for array in (points, target, wanted))
        offsets = points[:, :bones] - points[:, parents]
        heads = back_applied(frames[:, parents], offsets) * stretch[:, parents, None]
        heads[:, parents < 0] = points[:, :bones][:, parents < 0]
        ends = back_applied(frames[:, segments], points[:, bones:] - points[:, segments]) * stretch[:, segments, None]
        body = Body(parents, free, segments, rest, heads, ends, cone, ease)
        weight = np.array([goal.weight for goal in problem.goals], dtype=np.float64)
        aims = Aims(wanted, weight / weight.max(), *_wishes(problem, body, points, origin, scale, index))
        return cls(
            body, aims, turns, frames, target, origin, scale, lengths, stretch, beyond, push_limit, tolerance, limited
        )


def _shape_of(problem: Problem) -> tuple[Ints, Bools, Ints]:
    """Return the parents (n,), which bones are free (n,), and the bones of the effectors (E,)."""
    bones = np.shape(problem.frames)[1]
    parents = np.arange(bones) - 1 if problem.parents is None else np.asarray(problem.parents)
    inherits = np.ones(bones, dtype=bool) if problem.inherits is None else np.asarray(problem.inherits, dtype=bool)
    segments = np.array([bones - 1 if goal.segment is None else goal.segment for goal in problem.goals])
    return parents, (parents < 0) | ~inherits, segments


def _lengths(problem: Problem, index: Ints | slice = np.s_[:]) -> Floats:
    """Return the lengths (E, k) of the chains of the members `index` from their root to each effector."""
    joints = np.asarray(problem.joints, dtype=np.float64)[index]
    parents, _, segments = _shape_of(problem)
    lengths = []
    for e, segment in enumerate(segments):
        points, bone = [len(parents) + e], int(segment)
        while bone >= 0:
            points.append(bone)
            bone = int(parents[bone])
        steps = (joints[:, points[1:]] - joints[:, points[:-1]]).transpose(2, 1, 0)
        lengths.append(np.cumsum(norm(steps), axis=0)[-1])
    return np.stack(lengths)


def _joints_of(problem: Problem, index: Ints, parents: Ints, free: Bools) -> tuple[Floats, Cone, Floats, Bools, Bools]:
    """Return the joints' rest frames (B, n, 3, 3), cones, ease (n, 3), and which are limited and locked (n,).

    A joint without any limit is at rest in the FK pose: from there it is farthest to half a turn.
    """
    bones = len(parents)
    frames = np.asarray(problem.frames, dtype=np.float64)[index]
    rest = np.where(free[:, None, None], frames, back_times(frames[:, parents], frames))
    ease = np.ones((bones, 3)) if problem.stiffness is None else 1.0 - np.asarray(problem.stiffness, dtype=np.float64)
    ease = ease[:, [0, 2, 1]]
    everything = np.tile([-np.inf, np.inf], (bones, 3))
    limits = problem.limits
    ranges = everything if limits is None else np.concatenate([limits.cones, limits.twist], axis=1).astype(np.float64)
    locked = (ranges == 0.0).all(axis=1)
    limited = np.isfinite(ranges).any(axis=1) & ~locked
    if limits is not None:
        root = np.asarray(limits.root, dtype=np.float64)[index]
        at_rest = np.broadcast_to(np.asarray(limits.rest, dtype=np.float64), np.shape(problem.frames))[index]
        rest[:, limited] = at_rest[:, limited]
        for i in map(int, np.flatnonzero(limited & (parents < 0))):
            if _inherits(problem, i):
                rest[:, i] = times(root, at_rest[:, i])
    cone = cone_of(ranges[:, :4], ranges[:, 4:])
    cone = Cone(cone.low[:, None], cone.high[:, None], cone.twist_low[None], cone.twist_high[None])
    return rest, cone, ease * (ranges[:, ::2] != ranges[:, 1::2]), limited, locked


def _inherits(problem: Problem, bone: int) -> bool:
    return problem.inherits is None or bool(problem.inherits[bone])


def _reach(
    problem: Problem, points: Floats, target: Floats, parents: Ints, segment: int, push_limit: Floats, index: Ints
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return what becomes of chains whose targets may be out of reach.

    That is the stretch (B, n) of the bones, how far the target is out of reach (B,), where to go (B, 1, 3), and by how
    much the chain as a whole is longer (B,).
    """
    bones, members = len(parents), len(index)
    weights = np.ones(bones) if problem.stretch_weights is None else np.asarray(problem.stretch_weights, np.float64)
    path, bone = [bones], segment
    while bone >= 0:
        path.append(bone)
        bone = int(parents[bone])
    path.reverse()
    joints = points[:, path].transpose(2, 1, 0)
    lengths = norm(joints[:, 1:] - joints[:, :-1])
    distance = norm(target[:, 0].T)
    softness = _per_member(problem.softness, len(problem.joints))[index]
    reach = reachable(lengths, distance, softness, push_limit, weights[path[:-1]], problem.out_of_reach)
    stretch = np.ones((members, bones))
    stretch[:, path[:-1]] = reach.stretch.T
    # Limits may keep a chain from pointing at a target that is too far: then it goes as near as it can. How far the
    # root is pushed is only known when the limits have had their say.
    eased = unit(target[:, 0].T) * reach.distance
    wanted = np.where((softness > 0.0)[:, None, None], eased.T[:, None], target)
    grown = np.cumsum(lengths * reach.stretch, axis=0)[-1] / np.cumsum(lengths, axis=0)[-1]
    return stretch, reach.missing, wanted, grown


def _wishes(
    problem: Problem, body: Body, points: Floats, origin: Floats, scale: Floats, index: Ints
) -> tuple[tuple[Turn, ...], tuple[Bend, ...]]:
    """Return what the goals want besides places. A pole acts where its chain has left those of all other goals."""
    turns, bends = [], []
    bones = len(body.parents)
    for e, goal in enumerate(problem.goals):
        if goal.rotation is not None:
            turns.append(Turn(e, np.asarray(goal.rotation, dtype=np.float64)[index]))
        if goal.pole is not None:
            shared = {bone for other in range(len(problem.goals)) if other != e for bone in body.path(other)}
            branch = [bone for bone in body.path(e) if bone not in shared] or body.path(e)[-1:]
            pole = (np.asarray(goal.pole, dtype=np.float64)[index] - origin) / scale[:, None]
            angle = _per_member(0.0 if goal.pole_angle is None else goal.pole_angle, len(problem.joints))[index]
            bends.append(Bend(e, tuple(branch), pole, angle, masses_of(points[:, [*branch, bones + e]])))
    return tuple(turns), tuple(bends)


def _per_member(value: Floats | float, members: int) -> Floats:
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (members,))


def _solved(task: _Task, fk: Floats, iterations: int, start: Floats | None = None) -> tuple[Floats, Ints]:
    """Return the joint angles (B, n, 3) that suit the aims best, and the steps (B,) it took to find them."""
    body, aims = task.body, task.aims
    alone = len(body.segments) == 1
    if start is None:
        start = bent_towards(body, fk, aims.target[:, 0], aims.bends[0].pole if aims.bends else None) if alone else fk
    angles, cost, steps = _attempt(body, start, aims, iterations)
    stuck = missed = np.flatnonzero((cost > ARRIVED) & ~_as_near_as_can_be(task, cost))
    first = angles.copy()
    tried, costs = angles[stuck, None], cost[stuck, None]
    done = np.zeros((len(stuck), 0, *angles.shape[1:])), np.zeros((len(stuck), 0))
    for k, count in enumerate(_RESTARTS[: 1 if np.count_nonzero(body.ease) > _LARGE else None]):
        if not len(stuck):
            break
        poses = table(body, sum(_RESTARTS[:k]), count)
        # Of each member one start after another: first all of the first member.
        some, start = np.repeat(stuck, count), np.tile(poses, (len(stuck), 1, 1))
        found, missing, used = _attempt(body.members(some), start, aims.members(some), min(iterations, _BRIEF), _PULL)
        tried = np.concatenate([tried, found.reshape(len(stuck), count, *found.shape[1:])], axis=1)
        costs = np.concatenate([costs, missing.reshape(len(stuck), count)], axis=1)
        steps[stuck] += used.reshape(len(stuck), count).max(axis=1)
        left = costs.min(axis=1) > ARRIVED
        steps[stuck[left]] += _finished(task, stuck, tried, costs, np.flatnonzero(left), with_first=k == 0)
        if k == 0:
            first[stuck] = tried[:, 0]
        tried, costs = np.concatenate([done[0], tried], axis=1), np.concatenate([done[1], costs], axis=1)
        best = nearest_to_fk(tried, costs, fk[stuck])
        rows = np.arange(len(stuck))
        angles[stuck], cost[stuck] = tried[rows, best], costs[rows, best]
        alike = np.count_nonzero(costs < costs.min(axis=1, keepdims=True) + SAME, axis=1)
        left = (cost[stuck] > ARRIVED) & (alike < _ENOUGH)
        stuck, done = stuck[left], (tried[left], costs[left])
        tried, costs = done[0][:, :0], done[1][:, :0]
    missed = missed[cost[missed] > ARRIVED]
    if len(missed):
        both = np.repeat(missed, 2)
        tried = np.stack([first[missed], angles[missed]], axis=1).reshape(-1, *angles.shape[1:])
        hold = _HOLD * cost[both] ** 2
        # What poles and orientations leave of the choice is decided by the FK pose.
        light = replace(aims.members(both), share=hold)
        anchor = Anchor(fk[both], hold * (_HOLD if aims.turns or aims.bends else 1.0))
        tried, costs, more = polish(body.members(both), tried, light, _POLISH, anchor=anchor)
        tried = tried.reshape(len(missed), 2, *angles.shape[1:])
        best = nearest_to_fk(tried, costs.reshape(-1, 2), fk[missed])
        angles[missed] = tried[np.arange(len(missed)), best]
        steps[missed] += more.reshape(-1, 2).max(axis=1)
    return angles, steps


def _finished(task: _Task, stuck: Ints, tried: Floats, costs: Floats, rows: Ints, *, with_first: bool) -> Ints:
    """Bring the best poses of some members nearly as near as they can come, drop the others; return the steps (r,).

    Args:
        task: what is solved.
        stuck: (s,) the members that are not there.
        tried: (s, k, n, 3) poses of theirs; the best ones are replaced.
        costs: (s, k) what is missing in them; infinite where a pose is dropped.
        rows: (r,) which of them are wanted.
        with_first: the first pose is not dropped.
    """
    if not len(rows):
        return rows
    order = costs[rows]
    if with_first:
        order[:, 0] = 0.0
    ahead = np.sort(np.argsort(order, axis=1, kind="stable")[:, : _by_size(task.body, *_FINALISTS)], axis=1)
    some, chosen = np.repeat(stuck[rows], ahead.shape[1]), (np.repeat(rows, ahead.shape[1]), ahead.ravel())
    aims = task.aims.members(some).places()
    tried[chosen], missing, used = polish(task.body.members(some), tried[chosen], aims, _CLEAR, _STILL)
    costs[rows] = np.inf
    costs[chosen] = missing
    return np.asarray(used.reshape(ahead.shape).max(axis=1))


def _by_size(body: Body, share: int, least: int, most: int) -> int:
    """Return a share for each joint angle that can change, but not less and not more than these."""
    return min(max(share // max(int(np.count_nonzero(body.ease)), 1), least), most)


def _attempt(body: Body, start: Floats, aims: Aims, iterations: int, pull: float = PULL) -> tuple[Floats, Floats, Ints]:
    """Descend from joint angles (B, n, 3): first to places, orientations and poles together, then to places alone."""
    angles, cost, steps = descend(body, start, aims, iterations, pull)
    if aims.turns or aims.bends:
        # A second run takes up what the first one, on its last short steps, gave up.
        left = np.flatnonzero(cost > ARRIVED)
        if len(left):
            angles[left], _, more = descend(body.members(left), angles[left], aims.members(left), iterations, pull)
            steps[left] += more
        angles, cost, more = descend(body, angles, aims.places(), iterations, pull)
        steps = steps + more
    return angles, cost, steps


def _as_near_as_can_be(task: _Task, cost: Floats) -> Bools:
    """Return which chains (B,) miss their target by no more than it is beyond their length."""
    if len(task.body.segments) != 1:
        return np.zeros(len(cost), dtype=bool)
    body = task.body
    segments = np.concatenate([body.heads[:, body.path(0)[1:]], body.ends], axis=1)
    longest = np.cumsum(norm(segments.transpose(2, 1, 0)), axis=0)[-1]
    return np.asarray(cost <= norm(task.aims.target[:, 0].T) - longest + ARRIVED)
