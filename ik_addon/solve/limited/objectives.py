"""What a body should do, in numbers: bring effectors to places, turn bones to orientations, bend branches to poles.

An objective has a residual, a few numbers in chain lengths, whose squares make up the cost. Towards less cost it pulls
at points and turns bones; these pulls, summed up from the tips, are the slope of the cost, and with the stiffness of
the objectives its curvature. The rows of the Jacobian say how much the residual shrinks with the angles of each joint
of its path, in the units of `Pose.axes`.

Only places also come in arrays, see `numbers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import atan2, cos, inf, pi, sin, sqrt
from operator import add
from typing import NamedTuple

import numpy as np

from ..maths.numbers import Number
from ..maths.sweep import RESTING, Form, Six, add_place
from ..maths.turns import Quaternion, rotate
from ..maths.vectors import ZERO, Vector, cross, dot, minus, norm, over, plus, reject, times, unit
from ..problem import Floats, path_of
from .skeleton import Nine, Pose, Skeleton

TURN = 0.3
"""Weight of a radian of orientation, in chain lengths."""
SIDE = 0.3
"""Weight of the side on which a branch lies, relative to the distance to the target."""
CLEAR = 1e-9
"""A pole or a branch closer to its line than this, in chain lengths, shows no side."""

NONE: Nine = (0.0,) * 9
Rows = list[tuple[Vector, ...]]
"""For each joint of a path, the rows of an objective."""


class Pulls(NamedTuple):
    """What moves the bones of a body."""

    points: list[tuple[int, Vector, Vector]]
    """A bone, a point that it carries, and the force on that point."""
    torques: list[tuple[int, Vector]]
    """A bone, and the torque that turns it."""


def couplings_of(skeleton: Skeleton, pose: Pose, pulls: Pulls) -> list[Nine]:
    """Return how the forces on all that each joint carries change as joints above it turn.

    For a force f at a point p, seen from the joint's head, this is the matrix (p f) - p f', and for a torque half the
    matrix of its cross product: times an axis of the joint, the force against it per turn of a joint above.
    """
    sums: list[Nine | None] = [None] * len(skeleton.parents)
    for bone, (x, y, z), (u, v, w) in pulls.points:
        p, q, r = x * u, y * v, z * w
        new = u, v, w, q + r, -x * v, -x * w, -y * u, p + r, -y * w, -z * u, -z * v, p + q
        there = sums[bone]
        sums[bone] = new if there is None else tuple(map(add, there, new))
    for bone, (x, y, z) in pulls.torques:
        x, y, z = x / 2.0, y / 2.0, z / 2.0
        new, there = (0.0, 0.0, 0.0, 0.0, -z, y, z, 0.0, -x, -y, x, 0.0), sums[bone]
        sums[bone] = new if there is None else tuple(map(add, there, new))
    found: list[Nine] = [NONE] * len(sums)
    for i in range(len(sums) - 1, -1, -1):
        own, parent = sums[i], skeleton.parents[i]
        if own is None:
            continue
        (x, y, z), (u, v, w, a, b, c, d, e, f, g, h, k) = pose.points[i], own
        p, q, r = x * u, y * v, z * w
        found[i] = a - q - r, b + x * v, c + x * w, d + y * u, e - p - r, f + y * w, g + z * u, h + z * v, k - p - q
        if parent >= 0:
            if skeleton.free[i]:
                own = u, v, w, q + r, -x * v, -x * w, -y * u, p + r, -y * w, -z * u, -z * v, p + q
            there = sums[parent]
            sums[parent] = own if there is None else tuple(map(add, there, own))
    return found


def moments_of(skeleton: Skeleton, pose: Pose, pulls: Pulls) -> list[Vector]:
    """Return the moments of the forces on all that each joint carries about its head."""
    sums: list[Six] = [RESTING] * len(skeleton.parents)
    for bone, (x, y, z), (u, v, w) in pulls.points:
        a, b, c, d, e, f = sums[bone]
        sums[bone] = a + u, b + v, c + w, d + y * w - z * v, e + z * u - x * w, f + x * v - y * u
    for bone, (x, y, z) in pulls.torques:
        a, b, c, d, e, f = sums[bone]
        sums[bone] = a, b, c, d + x, e + y, f + z
    found: list[Vector] = [ZERO] * len(sums)
    for i in range(len(sums) - 1, -1, -1):
        (u, v, w, d, e, f), (x, y, z), parent = sums[i], pose.points[i], skeleton.parents[i]
        x, y, z = y * w - z * v, z * u - x * w, x * v - y * u
        found[i] = d - x, e - y, f - z
        if parent >= 0:
            if skeleton.free[i]:
                d, e, f = x, y, z
            a, b, c, x, y, z = sums[parent]
            sums[parent] = a + u, b + v, c + w, d + x, e + y, f + z
    return found


class Place(NamedTuple):
    """The objective that brings an effector to a position."""

    effector: int
    bone: int
    path: tuple[int, ...]
    carried: tuple[int, ...]
    """For each joint of the path, the bone whose head it moves in place of the effector, or -1: above a bone that does
    not inherit rotation a joint moves only that bone's head."""
    target: Vector
    factor: float
    size: int = 3

    @classmethod
    def of(cls, skeleton: Skeleton, effector: int, target: Vector, factor: float) -> Place:
        """Bring an effector to a target; `factor` weighs the distance."""
        bone = skeleton.segments[effector]
        path, carried, point = path_of(skeleton.parents, bone), [], -1
        for joint in reversed(path):
            carried.append(point)
            point = joint if skeleton.free[joint] else point
        return cls(effector, bone, path, tuple(carried[::-1]), target, factor)

    def residual(self, pose: Pose) -> Vector:
        """Return the weighted vector from the effector to its target."""
        left = minus(self.target, pose.ends[self.effector])
        return left if self.factor == 1.0 else times(left, self.factor)

    def rows(self, skeleton: Skeleton, pose: Pose) -> Rows:
        """Return the rows of the Jacobian, scaled by the joints' mobility."""
        found: Rows = []
        end, factor = pose.ends[self.effector], self.factor
        for joint, carried in zip(self.path, self.carried, strict=True):
            u, v, w = skeleton.joints[joint].scale
            a, b, c, d, e, f, g, h, i = pose.axes[joint]
            x, y, z = minus(end if carried < 0 else pose.points[carried], pose.points[joint])
            u, v, w = u * factor, v * factor, w * factor
            along_x = (d * z - g * y) * u, (e * z - h * y) * v, (f * z - i * y) * w
            along_y = (g * x - a * z) * u, (h * x - b * z) * v, (i * x - c * z) * w
            along_z = (a * y - d * x) * u, (b * y - e * x) * v, (c * y - f * x) * w
            found.append((along_x, along_y, along_z))
        return found

    def pull(self, pulls: Pulls, pose: Pose, residual: Sequence[Number]) -> None:
        """Add the force that reduces a residual."""
        x, y, z = residual
        pulls.points.append((self.bone, pose.ends[self.effector], times((x, y, z), self.factor)))

    def stiffen(self, form: Form, pose: Pose, _residual: Sequence[float]) -> None:
        """Add to its bone how the force changes as the effector moves."""
        add_place(form, pose.ends[self.effector], self.factor**2)


class Orientation(NamedTuple):
    """The objective that turns an effector's bone to an orientation."""

    bone: int
    path: tuple[int, ...]
    """The joints that turn the bone: those from the last one on that does not inherit rotation."""
    rotation: Nine
    factor: float
    size: int = 3

    @classmethod
    def of(cls, skeleton: Skeleton, effector: int, rotation: Nine, factor: float) -> Orientation:
        """Turn the bone of an effector; `factor` weighs radians."""
        bone = skeleton.segments[effector]
        path = path_of(skeleton.parents, bone)
        first = max((i for i, joint in enumerate(path) if skeleton.free[joint]), default=0)
        return cls(bone, path[first:], rotation, factor)

    def residual(self, pose: Pose) -> Vector:
        """Return the weighted rotation vector that remains."""
        a, b, c, d, e, f, g, h, i = self.rotation
        j, k, m, n, o, p, q, r, s = pose.frames[self.bone]
        xx, xy, xz = a * j + b * k + c * m, a * n + b * o + c * p, a * q + b * r + c * s
        yx, yy, yz = d * j + e * k + f * m, d * n + e * o + f * p, d * q + e * r + f * s
        zx, zy, zz = g * j + h * k + i * m, g * n + h * o + i * p, g * q + h * r + i * s
        skew = (zy - yz) / 2.0, (xz - zx) / 2.0, (yx - xy) / 2.0
        sine, cosine = norm(skew), (xx + yy + zz - 1.0) / 2.0
        if sine > 1e-6:
            return times(skew, self.factor * atan2(sine, cosine) / sine)
        if cosine > 0.0:
            return times(skew, self.factor)
        # Opposite orientations have no unique way between them: any column of the matrix gives an axis.
        best = (xx + 1.0, yx, zx) if xx >= max(yy, zz) else (xy, yy + 1.0, zy) if yy >= zz else (xz, yz, zz + 1.0)
        return times(unit(best), self.factor * pi)

    def rows(self, skeleton: Skeleton, pose: Pose) -> Rows:
        """Return the rows of the Jacobian, scaled by the joints' mobility."""
        found: Rows = []
        for joint in self.path:
            u, v, w = times(skeleton.joints[joint].scale, self.factor)
            a, b, c, d, e, f, g, h, i = pose.axes[joint]
            found.append(((a * u, b * v, c * w), (d * u, e * v, f * w), (g * u, h * v, i * w)))
        return found

    def pull(self, pulls: Pulls, _pose: Pose, residual: Sequence[float]) -> None:
        """Add the torque that reduces a residual."""
        x, y, z = residual
        pulls.torques.append((self.bone, times((x, y, z), self.factor)))

    def stiffen(self, form: Form, _pose: Pose, residual: Sequence[float]) -> None:
        """Add how the torque changes as the bone turns: less about other axes than that of the residual."""
        x, y, z = residual
        size = norm((x, y, z))
        half = size / self.factor / 2.0
        less = 1.0 if half < 1e-4 else half * cos(half) / sin(half)
        u, v, w = over((x, y, z), max(size, 1e-200))
        square = self.factor**2
        less, more = less * square, (1.0 - less) * square
        form[0] += less + more * u * u
        form[1] += more * u * v
        form[2] += more * u * w
        form[3] += less + more * v * v
        form[4] += more * v * w
        form[5] += less + more * w * w


class _Lying(NamedTuple):
    """Where a branch lies about its line, and how its base affects that."""

    round: Vector
    """The direction in which its centroid goes round its line."""
    lying: Vector
    """The direction from the line to the centroid."""
    angle: float
    """Radians from its side to the centroid."""
    off: float
    """The same as a length."""
    height: float
    """Where along the line the centroid is: as a fraction of the line's length."""
    sideways: Vector
    """How far the side turns away from the centroid, along the circle of that, while the base moves."""

    @property
    def along(self) -> Vector:
        """The direction in which `off` grows fastest."""
        return plus(self.round, times(self.lying, self.angle))


class Pole(NamedTuple):
    """The objective that bends a branch towards its pole: its centroid goes round the line from its base to its target.

    It acts on the centroid, so on every joint of the branch, as a force on each of their heads.
    """

    effector: int
    path: tuple[int, ...]
    first: int
    """Where the branch begins on the path of its effector: the joints before move its base, and so its line."""
    target: Vector
    pole: Vector
    half: tuple[float, float]
    """Cosine and sine of half the angle that is added to the side."""
    masses: Sequence[float]
    """Weight of each joint of the branch in the centroid of its curve, the effector's last."""
    factor: float
    size: int = 1

    def residual(self, pose: Pose) -> tuple[float]:
        """Return how far the centroid is off its side, along the circle about the line."""
        return (-self.factor * self._lying(pose).off,)

    def rows(self, skeleton: Skeleton, pose: Pose) -> Rows:
        """Return the row of the Jacobian as if the branch kept its distance from its line, scaled by mobility.

        The branch should go round its line, not come nearer to its side by coming nearer to the line.
        """
        lies = self._lying(pose)
        moments = moments_of(skeleton, pose, Pulls(self._weights(pose, lies, times(lies.round, self.factor)), []))
        found: Rows = []
        for joint in self.path:
            x, y, z = moments[joint]
            u, v, w = skeleton.joints[joint].scale
            a, b, c, d, e, f, g, h, i = pose.axes[joint]
            found.append((((a * x + d * y + g * z) * u, (b * x + e * y + h * z) * v, (c * x + f * y + i * z) * w),))
        return found

    def pull(self, pulls: Pulls, pose: Pose, residual: Sequence[float]) -> None:
        """Add the forces that reduce a residual."""
        lies = self._lying(pose)
        pulls.points.extend(self._weights(pose, lies, times(lies.along, self.factor * residual[0])))

    def ranks(self, pose: Pose, residual: Sequence[float]) -> list[tuple[float, Pulls]]:
        """Return the part of the curvature that is a sum of squares: factors, and the pulls that give their rows.

        What the centroid feels depends on all joints at once, so no form of a single bone tells it.
        """
        lies, square = self._lying(pose), self.factor**2
        found = [(square, Pulls(self._weights(pose, lies, lies.along), []))]
        if abs(lies.off) > CLEAR:
            rounding = square * residual[0] / -self.factor * lies.angle**2 / lies.off
            if rounding:
                found.append((rounding, Pulls(self._weights(pose, lies, lies.round), [])))
        return found

    def _weights(self, pose: Pose, lies: _Lying, along: Vector) -> list[tuple[int, Vector, Vector]]:
        """Return how much the centroid, as seen from the line, moves along a direction as points of the branch move.

        While its base moves, its line moves as well, and the side turns away from the centroid.
        """
        first, path = self.first, self.path
        points = [*(pose.points[bone] for bone in path[first + 1 :]), pose.ends[self.effector]]
        weights = zip(path[first:], points, self.masses[1:], strict=True)
        found = [(bone, point, times(along, mass)) for bone, point, mass in weights]
        if first:
            base = times(along, self.masses[0] + lies.height - 1.0)
            base = plus(base, times(lies.sideways, dot(along, lies.round)))
            found.append((path[first - 1], pose.points[path[first]], base))
        return found

    def _lying(self, pose: Pose) -> _Lying:
        """Return where a branch lies about its line; where the pole is on it, the branch is not off its side."""
        if self.effector in pose.known:
            known: _Lying = pose.known[self.effector]
            return known
        points = [*(pose.points[bone] for bone in self.path[self.first :]), pose.ends[self.effector]]
        root = points[0]
        to_target, towards = minus(self.target, root), minus(self.pole, root)
        line = unit(to_target)
        across = reject(towards, line)
        apart = norm(across)
        across = over(across, apart) if apart > CLEAR else (0.0, 0.0, 0.0)
        cosine, sine = self.half
        about: Quaternion = (cosine, line[0] * sine, line[1] * sine, line[2] * sine)
        side = rotate(about, across)
        x = y = z = 0.0
        for (u, v, w), mass in zip(points, self.masses, strict=True):
            x, y, z = x + u * mass, y + v * mass, z + w * mass
        centroid = minus((x, y, z), root)
        lying, angle = reject(centroid, line), 0.0
        size = norm(lying)
        if size > CLEAR:
            angle = atan2(dot(line, cross(side, lying)), dot(side, lying))
            lying = over(lying, size)
        else:
            lying = side
        height, sideways = 0.0, ZERO
        if self.first:
            reach = dot(line, to_target)
            reach = reach if reach > CLEAR else inf
            share = size / apart * (1.0 - dot(line, towards) / reach) if apart > CLEAR else 0.0
            height, sideways = dot(line, centroid) / reach, times(cross(line, across), share)
        found = _Lying(cross(line, lying), lying, angle, size * angle, height, sideways)
        pose.known[self.effector] = found
        return found


Objective = Place | Orientation | Pole


def masses_of(joints: Floats) -> Floats:
    """Return the weight (k, B) of each joint (3, k, B) of a branch in the centroid of its curve."""
    steps = joints[:, 1:] - joints[:, :-1]
    lengths = np.sqrt(steps[0] * steps[0] + steps[1] * steps[1] + steps[2] * steps[2])
    masses = np.zeros(joints.shape[1:])
    masses[:-1] += lengths / 2.0
    masses[1:] += lengths / 2.0
    return np.asarray(masses / np.maximum(np.cumsum(masses, axis=0)[-1:], 1e-200))


class System(NamedTuple):
    """A body and its objectives."""

    skeleton: Skeleton
    objectives: list[Objective]
    """Places first."""
    equations: list[tuple[int, ...]]
    """For each joint the numbers of the residual that it affects."""
    size: int
    """How many numbers the residual has."""

    @classmethod
    def of(cls, skeleton: Skeleton, objectives: list[Objective]) -> System:
        """Number the residuals of all objectives one after the other."""
        equations: list[tuple[int, ...]] = [()] * len(skeleton.parents)
        size = 0
        for objective in objectives:
            own = tuple(range(size, size + objective.size))
            for joint in objective.path:
                equations[joint] += own
            size += objective.size
        return cls(skeleton, objectives, equations, size)

    def rows(self, pose: Pose) -> Rows:
        """Return for each joint the rows of the Jacobian for its `equations`, scaled by mobility."""
        if len(self.objectives) == 1 and len(self.objectives[0].path) == len(self.equations):
            return self.objectives[0].rows(self.skeleton, pose)
        found: Rows = [()] * len(self.equations)
        for objective in self.objectives:
            for joint, rows in zip(objective.path, objective.rows(self.skeleton, pose), strict=True):
                found[joint] += rows
        return found

    def split(self, residual: list[float]) -> list[list[float]]:
        """Split the residual by objective."""
        found, first = [], 0
        for objective in self.objectives:
            found.append(residual[first : first + objective.size])
            first += objective.size
        return found

    def pulls(self, pose: Pose, residual: list[float]) -> Pulls:
        """Return the forces and torques that reduce a residual: what half the cost falls by, per motion of each."""
        found = Pulls([], [])
        for objective, own in zip(self.objectives, self.split(residual), strict=True):
            objective.pull(found, pose, own)
        return found

    @property
    def places(self) -> System:
        """The same without orientations and poles."""
        if self.only_places:
            return self
        return System.of(self.skeleton, [each for each in self.objectives if isinstance(each, Place)])

    @property
    def only_places(self) -> bool:
        """Whether there are no orientations and no poles."""
        return isinstance(self.objectives[-1], Place)

    def lighter(self, share: float) -> System:
        """Return the same with the squares of orientations and poles weighed by a share."""
        factor = sqrt(share)
        parts = [(each, 1.0 if isinstance(each, Place) else factor) for each in self.objectives]
        return self._replace(objectives=[each._replace(factor=each.factor * own) for each, own in parts])
