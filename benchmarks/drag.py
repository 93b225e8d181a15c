"""Time one move of a target on a still frame: what a user waits for while dragging."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import product

import bpy
import numpy as np
from mathutils import Matrix

from ik_addon.solve.problem import Floats
from tests import rigs

from .blender_ik import BlenderRig
from .cases import Rig, bow, degrees, tree_hand
from .floor import writing_on_updates
from .timing import Case, Run, steps

MOVES = 100
LEAST = 5
"""Moves that are timed no matter how slow they are."""
JOINT = degrees((-60.0, 60.0), (-30.0, 30.0), (-60.0, 60.0))
"""Limits of all joints of the chains."""
NARROW = degrees((-12.5, 12.5), (0.0, 0.0), (-80.0, 80.0)), degrees((-80.0, 80.0), (0.0, 0.0), (-12.5, 12.5))
"""Limits that keep chains from many places: joints bend nearly like hinges, to alternate sides."""
POLE = (1.5, 0.5, 0.0)
"""Place of the pole, on the side to which the chains bend at rest."""
SIDE = (-1.0, 0.0, 0.0)
"""The side to which the chains bend at rest, in the axes of their root bones."""


@dataclass(frozen=True)
class Moves:
    """The places of a rig's targets, one move after another."""

    turns: Floats
    """(F, n, 4) joint rotations from rest that reach the targets, if they are within reach."""
    places: Floats
    """(F, E, 3)"""
    frames: Floats
    """(F, E, 3, 3) orientations."""


@dataclass(frozen=True)
class Drag:
    """A rig, its goals, and the places its targets are moved to."""

    bones: int | None
    """Number of bones of a chain with limits, of length 1; None: a hand on an arm, with five targets."""
    pole: bool = False
    rotation: bool = False
    """The tip takes the orientation of its target."""
    outside: bool = False
    """The targets are too far away."""
    blocked: bool = False
    """The targets are anywhere in reach of a chain without limits, and limits keep it from many of them."""
    side: bool = False
    """The chain keeps bending to the side to which it bends at rest."""

    def rig(self) -> Rig:
        """Return the skeleton."""
        if self.bones is None:
            return tree_hand()
        if self.blocked:
            return bow(self.bones, np.array([NARROW[i % 2] for i in range(self.bones)]))
        return bow(self.bones, JOINT)

    def moves(self, rig: Rig, number: int) -> Moves:
        """Return moves with all targets within reach, or all out of it; each run has different moves."""
        rng = np.random.default_rng((number, self.outside))
        turns = np.concatenate([rig.turns_inside(rng, 1, inside) for inside in rng.uniform(0.2, 0.97, MOVES)])
        joints, frames = rig.pose(turns)
        places, tips = joints[:, rig.bones :], np.arange(rig.bones)[list(rig.tips)]
        if self.blocked:
            ways = rng.normal(size=places.shape)
            places = ways / np.linalg.norm(ways, axis=2, keepdims=True) * rng.uniform(0.3, 1.0, (MOVES, 1, 1))
        if self.outside:
            away = places.mean(axis=1)
            size = np.linalg.norm(away, axis=1)
            places = places + (away / size[:, None] * rng.uniform(1.1, 1.5, (MOVES, 1)))[:, None] * _reach(rig)
        return Moves(turns, places, frames[:, tips])


def _reach(rig: Rig) -> float:
    """Return the length of the longest path from the root to a tip."""
    lengths = np.zeros(rig.bones)
    for i, parent in enumerate(rig.parents):
        lengths[i] = rig.lengths[i] + (lengths[parent] if parent >= 0 else 0.0)
    return float(lengths.max())


def dragged(drag: Drag, solver: str, number: int) -> Run:
    """Return the milliseconds of a move: setting the targets, and the update with everything it triggers.

    Args:
        drag: what is dragged.
        solver: "ours", "blender", or "floor" for a handler that writes a finished pose.
        number: of the run; each has other targets.
    """
    rig = drag.rig()
    built = BlenderRig(rig)
    if drag.pole:
        pole = rigs.empty("pole", POLE)
    for target, tip in zip(built.targets, rig.tips, strict=True):
        target.rotation_mode = "QUATERNION"
        bone = built.bones[tip]
        if solver != "blender":
            bone.constraints.remove(bone.constraints["IK"])
        if solver == "ours":
            rigs.chain(built.object, bone.name, target, 0, use_rotation=drag.rotation)
            if drag.pole:
                bone.ik_addon.pole = pole
            if drag.side:
                bone.ik_addon.bend_side = SIDE
        elif solver == "blender":
            constraint = bone.constraints["IK"]
            constraint.use_rotation = drag.rotation
            if drag.pole:  # at rest the pole lies along the root bone's X axis, as with a pole angle of 0
                constraint.pole_target = pole
    built.object.ik_addon.live = solver == "ours"
    layer = bpy.context.view_layer
    layer.update()

    moves = drag.moves(rig, number)

    def work() -> Iterator[partial[None]]:
        for place, turn in zip(moves.places, moves.frames, strict=True):
            worlds = [Matrix(m.tolist()).to_4x4() for m in turn]
            for world, point in zip(worlds, place.tolist(), strict=True):
                world.translation = point
            yield partial(_move, built.targets, worlds, layer)

    order = [built.bones.index(bone) for bone in built.object.pose.bones]
    poses = moves.turns[:, order].astype(np.float32)
    with writing_on_updates(built.object, poses) if solver == "floor" else nullcontext():
        return steps(work(), LEAST)


def _move(targets: list[bpy.types.Object], worlds: list[Matrix], layer: bpy.types.ViewLayer) -> None:
    for target, world in zip(targets, worlds, strict=True):
        target.matrix_basis = world
    layer.update()


def _cases() -> Iterator[tuple[str, Case]]:
    for bones, kind, outside in product((2, 3, 5, 10, 50), ("", "-pole", "-rotation"), (False, True)):
        drag = Drag(bones, pole=kind == "-pole", rotation=kind == "-rotation", outside=outside)
        yield f"drag-{bones}{kind}-{'out' if outside else 'in'}", _case(drag, _aim(drag))
    for bones in (3, 5, 10, 30):
        yield f"drag-{bones}-blocked", _case(Drag(bones, blocked=True), None)
    for outside in (False, True):
        yield f"drag-5-side-{'out' if outside else 'in'}", _case(Drag(5, outside=outside, side=True), None)
    yield "drag-hand-in", _case(Drag(None), 0.6)
    yield "drag-hand-out", _case(Drag(None, outside=True), 0.6)


def _aim(drag: Drag) -> float | None:
    """Return the ratio to aim for with a chain; None with an orientation goal."""
    if drag.rotation:
        return None
    if drag.bones == 2:
        return 8.0
    if drag.bones == 50:
        return 15.0
    return 10.0 + 5.0 * drag.pole + 5.0 * drag.outside


def _case(drag: Drag, aim: float | None) -> Case:
    ours, blender, floor = (partial(dragged, drag, solver) for solver in ("ours", "blender", "floor"))
    return Case("ms", ours, blender, after=floor, is_keyed=True, aim=aim, of_the_floor=None)


CASES = dict(_cases())
