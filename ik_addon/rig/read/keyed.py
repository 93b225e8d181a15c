"""Frames of armatures that F-curves animate, or whose goals are bones or attached to bones."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import bpy
import numpy as np

from ...pose.channels import FIELDS, WIDTH, Row, rotation_field
from ...solve.problem import Bools
from ..plan.inputs import Inputs, Numbers, is_edited
from ..plan.plan import Plan
from . import fcurves
from .frames import Frames
from .sample import Sample, numbers_now, sample_of


class Keyed:
    """A source of frames that `Plan.determined` fully determines; see `live.playback.Source`."""

    def __init__(self, plan: Plan, inputs: Inputs, stored: Row, animated: Bools) -> None:
        """Begin when F-curves determine the inputs on every frame.

        Args:
            plan: the plan of the armature object.
            inputs: the inputs of this plan.
            stored: (k, 17) channels of the live bones, used where they are not animated.
            animated: (k, 17) whether each channel is animated.
        """
        self._plan, self._inputs, self._stored, self._animated = plan, inputs, stored, animated
        self._fields: Collection[str] = inputs.fields
        self._unused = [columns for name, columns in FIELDS.items() if name not in inputs.fields]
        """Channels of other rotation modes, which stay as they are."""
        if any(animated[:, columns].any() for columns in self._unused):
            self._fields, self._unused = FIELDS, []
        self._last: Frames | None = None
        turned = [FIELDS[rotation_field(mode)] for mode in plan.modes]
        self.poses_early = not any(own[columns].any() for own, columns in zip(animated, turned, strict=True))

    def read(
        self, ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, written: Row, fk: Row | None, *, in_step: bool
    ) -> tuple[Numbers, Row] | None:
        """As in `Source`; also None if anything but the known F-curves has set the live bones."""
        if in_step and is_edited(depsgraph):  # in a render everything counts as edited
            return None
        numbers = numbers_now(self._inputs, depsgraph, fields=self._fields)
        if numbers is None:
            return None
        rows = numbers[0, self._inputs.rows].reshape(len(self._inputs.modes), WIDTH)
        shown = rows[self._inputs.live]
        for columns in self._unused:
            shown[:, columns] = written[:, columns]
        same = shown == written
        if fk is not None:
            rows[self._inputs.live] = fk
            return (numbers, shown) if same.all() else None
        if not (same | self._animated).all():
            return None
        # A muted F-curve leaves what was written, but an F-curve may also have set the same value: then check.
        if (same & self._animated & (shown != self._stored)).any() and self._is_other(ob):
            return None
        rows[self._inputs.live] = np.where(self._animated, shown, self._stored)
        return numbers, shown

    def numbers_at(self, frames: Sequence[float]) -> Numbers | None:
        """As in `Source`."""
        try:
            return fcurves.numbers_at(self._inputs, self._stored, frames, self._fields)
        except fcurves.NotDetermined:
            return None

    def sample(self, numbers: Numbers) -> Sample:
        """As in `Source`."""
        frames = Frames(self._inputs, numbers, self._last)
        if len(numbers) == 1:
            self._last = frames
        return sample_of(self._plan, frames)

    def fk(self, numbers: Numbers) -> Row:
        """As in `Source`."""
        return self._inputs.fk(numbers)[0]

    def _is_other(self, ob: bpy.types.Object) -> bool:
        """Whether other channels of the live bones are animated now."""
        return not np.array_equal(fcurves.animated(ob, self._plan.live), self._animated)
