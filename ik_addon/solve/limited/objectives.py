"""Objectives for the effectors of a body: each has a residual, and rows of its Jacobian. Poles are in `pole`.

A residual is a few numbers, in chain lengths. A row of the Jacobian says how much one of them shrinks with the angles
of each joint, in the units of `body.axes_of`; joints that do not affect it have no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..maths.calculus import Calculus, Path, Row, runs_of, whole_path
from ..maths.kernel_rotations import either
from ..maths.vectors import Matrix, Number, Vector, dot, minus, plus, scaled, times
from .body import Body, Pose, jacobian_of

TURN = 0.3
"""Weight of a radian of orientation, in chain lengths."""


@dataclass(frozen=True)
class Carried:
    """An effector and the joints that move it."""

    effector: int
    path: Path
    carried_heads: tuple[int, ...] | None
    """For each joint of the path, the bone whose head it moves in place of the effector, or -1; None: all -1."""
    runs: tuple[range, ...]
    """See `runs_of`."""

    @classmethod
    def of(cls, body: Body, effector: int) -> Carried:
        """Read it from a body; above a bone that does not inherit rotation, a joint moves only that head."""
        bones = body.path(effector)
        carried_heads, point = [], -1
        for bone in reversed(bones):
            carried_heads.append(point)
            if body.free[bone]:
                point = bone
        some = tuple(carried_heads[::-1]) if any(bone >= 0 for bone in carried_heads) else None
        return cls(effector, whole_path(bones, len(body.parents)), some, runs_of(body.free, bones))

    def lever_arms(self, do: Calculus, pose: Pose) -> Row:
        """Return the vectors from the joints of the path to the points that they move."""
        heads, end = do.on(pose.points, self.path), pose.ends[self.effector]
        if self.carried_heads is None:
            return [minus(end, head) for head in heads]
        carried = [end if bone < 0 else do.of(pose.points, bone) for bone in self.carried_heads]
        return [minus(*pair) for pair in zip(do.together(carried), heads, strict=True)]


class Place(NamedTuple):
    """The objective that brings an effector to a position."""

    plan: Carried
    target: Vector
    factor: float

    @property
    def path(self) -> Path:
        """The joints that affect it."""
        return self.plan.path

    @property
    def runs(self) -> tuple[range, ...]:
        """The runs of joints that turn those after them, see `runs_of`."""
        return self.plan.runs

    def residual(self, do: Calculus, pose: Pose) -> Vector:
        """Return the residual."""
        return times(minus(self.target, pose.ends[self.plan.effector]), self.factor)

    def rows(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the rows of the Jacobian for the joints of the path, three for each."""
        return self._moved(do, axes, self.plan.lever_arms(do, pose))

    def exact(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the rows of the Jacobian, which are already exact."""
        return self.rows(do, pose, axes)

    def along(self, _do: Calculus, _pose: Pose) -> None:
        """Return None: all of the exact rows counts, not just one direction."""

    def straight(self, do: Calculus, pose: Pose, axes: Row, _residual: Sequence[Number]) -> Row:
        """Return the rows of `bends` as they would be if no joint turned those after it."""
        return self.rows(do, pose, axes)

    def bends(self, do: Calculus, pose: Pose, axes: Row, residual: Sequence[Number]) -> Row:
        """Return the rows whose products with those of a later joint are the curvature between the two.

        A joint turns the effect that the joints after it have on the effector.
        """
        x, y, z = residual
        error = times((x, y, z), 1.0 / self.factor)
        return self._moved(do, axes, [plus(lever_arm, error) for lever_arm in self.plan.lever_arms(do, pose)])

    def _moved(self, do: Calculus, axes: Row, lever_arms: Row) -> Row:
        lots = [jacobian_of(*pair) for pair in zip(do.on(axes, self.path), lever_arms, strict=True)]
        return lots if self.factor == 1.0 else [scaled(lot, self.factor) for lot in lots]


@dataclass(frozen=True)
class Ends:
    """The bone of an effector, and the joints that turn it."""

    effector: int
    bone: int
    path: Path


class Orientation(NamedTuple):
    """The objective that turns an effector's bone to an orientation."""

    plan: Ends
    rotation: Matrix
    factor: Number

    @property
    def path(self) -> Path:
        """The joints that affect it."""
        return self.plan.path

    @property
    def runs(self) -> tuple[range, ...]:
        """The runs of joints that turn those after them: all of the path is one run."""
        return ()

    def residual(self, do: Calculus, pose: Pose) -> Vector:
        """Return the rotation vector that remains."""
        one, other = self.rotation, do.of(pose.frames, self.plan.bone)
        (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = (tuple(dot(row, column) for column in other) for row in one)
        skew = (zy - yz) / 2.0, (xz - zx) / 2.0, (yx - xy) / 2.0
        sine, cosine = do.sqrt(dot(skew, skew)), (xx + yy + zz - 1.0) / 2.0
        angle = do.arctan2(sine, cosine)
        clear = sine > 1e-6
        vector = times(skew, do.where(clear, angle / do.most(sine, 1e-6), 1.0))
        opposite = (cosine < 0.0) & (sine <= 1e-6)
        if do.any(opposite):
            # Opposite orientations have no unique way between them: any column of the matrix gives an axis.
            columns = (xx + 1.0, yx, zx), (xy, yy + 1.0, zy), (xz, yz, zz + 1.0)
            best = either(do, (yy > xx) & (yy >= zz), columns[1], columns[0])
            best = either(do, (zz > xx) & (zz > yy), columns[2], best)
            size = do.most(do.sqrt(dot(best, best)), 1e-200)
            vector = either(do, opposite, times(best, np.pi / size), vector)
        return times(vector, self.factor)

    def rows(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the rows of the Jacobian for the joints of the path, three for each."""
        return [scaled(lot, self.factor) for lot in do.on(axes, self.path)]

    def exact(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the rows of the Jacobian, which are already exact."""
        return self.rows(do, pose, axes)

    def along(self, _do: Calculus, _pose: Pose) -> None:
        """Return None: all of the exact rows counts, not just one direction."""

    def bends(self, do: Calculus, _pose: Pose, axes: Row, residual: Sequence[Number]) -> Row:
        """Return the rows whose products with those of a later joint are the curvature between the two.

        An earlier joint turns half of the residual along; and about other axes than that of the residual, the residual
        angle changes less than a joint turns.
        """
        x, y, z = residual
        size = do.sqrt(x * x + y * y + z * z)
        half = size / self.factor / 2.0
        sine, cosine = do.sin(half), do.cos(half)
        small = half < 1e-4
        less = do.where(small, 1.0, half * cosine / do.where(small, 1.0, sine))
        u, v, w = (part / do.most(size, 1e-200) for part in (x, y, z))
        more, x, y, z = (1.0 - less) * self.factor, x / 2.0, y / 2.0, z / 2.0
        less = less * self.factor
        found = []
        for one, two, three in do.on(axes, self.path):
            rows = []
            for a, b, c in zip(one, two, three, strict=True):
                along = more * (u * a + v * b + w * c)
                rows.append(
                    (
                        less * a + along * u - (y * c - z * b),
                        less * b + along * v - (z * a - x * c),
                        less * c + along * w - (x * b - y * a),
                    )
                )
            found.append(tuple(zip(*rows, strict=True)))
        return found
