"""Members of a problem laid out for the search: bodies relative to their roots, in units of their longest chains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..maths.cones import Cone, cone_of
from ..maths.products import back_applied, back_times, times
from ..maths.rotations import norm, quaternions
from ..problem import Bools, Floats, Ints, Problem, path_of
from .skeleton import Body


@dataclass(frozen=True)
class Standing:
    """B members of a problem in FK, relative to the root, in units of the longest chain: everything but the goals."""

    body: Body
    turns: Floats
    """(4, n, B) rotations of the joints in the FK pose."""
    points: Floats
    """(B, n+E, 3) joint positions."""
    frames: Floats
    """(B, n, 3, 3)"""
    origin: Floats
    """(B, 3)"""
    scale: Floats
    """(B,)"""
    lengths: Floats
    """(B, E) lengths of the chains to the effectors, in the problem's unit."""
    limited: Bools
    """(n,) joints with a limit that are not locked altogether."""

    @classmethod
    def of(cls, problem: Problem, index: Ints) -> Standing:
        """Read the valid members `index` (k,) of a problem."""
        joints = np.asarray(problem.joints, dtype=np.float64)[index]
        frames = np.asarray(problem.frames, dtype=np.float64)[index]
        parents, free, segments = _shape_of(problem)
        lengths = lengths_of(problem, index).T
        scale = lengths.max(axis=1)
        origin = joints[:, 0]
        points = (joints - origin[:, None]) / scale[:, None, None]
        rest, cone, mobility, limited, locked = _joints_of(problem, index, parents, free)
        rest_frames = np.where(free[:, None, None], rest, times(frames[:, parents], rest))
        rest_frames[:, locked] = frames[:, locked]
        turns = quaternions(back_times(rest_frames, frames).transpose(2, 3, 1, 0))
        body = Body(
            tuple(parents.tolist()),
            tuple(free.tolist()),
            tuple(segments.tolist()),
            np.ascontiguousarray(rest.transpose(2, 3, 1, 0)),
            *_segments(points, frames, parents, segments, np.ones(frames.shape[:2])),
            cone,
            np.ascontiguousarray(mobility.T)[..., None],
        )
        return cls(body, turns, points, frames, origin, scale, lengths, limited)

    @cached_property
    def backs(self) -> Floats:
        """(B, n, 3, 3) the inverse frames."""
        return np.ascontiguousarray(self.frames.swapaxes(2, 3))

    @cached_property
    def path(self) -> list[int]:
        """Indices of the points of the chain to the first effector."""
        return [*self.body.path(0), len(self.body.parents)]

    @cached_property
    def steps(self) -> Floats:
        """(k, B) lengths of the segments of that chain."""
        points = self.points[:, self.path].transpose(2, 1, 0)
        return norm(points[:, 1:] - points[:, :-1])

    @cached_property
    def suits(self) -> bool:
        """Whether these are chains whose joints all have limits, and all turn the one effector, see `crowd`."""
        return self.body.is_serial and self.body.are_limited

    def lengthened(self, member: int, factors: Sequence[float]) -> Standing:
        """Return one member with its bones lengthened by factors (n,); its unit grows with the chain."""
        own, parents, segments = [member], np.array(self.body.parents), np.array(self.body.segments)
        stretch, steps = np.array([factors]), self.steps[:, member]
        grown = (steps * stretch[0, self.path[:-1]]).sum() / steps.sum()
        points, frames = self.points[own] / grown, self.frames[own]
        heads, ends = _segments(points, frames, parents, segments, stretch)
        return replace(
            self,
            body=replace(self.body, rest=self.body.rest[..., own], heads=heads, ends=ends),
            turns=self.turns[..., own],
            points=points,
            frames=frames,
            origin=self.origin[own],
            scale=self.scale[own] * grown,
            lengths=self.lengths[own],
        )


def _segments(points: Floats, frames: Floats, parents: Ints, segments: Ints, stretch: Floats) -> tuple[Floats, Floats]:
    """Return heads (3, n, B) and ends (3, E, B) as in `Body`, of bones lengthened by factors (B, n)."""
    bones = len(parents)
    offsets = points[:, :bones] - points[:, parents]
    heads = back_applied(frames[:, parents], offsets) * stretch[:, parents, None]
    heads[:, parents < 0] = points[:, :bones][:, parents < 0]
    ends = back_applied(frames[:, segments], points[:, bones:] - points[:, segments]) * stretch[:, segments, None]
    return np.ascontiguousarray(heads.transpose(2, 1, 0)), np.ascontiguousarray(ends.transpose(2, 1, 0))


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
    for e, segment in enumerate(segments.tolist()):
        points = [len(parents) + e, *path_of(parents.tolist(), segment)[::-1]]
        steps = (joints[:, points[1:]] - joints[:, points[:-1]]).transpose(2, 1, 0)
        lengths.append(np.cumsum(norm(steps), axis=0)[-1])
    return np.stack(lengths)


def _joints_of(problem: Problem, index: Ints, parents: Ints, free: Bools) -> tuple[Floats, Cone, Floats, Bools, Bools]:
    """Return the joints' rest frames (B, n, 3, 3), cones, mobility (n, 3), and which are limited and locked (n,).

    A joint without any limit is at rest in the FK pose, which is farthest from half a turn.
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
