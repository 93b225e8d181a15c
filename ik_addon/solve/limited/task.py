"""A problem as the search wants it: bodies seen from their roots, in units of their longest chains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..free.reach import reachable
from ..maths.cones import Cone, cone_of
from ..maths.products import back_applied, back_times, times
from ..maths.rotations import norm, quaternions, unit
from ..problem import Bools, Floats, Ints, Problem
from .body import Body
from .goals import Goals, OrientationGoal, PoleGoal, masses_of


@dataclass(frozen=True)
class Task:
    """A problem as the descents want it: seen from the root, in units of the longest chain."""

    body: Body
    goals: Goals
    turns: Floats
    """(4, n, B) rotations of the joints in the FK pose."""
    frames: Floats
    """(B, n, 3, 3)"""
    target: Floats
    """(B, E, 3) what the goals ask for, which may be more than what the search goes for."""
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
    def of(cls, problem: Problem, index: Ints) -> Task:
        """Read the valid members `index` (k,) of a problem."""
        bones, members = np.shape(problem.frames)[1], len(index)
        joints = np.asarray(problem.joints, dtype=np.float64)[index]
        frames = np.asarray(problem.frames, dtype=np.float64)[index]
        parents, free, segments = _shape_of(problem)
        lengths = lengths_of(problem, index).T
        scale = lengths.max(axis=1)
        origin = joints[:, 0]
        points = (joints - origin[:, None]) / scale[:, None, None]
        target = np.stack([np.asarray(goal.target, np.float64)[index] for goal in problem.goals], axis=1)
        target = (target - origin[:, None]) / scale[:, None, None]

        rest, cone, mobility, limited, locked = _joints_of(problem, index, parents, free)
        rest_frames = np.where(free[:, None, None], rest, times(frames[:, parents], rest))
        rest_frames[:, locked] = frames[:, locked]
        turns = quaternions(back_times(rest_frames, frames).transpose(2, 3, 1, 0))

        push_limit = per_member(problem.push_limit, len(problem.joints))[index]
        tolerance = per_member(problem.tolerance, len(problem.joints))[index]
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
        body = Body(
            tuple(parents.tolist()),
            tuple(free.tolist()),
            tuple(segments.tolist()),
            np.ascontiguousarray(rest.transpose(2, 3, 1, 0)),
            np.ascontiguousarray(heads.transpose(2, 1, 0)),
            np.ascontiguousarray(ends.transpose(2, 1, 0)),
            cone,
            np.ascontiguousarray(mobility.T)[..., None],
        )
        weight = np.array([goal.weight for goal in problem.goals], dtype=np.float64)
        wanted = np.ascontiguousarray(wanted.transpose(2, 1, 0))
        goals = Goals(wanted, weight / weight.max(), *_wishes(problem, body, points, origin, scale, index))
        return cls(
            body, goals, turns, frames, target, origin, scale, lengths, stretch, beyond, push_limit, tolerance, limited
        )


def _shape_of(problem: Problem) -> tuple[Ints, Bools, Ints]:
    """Return the parents (n,), which bones are free (n,), and the bones of the effectors (E,)."""
    bones = np.shape(problem.frames)[1]
    parents = np.arange(bones) - 1 if problem.parents is None else np.asarray(problem.parents)
    inherits = np.ones(bones, dtype=bool) if problem.inherits is None else np.asarray(problem.inherits, dtype=bool)
    segments = np.array([bones - 1 if goal.segment is None else goal.segment for goal in problem.goals])
    return parents, (parents < 0) | ~inherits, segments


def lengths_of(problem: Problem, index: Ints | slice = np.s_[:]) -> Floats:
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
    """Return the joints' rest frames (B, n, 3, 3), cones, mobility (n, 3), and which are limited and locked (n,).

    A joint without any limit is at rest in the FK pose: from there it is farthest to half a turn.
    """
    bones = len(parents)
    frames = np.asarray(problem.frames, dtype=np.float64)[index]
    rest = np.where(free[:, None, None], frames, back_times(frames[:, parents], frames))
    mobility = (
        np.ones((bones, 3)) if problem.stiffness is None else 1.0 - np.asarray(problem.stiffness, dtype=np.float64)
    )
    mobility = mobility[:, [0, 2, 1]]
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
    cone = Cone(*(part[..., None] for part in cone))
    return rest, cone, mobility * (ranges[:, ::2] != ranges[:, 1::2]), limited, locked


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
    softness = per_member(problem.softness, len(problem.joints))[index]
    reach = reachable(lengths, distance, softness, push_limit, weights[path[:-1]], problem.out_of_reach)
    stretch = np.ones((members, bones))
    stretch[:, path[:-1]] = reach.stretch.T
    # Limits may keep a chain from pointing at a target that is too far: then it goes as near as it can. How far the
    # root is pushed is only known when the limits have had their say.
    eased = unit(target[:, 0].T) * reach.distance
    wanted = np.where((softness > 0.0)[:, None, None], eased.T[:, None], target)
    grown = np.cumsum(lengths * reach.stretch, axis=0)[-1] / np.cumsum(lengths, axis=0)[-1]
    return stretch, reach.shortfall, wanted, grown


def _wishes(
    problem: Problem, body: Body, points: Floats, origin: Floats, scale: Floats, index: Ints
) -> tuple[tuple[OrientationGoal, ...], tuple[PoleGoal, ...]]:
    """Return what the goals want besides places. A pole acts where its chain has left those of all other goals."""
    turns, poles = [], []
    bones = len(body.parents)
    for e, goal in enumerate(problem.goals):
        if goal.rotation is not None:
            rotation = np.asarray(goal.rotation, dtype=np.float64)[index]
            turns.append(OrientationGoal(e, np.ascontiguousarray(rotation.transpose(1, 2, 0))))
        if goal.pole is not None:
            shared = {bone for other in range(len(problem.goals)) if other != e for bone in body.path(other)}
            branch = [bone for bone in body.path(e) if bone not in shared] or body.path(e)[-1:]
            pole = (np.asarray(goal.pole, dtype=np.float64)[index] - origin) / scale[:, None]
            angle = per_member(0.0 if goal.pole_angle is None else goal.pole_angle, len(problem.joints))[index]
            masses = masses_of(points[:, [*branch, bones + e]].transpose(2, 1, 0))
            poles.append(PoleGoal(e, tuple(branch), np.ascontiguousarray(pole.T), angle, masses))
    return tuple(turns), tuple(poles)


def per_member(value: Floats | float, members: int) -> Floats:
    """Return a setting of all members (B,), which may be the same for all."""
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (members,))
