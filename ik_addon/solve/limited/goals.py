"""Goals for the effectors of bodies, and bodies with their objectives in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import cos, sin, sqrt
from typing import NamedTuple

import numpy as np

from ..maths.sweep import Six
from ..maths.vectors import Number
from ..problem import Floats
from .body import Body
from .objectives import SIDE, TURN, Objective, Orientation, Place, Pole, Pulls, Rows
from .skeleton import Pose, Skeleton


@dataclass(frozen=True)
class OrientationGoal:
    """The orientation that an effector's bone should have."""

    effector: int
    rotation: Floats
    """(3, 3, B)"""


@dataclass(frozen=True)
class PoleGoal:
    """The pole that a branch should bend to, seen from the line between its base and its target."""

    effector: int
    bones: tuple[int, ...]
    """The branch from its base to the effector's bone."""
    pole: Floats
    """(3, B)"""
    angle: Floats
    """(B,) radians about the line, added to the direction of the pole."""
    masses: Floats
    """(k + 1, B) weight of each joint of the branch in the centroid of its curve, the effector's last."""


@dataclass(frozen=True)
class Goals:
    """Goals for E effectors of B bodies."""

    target: Floats
    """(3, E, B) positions that the effectors should reach."""
    weight: Floats
    """(E,) weights of their squared distances."""
    orientations: tuple[OrientationGoal, ...] = ()
    poles: tuple[PoleGoal, ...] = ()

    @cached_property
    def only_places(self) -> bool:
        """Whether there are no orientations and no poles."""
        return not (self.orientations or self.poles)

    def system(self, body: Body, member: int | None = None) -> System:
        """Return one of the bodies with its objectives; None: all of them in arrays, which have only places."""
        skeleton, chosen = body.skeleton(member), slice(None) if member is None else member
        targets = self.target[..., chosen]
        places: list[Place] = []
        for e, weight in enumerate(np.sqrt(self.weight).tolist()):
            x, y, z = targets[:, e].tolist() if member is not None else targets[:, e]
            places.append(Place.of(skeleton, e, (x, y, z), weight))
        if member is None:
            return System.of(skeleton, [*places])
        turns = [
            Orientation.of(skeleton, turn.effector, tuple(turn.rotation[..., member].ravel().tolist()), TURN)
            for turn in self.orientations
        ]
        poles = []
        for goal in self.poles:
            (x, y, z), half = goal.pole[:, member].tolist(), float(goal.angle[member]) / 2.0
            path = skeleton.path(skeleton.segments[goal.effector])
            first, target = path.index(goal.bones[0]), places[goal.effector].target
            masses = goal.masses[:, member].tolist()
            poles.append(Pole(goal.effector, path, first, target, (x, y, z), (cos(half), sin(half)), masses, SIDE))
        return System.of(skeleton, [*places, *turns, *poles])


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

    def residual(self, pose: Pose) -> list[Number]:
        """Return the residuals of all objectives, one after the other."""
        return [number for objective in self.objectives for number in objective.residual(pose)]

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

    def left(self, pose: Pose, residual: list[float], twists: Sequence[Six]) -> list[float]:
        """Return what remains of a residual after twists of the bones, to first order."""
        parts = zip(self.objectives, self.split(residual), strict=True)
        return [number for objective, own in parts for number in objective.left(pose, own, twists)]

    def distance(self, residual: list[float]) -> float:
        """Return the norm of the residuals of places."""
        places = sum(isinstance(objective, Place) for objective in self.objectives)
        return sqrt(sum(part * part for part in residual[: 3 * places]))

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
        return self._replace(
            objectives=[
                each if isinstance(each, Place) else each._replace(factor=each.factor * factor)
                for each in self.objectives
            ]
        )
