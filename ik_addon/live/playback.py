"""Pose an armature from frame to frame without restoring its FK pose before Blender evaluates."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import Protocol

import bpy
import numpy as np

from ..pose.channels import FIELDS, REST, Row, rotation_field
from ..pose.steps import finished
from ..rig.plan.inputs import Numbers
from ..rig.plan.plan import Plan
from ..rig.read.sample import Sample, take_animated
from ..rig.write.held_armature import HeldArmature
from ..rig.write.waves import Posed, pose, posing
from .prefetch import Known, Prefetch, Solved


class Source(Protocol):
    """Where the numbers that determine an armature's frames come from, and how to compute frames from them."""

    poses_early: bool
    """Whether nothing animates the channels of a solution, so it can be written before Blender evaluates the frame."""

    def read(
        self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, written: Row, fk: Row | None, *, in_step: bool
    ) -> tuple[Numbers, Row] | None:
        """Read an evaluated frame.

        Args:
            ob: the armature object, the original one.
            depsgraph: evaluated at the frame.
            written: (k, 17) what was written last.
            fk: (k, 17) the FK channels, if the live bones hold the solution; None if animation was evaluated.
            in_step: whether the originals are at this frame, too.

        Returns:
            The numbers (1, w) of the frame, and what its live bones show (k, 17); None if they are not known.
        """

    def numbers_at(self, frames: Sequence[float]) -> Numbers | None:
        """Return the numbers (F, w) of coming frames; None if F-curves alone do not determine them."""

    def sample(self, numbers: Numbers) -> Sample:
        """Return the sample computed from the numbers (F, w) of frames."""

    def fk(self, numbers: Numbers) -> Row:
        """Return the FK channels (k, 17) of a frame from its numbers (1, w)."""


class Playback:
    """Solves frames without Blender having to evaluate the FK pose first.

    Begins on a solved frame, and ends as soon as anything changes other than the numbers that frames are computed from.
    """

    def __init__(
        self,
        ob: bpy.types.Object,
        plan: Plan,
        source: Source,
        held: HeldArmature | None,
        before: tuple[Sample, Posed] | None,
    ) -> None:
        """Begin after a frame was solved and written.

        Args:
            ob: the armature object.
            plan: its plan.
            source: what its frames are computed from.
            held: what solves them from their goals alone, if anything can.
            before: the frame and its solution, if known.
        """
        self._plan, self._source, self._held = plan, source, held
        self._prefetch = Prefetch(source.numbers_at)
        self._began = 0.0
        """When Blender began to evaluate the frame."""
        self._present: dict[str, Row] = {}
        """(bones, width) buffers for what all bones hold in the channels that are written."""
        for name in {rotation_field(mode) for mode in plan.modes}:
            self._present[name] = np.empty((len(ob.pose.bones), REST[FIELDS[name]].size), dtype=np.float32)
        self._now: Known | None = None
        self._led: Known | None = None
        self._before = before
        """The last frame that was solved alone, and its solution."""

    def pose_early(self, ob: bpy.types.Object, frame: float, written: Row) -> None:
        """Pose the armature for a frame that Blender has not evaluated yet, if its solution is known.

        Args:
            ob: the armature object.
            frame: the frame.
            written: (k, 17) what the channels of `Plan.live` hold now; updated in place.
        """
        self._led = self._prefetch.find(frame) if self._source.poses_early and self.is_untouched(ob, written) else None
        if self._led is not None and (self._led.channels != written).any():
            self.put(ob, self._led.channels, written, is_read=True)
            written[:] = self._led.channels
        self._began = time.perf_counter()

    def step(self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, written: Row, *, in_step: bool) -> Row | None:
        """Pose the armature for a new frame.

        Args:
            ob: the armature object.
            depsgraph: evaluated at the frame.
            written: (k, 17) as in `pose_early`.
            in_step: whether the originals are at this frame, too.

        Returns:
            (k, 17) the FK channels; None if the frame can't be posed this way, and nothing was changed.
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
            known = self._prefetch.solved(frame, numbers, evaluation, lambda some: self._solving(ob, some))
        if (known.channels != shown).any():
            if not in_step:
                take_animated(ob, depsgraph)
            self.put(ob, known.channels, shown)
        written[:] = known.channels
        self._now, self._led = known, None
        self._prefetch.look(frame, evaluation, lambda some: self._solving(ob, some))
        return self._source.fk(numbers)

    def pose_again(
        self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, written: Row, fk: Row, *, hurried: bool
    ) -> bool:
        """Pose the armature again on the frame that it is posed for, after goals moved.

        Args:
            ob: the armature object.
            depsgraph: evaluated at the frame, with the solution in the live bones.
            written: (k, 17) as in `pose_early`.
            fk: (k, 17) the FK channels.
            hurried: see `pose`; the next call then solves again, even for the same goals.

        Returns:
            Whether this is possible; if not, nothing was changed.
        """
        found = self._source.read(ob, depsgraph, written, fk, in_step=True)
        if found is None or not self.is_untouched(ob, written):
            return False
        if self._now is None or not self._now.is_of(found[0]):
            self._now = Known(finished(self._solving(ob, found[0], again=True, hurried=hurried)), 0)
            self.put(ob, self._now.channels, written, is_read=True)
            written[:] = self._now.channels
        return True

    def has_prefetched(self, frame: float) -> bool:
        """Return whether a frame is already solved."""
        return self._prefetch.find(frame) is not None

    def posed(self, ob: bpy.types.Object) -> tuple[Sample, Posed]:
        """Return the last frame and its solution, for reports."""
        assert self._now is not None
        block, index = self._now.block, self._now.index
        sample = self._source.sample(block.numbers[index : index + 1])
        outcomes = block.outcomes.frames(slice(index, index + 1))
        rows = block.channels[index : index + 1]
        return sample, Posed(rows, outcomes, {}, lambda chosen: pose(ob, self._plan, sample).poses_on(chosen))

    def is_untouched(self, ob: bpy.types.Object, written: Row) -> bool:
        """Return whether the live bones still hold `written` (k, 17), what was written last."""
        for name, present in self._present.items():
            ob.pose.bones.foreach_get(name, present.ravel())
            if (present[self._plan.live] != written[:, FIELDS[name]]).any():
                return False
        return True

    def _solving(
        self, ob: bpy.types.Object, numbers: Numbers, *, again: bool = False, hurried: bool = False
    ) -> Generator[float, None, Solved]:
        """Solve frames with these numbers (F, w) in steps; with `again`, one that hardly differs from the last."""
        sample = self._source.sample(numbers)
        if self._held is not None:
            posed = self._held.solve(ob, sample, hurried=hurried)
        else:
            before = self._before if again else None
            posed = yield from posing(ob, self._plan, sample, before=before, hurried=hurried)
            if not hurried:
                self._before = (sample, posed) if again else None
        return Solved(numbers, posed.channels, posed.outcomes, hurried)

    def put(self, ob: bpy.types.Object, rows: Row, present: Row, *, is_read: bool = False) -> None:
        """Write channels (k, 17) where they differ from the current ones.

        Args:
            ob: the armature object.
            rows: the new channels.
            present: (k, 17) the current ones.
            is_read: whether `is_untouched` has just read those of all bones.
        """
        bones, different = ob.pose.bones, (rows != present).any(axis=0).tolist()
        if True not in different:
            return
        for name, columns in FIELDS.items():
            if any(different[columns]):
                is_new = name not in self._present
                if is_new:
                    self._present[name] = np.empty((len(bones), columns.stop - columns.start), dtype=np.float32)
                values = self._present[name]
                if is_new or not is_read:
                    bones.foreach_get(name, values.ravel())
                values[self._plan.live] = rows[:, columns]
                bones.foreach_set(name, values.ravel())
        # Tag as if the object had moved: the pose is evaluated again, but the armature is not copied.
        ob.update_tag(refresh={"OBJECT"})
