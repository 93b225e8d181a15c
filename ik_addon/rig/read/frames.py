"""What comes of the numbers that determine frames: our own forward kinematics, the same for one frame and for many."""

from __future__ import annotations

import numpy as np

from ...pose import transforms
from ...pose.channels import WIDTH, Row
from ...solve.maths.products import times
from ...solve.problem import Floats, Ints
from ..plan.inputs import Inputs, Numbers, Spot
from ..plan.watch import NUMBERS


class Frames:
    """Forward kinematics of F frames. Arrays begin with F, or with 1 where nothing differs from frame to frame."""

    def __init__(self, inputs: Inputs, numbers: Numbers, like: Frames | None = None) -> None:
        """Compute the poses of bones.

        Args:
            inputs: what the numbers are.
            numbers: (F, w)
            like: others of the same inputs, whose bones need not be posed again where they have the same channels.
        """
        self.inputs = inputs
        start, end = inputs.rows.start, inputs.rows.stop
        matrices = numbers[:, :start].reshape(len(numbers), len(inputs.objects), 4, 4)
        self._locals = [_once(matrices[:, item]).astype(np.float64) for item in range(len(inputs.objects))]
        self._worlds: dict[int, Floats] = {}
        self.rows: Row = _once(numbers[:, start:end].reshape(len(numbers), len(inputs.modes), WIDTH))
        """(F, n, 17) the channels of all bones."""
        self._basis: Floats
        self._poses: Floats
        """(F, n, 4, 4) in armature space, of the bones whose pose is needed."""
        if like is not None and np.array_equal(self.rows, like.rows):
            self._basis, self._poses = like._basis, like._poses
        else:
            self._basis = transforms.basis(self.rows, inputs.modes, inputs.connected)
            self._poses = np.empty_like(self._basis)
            for bones in inputs.levels:
                self._pose(bones, self._basis[:, bones])
        self.settings = numbers[:, end:].reshape(len(numbers), len(inputs.tips), len(NUMBERS)).astype(np.float64)
        """(F, C, 5) `NUMBERS` of the chains."""

    @property
    def channels(self) -> Row:
        """(F, k, 17) of `Plan.live`."""
        return self.rows[:, self.inputs.live]

    @property
    def basis(self) -> Floats:
        """(F, k, 4, 4) the basis matrices that these channels make."""
        return self._basis[:, self.inputs.live]

    @property
    def poses(self) -> Floats:
        """(F, s, 4, 4) pose matrices of `Plan.sampled` in armature space."""
        return self._poses[:, self.inputs.sampled]

    @property
    def sampled_basis(self) -> Floats:
        """(F, s, 4, 4) basis matrices of `Plan.sampled`."""
        return self._basis[:, self.inputs.sampled]

    def world(self, item: int) -> Floats:
        """World matrices (F, 4, 4) of an object."""
        if item not in self._worlds:
            placed, local = self.inputs.objects[item], self._locals[item]
            if placed.above is not None:
                parent = self.at(placed.above)
                parent[:, :3, 3] += placed.reach * parent[:, :3, 1]
                local = times(times(parent, placed.unparented[None]), local)
            self._worlds[item] = local
        return self._worlds[item]

    def at(self, spot: Spot) -> Floats:
        """World matrices (F, 4, 4) of an object, or of the head of its bone."""
        world = self.world(spot.item)
        return world.copy() if spot.bone < 0 else times(world, self._poses[:, spot.bone])

    def basis_at(self, spot: Spot) -> Floats:
        """What an object's own channels, or those of its bone, make: (F, 4, 4)."""
        return self._locals[spot.item] if spot.bone < 0 else self._basis[:, spot.bone]

    def _pose(self, bones: Ints, basis: Floats) -> None:
        """Pose bones of one depth by their basis (F, m, 4, 4)."""
        above = self.inputs.parents[bones]
        local = times(self.inputs.offsets[bones][None], basis)
        self._poses[:, bones] = local if above[0] < 0 else times(self._poses[:, above], local)
        for place, bone in enumerate(bones.tolist()):
            if not self.inputs.plain[bone]:
                parent = None if above[place] < 0 else self._poses[:, above[place]]
                self._poses[:, bone] = self.inputs.to_pose(bone, basis[:, place], parent)


def _once(numbers: Numbers) -> Numbers:
    """Numbers (F, ...), or (1, ...) where they are the same on all frames."""
    return numbers[:1] if len(numbers) > 1 and (numbers == numbers[:1]).all() else numbers
