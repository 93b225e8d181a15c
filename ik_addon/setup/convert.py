"""Convert Blender's IK constraints to chains, and restore them exactly.

What was changed is remembered on the bones themselves, as custom properties: it survives saving, renaming and undo.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from ..data.settings import chain_of, object_of
from ..live import reports
from ..pose import channels
from ..pose.skeleton import Skeleton
from ..rig.plan.chain import ChainError, chain_bones
from ..solve.problem import Floats
from . import bend_side, new_chain
from .ik_constraint import (
    bones_of,
    curves_of,
    drop_animation,
    influence_path,
    make_chain,
    obstacle,
    pole_angle_of,
    tip_of,
)
from .present import Limb, largest_turn, read_poses, seen_from, world_of

CONVERTED = "ik_addon_converted"
"""Custom property of a bone whose IK constraint was converted: what is needed to restore it."""
FK_BEFORE = "ik_addon_fk_before"
"""Custom property of a bone whose solved pose became its FK pose: the channels that it had before."""
MOVED = 1e-4
"""A tip that moved by more than this, in chain lengths, is reported."""
TURNED = math.radians(0.1)
"""A bone that turned by more than this is reported."""


class ConvertError(Exception):
    """Nothing was converted or restored; the message says why and what to do."""


@dataclass(frozen=True)
class Conversion:
    """The result of converting the constraints of an armature."""

    tips: tuple[str, ...]
    """The tip bones of the new chains."""
    distance: float
    """The largest distance that a tip moved, in chain lengths."""
    angle: float
    """The largest angle that a bone turned by, in radians."""
    notes: tuple[str, ...]
    """What else was changed."""
    warnings: tuple[str, ...]
    """What was not converted, or changed by it."""

    @property
    def message(self) -> str:
        """The report in sentences."""
        count = len(self.tips)
        moved = (
            f"Converted {count} IK constraint{'s' * (count != 1)} and turned Live on. "
            f"Tips moved by up to {reports.percent(self.distance)} of the chain's length, "
            f"bones turned by up to {math.degrees(self.angle):.2g}°"
        )
        return ". ".join([moved, *self.warnings, *self.notes])


@dataclass(frozen=True)
class _Move:
    """How the pose of one chain changed."""

    distance: float
    """How far its tip moved, in chain lengths."""
    angle: float
    """The largest angle that a bone turned by, in radians."""
    nearer: bool
    """Its tip is closer to its target, which the constraint had missed."""

    def message(self, tip: str) -> str:
        """The move as a sentence."""
        closer = ", closer to its target" * self.nearer
        return (
            f"The tip of '{tip}' moved by {reports.percent(self.distance)} of the chain's length{closer}, and "
            f"its bones turned by up to {math.degrees(self.angle):.2g}°"
        )


def ik_constraints(
    ob: bpy.types.Object,
) -> Iterator[tuple[bpy.types.PoseBone, bpy.types.KinematicConstraint]]:
    """The enabled IK constraints of an armature object, each with its bone."""
    for bone in ob.pose.bones:
        for constraint in bone.constraints:
            if isinstance(constraint, bpy.types.KinematicConstraint) and not constraint.mute:
                yield bone, constraint


def converted_bones(ob: bpy.types.Object) -> list[bpy.types.PoseBone]:
    """The bones with an IK constraint that was converted."""
    return [bone for bone in ob.pose.bones if _remembered(bone, CONVERTED) is not None]


def _remembered(bone: bpy.types.PoseBone, name: str) -> Any:
    """A custom property of a bone; None where it has none, or one that something else wrote."""
    holder: Any = bone  # the stubs know of no custom properties
    found = holder.get(name)
    try:
        is_ours = _WRITTEN[name](found)
    except (TypeError, KeyError, ValueError):
        return None
    return found if is_ours else None


def _is_conversion(found: Any) -> bool:
    return isinstance(found["constraint"], str) and isinstance(found["was_live"], bool | int)


def _is_pose(found: Any) -> bool:
    row = np.array(found["channels"], dtype=np.float32)
    return found["mode"] in channels.MODES and row.shape == channels.REST.shape and bool(np.isfinite(row).all())


_WRITTEN = {CONVERTED: _is_conversion, FK_BEFORE: _is_pose}
"""Checks whether a custom property still has what was written into it."""


def convert(context: bpy.types.Context, ob: bpy.types.Object) -> Conversion:
    """Make a chain of every enabled IK constraint of an armature object, mute it, and switch Live on.

    A constraint that cannot be converted stays as it is. Where a chain would find another pose than the constraint,
    the current pose becomes the FK pose of its bones, unless they are animated.

    Args:
        context: for the view layer.
        ob: the armature object.

    Raises:
        ConvertError: none can be converted; nothing was changed.
    """
    _check_armature(ob)
    view_layer = context.view_layer
    view_layer.update()
    skeleton = Skeleton.of(ob)
    try:
        new_chain.check_world(ob, ob.evaluated_get(view_layer.depsgraph).matrix_world)
    except ChainError as error:
        raise ConvertError(str(error)) from None
    before = read_poses(ob, view_layer.depsgraph)
    was_live = object_of(ob).live
    made: dict[str, str] = {}  # the bone with the constraint, by the tip of the new chain
    warnings: list[str] = []
    for owner, constraint in list(ik_constraints(ob)):
        reason = obstacle(ob, owner, constraint, made)
        if not reason and _remembered(owner, CONVERTED) is not None:
            reason = f"'{owner.name}' already has a converted constraint"
        if reason:
            warnings.append(f"'{constraint.name}' on '{owner.name}' was not converted: {reason}")
            continue
        bones = [ob.pose.bones[i] for i in bones_of(ob, owner, constraint)]
        side = bend_side.shown_by(ob, bones, skeleton, before)
        if side is None and (found := bend_side.find(ob, bones, view_layer.depsgraph)) is not None:
            side = found[0]
        side = np.zeros(3) if side is None else side
        angle = pole_angle_of(ob, skeleton, owner, constraint, before, side, view_layer.depsgraph)
        owner[CONVERTED] = {"constraint": constraint.name, "was_live": was_live}
        warnings += make_chain(ob, owner, constraint, angle)
        chain_of(tip_of(owner, constraint)).bend_side = side
        made[tip_of(owner, constraint).name] = owner.name
    _solve(ob, view_layer, made)
    while failed := {tip: report for tip in made if (report := reports.get(ob, tip)) is None or report.failed}:
        for tip, report in failed.items():
            name = ob.pose.bones[made[tip]][CONVERTED]["constraint"]
            why = "the chain could not be solved" if report is None else report.message
            warnings.append(f"'{name}' on '{made[tip]}' was not converted: {why}")
        _take_back(context, ob, [ob.pose.bones[made.pop(tip)] for tip in failed])
        _solve(ob, view_layer, made)
    if not made:
        raise ConvertError(". ".join(warnings))
    kept = _keep_pose(ob, view_layer, skeleton, before, list(made))
    after = read_poses(ob, view_layer.depsgraph)
    moves = {tip: _move(ob, view_layer, skeleton, tip, before, after) for tip in made}
    warnings += [move.message(tip) for tip, move in moves.items() if move.distance > MOVED or move.angle > TURNED]
    return Conversion(
        tips=tuple(made),
        distance=max(move.distance for move in moves.values()),
        angle=max(move.angle for move in moves.values()),
        notes=tuple(f"The current pose is now the FK pose of the chain on '{tip}'" for tip in kept),
        warnings=tuple(warnings),
    )


def restore(context: bpy.types.Context, ob: bpy.types.Object) -> list[str]:
    """Remove the chains that `convert` made and unmute their constraints; return the names of their bones.

    Raises:
        ConvertError: a constraint is gone; nothing was changed.
    """
    owners = converted_bones(ob)
    for owner in owners:
        name = owner[CONVERTED]["constraint"]
        if not isinstance(owner.constraints.get(name), bpy.types.KinematicConstraint):
            raise ConvertError(
                f"Bone '{owner.name}' has no IK constraint '{name}' any more. Give it its name back, or delete the "
                f"custom property '{CONVERTED}' of the bone"
            )
    _take_back(context, ob, owners)
    return [owner.name for owner in owners]


# ---- checks


def _check_armature(ob: bpy.types.Object) -> None:
    if ob.override_library is not None:
        raise ConvertError(
            f"'{ob.name}' is a library override, which can't remember what was converted. "
            "Convert its constraints in the file that it comes from"
        )
    if ob.pose.ik_solver == "ITASC":
        raise ConvertError(
            f"'{ob.name}' uses the iTaSC solver, whose constraints work differently. "
            "Set its IK Solver to Standard in the Armature properties first"
        )
    if ob.data.pose_position == "REST":
        raise ConvertError(f"'{ob.name}' is in its rest position. Switch it to Pose Position")


# ---- the pose


def _solve(ob: bpy.types.Object, view_layer: bpy.types.ViewLayer, made: Iterable[str]) -> None:
    if made:
        object_of(ob).live = True
        view_layer.update()


def _move(
    ob: bpy.types.Object,
    view_layer: bpy.types.ViewLayer,
    skeleton: Skeleton,
    tip: str,
    before: Floats,
    after: Floats,
) -> _Move:
    """How the pose of a chain changed between two poses (m, 4, 4) of its armature."""
    chain = chain_of(ob.pose.bones[tip])
    bones = [ob.pose.bones.find(bone.name) for bone in chain_bones(ob.pose.bones[tip])]
    old, new = (Limb.of(skeleton, bones, poses) for poses in (before, after))
    depsgraph = view_layer.depsgraph
    target = seen_from(ob, world_of(chain.target, chain.target_bone, depsgraph).translation, depsgraph)
    missed, misses, distance = (
        float(np.linalg.norm(a - b)) / max(old.length, 1e-30)
        for a, b in ((old.tip, target), (new.tip, target), (old.tip, new.tip))
    )
    return _Move(distance, largest_turn(old.frames, new.frames), misses < missed)


def _keep_pose(
    ob: bpy.types.Object,
    view_layer: bpy.types.ViewLayer,
    skeleton: Skeleton,
    before: Floats,
    tips: list[str],
) -> list[str]:
    """Make an earlier pose (m, 4, 4) the FK pose of chains that would otherwise leave it; return their tips.

    Not where the FK pose can be seen or comes from keys: there it must stay as it is.
    """
    after = read_poses(ob, view_layer.depsgraph)
    animated = [curve.data_path for curve in curves_of(ob)]
    in_nla = ob.animation_data is not None and len(ob.animation_data.nla_tracks) > 0

    def can_be_kept(tip: bpy.types.PoseBone) -> bool:
        paths = (influence_path(tip), *(f"{bone.path_from_id()}.rotation" for bone in chain_bones(tip)))
        return not in_nla and chain_of(tip).influence == 1.0 and not any(a.startswith(paths) for a in animated)

    kept = [
        tip
        for tip in tips
        if _move(ob, view_layer, skeleton, tip, before, after).angle > 0.2 * TURNED and can_be_kept(ob.pose.bones[tip])
    ]
    if not kept:
        return []
    object_of(ob).live = False
    bones = sorted({skeleton.names.index(bone.name) for tip in kept for bone in chain_bones(ob.pose.bones[tip])})
    indices = np.array(bones)
    rows = channels.read(ob, indices)
    for bone, row in zip(bones, rows, strict=True):
        pose_bone = ob.pose.bones[bone]
        pose_bone[FK_BEFORE] = {"mode": pose_bone.rotation_mode, "channels": row.tolist()}
    channels.write(ob, indices, _with_poses(ob, skeleton, bones, rows, before))
    object_of(ob).live = True
    view_layer.update()
    return kept


def _with_poses(
    ob: bpy.types.Object, skeleton: Skeleton, bones: list[int], rows: channels.Row, poses: Floats
) -> channels.Row:
    """Channels (k, 17) of bones with the rotations that give them their pose among (m, 4, 4)."""
    above = [None if (parent := skeleton.parents[bone]) < 0 else poses[None, parent] for bone in bones]
    basis = np.concatenate(
        [skeleton.to_basis(ob, bone, poses[None, bone], parent) for bone, parent in zip(bones, above, strict=True)]
    )
    modes = np.array([ob.pose.bones[bone].rotation_mode for bone in bones])
    return channels.with_rotation(rows, channels.basis_rotation(basis, rows), modes)


def _take_back(context: bpy.types.Context, ob: bpy.types.Object, owners: list[bpy.types.PoseBone]) -> None:
    """Undo the conversion of the constraints of these bones."""
    live_before = object_of(ob).live and all(owner[CONVERTED]["was_live"] for owner in owners)
    constraints = [owner.constraints[owner[CONVERTED]["constraint"]] for owner in owners]
    tips = [tip_of(owner, constraint) for owner, constraint in zip(owners, constraints, strict=True)]
    for tip in tips:
        if chain_of(tip).is_chain:
            chain_of(tip).enabled = False
    context.view_layer.update()  # also restores FK poses that are not keyed, unlike removing a solved chain
    for owner, tip in zip(owners, tips, strict=True):
        drop_animation(ob, tip)
        if chain_of(tip).is_chain:
            new_chain.remove_chain(context, tip, remove_goals=False)
        del owner[CONVERTED]
    if not live_before:
        object_of(ob).live = False
    for constraint in constraints:
        constraint.mute = False
    if not converted_bones(ob):
        for bone in ob.pose.bones:
            _put_fk_back(ob, bone)
    context.view_layer.update()


def _put_fk_back(ob: bpy.types.Object, bone: bpy.types.PoseBone) -> None:
    remembered = _remembered(bone, FK_BEFORE)
    if remembered is None:
        return
    row = np.array(remembered["channels"], dtype=np.float32)
    if remembered["mode"] != bone.rotation_mode:
        row = channels.convert_rotation(row, remembered["mode"], bone.rotation_mode)
    channels.write(ob, np.array([ob.pose.bones.find(bone.name)]), row[None])
    del bone[FK_BEFORE]
