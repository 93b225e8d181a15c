"""What the effectors of a body are to do: each objective has a residual, and rows of its Jacobian.

A residual is a few numbers, in chain lengths. A row of the Jacobian says by how much one of them shrinks with the
angles of each joint, in the units of `body.axes_of`; there is none for joints that have no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .body import Body, Pose, speeds_of, whole_path
from .calculus import Calculus, Path, Row
from .tuples import Matrix, Number, Quaternion, Vector, cross, dot, minus, over, plus, reject, rotate, times

TURN = 0.3
"""What a radian of orientation counts, in chain lengths."""
SIDE = 0.3
"""What the side on which a branch lies counts against the distance to the target."""
_CLEAR = 1e-9
"""Nearer to its line than this, in chain lengths, a pole or a branch shows no side."""


@dataclass(frozen=True)
class Carried:
    """An effector and the joints that move it."""

    effector: int
    path: Path
    carriers: tuple[int, ...] | None
    """For each joint of the path the bone whose head it carries in place of the effector, or -1; None: all -1."""

    @classmethod
    def of(cls, body: Body, effector: int) -> Carried:
        """Read it from a body: above a bone that does not inherit rotation, its head is carried and nothing else."""
        bones = body.path(effector)
        carriers, point = [], -1
        for bone in reversed(bones):
            carriers.append(point)
            if body.free[bone]:
                point = bone
        some = tuple(carriers[::-1]) if any(carrier >= 0 for carrier in carriers) else None
        return cls(effector, whole_path(bones, len(body.parents)), some)

    def arms(self, do: Calculus, pose: Pose) -> Row:
        """Return the vectors from the joints of the path to what they carry."""
        heads, end = do.on(pose.points, self.path), pose.ends[self.effector]
        if self.carriers is None:
            return [minus(end, head) for head in heads]
        carried = [end if bone < 0 else do.of(pose.points, bone) for bone in self.carriers]
        return [minus(*pair) for pair in zip(do.together(carried), heads, strict=True)]


class Place(NamedTuple):
    """An effector is to be at a place."""

    plan: Carried
    target: Vector
    factor: float

    @property
    def path(self) -> Path:
        """The joints that have a part in it."""
        return self.plan.path

    def residual(self, do: Calculus, pose: Pose) -> Vector:
        """Return what is missing."""
        return times(minus(self.target, pose.ends[self.plan.effector]), self.factor)

    def rows(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the rows of the Jacobian for the joints of the path, three for each."""
        return self._moved(do, axes, self.plan.arms(do, pose))

    def exact(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the rows of the Jacobian, which are the same for every method."""
        return self.rows(do, pose, axes)

    def bends(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the rows whose products with those of a later joint are the curvature between the two.

        A joint turns what the joints after it do to the effector.
        """
        missing = minus(self.target, pose.ends[self.plan.effector])
        return self._moved(do, axes, [plus(arm, missing) for arm in self.plan.arms(do, pose)])

    def _moved(self, do: Calculus, axes: Row, arms: Row) -> Row:
        lots = [speeds_of(*pair) for pair in zip(do.on(axes, self.path), arms, strict=True)]
        return lots if self.factor == 1.0 else [_times(lot, self.factor) for lot in lots]


@dataclass(frozen=True)
class Ends:
    """The bone of an effector, and the joints that turn it."""

    effector: int
    bone: int
    path: Path


class Turn(NamedTuple):
    """An effector's bone is to have an orientation."""

    plan: Ends
    rotation: Matrix
    factor: Number

    @property
    def path(self) -> Path:
        """The joints that have a part in it."""
        return self.plan.path

    def residual(self, do: Calculus, pose: Pose) -> Vector:
        """Return the rotation vector that is missing."""
        one, other = self.rotation, do.of(pose.frames, self.plan.bone)
        (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = (tuple(dot(row, column) for column in other) for row in one)
        skew = (zy - yz) / 2.0, (xz - zx) / 2.0, (yx - xy) / 2.0
        sine, cosine = do.sqrt(dot(skew, skew)), (xx + yy + zz - 1.0) / 2.0
        (angle,) = do.each(np.arctan2, [sine], [cosine])
        clear = sine > 1e-6
        vector = times(skew, do.where(clear, angle / do.most(sine, 1e-6), 1.0))
        opposite = (cosine < 0.0) & (sine <= 1e-6)
        if do.any(opposite):
            # Opposite orientations have no one way between them: any column of the matrix shows an axis.
            columns = (xx + 1.0, yx, zx), (xy, yy + 1.0, zy), (xz, yz, zz + 1.0)
            best = _either(do, (yy > xx) & (yy >= zz), columns[1], columns[0])
            best = _either(do, (zz > xx) & (zz > yy), columns[2], best)
            size = do.most(do.sqrt(dot(best, best)), 1e-200)
            vector = _either(do, opposite, times(best, np.pi / size), vector)
        return times(vector, self.factor)

    def rows(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the rows of the Jacobian for the joints of the path, three for each."""
        return [_times(lot, self.factor) for lot in do.on(axes, self.path)]

    def exact(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the rows of the Jacobian, which are the same for every method."""
        return self.rows(do, pose, axes)

    def bends(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the rows whose products with those of a later joint are the curvature between the two.

        Half of what is missing is turned by a joint that comes before another; and about other axes than that of what
        is missing, the angle that is missing changes less than a joint turns.
        """
        x, y, z = self.residual(do, pose)
        size = do.sqrt(x * x + y * y + z * z)
        half = size / self.factor / 2.0
        sine, cosine = (do.each(each, [half])[0] for each in (np.sin, np.cos))
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


@dataclass(frozen=True)
class Branch:
    """A branch that is to lie on a side."""

    effector: int
    bones: tuple[int, ...]
    path: Path
    free: tuple[bool, ...]
    """Which of its bones do not inherit rotation."""

    @classmethod
    def of(cls, body: Body, effector: int, bones: tuple[int, ...]) -> Branch:
        """Read it from a body."""
        path = whole_path(bones, len(body.parents))
        return cls(effector, bones, path, tuple(body.free[bone] for bone in bones))


class Side(NamedTuple):
    """A branch is to lie on the side of a pole."""

    plan: Branch
    target: Vector
    pole: Vector
    half: tuple[Number, Number]
    """Cosine and sine of half the angle that is added to the side."""
    masses: tuple[Number, ...]
    factor: Number

    @property
    def path(self) -> Path:
        """The joints that have a part in it."""
        return self.plan.path

    def residual(self, do: Calculus, pose: Pose) -> tuple[Number]:
        """Return how far the centroid is off its side, along the circle about the line."""
        return (-self.factor * self._lying(do, pose)[3],)

    def rows(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the row of the Jacobian for the joints of the path, as if the branch kept its distance from its line.

        It is to go round, not to come nearer to its side by coming nearer to its line.
        """
        return self._moved(do, pose, axes, self._lying(do, pose)[0])

    def bends(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the row of the Jacobian: what its products leave out of the curvature is little."""
        round_, lying, angle, _ = self._lying(do, pose)
        return self._moved(do, pose, axes, plus(round_, times(lying, angle)))

    def exact(self, do: Calculus, pose: Pose, axes: Row) -> Row:
        """Return the row of the Jacobian as it is."""
        return self.bends(do, pose, axes)

    def _moved(self, do: Calculus, pose: Pose, axes: Row, way: Vector) -> Row:
        """Return by how much the centroid moves along a way."""
        rx, ry, rz = way
        round_ = rx * self.factor, ry * self.factor, rz * self.factor
        points = self._points(do, pose)
        mass: Number = 0.0
        moment: Vector = (0.0, 0.0, 0.0)
        arms = []
        # From the end: a joint turns all that comes after it, or the head of a bone that does not inherit rotation.
        for i in range(len(points) - 2, -1, -1):
            mass = mass + self.masses[i + 1]
            moment = plus(moment, times(points[i + 1], self.masses[i + 1]))
            arms.append(minus(moment, times(points[i], mass)))
            if self.plan.free[i]:
                moment = times(points[i], mass)
        found = []
        for axis, arm in zip(do.on(axes, self.path), do.together(arms[::-1]), strict=True):
            one, two, three = speeds_of(axis, arm)
            rows = times(one, round_[0]), times(two, round_[1]), times(three, round_[2])
            found.append((plus(plus(rows[0], rows[1]), rows[2]),))
        return found

    def _points(self, do: Calculus, pose: Pose) -> list[Vector]:
        return [*do.apart(do.on(pose.points, self.path)), pose.ends[self.plan.effector]]

    def _lying(self, do: Calculus, pose: Pose) -> tuple[Vector, Vector, Number, Number]:
        """Return where a branch lies.

        It is not off its side where the pole stands on the line and shows none.

        Returns:
            round: the way on which its centroid goes round its line.
            lying: where the centroid is, seen from the line.
            angle: radians from its side to there.
            off: as a length.
        """
        points = self._points(do, pose)
        base = points[0]
        line = _unit(do, minus(self.target, base))
        across = reject(minus(self.pole, base), line)
        size = do.sqrt(dot(across, across))
        across = over(across, do.where(size > _CLEAR, size, np.inf))
        cosine, sine = self.half
        about: Quaternion = (cosine, line[0] * sine, line[1] * sine, line[2] * sine)
        side = rotate(about, across)
        centroid: Vector = (0.0, 0.0, 0.0)
        for point, mass in zip(points, self.masses, strict=True):
            centroid = plus(centroid, times(minus(point, base), mass))
        lying = reject(centroid, line)
        size = do.sqrt(dot(lying, lying))
        clear = size > _CLEAR
        (angle,) = do.each(np.arctan2, [dot(line, cross(side, lying))], [dot(side, lying)])
        lying = _either(do, clear, over(lying, do.most(size, _CLEAR)), side)
        angle = do.where(clear, angle, 0.0)
        return cross(line, lying), lying, angle, size * angle


def _times(matrix: Matrix, factor: Number) -> Matrix:
    return times(matrix[0], factor), times(matrix[1], factor), times(matrix[2], factor)


def _unit(do: Calculus, a: Vector) -> Vector:
    return over(a, do.most(do.sqrt(dot(a, a)), 1e-200))


def _either(do: Calculus, chosen: Any, one: Vector, other: Vector) -> Vector:
    return do.where(chosen, one[0], other[0]), do.where(chosen, one[1], other[1]), do.where(chosen, one[2], other[2])
