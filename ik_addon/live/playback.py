"""An armature from frame to frame, without its FK pose being restored before Blender evaluates: what is it now?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import bpy
import numpy as np

from ..pose.channels import FIELDS, REST, Row, rotation_field
from ..rig.plan.inputs import Numbers
from ..rig.plan.plan import Plan
from ..rig.read.sample import Sample, take_animated
from ..rig.write.lookup import Lookup
from ..rig.write.waves import Posed, pose
from .prefetch import Known, Prefetch, Solved


class Source(Protocol):
    """What the frames of an armature are computed from, and how."""

    poses_early: bool
    """Nothing sets the channels that a solution is written to: it can be written before Blender evaluates."""

    def read(
        self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, written: Row, fk: Row | None, *, in_step: bool
    ) -> tuple[Numbers, Row] | None:
        """Read a frame as it is evaluated.

        Args:
            ob: the armature object, the original one.
            depsgraph: evaluated at the frame.
            written: (k, 17) what was written last.
            fk: (k, 17) the FK channels, where the solution stands in the live bones; None: animation was evaluated.
            in_step: the originals are at this frame, too.

        Returns:
            The numbers (1, w) of the frame, and what its live bones show (k, 17); None if they are not known.
        """

    def numbers_at(self, frames: Sequence[float]) -> Numbers | None:
        """The numbers (F, w) of frames to come; None where F-curves alone do not determine them."""

    def sample(self, numbers: Numbers) -> Sample:
        """Compute frames from their numbers (F, w)."""

    def fk(self, numbers: Numbers) -> Row:
        """FK channels (k, 17) on a frame with the numbers (1, w)."""


class Playback:
    """What is solved without Blender having to evaluate the FK pose first.

    It is begun on a frame that was solved, and ends as soon as anything else changes than the numbers that frames are
    computed from.
    """

    def __init__(
        self,
        ob: bpy.types.Object,
        plan: Plan,
        source: Source,
        lookup: Lookup | None,
        before: tuple[Sample, Posed] | None,
    ) -> None:
        """Begin after a frame was solved and written.

        Args:
            ob: the armature object.
            plan: its plan.
            source: what its frames are computed from.
            lookup: the short way to solve them, if there is one.
            before: the frame and its solution, where that is known.
        """
        self._plan, self._source, self._lookup = plan, source, lookup
        self._prefetch = Prefetch(source.numbers_at)
        self._began = 0.0
        """When Blender began to evaluate the frame."""
        self._present: dict[str, Row] = {}
        """(bones, width) room for what all bones hold in the channels that are written."""
        for name in {rotation_field(mode) for mode in plan.modes}:
            self._present[name] = np.empty((len(ob.pose.bones), REST[FIELDS[name]].size), dtype=np.float32)
        self._now: Known | None = None
        self._led: Known | None = None
        self._before = before
        """The last frame that was posed by itself, and its solution."""

    def pose_early(self, ob: bpy.types.Object, frame: float, written: Row) -> None:
        """Pose the armature for a frame that Blender has not evaluated yet, if it is known.

        Args:
            ob: the armature object.
            frame: the frame.
            written: (k, 17) what the channels of `Plan.live` hold by now; brought up to date.
        """
        self._led = self._prefetch.find(frame) if self._source.poses_early and self.is_untouched(ob, written) else None
        if self._led is not None and (self._led.channels != written).any():
            self.put(ob, self._led.channels, written)
            written[:] = self._led.channels
        self._began = time.perf_counter()

    def step(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, written: Row, *, in_step: bool) -> Row | None:
        """Pose the armature for a new frame.

        Args:
            ob: the armature object.
            depsgraph: evaluated at the frame.
            written: (k, 17) as for `lead`.
            in_step: the originals are at this frame, too.

        Returns:
            (k, 17) the FK channels; None if that is not possible, and nothing was done.
        """
        found = self._source.read(ob, depsgraph, written, None, in_step=in_step)
        if found is None or not (
            self._led is not None or not self._source.poses_early or self.is_untouched(ob, written)
        ):
            return None
        evaluation = time.perf_counter() - self._began
        numbers, shown = found
        frame = depsgraph.scene.frame_current_final
        known = self._now if self._led is None else self._led
        if known is None or not known.is_of(numbers):
            known = self._prefetch.find(frame)
            if known is not None and not known.is_of(numbers):
                self._prefetch.surprised()
                known = None
        if known is None:
            known = self._prefetch.solved(frame, numbers, evaluation, lambda some: self._solved(ob, some))
        if (known.channels != shown).any():
            if not in_step:
                take_animated(ob, depsgraph)
            self.put(ob, known.channels, shown)
        written[:] = known.channels
        self._now, self._led = known, None
        self._prefetch.look(frame, evaluation, lambda some: self._solved(ob, some))
        return self._source.fk(numbers)

    def pose_again(
        self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, written: Row, fk: Row, *, hurried: bool
    ) -> bool:
        """Pose the armature anew on a frame that it was posed for, where goals were moved.

        Args:
            ob: the armature object.
            depsgraph: evaluated at the frame, the solution standing in the live bones.
            written: (k, 17) as for `lead`.
            fk: (k, 17) the FK channels.
            hurried: see `pose`; the next time it is posed for the same goals as well.

        Returns:
            Whether that is possible; if not, nothing was done.
        """
        found = self._source.read(ob, depsgraph, written, fk, in_step=True)
        if found is None or not self.is_untouched(ob, written):
            return False
        if self._now is None or not self._now.is_of(found[0]):
            self._now = Known(self._solved(ob, found[0], again=True, hurried=hurried), 0)
            self.put(ob, self._now.channels, written)
            written[:] = self._now.channels
        return True

    def has_prefetched(self, frame: float) -> bool:
        """Whether a frame is solved before it is played."""
        return self._prefetch.find(frame) is not None

    def posed(self, ob: bpy.types.Object) -> tuple[Sample, Posed]:
        """The last frame and its solution, for who asks what became of it."""
        assert self._now is not None
        block, index = self._now.block, self._now.index
        sample = self._source.sample(block.numbers[index : index + 1])
        outcomes = block.outcomes.frames(slice(index, index + 1))
        rows = block.channels[index : index + 1]
        return sample, Posed(rows, outcomes, {}, lambda chosen: pose(ob, self._plan, sample).poses_on(chosen))

    def is_untouched(self, ob: bpy.types.Object, written: Row) -> bool:
        """Whether the live bones hold what was written last (k, 17)."""
        for name, present in self._present.items():
            ob.pose.bones.foreach_get(name, present.ravel())
            if (present[self._plan.live] != written[:, FIELDS[name]]).any():
                return False
        return True

    def _solved(self, ob: bpy.types.Object, numbers: Numbers, *, again: bool = False, hurried: bool = False) -> Solved:
        """Solve frames with these numbers (F, w), or one frame again where little was changed."""
        sample = self._source.sample(numbers)
        if self._lookup is not None:
            posed = self._lookup.solve(ob, sample)
        else:
            posed = pose(ob, self._plan, sample, before=self._before if again else None, hurried=hurried)
            if not hurried:
                self._before = (sample, posed) if again else None
        return Solved(numbers, posed.channels, posed.outcomes, hurried)

    def put(self, ob: bpy.types.Object, rows: Row, present: Row) -> None:
        """Write channels (k, 17) where they differ from what is present (k, 17)."""
        bones, different = ob.pose.bones, (rows != present).any(axis=0).tolist()
        if True not in different:
            return
        for name, columns in FIELDS.items():
            if any(different[columns]):
                if name not in self._present:
                    self._present[name] = np.empty((len(bones), columns.stop - columns.start), dtype=np.float32)
                values = self._present[name]
                bones.foreach_get(name, values.ravel())
                values[self._plan.live] = rows[:, columns]
                bones.foreach_set(name, values.ravel())
        # As if the object had moved: its pose is evaluated anew, but the armature is not copied.
        ob.update_tag(refresh={"OBJECT"})
