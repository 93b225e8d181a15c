"""The objective that bends a branch of a body towards its pole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..maths.calculus import Calculus, Path, Row, runs_of, whole_path
from ..maths.kernel_rotations import either, unit_of
from ..maths.vectors import Number, Quaternion, Vector, cross, dot, minus, over, plus, reject, rotate, scaled, times
from .body import Body, Pose, jacobian_of

SIDE = 0.3
"""Weight of the side on which a branch lies, relative to the distance to the target."""
_CLEAR = 1e-9
"""A pole or a branch closer to its line than this, in chain lengths, shows no side."""


@dataclass(frozen=True)
class Branch:
    """A branch that should bend towards a pole, and the joints that move it."""

    effector: int
    first: int
    """Where the branch begins on the path of its effector: the joints before move its base, and so its line."""
    path: Path
    free: tuple[bool, ...]
    """Which bones of the path do not inherit rotation."""
    runs: tuple[range, ...]
    """See `runs_of`."""

    @classmethod
    def of(cls, body: Body, effector: int, bones: tuple[int, ...]) -> Branch:
        """Read the branch from a body."""
        path = body.path(effector)
        free = tuple(body.free[bone] for bone in path)
        return cls(effector, path.index(bones[0]), whole_path(path, len(body.parents)), free, runs_of(body.free, path))


class _Lying(NamedTuple):
    """Where a branch lies about its line, and how its base affects that."""

    round: Vector
    """The direction in which its centroid goes round its line."""
    lying: Vector
    """The direction from the line to the centroid."""
    angle: Number
    """Radians from its side to the centroid."""
    off: Number
    """The same as a length."""
    height: Number
    """Where along the line the centroid is: as a fraction of the line's length."""
    sideways: Vector
    """How far the side turns away from the centroid, along the circle of that, while the base moves."""

    @property
    def along(self) -> Vector:
        """The direction in which `off` grows fastest."""
        return plus(self.round, times(self.lying, self.angle))


class Pole(NamedTuple):
    """The objective that bends a branch towards its pole."""

    plan: Branch
    target: Vector
    pole: Vector
    half: tuple[Number, Number]
    """Cosine and sine of half the angle that is added to the side."""
    masses: tuple[Number, ...]
    factor: Number

    @property
    def path(self) -> Path:
        """The joints that affect it."""
        return self.plan.path

    @property
    def runs(self) -> tuple[range, ...]:
        """The runs of joints that turn those after them, see `runs_of`."""
        return self.plan.runs

    def residual(self, do: Calculus, pose: Pose) -> tuple[Number]:
        """Return how far the centroid is off its side, along the circle about the line."""
        return (-self.factor * self._lying(do, pose).off,)

    def rows(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the row of the Jacobian for the joints of the path, as if the branch kept its distance from its line.

        The branch should go round its line, not come nearer to its side by coming nearer to the line.
        """
        lies = self._lying(do, pose)
        rx, ry, rz = times(lies.round, self.factor)
        found = []
        for one, two, three in self._moves(do, pose, axes):
            found.append((plus(plus(times(one, rx), times(two, ry)), times(three, rz)),))
        return found

    def straight(self, do: Calculus, pose: Pose, axes: Row, residual: Sequence[Number]) -> Row:
        """Return the rows of `bends` as they would be if no joint turned those after it."""
        return self._bent(do, pose, axes, residual[0] / -self.factor, turns=False)

    def bends(self, do: Calculus, pose: Pose, axes: Row, residual: Sequence[Number]) -> Row:
        """Return the rows whose products with those of a later joint are the curvature between the two.

        That of the line itself, which joints above the branch move, is left out: such steps are a little less exact.
        """
        return self._bent(do, pose, axes, residual[0] / -self.factor, turns=True)

    def _bent(self, do: Calculus, pose: Pose, axes: Row, kept: Number, *, turns: bool) -> Row:
        lies = self._lying(do, pose)
        along = lies.along
        clear = abs(lies.off) > _CLEAR
        square = do.where(clear, kept * lies.angle * lies.angle / do.where(clear, lies.off, 1.0), 0.0)
        found = []
        for axis, moved in zip(do.on(axes, self.path), self._moves(do, pose, axes), strict=True):
            columns = []
            for move, turn in zip(zip(*moved, strict=True), zip(*axis, strict=True), strict=True):
                there = plus(times(along, dot(along, move)), times(lies.round, square * dot(lies.round, move)))
                if turns:
                    there = plus(there, times(cross(along, turn), kept))
                columns.append(times(there, self.factor))
            found.append(tuple(zip(*columns, strict=True)))
        return found

    def exact(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return how the centroid moves as seen from the line, three rows for each joint."""
        return [scaled(lot, self.factor) for lot in self._moves(do, pose, axes)]

    def along(self, do: Calculus, pose: Pose) -> Vector:
        """Return the direction in which the exact rows count: the one that the residual measures."""
        return self._lying(do, pose).along

    def _moves(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return how each joint moves the centroid as seen from the line, found once for the same axes."""
        key = "moves", self.plan.effector
        known = pose.found.get(key)
        if known is None or known[0] is not axes:
            known = pose.found[key] = axes, self._found_moves(do, pose, axes)
        moves: Row = known[1]
        return moves

    def _found_moves(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return how each joint moves the centroid as seen from the line.

        A joint above the branch also moves its base: as much as that turns the line and the side away from the
        centroid, the centroid goes the other way.
        """
        heads, first, lies = do.apart(do.on(pose.points, self.path)), self.plan.first, self._lying(do, pose)
        mass: Number = 0.0
        moment: Vector = (0.0, 0.0, 0.0)
        lever_arms = []
        point = pose.ends[self.plan.effector]
        # From the end: a joint turns everything after it, or only the head of a bone that does not inherit rotation.
        for i in range(len(heads) - 1, first - 1, -1):
            mass = mass + self.masses[i + 1 - first]
            moment = plus(moment, times(point, self.masses[i + 1 - first]))
            point = heads[i]
            lever_arms.append(minus(moment, times(point, mass)))
            if self.plan.free[i]:
                moment = times(point, mass)
        bases = []
        curve = (0.0 * point[0],) * 3 if self.plan.free[first] else lever_arms[-1]
        for i in range(first - 1, -1, -1):
            bases.append(minus(point, heads[i]))
            lever_arms.append(plus(curve, times(bases[-1], lies.height)))
            if self.plan.free[i]:
                point, curve = heads[i], (0.0 * point[0],) * 3
        on_path = do.on(axes, self.path)
        found = [jacobian_of(*pair) for pair in zip(on_path, do.together(lever_arms[::-1]), strict=True)]
        return found if first == 0 else self._seen(do, on_path, found, bases, lies)

    def _seen(self, do: Calculus, axes: Row, moves: Row, bases: list[Vector], lies: _Lying) -> Row:
        """Add to the moves of joints above the branch how the direction to the pole turns about the line."""
        still = times(bases[0], 0.0)
        lever_arms = do.together(bases[::-1] + [still] * (len(self.plan.free) - len(bases)))
        found = []
        for move, pair in zip(moves, zip(axes, lever_arms, strict=True), strict=True):
            one, two, three = jacobian_of(*pair)
            x, y, z = lies.sideways
            turned = plus(plus(times(one, x), times(two, y)), times(three, z))
            found.append(tuple(plus(row, times(turned, part)) for row, part in zip(move, lies.round, strict=True)))
        return found

    def _lying(self, do: Calculus, pose: Pose) -> _Lying:
        """Return where a branch lies about its line, found once."""
        key = "lying", self.plan.effector
        if key not in pose.found:
            pose.found[key] = self._found_lying(do, pose)
        lying: _Lying = pose.found[key]
        return lying

    def _found_lying(self, do: Calculus, pose: Pose) -> _Lying:
        """Return where a branch lies about its line.

        Where the pole is on the line and shows no side, the branch is not off its side.
        """
        heads = do.apart(do.on(pose.points, self.path))
        points = [*heads[self.plan.first :], pose.ends[self.plan.effector]]
        root = points[0]
        to_target = minus(self.target, root)
        line = unit_of(do, to_target)
        towards = minus(self.pole, root)
        across = reject(towards, line)
        apart = do.sqrt(dot(across, across))
        apart = do.where(apart > _CLEAR, apart, np.inf)
        across = over(across, apart)
        cosine, sine = self.half
        about: Quaternion = (cosine, line[0] * sine, line[1] * sine, line[2] * sine)
        side = rotate(about, across)
        centroid: Vector = (0.0, 0.0, 0.0)
        for point, mass in zip(points, self.masses, strict=True):
            centroid = plus(centroid, times(minus(point, root), mass))
        lying = reject(centroid, line)
        size = do.sqrt(dot(lying, lying))
        clear = size > _CLEAR
        angle = do.arctan2(dot(line, cross(side, lying)), dot(side, lying))
        lying = either(do, clear, over(lying, do.most(size, _CLEAR)), side)
        angle = do.where(clear, angle, 0.0)
        found = cross(line, lying), lying, angle, size * angle
        if self.plan.first == 0:
            return _Lying(*found, 0.0, (0.0, 0.0, 0.0))
        reach = dot(line, to_target)
        reach = do.where(reach > _CLEAR, reach, np.inf)
        share = size / apart * (1.0 - dot(line, towards) / reach)
        return _Lying(*found, dot(line, centroid) / reach, times(cross(line, across), share))
