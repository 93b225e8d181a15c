"""An armature whose FK pose stands still, from frame to frame: where are its goals, and how do its joints turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from ..settings import chain_of
from ..solve.problem import Floats, Ints
from ..solve.tabulated import Found, FoundFew
from .channels import Row
from .plan import Plan
from .pose import Posed, posed_by
from .read import Sample, in_object_space
from .skeleton import inverse_of_one, matrix_array
from .steady import ROTATION, Steady

MANY = 3
"""From so many goals on, the matrices of all objects are read at once."""
CROWD = 30
"""Unless there are so many times as many objects as goals."""


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
        self._goals = _Goals([goal for goal in (*targets, *poles) if goal is not None])
        self._with_pole = [c for c, chain in enumerate(plan.chains) if chain.has_pole]
        self._values: Row = np.empty((len(ob.pose.bones), 4), dtype=np.float32)
        ob.pose.bones.foreach_get("rotation_quaternion", self._values.ravel())
        self._present = np.empty_like(self._values)
        self._written = self._values.tobytes()
        self._seen: tuple[Matrix, bytes] | None = None
        self._few = steady.few()
        self._softness = frame.goals.softness[0].tolist()
        self._world: Matrix | None = None
        self._spaces: list[list[list[float]]] = []
        self._places: Floats = np.empty((0, 3))
        self._found: Callable[[], Sequence[Found]] = list

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
        bones.foreach_get("rotation_quaternion", self._present.ravel())
        places = self._goals.places(depsgraph) if self._present.tobytes() == self._written else None
        if places is None:
            return False
        world, goals = ob.evaluated_get(depsgraph).matrix_world, places.tobytes()
        if self._seen is not None and self._seen[1] == goals and self._seen[0] == world:
            return True
        if not (self._look_up_few(world, places, written) if self._few else self._look_up(world, places, written)):
            return False
        self._seen, self._places = (world.copy(), goals), places
        self._values[self._plan.live] = written[:, ROTATION]
        self._written = self._values.tobytes()
        bones.foreach_set("rotation_quaternion", self._values.ravel())
        ob.update_tag(refresh={"DATA"})
        return True

    def _look_up(self, world: Matrix, places: Floats, written: Row) -> bool:
        found = self._steady.find(self._sample(matrix_array(world), places).goals)
        if not self._steady.put(found, written):
            return False
        self._found = lambda: found
        return True

    def _look_up_few(self, world: Matrix, places: Floats, written: Row) -> bool:
        if self._world != world:
            self._world = world.copy()
            to_object = inverse_of_one(matrix_array(world))
            self._spaces = [(few.to_space @ to_object).reshape(-1, 12).tolist() for few in self._few]
        points = places.tolist()
        found: list[FoundFew] = []
        for few, spaces in zip(self._few, self._spaces, strict=True):
            own = []
            for chain, (xx, xy, xz, x, yx, yy, yz, y, zx, zy, zz, z) in zip(few.chains, spaces, strict=True):
                a, b, c = points[chain]
                own.append(
                    (
                        xx * a + xy * b + xz * c + x,
                        yx * a + yy * b + yz * c + y,
                        zx * a + zy * b + zz * c + z,
                    )
                )
            looked_up = few.table.look_up_few(own, [self._softness[chain] for chain in few.chains])
            if looked_up is None:
                return False
            found.append(looked_up)
        for few, looked_up in zip(self._few, found, strict=True):
            written[few.rows, ROTATION] = looked_up.turns.reshape(*few.rows.shape, 4)
        self._found = lambda: self._steady.joined(found)
        return True

    def _sample(self, world: Floats, places: Floats) -> Sample:
        """The frame with the goals at these places (G, 3) of world space: all targets, then the poles there are."""
        places = in_object_space(world, places)
        count = len(self._plan.chains)
        pole = np.zeros((count, 3))
        pole[self._with_pole] = places[count:]
        goals = replace(self._frame.goals, target=places[None, :count], pole=pole[None])
        return replace(self._frame, world=world[None], goals=goals)

    def posed(self, ob: bpy.types.Object) -> tuple[Sample, Posed]:
        """The last frame and its solution, for who asks what became of it."""
        assert self._seen is not None
        frame = self._sample(matrix_array(self._seen[0]), self._places)
        rows = frame.channels.copy()
        rows[0, :, ROTATION] = self._values[self._plan.live]
        outcomes = self._steady.outcomes(frame.goals, self._found())
        return frame, Posed(
            rows, outcomes, {}, lambda chosen: posed_by(ob, self._plan, frame.frames(chosen), rows[chosen])
        )


class _Goals:
    """Targets and poles that are objects, by name and `session_uid`."""

    def __init__(self, goals: list[bpy.types.Object]) -> None:
        self._known = [(goal.name, goal.session_uid) for goal in goals]
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
        objects = bpy.data.objects
        points = []
        for name, uid in self._known:
            goal: Any = objects.get(name)
            if goal is None or goal.session_uid != uid:
                return None
            points.append(goal.evaluated_get(depsgraph).matrix_world.translation[:])
        return np.array(points, dtype=np.float64)

    def _rows_in(self, depsgraph: bpy.types.Depsgraph) -> Ints | None:
        """Their places (G,) among the objects of a depsgraph; None: it is better to look them up by name."""
        uids = [ob.original.session_uid for ob in depsgraph.objects]
        wanted = [uid for _name, uid in self._known]
        if len(uids) > CROWD * len(wanted) or not set(wanted) <= set(uids):
            return None
        return np.array([uids.index(uid) for uid in wanted], dtype=np.int64)
