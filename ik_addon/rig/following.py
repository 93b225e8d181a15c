"""An armature whose FK pose stands still, from frame to frame: where are its goals, and how do its joints turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from ..settings import chain_of
from ..solve.problem import Floats
from .channels import Row
from .plan import Plan
from .pose import Posed, posed_by
from .read import Sample, in_object_space
from .skeleton import matrix_array
from .steady import ROTATION, Steady


class Following:
    """What follows its goals without Blender having to evaluate the FK pose first.

    It is begun on a frame that was solved, and ends as soon as anything else than the goals' places changes.
    """

    def __init__(self, ob: bpy.types.Object, plan: Plan, steady: Steady, frame: Sample) -> None:
        """Begin after `frame` (F = 1) was solved and written."""
        self._plan, self._steady, self._frame = plan, steady, frame
        tips = [chain_of(ob.pose.bones[chain.tip]) for chain in plan.chains]
        targets = [tip.target for tip in tips]
        poles = [tip.pole for tip, chain in zip(tips, plan.chains, strict=True) if chain.has_pole]
        self._goals = [(goal.name, goal.session_uid) for goal in (*targets, *poles) if goal is not None]
        self._with_pole = [c for c, chain in enumerate(plan.chains) if chain.has_pole]
        self._values: Row = np.empty((len(ob.pose.bones), 4), dtype=np.float32)
        ob.pose.bones.foreach_get("rotation_quaternion", self._values.ravel())
        self._written = self._values.tobytes()
        self._first = ob.pose.bones[int(plan.live[0])].name
        self._seen: tuple[Matrix, list[float]] | None = None

    def step(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, written: Row) -> bool:
        """Pose the armature for a new frame; False if that is not possible, and nothing was done.

        Args:
            ob: the armature object, which nothing animates.
            depsgraph: evaluated at the frame.
            written: (k, 17) what the channels of `Plan.live` hold by now; brought up to date.
        """
        # Bones that were changed tag the armature, relations that were changed the scene.
        if depsgraph.id_type_updated("ARMATURE") or depsgraph.id_type_updated("SCENE"):
            return False
        bones = ob.pose.bones
        present = np.empty_like(self._values)
        bones.foreach_get("rotation_quaternion", present.ravel())
        if present.tobytes() != self._written:
            return False
        objects = bpy.data.objects
        points: list[float] = []
        for name, uid in self._goals:
            goal: Any = objects.get(name)
            if goal is None or goal.session_uid != uid:
                return False
            points.extend(goal.evaluated_get(depsgraph).matrix_world.translation)
        world = ob.evaluated_get(depsgraph).matrix_world
        if self._seen is not None and self._seen[1] == points and self._seen[0] == world:
            return True
        frame = self._sample(matrix_array(world), points)
        found = self._steady.find(frame.goals)
        if not self._steady.put(found, written):
            return False
        self._frame, self._found = frame, found
        self._values[self._plan.live] = written[:, ROTATION]
        self._written = self._values.tobytes()
        self._seen = world.copy(), points
        bones.foreach_set("rotation_quaternion", self._values.ravel())
        # Bulk assignments tell nobody, see `channels.write`.
        first = bones[self._first]
        first.rotation_quaternion = first.rotation_quaternion
        return True

    def _sample(self, world: Floats, points: list[float]) -> Sample:
        """The frame with the goals at these points of world space: all targets, then the poles there are."""
        places = in_object_space(world, np.array(points).reshape(-1, 3))
        count = len(self._plan.chains)
        pole = np.zeros((count, 3))
        pole[self._with_pole] = places[count:]
        goals = replace(self._frame.goals, target=places[None, :count], pole=pole[None])
        return replace(self._frame, world=world[None], goals=goals)

    def posed(self, ob: bpy.types.Object) -> tuple[Sample, Posed]:
        """The last frame and its solution, for who asks what became of it."""
        frame = self._frame
        rows = frame.channels.copy()
        rows[0, :, ROTATION] = self._values[self._plan.live]
        outcomes = self._steady.outcomes(frame.goals, self._found)
        return frame, Posed(
            rows, outcomes, {}, lambda chosen: posed_by(ob, self._plan, frame.frames(chosen), rows[chosen])
        )
