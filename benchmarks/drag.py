"""One move of a target on a still frame: what a user who drags it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import bpy
import numpy as np
from mathutils import Matrix

from ik_addon.solve.problem import Floats
from tests import rigs

from .blender_ik import BlenderRig
from .cases import Rig, bow, degrees, tree_hand
from .timing import Case, Run, median_step, steps

MOVES = 100
LEAST = 5
"""Moves that are timed however slow they are."""
JOINT = degrees((-60.0, 60.0), (-30.0, 30.0), (-60.0, 60.0))
"""Limits of all joints of the chains."""
POLE = (1.5, 0.5, 0.0)
"""To the side to which the chains bend at rest."""


@dataclass(frozen=True)
class Drag:
    """A rig, its goals, and where its targets are moved to."""

    bones: int | None
    """Of a chain with limits, of length 1; None: a hand on an arm, with five targets."""
    pole: bool = False
    rotation: bool = False
    """The tip takes the orientation of its target."""
    outside: bool = False
    """The targets are too far away."""

    def rig(self) -> Rig:
        """Return the skeleton."""
        return tree_hand() if self.bones is None else bow(self.bones, JOINT)

    def targets(self, rig: Rig, number: int) -> tuple[Floats, Floats]:
        """Return places (F, E, 3) and orientations (F, E, 3, 3) of the targets, all within reach or all out of it."""
        rng = np.random.default_rng((number, self.outside))
        turns = np.concatenate([rig.turns_inside(rng, 1, inside) for inside in rng.uniform(0.2, 0.97, MOVES)])
        joints, frames = rig.pose(turns)
        places, tips = joints[:, rig.bones :], np.arange(rig.bones)[list(rig.tips)]
        if self.outside:
            away = places.mean(axis=1)
            size = np.linalg.norm(away, axis=1)
            places = places + (away / size[:, None] * rng.uniform(1.1, 1.5, (MOVES, 1)))[:, None] * _reach(rig)
        return places, frames[:, tips]


def _reach(rig: Rig) -> float:
    """The length of the longest way from the root to a tip."""
    lengths = np.zeros(rig.bones)
    for i, parent in enumerate(rig.parents):
        lengths[i] = rig.lengths[i] + (lengths[parent] if parent >= 0 else 0.0)
    return float(lengths.max())


def dragged(drag: Drag, solver: str, number: int) -> Run:
    """Return the milliseconds of a move: setting the targets, and the update with everything that it does.

    Args:
        drag: what is dragged.
        solver: "ours" or "blender".
        number: other targets for each run.
    """
    rig = drag.rig()
    built = BlenderRig(rig)
    if drag.pole:
        pole = rigs.empty("pole", POLE)
    for target, tip in zip(built.targets, rig.tips, strict=True):
        target.rotation_mode = "QUATERNION"
        bone = built.bones[tip]
        if solver == "ours":
            bone.constraints.remove(bone.constraints["IK"])
            rigs.chain(built.object, bone.name, target, 0, use_rotation=drag.rotation)
            if drag.pole:
                bone.ik_addon.pole = pole
        else:
            constraint = bone.constraints["IK"]
            constraint.use_rotation = drag.rotation
            if drag.pole:  # at rest it stands where the X axis of the root bone points, as Blender has it
                constraint.pole_target = pole
    built.object.ik_addon.live = solver == "ours"
    layer = bpy.context.view_layer
    layer.update()

    def moves() -> Iterator[partial[None]]:
        places, turns = drag.targets(rig, number)
        for place, turn in zip(places, turns, strict=True):
            worlds = [Matrix(m.tolist()).to_4x4() for m in turn]
            for world, point in zip(worlds, place.tolist(), strict=True):
                world.translation = point
            yield partial(_move, built.targets, worlds, layer)

    return median_step(steps(moves(), LEAST))


def _move(targets: list[bpy.types.Object], worlds: list[Matrix], layer: bpy.types.ViewLayer) -> None:
    for target, world in zip(targets, worlds, strict=True):
        target.matrix_basis = world
    layer.update()


def _cases() -> Iterator[tuple[str, Case]]:
    for bones, kind, outside in (
        (bones, kind, outside)
        for bones in (2, 3, 5, 10, 50)
        for kind in ("", "-pole", "-rotation")
        for outside in (False, True)
    ):
        aims = {"": (10.0, 15.0), "-pole": (15.0, 20.0)}
        aim = 6.0 if bones == 2 else 15.0 if bones == 50 else aims.get(kind, (None, None))[outside]
        if kind == "-rotation":
            aim = None
        drag = Drag(bones, pole=kind == "-pole", rotation=kind == "-rotation", outside=outside)
        yield f"drag-{bones}{kind}-{'out' if outside else 'in'}", _case(drag, aim)
    yield "drag-hand-in", _case(Drag(None), 0.6)
    yield "drag-hand-out", _case(Drag(None, outside=True), 0.6)


def _case(drag: Drag, aim: float | None) -> Case:
    return Case("ms", partial(dragged, drag, "ours"), partial(dragged, drag, "blender"), aim=aim)


CASES = dict(_cases())
