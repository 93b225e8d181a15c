"""Frames of an armature whose FK pose is static and whose goals are moved by nothing but their own F-curves.

This is the common case of a rig posed by its targets: a frame depends only on where the goals are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ...data.settings import chain_of
from ...pose.channels import Row
from ...solve.problem import Floats
from ..plan.inputs import MATRIX, Numbers, is_edited
from ..plan.plan import Plan
from ..plan.presence import Reference
from . import fcurves
from .sample import Goals, Sample, in_object_space


class Still:
    """A source of frames for armatures where nothing but goals moves; see `live.playback.Source`."""

    poses_early = True

    def __init__(self, ob: bpy.types.Object, plan: Plan, frame: Sample) -> None:
        """Begin with a frame (F = 1) of an armature object that nothing animates.

        Args:
            ob: the armature object.
            plan: its plan, without chains that take their target's orientation.
            frame: the FK pose.
        """
        self._plan, self._frame = plan, frame
        tips = [chain_of(ob.pose.bones[chain.tip]) for chain in plan.chains]
        self._with_pole = [c for c, chain in enumerate(plan.chains) if chain.has_pole]
        goals = [*(tip.target for tip in tips), *(tips[c].pole for c in self._with_pole)]
        self._goals = FreeGoals([goal for goal in goals if goal is not None])
        self._world: Matrix | None = None
        self._turned = np.empty(0, dtype=np.float32)
        self._own = np.full((1, 4, 4), np.nan)
        """World matrix of the armature object in the last sample; below, its bytes in single precision."""
        self._own_single = b""

    def read(
        self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, written: Row, fk: Row | None, *, in_step: bool
    ) -> tuple[Numbers, Row] | None:
        """As in `Source`; the numbers are the world matrix of the armature object and the locations of the goals."""
        places = None if is_edited(depsgraph) else self._goals.places(depsgraph)
        if places is None:
            return None
        world = ob.evaluated_get(depsgraph).matrix_world
        if self._world != world:
            self._world = world.copy()
            self._turned = np.array(world, dtype=np.float32).ravel()
        return np.concatenate([self._turned, places.ravel()])[None], written

    def numbers_at(self, frames: Sequence[float]) -> Numbers | None:
        """As in `Source`."""
        places = self._goals.at(frames)
        if places is None:
            return None
        world = np.broadcast_to(self._turned, (len(frames), MATRIX))
        return np.concatenate([world, places.reshape(len(frames), -1)], axis=1)

    def sample(self, numbers: Numbers) -> Sample:
        """As in `Source`."""
        count, chains, still = len(numbers), len(self._plan.chains), self._frame
        world = self._world_of(numbers[0, :MATRIX])
        places = in_object_space(world[0], numbers[:, MATRIX:].reshape(count, -1, 3).astype(np.float64))
        pole = _repeated(still.goals.pole, count)
        if self._with_pole:
            pole = pole.copy()
            pole[:, self._with_pole] = places[:, chains:]
        return Sample(
            world=_repeated(world, count),
            channels=_repeated(still.channels, count),
            basis=_repeated(still.basis, count),
            poses=_repeated(still.poses, count),
            carried=_repeated(still.carried, count),
            goals=Goals(
                places[:, :chains], _repeated(still.goals.rotation, count), pole, _repeated(still.goals.settings, count)
            ),
        )

    def _world_of(self, turned: Numbers) -> Floats:
        """Return the world matrix (1, 4, 4) from its values (16,), as the same array while these stay the same."""
        single = turned.tobytes()
        if self._own_single != single:
            self._own_single, self._own = single, turned.reshape(1, 4, 4).astype(np.float64)
        return self._own

    def fk(self, _numbers: Numbers) -> Row:
        """As in `Source`."""
        return self._frame.channels[0]


def _repeated(values: NDArray[Any], frames: int) -> NDArray[Any]:
    """Return a read-only view of values (1, ...) as (F, ...)."""
    return values if frames == 1 else np.broadcast_to(values, (frames, *values.shape[1:]))


class FreeGoals:
    """The goals of an armature's chains: objects that nothing but their own F-curves moves."""

    def __init__(self, goals: Sequence[bpy.types.Object]) -> None:
        """Refer to G objects."""
        self._known = [Reference.of(goal) for goal in goals]

    def places(self, depsgraph: bpy.types.Depsgraph) -> Numbers | None:
        """Return world locations (G, 3) on the current frame; None if an object is gone."""
        found = self._objects()
        if found is None:
            return None
        points = [goal.evaluated_get(depsgraph).matrix_world.translation[:] for goal in found]
        return np.array(points, dtype=np.float32)

    def at(self, frames: Sequence[float]) -> Numbers | None:
        """Return world locations (F, G, 3) on other frames; None if F-curves alone do not determine them."""
        found = self._objects()
        if found is None:
            return None
        places = np.empty((len(frames), len(found), 3), dtype=np.float32)
        try:
            for g, goal in enumerate(found):
                places[:, g] = fcurves.place(goal, frames)
        except fcurves.NotDetermined:
            return None
        return places

    def _objects(self) -> list[bpy.types.Object] | None:
        found = [goal for reference in self._known if (goal := reference.find()) is not None]
        return found if len(found) == len(self._known) else None
