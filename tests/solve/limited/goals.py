"""Goals of bodies in arrays, to lay out systems of objectives by hand."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, sin

import numpy as np

from ik_addon.solve.limited.objectives import SIDE, TURN, Orientation, Place, Pole, System
from ik_addon.solve.limited.skeleton import Body
from ik_addon.solve.problem import Floats


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
