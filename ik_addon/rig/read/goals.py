"""Targets and poles that go nowhere but where their own F-curves take them: where they are, and where they will be."""

from __future__ import annotations

from collections.abc import Sequence

import bpy
import numpy as np

from ...solve.problem import Floats, Ints
from ..plan.reference import Reference
from . import fcurves

MANY = 3
"""From so many goals on, the matrices of all objects are read at once."""
CROWD = 30
"""Unless there are so many times as many objects as goals."""


class FreeGoals:
    """Objects that chains follow."""

    def __init__(self, goals: Sequence[bpy.types.Object]) -> None:
        """Take G objects."""
        self._known = [Reference.of(goal) for goal in goals]
        self._rows: dict[tuple[int, int], Ints | None] = {}

    def places(self, depsgraph: bpy.types.Depsgraph) -> Floats | None:
        """Where they stand (G, 3) in world space at the present frame; None if one is gone."""
        if len(self._known) >= MANY:
            objects = depsgraph.objects
            count = len(objects)
            # The order of evaluated objects changes only with their relations, which tags the scene.
            key = depsgraph.as_pointer(), count
            if key not in self._rows:
                self._rows[key] = self._rows_in(depsgraph)
            rows = self._rows[key]
            if rows is not None:
                matrices = np.empty((count, 16), dtype=np.float32)
                objects.foreach_get("matrix_world", matrices.ravel())
                return matrices[rows, 12:15].astype(np.float64)
        found = self._objects()
        if found is None:
            return None
        points = [goal.evaluated_get(depsgraph).matrix_world.translation[:] for goal in found]
        return np.array(points, dtype=np.float64)

    def at(self, frames: Sequence[float]) -> Floats | None:
        """Where they will stand (F, G, 3) on other frames, as far as their F-curves tell; None if these do not."""
        found = self._objects()
        if found is None:
            return None
        motion = fcurves.Motion(frames)
        places = np.empty((len(frames), len(found), 3), dtype=np.float32)
        try:
            for g, goal in enumerate(found):
                places[:, g] = motion.place(goal)
        except fcurves.Untold:
            return None
        return places.astype(np.float64)

    def _objects(self) -> list[bpy.types.Object] | None:
        found = [goal for reference in self._known if (goal := reference.find()) is not None]
        return found if len(found) == len(self._known) else None

    def _rows_in(self, depsgraph: bpy.types.Depsgraph) -> Ints | None:
        """Their places (G,) among the objects of a depsgraph; None: it is better to look them up by name."""
        uids = [ob.original.session_uid for ob in depsgraph.objects]
        wanted = [reference.uid for reference in self._known]
        if len(uids) > CROWD * len(wanted) or not set(wanted) <= set(uids):
            return None
        return np.array([uids.index(uid) for uid in wanted], dtype=np.int64)
