"""Goals for the effectors of bodies, and bodies with their objectives laid out for a kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..maths.calculus import Path, Row, whole_path
from ..maths.kernels import ONE, is_everyone
from ..maths.vectors import Number, Vector, dot, minus, times
from ..problem import Bools, Floats, Ints
from .body import Body, Pose, Skeleton
from .objectives import TURN, Carried, Ends, Orientation, Place
from .pole import SIDE, Branch, Pole


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
    share: Floats | None = None
    """(B,) weight of squared orientations and poles, relative to places; None: 1."""

    def members(self, chosen: Bools | Ints) -> Goals:
        """Return the goals of only the chosen members, each as often as its index occurs."""
        if is_everyone(chosen, self.target.shape[-1]):
            return self
        return replace(
            self,
            target=self.target[..., chosen],
            orientations=tuple(replace(goal, rotation=goal.rotation[..., chosen]) for goal in self.orientations),
            poles=tuple(
                replace(pole, pole=pole.pole[:, chosen], angle=pole.angle[chosen], masses=pole.masses[:, chosen])
                for pole in self.poles
            ),
            share=None if self.share is None else self.share[chosen],
        )

    def places(self) -> Goals:
        """Return the goals without orientations and poles."""
        return replace(self, orientations=(), poles=())

    @property
    def only_places(self) -> bool:
        """Whether there are no orientations and no poles."""
        return not (self.orientations or self.poles)

    def objectives(self, body: Body, member: int | None) -> list[Any]:
        """Return the objectives of all members, or of one."""

        def of(values: Floats) -> Any:
            return values if member is None else values[..., member].tolist()

        share = 1.0 if self.share is None else of(np.sqrt(self.share))
        found: list[Any] = []
        for e, weight in enumerate(np.sqrt(self.weight).tolist()):
            found.append(Place(Carried.of(body, e), of(self.target[:, e]), weight))
        for turn in self.orientations:
            bones = body.path(turn.effector)
            first = max((i for i, bone in enumerate(bones) if body.free[bone]), default=0)
            path = whole_path(bones[first:], len(body.parents))
            found.append(Orientation(Ends(turn.effector, bones[-1], path), of(turn.rotation), TURN * share))
        for pole in self.poles:
            branch = Branch.of(body, pole.effector, pole.bones)
            half = of(np.stack([np.cos(pole.angle / 2.0), np.sin(pole.angle / 2.0)]))
            masses = of(pole.masses)
            target = of(self.target[:, pole.effector])
            found.append(Pole(branch, target, of(pole.pole), tuple(half), tuple(masses), SIDE * share))
        return found


def masses_of(joints: Floats) -> Floats:
    """Return the weight (k, B) of each joint (3, k, B) of a branch in the centroid of its curve."""
    steps = joints[:, 1:] - joints[:, :-1]
    lengths = np.sqrt(steps[0] * steps[0] + steps[1] * steps[1] + steps[2] * steps[2])
    masses = np.zeros(joints.shape[1:])
    masses[:-1] += lengths / 2.0
    masses[1:] += lengths / 2.0
    return np.asarray(masses / np.maximum(np.cumsum(masses, axis=0)[-1:], 1e-200))


class Curve(NamedTuple):
    """A term of the cost's curvature: for two joints of a path, a product of rows of the earlier and the later one."""

    path: Path
    bends: Row
    """The rows of the earlier joint."""
    factors: Row
    """The rows of the later joint."""


class System(NamedTuple):
    """Bodies and their objectives, laid out for a kernel."""

    skeleton: Skeleton
    objectives: list[Any]

    @classmethod
    def of(cls, body: Body, goals: Goals, member: int | None = None) -> System:
        """Lay out all members, or one."""
        return cls(body.skeleton(member), goals.objectives(body, member))

    def members(self, chosen: Any) -> System:
        """Return only the chosen members."""
        return System(self.skeleton.members(chosen), self.skeleton.do.members(self.objectives, chosen))

    def residual(self, pose: Pose) -> list[Number]:
        """Return the residuals of all objectives, one after the other."""
        do = self.skeleton.do
        return [number for objective in self.objectives for number in objective.residual(do, pose)]

    def jacobian(self, pose: Pose, axes: Row) -> list[Row]:
        """Return the blocks of the Jacobian: for each objective its rows, at the joints of its path."""
        return [objective.rows(self.skeleton.do, pose, axes) for objective in self.objectives]

    def split(self, residual: list[Number]) -> list[list[Number]]:
        """Split the residual by objective."""
        found, first = [], 0
        for objective in self.objectives:
            last = first + (1 if isinstance(objective, Pole) else 3)
            found.append(residual[first:last])
            first = last
        return found

    def pulls(self, pose: Pose, residual: list[Number]) -> list[Vector]:
        """For each objective, return the vector that, times its exact rows, is minus the gradient of half the cost."""
        ways = [objective.along(self.skeleton.do, pose) for objective in self.objectives]
        return [
            (own[0], own[1], own[2]) if way is None else times(way, own[0])
            for way, own in zip(ways, self.split(residual), strict=True)
        ]

    def after(self, pose: Pose, residual: list[Number], blocks: list[Row], move: Row) -> list[Number]:
        """Return the residuals after a step, if the exact Jacobian stayed the same along the way."""
        do = self.skeleton.do
        found: list[Number] = []
        for objective, own, block in zip(self.objectives, self.split(residual), blocks, strict=True):
            parts = [
                [row[0] * x + row[1] * z + row[2] * twist for row in lot]
                for lot, (x, z, twist) in zip(block, do.on(move, objective.path), strict=True)
            ]
            moved, way = do.totals(parts), objective.along(do, pose)
            found += minus(own, moved) if way is None else [own[0] - dot(way, (moved[0], moved[1], moved[2]))]
        return found

    def exact_jacobian(self, pose: Pose, axes: Row) -> list[Row]:
        """Return the blocks of the Jacobian without the changes that make a descent choose another way."""
        return [objective.exact(self.skeleton.do, pose, axes) for objective in self.objectives]

    def curves(self, pose: Pose, axes: Row, jacobian: list[Row], residual: list[Number]) -> list[Curve]:
        """Return the terms whose sum is the curvature of the cost."""
        do, found = self.skeleton.do, []
        for objective, block, own in zip(self.objectives, jacobian, self.split(residual), strict=True):
            bends = objective.bends(do, pose, axes, own)
            if not objective.runs:
                found.append(Curve(objective.path, bends, block))
                continue
            straight = objective.straight(do, pose, axes, own)
            found.append(Curve(objective.path, straight, block))
            path = objective.path or range(len(self.skeleton.parents))
            turned = [tuple(map(minus, *pair)) for pair in zip(bends, straight, strict=True)]
            for run in objective.runs:
                joints = tuple(path[i] for i in run)
                found.append(Curve(joints, do.on(turned, tuple(run)), do.on(block, tuple(run))))
        return found

    def distance(self, residual: list[Number]) -> Number:
        """Return the norm of the residuals of places."""
        places = sum(isinstance(objective, Place) for objective in self.objectives)
        return self.skeleton.do.sqrt(sum(part * part for part in residual[: 3 * places]))

    @property
    def only_places(self) -> bool:
        """Whether there are no orientations and no poles."""
        return all(isinstance(objective, Place) for objective in self.objectives)

    @property
    def is_chain_to_place(self) -> bool:
        """Whether this is one chain without branches whose end has nothing but a place to reach."""
        skeleton = self.skeleton
        if skeleton.do is not ONE or len(self.objectives) != 1 or any(skeleton.free[1:]):
            return False
        (only,), bones = self.objectives, len(skeleton.parents)
        is_serial = skeleton.parents == tuple(range(-1, bones - 1)) and skeleton.segments == (bones - 1,)
        return is_serial and isinstance(only, Place) and only.factor == 1.0

    def paths(self) -> list[Path]:
        """Return the joints that affect each objective."""
        return [objective.path for objective in self.objectives]
