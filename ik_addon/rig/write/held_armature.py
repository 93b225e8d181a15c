"""Armatures whose FK pose does not change, and whose chains are all within limits: solved from the goals alone.

This works if nothing animates the armature and its goals are not attached to it: the common case of a rig that is
posed by its targets. The pose is the same as from `pose`, but faster.
"""

from __future__ import annotations

import bpy
import numpy as np

from ...core.channels import FIELDS
from ..plan.plan import Plan
from ..read.sample import Sample
from .held_limbs import HeldLimbs, can_be_held
from .outcomes import Outcomes
from .waves import Posed, fk_limbs, members_of, pose, posed_by, with_ends_turned

ROTATION = FIELDS["rotation_quaternion"]


class HeldArmature:
    """The chains of an armature in one FK pose."""

    def __init__(self, ob: bpy.types.Object, plan: Plan, frame: Sample) -> None:
        """Prepare for solving frames whose FK pose is that of `frame` (F = 1).

        Args:
            ob: the armature object.
            plan: its plan.
            frame: a frame with this FK pose and any goals.
        """
        self._plan = plan
        self._rows, self._sampled = frame.channels[0], frame.poses[0]
        ends = [wave for wave in plan.waves if wave.shape.is_end]
        waves = [wave for wave in plan.waves if not wave.shape.is_end]
        self._has_ends = bool(ends)
        self._asks_blender = not all(wave.shape.plain for wave in ends)
        """Whether some bones are posed by Blender: that can't wait, since the armature may be gone by then."""
        chains: list[HeldLimbs | None] = []
        if plan.is_static and all(can_be_held(wave.shape) for wave in waves):
            for wave in waves:
                limbs = fk_limbs(ob, plan, frame, wave)
                chains.append(HeldLimbs.of(limbs, members_of(wave, frame.goals[wave.chains])))
        self._chains = [own for own in chains if own is not None]
        self.works = bool(chains) and None not in chains and all((wave.modes == "QUATERNION").all() for wave in ends)
        """Whether all chains can be solved this way; otherwise all need `pose`."""

    def fits(self, frame: Sample) -> bool:
        """Whether all frames of a sample have this FK pose."""
        return bool((frame.channels == self._rows).all() and (frame.poses == self._sampled).all())

    def solve(self, ob: bpy.types.Object, frame: Sample, *, hurried: bool = False) -> Posed:
        """Solve frames in this FK pose with the result of `pose`, which solves the frames that are left over."""
        if not all(own.takes(len(frame.world)) for own in self._chains):
            return pose(ob, self._plan, frame, hurried=hurried)
        found = [own.find(frame.goals, hurried=hurried) for own in self._chains]
        rows = np.repeat(self._rows[None], len(frame.world), axis=0)
        usual = np.asarray((frame.goals.influence == 1.0).all(axis=1))
        for own, held in zip(self._chains, found, strict=True):
            rows[:, own.wave.rows, ROTATION] = held.turns.swapaxes(0, 1)
            usual &= held.usual.all(axis=0)

        def put(outcomes: Outcomes) -> None:
            for own, held in zip(self._chains, found, strict=True):
                own.put(outcomes, held, frame.goals)

        outcomes = Outcomes(self._plan, len(frame.world), put)
        if self._has_ends:
            rows = with_ends_turned(ob, self._plan, frame, rows, outcomes)
        if not usual.all():
            other = pose(ob, self._plan, frame.frames(~usual), hurried=hurried)
            rows[~usual] = other.channels
            outcomes.put_frames(~usual, other.outcomes)
        if self._asks_blender:
            poses = posed_by(ob, self._plan, frame, rows)
            return Posed(rows, outcomes, lambda chosen: poses[chosen])
        return Posed(rows, outcomes, lambda chosen: posed_by(ob, self._plan, frame.frames(chosen), rows[chosen]))
