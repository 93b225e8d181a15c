"""Forward kinematics from the numbers that determine frames, the same for one frame and for many."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import transforms
from ...core.channels import WIDTH, Row
from ...solve.maths.products import times
from ...solve.problem import Floats
from ..plan.inputs import Inputs, Numbers, Spot
from ..plan.watch import Settings


class Frames:
    """Forward kinematics of F frames. The first axis of arrays is F, or 1 where all frames are the same."""

    def __init__(self, inputs: Inputs, numbers: Numbers, like: Frames | None = None) -> None:
        """Compute the poses of bones.

        Args:
            inputs: describes the numbers.
            numbers: (F, w)
            like: other frames of the same inputs, whose bone poses are reused if their channels are the same.
        """
        self.inputs = inputs
        start = inputs.rows.start
        given = _once(numbers[:, inputs.given]).astype(np.float64)
        given = given.reshape(len(given), sum(map(len, inputs.opaque)), 4, 4)
        matrices = numbers[:, :start].reshape(len(numbers), len(inputs.objects), 4, 4).astype(np.float64)
        self._locals: list[Floats] = [_once(matrices[:, item]) for item in range(len(inputs.objects))]
        self._worlds: dict[int, Floats] = {}
        self.rows: Row = _once(numbers[:, inputs.rows].reshape(len(numbers), len(inputs.modes), WIDTH))
        """(F, n, 17) the channels of all bones."""
        self._basis: Floats
        self._poses: Floats
        """(F, n, 4, 4) in armature space, of the bones whose pose is needed."""
        self._given = given
        if like is not None and np.array_equal(self.rows, like.rows) and np.array_equal(given, like._given):
            self._basis, self._poses = like._basis, like._poses
        else:
            self._basis = transforms.basis(self.rows, inputs.modes, inputs.connected)
            self._poses = np.empty((max(len(self.rows), len(given)), *self._basis.shape[1:]))
            self._own = dict(zip(inputs.all_opaque, given.swapaxes(0, 1), strict=True))
            if self._own:
                self._poses[:, inputs.all_opaque] = given
            with np.errstate(all="ignore"):
                self._pose(inputs.offsets @ self._basis)
        settings = numbers[:, inputs.settings].astype(np.float64)
        self.settings = settings.reshape(len(numbers), len(inputs.tips), len(Settings._fields))
        """(F, C, S) `Settings` of the chains."""

    @property
    def channels(self) -> Row:
        """FK channels (F, k, 17) of `Plan.live`."""
        return self.rows[:, self.inputs.live]

    @property
    def basis(self) -> Floats:
        """Basis matrices (F, k, 4, 4) of these channels."""
        return self._basis[:, self.inputs.live]

    @property
    def poses(self) -> Floats:
        """Pose matrices (F, s, 4, 4) of `Plan.sampled` in armature space."""
        return self._poses[:, self.inputs.sampled]

    @property
    def sampled_basis(self) -> Floats:
        """Basis matrices (F, s, 4, 4) of `Plan.sampled`."""
        return self._basis[:, self.inputs.sampled]

    def world(self, item: int) -> Floats:
        """Return world matrices (F, 4, 4) of an object."""
        if item not in self._worlds:
            placed, local = self.inputs.objects[item], self._locals[item]
            if not placed.is_opaque and placed.above is not None:
                parent = self.at(placed.above)
                parent[:, :3, 3] += placed.reach * parent[:, :3, 1]
                local = times(times(parent, placed.unparented[None]), local)
            self._worlds[item] = local
        return self._worlds[item]

    def at(self, spot: Spot) -> Floats:
        """Return world matrices (F, 4, 4) of an object, or of its bone at the head."""
        world = self.world(spot.item)
        return world.copy() if spot.bone < 0 else times(world, self._poses[:, spot.bone])

    def basis_at(self, spot: Spot) -> Floats:
        """Return basis matrices (F, 4, 4) of an object or its bone, from its own channels."""
        return self._locals[spot.item] if spot.bone < 0 else self._basis[:, spot.bone]

    def _pose(self, local: Floats) -> None:
        """Pose bones from the matrices (F, n, 4, 4) that they would have relative to their parents."""
        inputs, poses = self.inputs, self._poses
        for bone, parent in inputs.posed:
            above = None if parent < 0 else poses[:, parent]
            if bone in inputs.riding:
                assert above is not None
                poses[:, bone] = above @ self._own[bone]
            elif not inputs.plain[bone]:
                poses[:, bone] = inputs.to_pose(bone, self._basis[:, bone], above)
            else:
                poses[:, bone] = local[:, bone] if above is None else above @ local[:, bone]


def _once(numbers: Any) -> Any:
    """Return numbers (F, ...), reduced to (1, ...) if they are the same on all frames."""
    return numbers[:1] if len(numbers) > 1 and (numbers == numbers[:1]).all() else numbers
