"""What the effectors of a body are to do, and how what is missing changes with the joint angles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .articulated import Body, Pose, axes_of
from .problem import Bools, Floats, Ints
from .products import times_back
from .rotations import about, cross, dot, norm, reject, rotate, unit

_TURN = 0.3
"""What a radian of orientation counts, in chain lengths."""
_SIDE = 0.3
"""What the side on which a branch lies counts against the distance to the target."""


@dataclass(frozen=True)
class Turn:
    """An effector's bone is to have an orientation."""

    effector: int
    rotation: Floats
    """(B, 3, 3)"""


@dataclass(frozen=True)
class Bend:
    """A branch is to lie on the side of a pole, seen from the line between its base and its target."""

    effector: int
    bones: tuple[int, ...]
    """The branch from its base to the effector's bone."""
    pole: Floats
    """(B, 3)"""
    angle: Floats
    """(B,) radians about the line, added to the side of the pole."""
    masses: Floats
    """(B, k + 1) share of each joint of the branch in its centroid as a curve, the effector's last."""


@dataclass(frozen=True)
class Aims:
    """What E effectors of B bodies are to do."""

    target: Floats
    """(B, E, 3) where they are to be."""
    weight: Floats
    """(E,) what their distances count."""
    turns: tuple[Turn, ...] = ()
    bends: tuple[Bend, ...] = ()
    share: Floats | None = None
    """(B,) what orientations and poles count beside places; None: as much as they do."""

    def members(self, chosen: Bools | Ints) -> Aims:
        """Return the aims of the chosen members alone, or each as often as it is named."""
        return replace(
            self,
            target=self.target[chosen],
            turns=tuple(replace(turn, rotation=turn.rotation[chosen]) for turn in self.turns),
            bends=tuple(
                replace(bend, pole=bend.pole[chosen], angle=bend.angle[chosen], masses=bend.masses[chosen])
                for bend in self.bends
            ),
            share=None if self.share is None else self.share[chosen],
        )

    def places(self) -> Aims:
        """Return the aims without orientations and poles."""
        return replace(self, turns=(), bends=())

    def missing(self, body: Body, pose: Pose) -> Floats:
        """Return what is missing (B, m): offsets to the targets, then rotation vectors, then sides; weighted."""
        ends = pose.points[len(body.parents) :].transpose(1, 0, 2)
        parts = [((self.target - ends) * np.sqrt(self.weight)[:, None]).reshape(len(ends), -1)]
        parts += [
            _TURN * _rotation_vector(times_back(turn.rotation, pose.frames[body.segments[turn.effector]]))
            for turn in self.turns
        ]
        for bend in self.bends:
            _, off = self._side(body, pose, bend)
            parts.append(-_SIDE * off[:, None])
        if self.share is not None:
            parts[1:] = [np.sqrt(self.share)[:, None] * part for part in parts[1:]]
        return np.concatenate(parts, axis=1)

    def jacobian(self, body: Body, pose: Pose, angles: Floats) -> Floats:
        """Return how what is missing shrinks (B, m, 3 n) with the joint angles, in the units of `axes_of`."""
        bones, members = len(body.parents), len(angles)
        axes = axes_of(pose, angles)
        rows = np.zeros((3 * len(self.target[0]) + 3 * len(self.turns) + len(self.bends), members, bones, 3))
        for e, root in enumerate(np.sqrt(self.weight)):
            path = body.path(e)
            arms = _points_carried(body, path, bones + e, pose) - pose.points[path]
            for k in range(3):
                moved = _crossed(axes[path], arms[:, :, None], k)
                rows[3 * e + k][:, path] = root * moved.swapaxes(0, 1)
        row = 3 * len(self.target[0])
        for turn in self.turns:
            path = _turning(body, body.path(turn.effector))
            rows[row : row + 3, :, path] = _TURN * axes[path].transpose(3, 1, 0, 2)
            row += 3
        for bend in self.bends:
            round_, _ = self._side(body, pose, bend)
            path = list(bend.bones)
            arms = np.zeros((len(path), members, 3))
            for j, point in enumerate([*path, bones + bend.effector]):
                if j:
                    carried = _points_carried(body, path[:j], point, pose) - pose.points[path[:j]]
                    arms[:j] += carried * bend.masses[:, j, None]
            moved = sum(_crossed(axes[path], arms[:, :, None], k) * round_[k][:, None] for k in range(3))
            rows[row][:, path] = _SIDE * np.asarray(moved).swapaxes(0, 1)
            row += 1
        if self.share is not None:
            rows[3 * len(self.target[0]) :] *= np.sqrt(self.share)[:, None, None]
        return np.ascontiguousarray(rows.transpose(1, 0, 2, 3)).reshape(members, -1, 3 * bones)

    def _side(self, body: Body, pose: Pose, bend: Bend) -> tuple[Floats, Floats]:
        """Return the way (3, B) on which a branch's centroid goes round its line, and how far (B,) it is off its side.

        It is not off where the pole stands on the line and shows no side.
        """
        joints = pose.points[[*bend.bones, len(body.parents) + bend.effector]].transpose(2, 0, 1)
        base = joints[:, 0]
        line = unit(self.target[:, bend.effector].T - base)
        across = reject(bend.pole.T - base, line)
        side = rotate(about(line, bend.angle), unit(np.where(norm(across) > 1e-9, across, 0.0)))
        centroid = np.cumsum((joints - base[:, None]) * bend.masses.T, axis=1)[:, -1]
        lying = reject(centroid, line)
        size = norm(lying)
        clear = size > 1e-9
        angle = np.arctan2(dot(line, cross(side, lying)), dot(side, lying))
        return cross(line, np.where(clear, unit(lying), side)), np.where(clear, size * angle, 0.0)


def masses_of(joints: Floats) -> Floats:
    """Return the share (B, k) of each joint (B, k, 3) of a branch in its centroid as a curve."""
    lengths = norm((joints[:, 1:] - joints[:, :-1]).transpose(2, 0, 1))
    masses = np.zeros(joints.shape[:2])
    masses[:, :-1] += lengths / 2.0
    masses[:, 1:] += lengths / 2.0
    return np.asarray(masses / np.maximum(np.cumsum(masses, axis=1)[:, -1:], 1e-200))


def _points_carried(body: Body, path: list[int], point: int, pose: Pose) -> Floats:
    """Return the points (k, B, 3) that turn with the joints of a path and carry the point at its end along.

    It is the point itself, or the head of a bone that does not inherit rotation on the way.
    """
    carried = []
    for i in range(len(path) - 1, -1, -1):
        carried.append(point)
        if body.free[path[i]]:
            point = path[i]
    return pose.points[carried[::-1]]


def _turning(body: Body, path: list[int]) -> list[int]:
    """Return the end of a path whose joints turn its last bone."""
    first = max((i for i, bone in enumerate(path) if body.free[bone]), default=0)
    return path[first:]


def _crossed(a: Floats, b: Floats, k: int) -> Floats:
    """Return component k of the cross products of vectors (..., 3)."""
    i, j = (k + 1) % 3, (k + 2) % 3
    return np.asarray(a[..., i] * b[..., j] - a[..., j] * b[..., i])


def _rotation_vector(turn: Floats) -> Floats:
    """Return the rotation vectors (B, 3) of matrices (B, 3, 3)."""
    skew = np.stack(
        [turn[:, 2, 1] - turn[:, 1, 2], turn[:, 0, 2] - turn[:, 2, 0], turn[:, 1, 0] - turn[:, 0, 1]], axis=-1
    )
    sine = np.sqrt(skew[:, 0] ** 2 + skew[:, 1] ** 2 + skew[:, 2] ** 2) / 2.0
    cosine = (turn[:, 0, 0] + turn[:, 1, 1] + turn[:, 2, 2] - 1.0) / 2.0
    angle = np.arctan2(sine, cosine)
    # Opposite orientations have no one way between them: any column of the matrix shows an axis.
    middle = turn + np.eye(3)
    best = np.argmax(turn[:, [0, 1, 2], [0, 1, 2]], axis=1)
    axis = middle[np.arange(len(turn)), :, best]
    size = np.sqrt(axis[:, 0] ** 2 + axis[:, 1] ** 2 + axis[:, 2] ** 2)
    axis = axis / np.maximum(size, 1e-200)[:, None]
    clear = sine > 1e-6
    straight = np.where(cosine[:, None] > 0.0, skew / 2.0, axis * np.pi)
    return np.where(clear[:, None], skew / 2.0 * (angle / np.where(clear, sine, 1.0))[:, None], straight)
