"""Mirror a chain to the bones of the other side, with its limits, target and pole."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Quaternion

from ..core.chain_settings import IKAddonChain
from ..core.goals import Goal
from ..core.mirror import ACROSS, across_bones, mirrored_matrix
from ..core.settings import OF_BONES, chain_of, goal_of, mirrored
from ..core.translation.sentences import UserError, say
from ..rig.plan.chain import below, chain_bones, end_of
from ..rig.plan.followers import followers, mark, owner_of
from ..rig.plan.presence import Presence
from ..rig.plan.unfit import why_absent
from . import control_bones as control_bones
from .make_controls import is_free
from .new_chain import why_unusable

ALIGNED = np.cos(np.radians(1.0))
"""Axes are the same if the cosine between their directions is at least this."""
AXES = "xyz"


@dataclass(frozen=True)
class _Image:
    """A target or pole of the mirrored chain."""

    source: bpy.types.Object | None
    """The target or pole of the chain that is mirrored."""
    bone: str
    """The bone on the other side."""
    name: str
    """Name of the object on the other side; empty if it is the same object."""
    world: Matrix | None
    """World matrix of that object, or of the bone; None if nothing is placed."""
    own: bpy.types.Object | None = None
    """That object, if the other side has it already."""


def mirror_chain(
    context: bpy.types.Context, ob: bpy.types.Object, tip: bpy.types.PoseBone
) -> tuple[bpy.types.PoseBone, list[str]]:
    """Put the mirror image of the chain on `tip` on the bones of the other side.

    A chain that is already there gets the settings and keeps the target and pole that it has; those that Add Chain made
    move to the mirrored place, unless they are animated. Otherwise a target or pole that is an object gets a mirrored
    copy, and in place of a bone the chain follows that of the other side. The mirror plane is across the X axis of the
    armature object.

    Args:
        context: for the view layer.
        ob: the armature object.
        tip: a bone of the armature with a chain.

    Returns:
        The tip on the other side, and sentences about what is mirrored only approximately or stays where it is.

    Raises:
        UserError: if the chain can't be mirrored; nothing is changed then.
    """
    context.view_layer.update()
    if reason := why_unusable(tip):
        raise UserError(reason)
    other = _other_tip(ob, tip)
    _pairs(tip, other)
    target = _goal(context, ob, tip, other, "target")
    pole = _goal(context, ob, tip, other, "pole")
    _end_pair(tip, other)
    unmade = [role for role, goal in (("target", target), ("pole", pole)) if goal.own is None]
    tip, other = _with_control_bones(context, ob, tip, other, unmade)
    chain, pairs, end = chain_of(tip), _pairs(tip, other), _end_pair(tip, other)

    with_end = pairs if end is None else [*pairs, end]
    remarks = [remark for bone, image in with_end if bone != image and (remark := _mirror_limits(bone, image))]
    for bone, of_other in with_end:
        for name in OF_BONES:
            setattr(chain_of(of_other), name, getattr(chain_of(bone), name))
    image = chain_of(other)
    for name, sign in mirrored().items():
        value = getattr(chain, name)
        setattr(image, name, value if sign > 0.0 else -value)
    image.target, image.target_bone = _placed(context, ob, target, remarks), target.bone
    image.pole, image.pole_bone = _placed(context, ob, pole, remarks), pole.bone
    image.bend_side = across_bones(pairs[0][0].bone, pairs[0][1].bone) @ chain.bend_side
    image.end_bone = "" if end is None else end[1].name
    is_image = not target.bone or target.source == chain.target
    if end is not None and is_image and target.bone == bpy.utils.flip_name(chain.target_bone):
        image.end_offset = _mirrored_offset(chain, *end)
    image.is_chain = True
    # Live solves now, so that everything is one undo step.
    context.view_layer.update()
    return other, remarks


# ---- bones


def _other_tip(ob: bpy.types.Object, tip: bpy.types.PoseBone) -> bpy.types.PoseBone:
    name = bpy.utils.flip_name(tip.name)
    if name == tip.name:
        raise UserError(
            "Bone '{tip}' has no side in its name. Add one, such as '.L' or '.R', to mirror it", tip=tip.name
        )
    if name not in ob.pose.bones:
        raise UserError("'{object}' has no bone '{name}' for the mirrored chain", object=ob.name, name=name)
    return ob.pose.bones[name]


def _pairs(tip: bpy.types.PoseBone, other: bpy.types.PoseBone) -> list[tuple[bpy.types.PoseBone, bpy.types.PoseBone]]:
    """Pair the bones of a chain with those of the other side; a bone in the middle is its own image."""
    bones = chain_bones(tip)
    images = [other, *other.parent_recursive][: len(bones)][::-1]
    for bone, image in zip(bones, images, strict=False):
        if bpy.utils.flip_name(bone.name) != image.name:
            raise UserError(
                "'{image}' is not the mirror image of '{bone}'. Rename or reparent the bones",
                image=image.name,
                bone=bone.name,
            )
    if len(images) < len(bones):
        raise UserError(
            "'{other}' has too few parents: {count}, but the chain needs {needed}",
            other=other.name,
            count=len(images) - 1,
            needed=len(bones) - 1,
        )
    return list(zip(bones, images, strict=True))


def _end_pair(
    tip: bpy.types.PoseBone, other: bpy.types.PoseBone
) -> tuple[bpy.types.PoseBone, bpy.types.PoseBone] | None:
    """Return the end bone of a chain with that of the other side; None if it has no end bone."""
    end = end_of(tip)
    if end is None:
        return None
    name = bpy.utils.flip_name(end.name)
    image = below(other, name)
    if image is None:
        raise UserError(
            "There is no bone '{name}' below '{other}' to mirror the end bone '{end}' to",
            other=other.name,
            name=name,
            end=end.name,
        )
    return end, image


def _mirrored_offset(chain: IKAddonChain, end: bpy.types.PoseBone, image: bpy.types.PoseBone) -> Quaternion:
    """Return the end offset of the mirrored chain, relative to its target, a mirrored object or bone."""
    of_target = np.diag(ACROSS)
    if chain.target is not None and chain.target.type == "ARMATURE" and chain.target_bone:
        bones = chain.target.data.bones
        of_target = across_bones(bones[chain.target_bone], bones[bpy.utils.flip_name(chain.target_bone)])
    offset = np.array(chain.end_offset.normalized().to_matrix())
    return Matrix((of_target @ offset @ across_bones(end.bone, image.bone).T).tolist()).to_quaternion()


def _with_control_bones(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tip: bpy.types.PoseBone,
    other: bpy.types.PoseBone,
    roles: Sequence[str],
) -> tuple[bpy.types.PoseBone, bpy.types.PoseBone]:
    """Make control bones on the other side where those of a chain have no image; return both tips."""
    wanted = []
    for role in roles:
        bone = getattr(chain_of(tip), f"{role}_bone")
        if _is_to_be_made(ob, tip, role):
            control = ob.pose.bones[bone]
            mirrored = mirrored_matrix(ob.matrix_world @ control.matrix, ob.matrix_world)
            wanted.append(control_bones.image_of(ob, bone, mirrored))
    names = tip.name, other.name
    if wanted:
        control_bones.add(context, ob, wanted)
    return ob.pose.bones[names[0]], ob.pose.bones[names[1]]


def _is_to_be_made(ob: bpy.types.Object, tip: bpy.types.PoseBone, role: str) -> bool:
    """Return whether the target or pole of a chain is a control bone that Add Chain made and that has no image yet."""
    goal, bone = goal_of(chain_of(tip), role)
    flipped = bpy.utils.flip_name(bone)
    return goal == ob and Goal(ob, bone).is_made and flipped != bone and flipped not in ob.pose.bones


def _mirror_limits(bone: bpy.types.PoseBone, image: bpy.types.PoseBone) -> str:
    """Copy the mirrored IK limits, locks and stiffness of a bone to its image; return what is only approximate."""
    axes = -across_bones(bone.bone, image.bone)
    found = np.argmax(np.abs(axes), axis=1)
    for axis, source in zip(AXES, found.tolist(), strict=True):
        old, sign = AXES[source], axes[AXES.index(axis), source]
        for name in ("lock_ik_{}", "use_ik_limit_{}", "ik_stiffness_{}"):
            setattr(image, name.format(axis), getattr(bone, name.format(old)))
        low, high = getattr(bone, f"ik_min_{old}"), getattr(bone, f"ik_max_{old}")
        low, high = (low, high) if sign > 0.0 else (-high, -low)
        setattr(image, f"ik_min_{axis}", low)
        setattr(image, f"ik_max_{axis}", high)
    image.ik_stretch = bone.ik_stretch
    if np.abs(axes).max(axis=1).min() < ALIGNED:
        return say(
            "The roll of '{image}' doesn't mirror '{bone}', so its limits are only approximate",
            image=image.name,
            bone=bone.name,
        )
    return ""


# ---- targets and poles


def _goal(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tip: bpy.types.PoseBone,
    other: bpy.types.PoseBone,
    role: str,
) -> _Image:
    """Return what the mirrored chain follows in place of a target or pole."""
    source, bone = goal_of(chain_of(tip), role)
    if source is None:
        return _Image(None, "", "", None)
    if reason := why_absent(source, Presence(context.view_layer)):
        raise UserError(reason)
    if source.type == "ARMATURE" and bone:
        flipped = bpy.utils.flip_name(bone)
        if flipped not in source.pose.bones and not _is_to_be_made(ob, tip, role):
            raise UserError(
                {
                    "target": "The target of the chain is bone '{bone}', but '{source}' has no bone '{flipped}'",
                    "pole": "The pole of the chain is bone '{bone}', but '{source}' has no bone '{flipped}'",
                }[role],
                bone=bone,
                source=source.name,
                flipped=flipped,
            )
        if (chosen := _chosen(context, other, role, {Goal(source, bone), Goal(source, flipped)})) is not None:
            return chosen
        own = ob.pose.bones.get(flipped) if source == ob and flipped != bone else None
        if own is None or not Goal(ob, flipped).is_made:
            return _Image(source, flipped, "", None)
        posed = ob.pose.bones[bone]
        mirrored = mirrored_matrix(ob.matrix_world @ posed.matrix, ob.matrix_world)
        turned = Matrix((np.diag(ACROSS) @ across_bones(posed.bone, own.bone).T).tolist()).to_4x4()
        return _Image(source, flipped, "", mirrored @ turned, source)
    if (chosen := _chosen(context, other, role, {Goal(source)})) is not None:
        return chosen
    depsgraph = context.view_layer.depsgraph
    plane = ob.evaluated_get(depsgraph).matrix_world
    world = mirrored_matrix(Goal(source).world(depsgraph), plane)
    name = _flipped_name(source.name, tip.name, other.name, role)
    return _Image(source, "", name, world, _already_there(context, ob, other, role, source, name))


def _chosen(
    context: bpy.types.Context, other: bpy.types.PoseBone, role: str, replaced: Collection[Goal]
) -> _Image | None:
    """Return the target or pole that a user chose for the other side; None if it has none, or one to be replaced."""
    goal, name = goal_of(chain_of(other), role)
    if goal is None or why_absent(goal, Presence(context.view_layer)):
        return None
    own = Goal(goal, name if Goal(goal, name).is_bone else "")
    if own in replaced or own.is_made:
        return None
    return _Image(goal, own.bone, "", Matrix(), goal)


def _already_there(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    other: bpy.types.PoseBone,
    role: str,
    source: bpy.types.Object,
    name: str,
) -> bpy.types.Object | None:
    """Return the target or pole made for the other side: the one that it has, or one that nobody follows now."""
    goal, bone = goal_of(chain_of(other), role)
    objects: Any = bpy.data.objects
    left = objects.get((name, None))  # not a linked one of that name
    if goal is not None and not bone and Goal(goal).is_made and owner_of(goal) in (ob, None):
        found = goal
    elif left is not None and Goal(left).is_made and not followers(left):
        found = left
    else:
        return None
    return None if found == source or why_absent(found, Presence(context.view_layer)) else found


def _flipped_name(name: str, tip: str, other: str, role: str) -> str:
    if name.endswith(tip):
        return name.removesuffix(tip) + other
    flipped = bpy.utils.flip_name(name)
    return flipped if flipped != name else f"IK {role.title()} {other}"


def _placed(
    context: bpy.types.Context, ob: bpy.types.Object, goal: _Image, remarks: list[str]
) -> bpy.types.Object | None:
    """Return the object of a goal and place it, unless it is the user's or animated; a remark then says so."""
    if goal.world is None:
        return goal.source
    if goal.own is not None:
        own = Goal(goal.own, goal.bone)
        if not (own.is_made and is_free(own, ob)):
            remarks.append(say("'{goal}' stays where it is", goal=own.name))
            return goal.own
    if goal.bone:
        context.view_layer.update()
        ob.pose.bones[goal.bone].matrix = ob.matrix_world.inverted_safe() @ goal.world
        return goal.source
    found = _copy(ob, goal) if goal.own is None else goal.own
    context.view_layer.update()
    found.matrix_world = goal.world
    return found


def _copy(ob: bpy.types.Object, goal: _Image) -> bpy.types.Object:
    """Copy a target of an armature without its animation and constraints, attached to the bone of the other side."""
    copy = goal.source.copy()
    copy.name = goal.name
    mark(copy, ob)
    copy.animation_data_clear()
    for constraint in list(copy.constraints):
        copy.constraints.remove(constraint)
    if copy.parent_type == "BONE":
        flipped = bpy.utils.flip_name(copy.parent_bone)
        copy.parent_bone = flipped if flipped in copy.parent.pose.bones else copy.parent_bone
    for collection in goal.source.users_collection:
        collection.objects.link(copy)
    return copy
