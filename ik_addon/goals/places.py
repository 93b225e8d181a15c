"""Where targets and poles belong for the poses of a limb, on many frames at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..pose.skeleton import orthonormal
from ..setup.new_chain import BEYOND
from ..setup.present import straight
from ..solve import pole_angle
from ..solve.maths.products import applied
from ..solve.maths.rotations import cross, dot, norm, reject
from ..solve.maths.rotations import unit as unit_of
from ..solve.problem import Floats

NEAR = 0.1
"""A pole nearer to the limb's line than this, in chain lengths, is moved away from it."""
SHOWS = (0.2, 0.4)
"""A hinge of which less than the first part is across its limb shows no side of it; from the second on it decides."""


@dataclass(frozen=True)
class Limbs:
    """The bones of one chain on F frames, root first, in the armature's object space."""

    joints: Floats
    """(F, n+1, 3) heads, and the tip's tail last, or the head of the end bone."""
    frames: Floats
    """(F, n, 3, 3) orthonormal."""

    @classmethod
    def of(cls, poses: Floats, last: Floats) -> Limbs:
        """The limb of n bones with these pose matrices (F, n, 4, 4), which ends at places (F, 3)."""
        return cls(np.concatenate([poses[:, :, :3, 3], last[:, None]], axis=1), orthonormal(poses[..., :3, :3]))

    @property
    def length(self) -> Floats:
        """(F,) of all segments."""
        return np.asarray(np.linalg.norm(np.diff(self.joints, axis=1), axis=2).sum(axis=1))

    @property
    def line(self) -> Floats:
        """(F, 3) from root to tip."""
        return np.asarray(self.joints[:, -1] - self.joints[:, 0])


def targets(limbs: Limbs) -> Floats:
    """Where (F, 3) a target makes the tip stay."""
    # Rounding that put the target nearer would bend a straight limb.
    size = np.maximum(np.linalg.norm(limbs.line, axis=1), 1e-300)
    beyond = np.where(straight(limbs.joints), BEYOND * limbs.length / size, 0.0)
    return np.asarray(limbs.joints[:, -1] + beyond[:, None] * limbs.line)


def distances(limbs: Limbs, poles: Floats) -> Floats:
    """How far (F,) poles (F, 3) are from the line from root to tip."""
    across = reject((poles - limbs.joints[:, 0]).T, _line(limbs))
    return np.asarray(norm(across))


def poles(
    limbs: Limbs,
    bend_side: Floats,
    angles: Floats,
    distance: float,
    hinges: Floats | None = None,
    *,
    folds: bool = False,
) -> Floats:
    """Where (F, 3) poles make a limb bend as it does.

    Args:
        limbs: in the poses that are to stay.
        bend_side: (3,) of their chain.
        angles: (F,) pole angles of their chain, in radians.
        distance: from the line from root to tip.
        hinges: (F, 3) axes about which the limb should bend instead, where they are clearly across it.
        folds: whether not all joints of the chain bend to its side.
    """
    line = _line(limbs)
    side = unit_of(cross(line, np.eye(3)[np.abs(line).argmin(axis=0)].T))
    middle = (limbs.joints[:, 0] + 0.5 * limbs.line).T
    points = limbs.joints[:, -1], (middle + side).T
    needed = pole_angle(limbs.joints, limbs.frames, *points, _own(limbs, bend_side), folds=folds)
    bend = _rolled(side, line, needed)
    if hinges is not None:
        across = cross(hinges.T, line)
        share = norm(across) / np.maximum(norm(hinges.T), 1e-300)
        share = np.clip((share - SHOWS[0]) / (SHOWS[1] - SHOWS[0]), 0.0, 1.0)
        turn = np.arctan2(dot(cross(bend, across), line), dot(bend, across))
        bend = _rolled(bend, line, share * turn)
    return np.asarray((middle + distance * _rolled(bend, line, -angles)).T)


def hinges_of(limbs: Limbs, bend_side: Floats) -> Floats:
    """The axes (F, 3) of the root bone about which its chain bends to its side (3,), however the limb bends."""
    first = limbs.joints[:, 1] - limbs.joints[:, 0]
    return np.asarray(cross(first.T, _own(limbs, bend_side).T).T)


def _own(limbs: Limbs, bend_side: Floats) -> Floats:
    """The bend side (3,) of a chain on F frames (F, 3)."""
    return applied(limbs.frames[:, 0], np.broadcast_to(bend_side, (len(limbs.frames), 3)))


def _line(limbs: Limbs) -> Floats:
    """Unit vectors (3, F) from root to tip; along the root bone where these are in one place."""
    size = np.linalg.norm(limbs.line, axis=1)[:, None]
    return np.asarray(np.where(size > 0.0, limbs.line / np.maximum(size, 1e-300), limbs.frames[:, 0, :, 1]).T)


def _rolled(side: Floats, line: Floats, angles: Floats) -> Floats:
    """Vectors (3, F) across lines (3, F), turned about them by angles (F,)."""
    return side * np.cos(angles) + cross(line, side) * np.sin(angles)
