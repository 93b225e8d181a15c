"""Read an evaluated armature and its goals into arrays: everything that the solve of a frame depends on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np

from ... import compat
from ...data.settings import chain_of
from ...pose import channels
from ...pose.channels import FIELDS, WIDTH, Row
from ...pose.data_paths import set_at, value_at
from ...pose.skeleton import FARTHEST, affine, inverse, inverse_of_one, matrix_array, moved
from ...pose.transforms import basis
from ...solve.maths.products import times
from ...solve.problem import Bools, Floats, Ints
from ..plan.chain_plan import ChainPlan
from ..plan.inputs import Inputs, Numbers
from ..plan.plan import Plan
from ..plan.watch import NUMBERS
from .frames import Frames
from .orientation import orientation


def _number(name: str) -> Any:
    """Return a property of `Goals` for one of `NUMBERS`."""
    return property(lambda goals: goals.settings[..., NUMBERS.index(name)])


@dataclass(frozen=True)
class Goals:
    """The goals of C chains on F frames."""

    target: Floats
    """(F, C, 3) in the armature's object space; not finite if the chain has no target."""
    rotation: Floats
    """(F, C, 3, 3) orientation of the target in the armature's object space, if the tip or the end bone takes it;
    otherwise the identity."""
    pole: Floats
    """(F, C, 3) in the armature's object space; zero if the chain has no pole."""
    settings: Floats
    """(F, C, 5) `NUMBERS`, see the properties."""

    pole_angle = _number("pole_angle")
    """(F, C) in radians."""
    softness = _number("softness")
    """(F, C) as a fraction of chain length, like the two below."""
    push_limit = _number("push_limit")
    """(F, C) the maximum distance by which the root may be pushed."""
    tolerance = _number("tolerance")
    """(F, C) the error that counts as reached."""
    influence = _number("influence")
    """(F, C) from 0, the FK pose, to 1."""

    def __getitem__(self, chosen: Any) -> Goals:
        """Return the goals of the chosen chains: an index, or an array of indices of any shape (...), for (F, ...)."""
        return Goals(**{name: value[:, chosen] for name, value in vars(self).items()})

    def members(self, chosen: Any) -> Goals:
        """Return the goals on the chosen frames, or of the chosen members (B,) of a batch."""
        return Goals(**{name: value[chosen] for name, value in vars(self).items()})


@dataclass(frozen=True)
class Sample:
    """The FK pose of the live bones of one armature and the goals of its chains, on F frames."""

    world: Floats
    """(F, 4, 4) world matrix of the armature object."""
    channels: Row
    """(F, k, 17) FK channels of `Plan.live`."""
    basis: Floats
    """(F, k, 4, 4) basis matrices of these channels."""
    poses: Floats
    """(F, s, 4, 4) pose matrices of `Plan.sampled` in armature space."""
    carried: Floats
    """(F, a, 4, 4) basis matrices of `Plan.carried`."""
    goals: Goals
    """(F, C) goals of `Plan.chains`."""
    seen: Floats | None = None
    """(F, s, 4, 4) poses of `Plan.sampled` in Blender, which attached objects follow; None if the same as `poses`."""

    def frames(self, chosen: slice | Bools | Ints) -> Sample:
        """Return the sample of some of the frames."""
        own = {name: value[chosen] for name, value in vars(self).items() if name != "goals" and value is not None}
        return Sample(**own, goals=self.goals.members(chosen))

    def equals(self, other: Sample) -> bool:
        """Whether all values are exactly the same."""
        # Goals first: they are what moves most often.
        own, others = ({**vars(sample.goals), **vars(sample)} for sample in (self, other))
        return all(np.array_equal(own[name], others[name]) for name in own if name != "goals")


def numbers_now(
    inputs: Inputs,
    depsgraph: bpy.types.Depsgraph,
    fk: Row | None = None,
    *,
    fields: Iterable[str] = FIELDS,
) -> Numbers | None:
    """Return the numbers (1, w) of an evaluated frame; None if one of the objects is gone.

    Args:
        inputs: describes the numbers.
        depsgraph: evaluated at the frame.
        fk: (k, 17) FK channels of the live bones, if the evaluated ones differ from them.
        fields: the channels that are read; the others are 0.
    """
    seen: list[bpy.types.Object] = []
    for placed in inputs.objects:
        original = placed.reference.find()
        if original is None:
            return None
        seen.append(original.evaluated_get(depsgraph))
    numbers = np.empty((1, inputs.width), dtype=np.float32)
    numbers[0, : inputs.rows.start] = _basis_of(seen)
    numbers[0, : inputs.rows.start] += 0.0  # turns -0.0 into 0.0
    rows = numbers[0, inputs.rows].reshape(len(inputs.modes), WIDTH)
    start = 0
    for bones in inputs.armatures:
        count = len(seen[bones.item].pose.bones)
        if count != len(bones.skeleton.names):
            return None
        rows[start : start + len(bones.indices)] = channels.read(seen[bones.item], bones.indices, count, fields)
        start += len(bones.indices)
    if fk is not None:
        rows[inputs.live] = fk
    own = seen[inputs.own].pose.bones
    settings = [chain_of(own[tip]) for tip in inputs.tips]
    numbers[0, inputs.rows.stop :] = [getattr(chain, name) for chain in settings for name in NUMBERS]
    return numbers


def _basis_of(seen: Iterable[bpy.types.Object]) -> list[float]:
    """Return the elements of the basis matrices of objects, row by row."""
    found: list[float] = []
    for matrix in [ob.matrix_basis for ob in seen]:
        for row in range(4):
            found += matrix[row][:]
    return found


def sample(ob: bpy.types.Object, plan: Plan, depsgraph: bpy.types.Depsgraph, fk: Row | None = None) -> Sample:
    """Read one frame (F = 1) from the evaluated copies of the armature and its goals.

    Args:
        ob: the armature object, the original one.
        plan: its plan.
        depsgraph: evaluated at the frame.
        fk: FK channels (k, 17) of the live bones, if the evaluated channels are not the FK pose.
    """
    evaluated = ob.evaluated_get(depsgraph)
    if plan.determined is not None:
        numbers = numbers_now(plan.determined, depsgraph, fk)
        if numbers is not None:
            found = sample_of(plan, Frames(plan.determined, numbers))
            return replace(found, seen=channels.read_pose(evaluated, plan.sampled)[None]) if plan.is_followed else found
    rows = channels.read(evaluated, plan.live) if fk is None else fk
    world = affine(matrix_array(evaluated.matrix_world))
    to_object = inverse_of_one(world)
    return Sample(
        world=world[None],
        channels=rows[None],
        basis=basis(rows, plan.modes, plan.connected)[None],
        poses=channels.read_pose(evaluated, plan.sampled)[None],
        carried=_carried(evaluated, plan),
        goals=_goals(ob, evaluated, plan.chains, depsgraph, to_object),
    )


def _carried(evaluated: bpy.types.Object, plan: Plan) -> Floats:
    found = np.empty((1, len(plan.carried), 4, 4))
    for place, bone in enumerate(plan.sampled[plan.carried].tolist()):
        found[0, place] = evaluated.pose.bones[bone].matrix_basis
    return found


def sample_of(plan: Plan, frames: Frames) -> Sample:
    """Return the sample of F frames that are computed from numbers."""
    inputs, count, chains = frames.inputs, len(frames.settings), len(plan.chains)
    world = affine(frames.world(inputs.own))
    to_object = inverse_of_one(world[0])[None] if len(world) == 1 else inverse(world)
    target, pole = np.empty((count, chains, 3)), np.zeros((count, chains, 3))
    rotation = np.empty((count, chains, 3, 3))
    rotation[:] = np.eye(3)
    for c, (chain, aim, side) in enumerate(zip(plan.chains, inputs.targets, inputs.poles, strict=True)):
        goal = frames.at(aim)
        target[:, c] = goal[:, :3, 3]
        if chain.takes_rotation:
            rotation[:, c] = orientation(times(to_object, goal))
        if side is not None:
            pole[:, c] = frames.at(side)[:, :3, 3]
    with_pole = [c for c, side in enumerate(inputs.poles) if side is not None]
    target = transformed(to_object[:, None], target)
    if with_pole:
        pole[:, with_pole] = transformed(to_object[:, None], pole[:, with_pole])

    def of_all(values: Any) -> Any:
        return values if len(values) == count else np.broadcast_to(values, (count, *values.shape[1:]))

    return Sample(
        world=of_all(world),
        channels=of_all(frames.channels),
        basis=of_all(frames.basis),
        poses=of_all(frames.poses),
        carried=of_all(frames.sampled_basis[:, plan.carried]),
        goals=Goals(target, rotation, pole, frames.settings),
    )


def stack(samples: Sequence[Sample]) -> Sample:
    """Join frames that were sampled one by one into one batch."""

    def joined(parts: Sequence[Any], names: Iterable[str]) -> dict[str, Any]:
        return {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}

    goals = [one.goals for one in samples]
    own = joined(samples, ("world", "channels", "basis", "poses", "carried"))
    return Sample(**own, goals=Goals(**joined(goals, vars(goals[0]))))


def _goals(
    ob: bpy.types.Object,
    evaluated: bpy.types.Object,
    chains: Sequence[ChainPlan],
    depsgraph: bpy.types.Depsgraph,
    to_object: Floats,
) -> Goals:
    """Return the goals (1, C) of chains on the frame at which the depsgraph is evaluated."""
    originals, bones = ob.pose.bones, evaluated.pose.bones
    targets: list[Floats] = []
    numbers = []
    poles: dict[int, Floats] = {}
    rotations: dict[int, Floats] = {}
    for c, chain in enumerate(chains):
        # Pointers come from the original, numbers from the evaluated copy, as they may be animated.
        pointers, seen = chain_of(originals[chain.tip]), chain_of(bones[chain.tip])
        numbers.append([getattr(seen, name) for name in NUMBERS])
        goal = _world(pointers.target, pointers.target_bone, depsgraph)
        targets.append(goal[:3, 3])
        if chain.takes_rotation:
            rotations[c] = orientation(to_object @ goal)
        if chain.has_pole:
            # A pole that was deleted since planning gives no direction; neither does one placed at the target.
            gone = pointers.pole is None
            poles[c] = (goal if gone else _world(pointers.pole, pointers.pole_bone, depsgraph))[:3, 3]
    pole = np.zeros((len(chains), 3))
    rotation = np.tile(np.eye(3), (len(chains), 1, 1))
    if poles:
        pole[list(poles)] = transformed(to_object, np.array(list(poles.values())))
    if rotations:
        rotation[list(rotations)] = list(rotations.values())
    settings = np.array(numbers, dtype=np.float64).reshape(1, -1, len(NUMBERS))
    target = transformed(to_object, np.array(targets).reshape(-1, 3))
    return Goals(target[None], rotation[None], pole[None], settings)


def in_object_space(world: Floats, points: Floats) -> Floats:
    """Transform points (C, 3) from world space to the space of an armature object with this world matrix (4, 4)."""
    return transformed(inverse_of_one(world), points)


def _world(goal: bpy.types.Object | None, bone: str, depsgraph: bpy.types.Depsgraph) -> Floats:
    """Return the world matrix (4, 4) of an object, or of its bone at the head."""
    if goal is None:
        return np.full((4, 4), np.nan)
    evaluated = goal.evaluated_get(depsgraph)
    world = affine(matrix_array(evaluated.matrix_world))
    pose_bone = evaluated.pose.bones.get(bone) if bone and evaluated.type == "ARMATURE" else None
    return world if pose_bone is None else world @ matrix_array(pose_bone.matrix)


def transformed(matrices: Floats, points: Floats) -> Floats:
    """Transform points (..., 3) by matrices; NaN where they are too far away for Blender's single precision."""
    with np.errstate(all="ignore"):
        there = moved(matrices, points)
        return np.where(np.abs(there) < FARTHEST, there, np.nan)


def take_animated(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
    """Set the animated properties of the original armature object, and of its armature, to their evaluated values.

    In a render the originals are on the frame of the viewport. Writing to them makes Blender copy them again without
    animating the copies, so everything but the written channels would be rendered as on another frame.
    """
    seen = ob.evaluated_get(depsgraph)
    _take(ob, seen)
    _take(ob.data, seen.data)


def _take(original: Any, evaluated: Any) -> None:
    paths = {curve.data_path for curve in compat.animating(original)}
    # Rotation modes first: setting one converts the rotation.
    for path in sorted(paths, key=lambda path: not path.endswith("rotation_mode")):
        value = value_at(evaluated, path)
        with suppress(ValueError, AttributeError, TypeError, KeyError):  # an F-curve's property may not exist
            set_at(original, path, value)
