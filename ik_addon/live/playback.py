"""An armature whose FK pose stands still, from frame to frame: where are its goals, and what comes of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ..data.settings import chain_of
from ..pose.channels import FIELDS, Row, rotation_field
from ..pose.skeleton import matrix_array
from ..rig.plan.plan import Plan
from ..rig.read.goals import FreeGoals
from ..rig.read.sample import Goals, Sample, in_object_space
from ..rig.write.waves import Posed, pose
from ..solve.problem import Floats
from .lookup import Steady
from .prefetch import Ahead


@dataclass(frozen=True)
class _Foreseen:
    """What is to be written on the frames of a block."""

    channels: Row
    """(F, k, 17)"""
    fields: dict[str, Row]
    """(F, bones, width) of those channels that change, for all bones of the armature."""


class Following:
    """What follows its goals without Blender having to evaluate the FK pose first.

    It is begun on a frame that was solved, and ends as soon as anything else than the goals' places changes.
    """

    def __init__(self, ob: bpy.types.Object, plan: Plan, steady: Steady | None, frame: Sample) -> None:
        """Begin after `frame` (F = 1) was solved and written.

        Args:
            ob: the armature object, which nothing animates.
            plan: its plan, without chains that take their target's rotation.
            steady: the short way to solve its frames, if there is one.
            frame: the FK pose.
        """
        self._plan, self._steady, self._frame = plan, steady, frame
        tips = [chain_of(ob.pose.bones[chain.tip]) for chain in plan.chains]
        targets = [tip.target for tip in tips]
        poles = [tip.pole for tip, chain in zip(tips, plan.chains, strict=True) if chain.has_pole]
        self._with_pole = [c for c, chain in enumerate(plan.chains) if chain.has_pole]
        self._goals = FreeGoals([goal for goal in (*targets, *poles) if goal is not None])
        self._ahead = Ahead(self._goals, len(plan.chains))
        self._foreseen: _Foreseen | None = None
        self._values: dict[str, Row] = {}
        """(bones, width) what all bones hold in the channels that are written."""
        self._bytes: dict[str, bytes] = {}
        self._present: dict[str, Row] = {}
        for mode in sorted(set(plan.modes)):
            self._watch(ob, rotation_field(mode))
        self._world: Matrix | None = None
        self._seen: bytes | None = None
        """The goals for which the present pose was solved."""
        self._now: tuple[Sample, Posed, int] | None = None
        self._is_led = False

    def lead(self, ob: bpy.types.Object, frame: float, written: Row) -> None:
        """Pose the armature for a frame that Blender has not evaluated yet, if it can be foreseen.

        Args:
            ob: the armature object.
            frame: the frame.
            written: (k, 17) what the channels of `Plan.live` hold by now; brought up to date.
        """
        self._is_led = False
        block, foreseen = self._ahead.block, self._foreseen
        row = None if block is None else block.index.get(frame)
        if block is None or row is None or foreseen is None or not self._is_untouched(ob):
            return
        if foreseen.fields.keys() != self._values.keys():
            return  # a channel was written since that does not change within the block
        self._is_led = True
        if block.places[row] != self._seen:
            self._put(ob, {name: values[row] for name, values in foreseen.fields.items()})
            written[:] = foreseen.channels[row]
            self._seen, self._now = block.places[row], (block.sample, block.posed, row)

    def step(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, written: Row) -> bool:
        """Pose the armature for a new frame; False if that is not possible, and nothing was done.

        Args:
            ob: the armature object.
            depsgraph: evaluated at the frame.
            written: (k, 17) as for `lead`.
        """
        # Bones that were changed tag the armature, relations that were changed the scene.
        if depsgraph.id_type_updated("ARMATURE") or depsgraph.id_type_updated("SCENE"):
            return False
        if not self._is_led and not self._is_untouched(ob):
            return False
        places = self._goals.places(depsgraph)
        if places is None:
            return False
        world, goals = ob.evaluated_get(depsgraph).matrix_world, places.tobytes()
        if self._world != world:
            self._world, self._seen = world.copy(), None
            self._ahead.drop()
        elif self._is_led and self._seen != goals:
            self._ahead.surprised()
        if self._seen != goals:
            sample, posed = self._ahead.timed(lambda some: self._solved(ob, some), places[None])
            fields = self._fields(ob, posed.channels, written)
            self._put(ob, {name: values[0] for name, values in fields.items()})
            written[:] = posed.channels[0]
            self._seen, self._now = goals, (sample, posed, 0)
        if self._ahead.look(depsgraph.scene.frame_current_final, lambda some: self._solved(ob, some)):
            block = self._ahead.block
            assert block is not None
            channels = block.posed.channels
            self._foreseen = _Foreseen(channels, self._fields(ob, channels, written))
        self._is_led = False
        return True

    def foresees(self, frame: float) -> bool:
        """Whether a frame is solved before it is played."""
        return self._ahead.block is not None and frame in self._ahead.block.index

    def posed(self, _ob: bpy.types.Object) -> tuple[Sample, Posed]:
        """The last frame and its solution, for who asks what became of it."""
        assert self._now is not None
        sample, posed, index = self._now
        return sample.frames(slice(index, index + 1)), posed.frame(index)

    def _solved(self, ob: bpy.types.Object, places: Floats) -> tuple[Sample, Posed]:
        """Solve frames with the goals at these places (F, G, 3) of world space: all targets, then the poles."""
        assert self._world is not None
        world, frames, chains = matrix_array(self._world), len(places), len(self._plan.chains)
        places = in_object_space(world, places)
        still = self._frame
        goals = {name: _repeated(value, frames) for name, value in vars(still.goals).items()}
        pole = goals["pole"].copy()
        pole[:, self._with_pole] = places[:, chains:]
        sample = Sample(
            world=_repeated(world[None], frames),
            channels=_repeated(still.channels, frames),
            basis=_repeated(still.basis, frames),
            poses=_repeated(still.poses, frames),
            goals=Goals(**{**goals, "target": places[:, :chains], "pole": pole}),
        )
        return sample, pose(ob, self._plan, sample) if self._steady is None else self._steady.solve(ob, sample)

    def _fields(self, ob: bpy.types.Object, channels: Row, written: Row) -> dict[str, Row]:
        """What all bones are to hold (F, bones, width) in those channels that change, of solved ones (F, k, 17)."""
        changed = (channels != written).any(axis=(0, 1))
        for name, columns in FIELDS.items():
            if name not in self._values and changed[columns].any():
                self._watch(ob, name)
        fields = {}
        for name, values in self._values.items():
            fields[name] = np.repeat(values[None], len(channels), axis=0)
            fields[name][:, self._plan.live] = channels[..., FIELDS[name]]
        return fields

    def _watch(self, ob: bpy.types.Object, name: str) -> None:
        """Take note of what all bones hold in a channel that is written from now on."""
        columns = FIELDS[name]
        values = np.empty((len(ob.pose.bones), columns.stop - columns.start), dtype=np.float32)
        ob.pose.bones.foreach_get(name, values.ravel())
        self._values[name], self._bytes[name], self._present[name] = values, values.tobytes(), np.empty_like(values)

    def _is_untouched(self, ob: bpy.types.Object) -> bool:
        """Whether the bones hold what was written last."""
        bones = ob.pose.bones
        for name, present in self._present.items():
            bones.foreach_get(name, present.ravel())
            if present.tobytes() != self._bytes[name]:
                return False
        return True

    def _put(self, ob: bpy.types.Object, fields: dict[str, Row]) -> None:
        """Write channels (bones, width) of all bones."""
        bones = ob.pose.bones
        for name, values in fields.items():
            bones.foreach_set(name, values.ravel())
            self._bytes[name] = values.tobytes()
        # As if the object had moved: its pose is evaluated anew, but the armature is not copied.
        ob.update_tag(refresh={"OBJECT"})


def _repeated(values: NDArray[Any], frames: int) -> NDArray[Any]:
    """Values (1, ...) for F frames, not to be written to."""
    return np.broadcast_to(values, (frames, *values.shape[1:]))
