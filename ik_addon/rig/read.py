"""From an evaluated armature and its targets to arrays: everything that the solve of a frame depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from ..settings import chain_of
from ..solve.problem import Bools, Floats
from . import channels
from .channels import Row
from .plan import ChainPlan, Plan
from .skeleton import inverse, matrix_array, orthonormal

FARTHEST = 1e30
"""Blender turns an infinite location into the largest float, whose square is no longer a number."""


@dataclass(frozen=True)
class GoalSample:
    """What one chain follows on F frames."""

    target: Floats
    """(F, 3) in the armature's object space; not finite where there is none."""
    rotation: Floats | None
    """(F, 3, 3) orientation for the tip in the armature's object space; None: any."""
    pole: Floats | None
    """(F, 3) in the armature's object space."""
    pole_angle: Floats
    """(F,) radians."""
    softness: Floats
    """(F,) fraction of chain length, as the two below."""
    push_limit: Floats
    tolerance: Floats
    influence: Floats
    """(F,) from 0, the FK pose, to 1."""

    @classmethod
    def joined(cls, parts: Sequence[GoalSample]) -> GoalSample:
        """Goals on the frames of all parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(**{name: _stacked([getattr(part, name) for part in parts]) for name in vars(parts[0])})

    def members(self, chosen: Bools) -> GoalSample:
        """The goal on the chosen frames (F,) alone."""
        return GoalSample(**{name: None if value is None else value[chosen] for name, value in vars(self).items()})


@dataclass(frozen=True)
class Sample:
    """The FK pose of the live bones of one armature and the goals of its chains, on F frames."""

    world: Floats
    """(F, 4, 4) world matrix of the armature object."""
    channels: Row
    """(F, k, 17) FK channels of `Plan.live`."""
    basis: Floats
    """(F, k, 4, 4) basis matrices that these channels make."""
    poses: Floats
    """(F, s, 4, 4) pose matrices of `Plan.sampled` in armature space."""
    goals: tuple[GoalSample, ...]
    """One for each of `Plan.chains`."""


def sample(
    ob: bpy.types.Object, plan: Plan, depsgraph: bpy.types.Depsgraph, fk: tuple[Row, Floats] | None = None
) -> Sample:
    """Read one frame (F = 1) from the evaluated copies of the armature and its targets.

    Args:
        ob: the armature object, the original one.
        plan: its plan.
        depsgraph: evaluated at the frame.
        fk: channels (k, 17) and basis (k, 4, 4) of the live bones, where the evaluated ones are not the FK pose.
    """
    evaluated = ob.evaluated_get(depsgraph)
    if fk is None:
        fk = channels.read(evaluated, plan.live), channels.read_basis(evaluated, plan.live)
    world = matrix_array(evaluated.matrix_world)
    to_object = inverse(world)
    return Sample(
        world=world[None],
        channels=fk[0][None],
        basis=fk[1][None],
        poses=channels.read_pose(evaluated, plan.sampled)[None],
        goals=tuple(_goal(ob, evaluated, chain, depsgraph, to_object) for chain in plan.chains),
    )


def stack(samples: Sequence[Sample]) -> Sample:
    """Frames that were sampled one by one, as one batch."""
    first = samples[0]
    return Sample(
        world=np.concatenate([s.world for s in samples]),
        channels=np.concatenate([s.channels for s in samples]),
        basis=np.concatenate([s.basis for s in samples]),
        poses=np.concatenate([s.poses for s in samples]),
        goals=tuple(GoalSample.joined([s.goals[c] for s in samples]) for c in range(len(first.goals))),
    )


def _stacked(arrays: list[Floats | None]) -> Floats | None:
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if len(present) == len(arrays) else None


def _goal(
    ob: bpy.types.Object,
    evaluated: bpy.types.Object,
    chain: ChainPlan,
    depsgraph: bpy.types.Depsgraph,
    to_object: Floats,
) -> GoalSample:
    # Pointers from the original, numbers from the evaluated copy: those may be animated.
    pointers = chain_of(ob.pose.bones[chain.tip])
    numbers = chain_of(evaluated.pose.bones[chain.tip])
    target = _world(pointers.target, pointers.target_bone, depsgraph)
    pole = None if pointers.pole is None else _world(pointers.pole, pointers.pole_bone, depsgraph)
    return GoalSample(
        target=_transformed(to_object, target[:3, 3]),
        rotation=_rotation(to_object @ target) if pointers.use_rotation else None,
        pole=None if pole is None else _transformed(to_object, pole[:3, 3]),
        pole_angle=np.array([numbers.pole_angle], dtype=np.float64),
        softness=np.array([numbers.softness], dtype=np.float64),
        push_limit=np.array([numbers.push_limit], dtype=np.float64),
        tolerance=np.array([numbers.tolerance], dtype=np.float64),
        influence=np.array([numbers.influence], dtype=np.float64),
    )


def _world(goal: bpy.types.Object | None, bone: str, depsgraph: bpy.types.Depsgraph) -> Floats:
    """World matrix (4, 4) of an object, or of one of its bones, at the head."""
    if goal is None:
        return np.full((4, 4), np.nan)
    evaluated = goal.evaluated_get(depsgraph)
    world = matrix_array(evaluated.matrix_world)
    pose_bone = evaluated.pose.bones.get(bone) if bone and evaluated.type == "ARMATURE" else None
    return world if pose_bone is None else world @ matrix_array(pose_bone.matrix)


def _rotation(matrix: Floats) -> Floats:
    """Orientation (1, 3, 3) of a matrix (4, 4); of a mirrored one the X axis is turned round."""
    frame = orthonormal(matrix[:3, :3])
    if np.linalg.det(frame) < 0.0:
        frame[:, 0] = -frame[:, 0]
    return frame[None]


def _transformed(matrix: Floats, point: Floats) -> Floats:
    """A point (3,) in another space, (1, 3); not a number where it is too far away for Blender's single precision."""
    with np.errstate(all="ignore"):
        moved = matrix[:3, :3] @ point + matrix[:3, 3]
    return np.where(np.abs(moved) < FARTHEST, moved, np.nan)[None]
