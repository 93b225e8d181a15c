"""Armatures whose FK pose does not change: their solutions are tabulated once, and looked up on each frame.

This works if nothing animates the armature and its goals are not attached to it: the common case of a rig that is
posed by its targets. The pose is the same as from `pose`, to single precision, but faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ...pose.channels import FIELDS
from ...pose.skeleton import orthonormal
from ...solve import Goal, OutOfReach, Problem, Solver, Status
from ...solve.lookup import Found, Tabulated
from ...solve.maths.products import applied
from ...solve.problem import Floats
from ..plan.groups import Wave
from ..plan.plan import Plan
from ..read.sample import Goals, Sample
from .held_limbs import HeldLimbs, can_be_held
from .limb import Limbs
from .outcomes import Outcomes
from .waves import Posed, fk_limbs, members_of, pose, posed_by, with_ends_turned

ROTATION = FIELDS["rotation_quaternion"]


@dataclass(frozen=True)
class _Chains:
    """The chains of one wave."""

    wave: Wave
    table: Tabulated
    to_space: Floats
    """(C, 3, 4) from object space to that of each chain: its root bone at rest, below its posed parent, unscaled."""

    @classmethod
    def of(cls, limbs: Limbs, only: Goals | None) -> _Chains | None:
        """Tabulate a wave in its FK pose, for any goals or for some (F, C); None if it needs the general solver."""
        wave, shape = limbs.wave, limbs.wave.shape
        free = shape.limits is None and not shape.planar and not any(shape.turns)
        # FABRIK bends a chain by where its target is, not just by the distance.
        free = free and shape.solver is not Solver.FABRIK
        free = free and not any(limbs.plan.chains[c].folds for c in wave.chains[:, 0].tolist())
        plain = shape.is_chain and shape.plain and all(shape.inherits) and shape.out_of_reach is OutOfReach.EXTEND
        if not (free and plain and set(wave.modes.ravel()) == {"QUATERNION"}):
            return None
        if not (limbs.rigid().all() and (limbs.rows[:, :, FIELDS["scale"]] == 1.0).all()):
            return None
        turns = limbs.rows[:, :, ROTATION].astype(np.float64)
        sizes = np.linalg.norm(turns, axis=-1, keepdims=True)
        if not (sizes > 1e-6).all():
            return None
        space = orthonormal(limbs.root[:, :3, :3] @ limbs.plan.skeleton.offsets[wave.bones[:, 0], :3, :3])
        back = space.swapaxes(-1, -2)
        joints = limbs.joints()
        roots = joints[:, :1]
        frames = limbs.frames()
        sides = limbs.bend_side()
        problem = Problem(
            joints=(joints - roots) @ space,
            frames=back[:, None] @ frames,
            goal=Goal(joints[:, -1], pole=joints[:, -1] if shape.poles[0] else None),
            solver=shape.solver,
            iterations=shape.iterations,
            stiffness=None if shape.stiffness is None else np.array(shape.stiffness),
            bend_lead=shape.bend_lead,
            bend_side=None if sides is None else applied(back, sides),
        )
        to_space = np.concatenate([back, -applied(back, roots[:, 0])[..., None]], axis=-1)
        known = None
        if only is not None:
            own = wave.chains[:, 0]
            known = _in_space(to_space, only.target[:, own]), only.softness[:, own].T
        table = Tabulated.of(problem, turns / sizes, known)
        return None if table is None else cls(wave, table, to_space)

    def takes(self, _frames: int) -> bool:
        """Whether this many frames are looked up sooner than solved: any are."""
        return True

    def find(self, goals: Goals, *, hurried: bool = False) -> Found:
        """Look up the pose for goals (F, C) of the armature's chains."""
        own = self.wave.chains[:, 0]
        return self.table.look_up(
            _in_space(self.to_space, goals.target[:, own]),
            goals.softness[:, own].T,
            _in_space(self.to_space, goals.pole[:, own]) if self.wave.shape.poles[0] else None,
            goals.pole_angle[:, own].T,
        )

    def put(self, outcomes: Outcomes, found: Found, goals: Goals) -> None:
        """Set the outcomes of the chains."""
        own = self.wave.chains[:, 0]
        outcomes.status[:, own] = _status(found, goals.tolerance[:, own].T).T
        outcomes.error[:, own] = np.abs(found.distance - found.wanted).T


def _looked_up(limbs: Limbs, goals: Goals, only: Goals | None) -> Any:
    """Return the lookup for a wave in its FK pose; None if it needs the general solver.

    Args:
        limbs: the wave.
        goals: (1, C) any goals of all chains of the plan.
        only: see `Lookup`.
    """
    if can_be_held(limbs.wave.shape):
        return HeldLimbs.of(limbs, members_of(limbs.wave, goals[limbs.wave.chains]))
    return _Chains.of(limbs, only)


def is_tabulated(plan: Plan) -> bool:
    """Whether any chain has to be tabulated, which pays off only for many frames."""
    return not all(wave.shape.is_end or can_be_held(wave.shape) for wave in plan.waves)


def _in_space(to_space: Floats, points: Floats) -> Floats:
    """Return points (F, C, 3) in object space as (C, F, 3), in the spaces of the chains."""
    # Not as a matrix product: a frame should get the same bits alone as in a batch.
    x, y, z, origin = np.moveaxis(to_space[:, None], -1, 0)
    a, b, c = np.moveaxis(points.swapaxes(0, 1)[..., None], -2, 0)
    return np.asarray(x * a + y * b + z * c + origin)


class Lookup:
    """Lookups of the chains of an armature in one FK pose."""

    def __init__(
        self,
        ob: bpy.types.Object,
        plan: Plan,
        frame: Sample,
        only: Goals | None = None,
        fk: Mapping[int, Limbs] = MappingProxyType({}),
    ) -> None:
        """Prepare for solving frames whose FK pose is that of `frame` (F = 1).

        Args:
            ob: the armature object.
            plan: its plan.
            frame: a frame with this FK pose and any goals.
            only: the goals of the frames to solve; None: any goals may come.
            fk: waves in this FK pose that are already known, see `Posed.fk`.
        """
        self._plan = plan
        self._rows, self._sampled = frame.channels[0], frame.poses[0]
        ends = [wave for wave in plan.waves if wave.shape.is_end]
        waves = [(w, wave) for w, wave in enumerate(plan.waves) if not wave.shape.is_end and plan.is_static]
        limbs = [fk[w] if w in fk else fk_limbs(ob, plan, frame, wave) for w, wave in waves]
        chains = [_looked_up(each, frame.goals, only) for each in limbs]
        self._chains = [own for own in chains if own is not None]
        self.only_tables = all(isinstance(own, _Chains) for own in self._chains)
        """Whether every frame takes only table lookups, and no solving."""
        self._has_ends = bool(ends)
        self._asks_blender = not all(wave.shape.plain for wave in ends)
        """Whether some bones are posed by Blender: that can't wait, since the armature may be gone by then."""
        self.works = bool(chains) and None not in chains and all((wave.modes == "QUATERNION").all() for wave in ends)
        """Whether all chains can be looked up; otherwise all need `pose`."""

    def fits(self, frame: Sample) -> bool:
        """Whether all frames of a sample have this FK pose."""
        return bool((frame.channels == self._rows).all() and (frame.poses == self._sampled).all())

    def solve(self, ob: bpy.types.Object, frame: Sample, *, hurried: bool = False) -> Posed:
        """Solve frames in this FK pose with the result of `pose`, which solves the frames that can't be looked up."""
        if not all(own.takes(len(frame.world)) for own in self._chains):
            return pose(ob, self._plan, frame, hurried=hurried)
        found = [own.find(frame.goals, hurried=hurried) for own in self._chains]
        rows = np.repeat(self._rows[None], len(frame.world), axis=0)
        usual = np.asarray((frame.goals.influence == 1.0).all(axis=1))
        for own, looked_up in zip(self._chains, found, strict=True):
            rows[:, own.wave.rows, ROTATION] = looked_up.turns.swapaxes(0, 1)
            usual &= looked_up.usual.all(axis=0)
        outcomes = self._outcomes(frame.goals, found)
        if self._has_ends:
            rows = with_ends_turned(ob, self._plan, frame, rows, outcomes)
        if not usual.all():
            other = pose(ob, self._plan, frame.frames(~usual), hurried=hurried)
            rows[~usual] = other.channels
            outcomes.put_frames(~usual, other.outcomes)
        if self._asks_blender:
            poses = posed_by(ob, self._plan, frame, rows)
            return Posed(rows, outcomes, {}, lambda chosen: poses[chosen])
        return Posed(rows, outcomes, {}, lambda chosen: posed_by(ob, self._plan, frame.frames(chosen), rows[chosen]))

    def _outcomes(self, goals: Goals, found: Sequence[Any]) -> Outcomes:
        """Return the outcomes of all chains, set on demand."""

        def put(outcomes: Outcomes) -> None:
            for own, looked_up in zip(self._chains, found, strict=True):
                own.put(outcomes, looked_up, goals)

        return Outcomes(self._plan, len(goals.target), put)


def _status(found: Found, tolerance: Floats) -> NDArray[np.int8]:
    """Return values of `Status` (C, F), given the tolerance (C, F) in chain lengths."""
    residual = found.distance - found.wanted
    return np.where(np.abs(residual) <= tolerance, Status.REACHED, Status.TOO_FAR).astype(np.int8)
