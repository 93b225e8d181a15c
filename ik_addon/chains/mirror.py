"""Mirror a chain to the bones of the other side, with its limits, target and pole."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import bpy
import numpy as np
from bpy.types import Context, Object, PoseBone
from mathutils import Matrix, Quaternion

from ..core.chain_settings import IKAddonChain
from ..core.goals import Goal
from ..core.settings import OF_BONES, ROLES, chain_of, goal_of, mirrored
from ..core.skeleton import ACROSS, across_bones, mirrored_matrix
from ..core.translation.sentences import UserError, say
from ..core.untyped import own_object
from ..rig.plan.chain import below, chain_bones, end_of
from ..rig.plan.followers import followers, mark, owner_of
from ..rig.plan.presence import Presence, why_absent
from . import make_controls
from .new_chain import why_unusable

ALIGNED = np.cos(np.radians(1.0))
"""Axes are the same if the cosine between their directions is at least this."""
AXES = "xyz"

_Pair = tuple[PoseBone, PoseBone]
"""A bone and its mirror image."""


@dataclass(frozen=True)
class _Image:
    """A target or pole of the mirrored chain."""

    source: Object | None
    """The target or pole of the chain that is mirrored."""
    bone: str
    """The bone on the other side."""
    name: str
    """Name of the object on the other side; empty if it is the same object."""
    world: Matrix | None
    """World matrix of that object, or of the bone; None if nothing is placed."""
    own: Object | None = None
    """That object, if the other side has it already."""


def mirror_chain(context: Context, tip: PoseBone) -> tuple[PoseBone, list[str]]:
    """Put the mirror image of the chain on `tip` on the bones of the other side.

    A chain that is already there gets the settings and keeps the target and pole that it has; those that Add Chain made
    move to the mirrored place, unless they are animated. Otherwise a target or pole that is an object gets a mirrored
    copy, and in place of a bone the chain follows that of the other side. The mirror plane is across the X axis of the
    armature object.

    Args:
        context: for the view layer.
        tip: the tip bone of a chain.

    Returns:
        The tip on the other side, and sentences about what is mirrored only approximately or stays where it is.

    Raises:
        UserError: if the chain can't be mirrored; nothing is changed then.
    """
    context.view_layer.update()
    if reason := why_unusable(tip):
        raise UserError(reason)
    sides = _Sides(context, tip.id_data, tip, _other_tip(tip))
    sides.pairs()
    target, pole = (sides.image(role) for role in ROLES)
    sides.end_pair()
    sides.add_control_bones([role for role, image in zip(ROLES, (target, pole), strict=True) if image.own is None])
    other, chain, pairs, end = sides.other, chain_of(sides.tip), sides.pairs(), sides.end_pair()

    with_end = pairs if end is None else [*pairs, end]
    remarks = [remark for bone, image in with_end if bone != image and (remark := _mirror_limits(bone, image))]
    for bone, of_other in with_end:
        for name in OF_BONES:
            setattr(chain_of(of_other), name, getattr(chain_of(bone), name))
    image = chain_of(other)
    for name, sign in mirrored().items():
        value = getattr(chain, name)
        setattr(image, name, value if sign > 0.0 else -value)
    image.target, image.target_bone = sides.place(target, remarks), target.bone
    image.pole, image.pole_bone = sides.place(pole, remarks), pole.bone
    image.bend_side = across_bones(pairs[0][0].bone, pairs[0][1].bone) @ chain.bend_side
    image.end_bone = "" if end is None else end[1].name
    is_image = not target.bone or target.source == chain.target
    if end is not None and is_image and target.bone == bpy.utils.flip_name(chain.target_bone):
        image.end_offset = _mirrored_offset(chain, *end)
    image.is_chain = True
    # Live solves now, so that everything is one undo step.
    context.view_layer.update()
    return other, remarks


def _other_tip(tip: PoseBone) -> PoseBone:
    ob, name = tip.id_data, bpy.utils.flip_name(tip.name)
    if name == tip.name:
        no_side = "Bone '{tip}' has no side in its name. Add one, such as '.L' or '.R', to mirror it"
        raise UserError(no_side, tip=tip.name)
    if name not in ob.pose.bones:
        raise UserError("'{object}' has no bone '{name}' for the mirrored chain", object=ob.name, name=name)
    return ob.pose.bones[name]


@dataclass
class _Sides:
    """A chain, and the bones of the other side that get its mirror image."""

    context: Context
    ob: Object
    tip: PoseBone
    other: PoseBone
    """The tip of the mirrored chain."""

    # ---- bones

    def pairs(self) -> list[_Pair]:
        """Pair the bones of the chain with those of the other side; a bone in the middle is its own image."""
        bones = chain_bones(self.tip)
        images = [self.other, *self.other.parent_recursive][: len(bones)][::-1]
        for bone, image in zip(bones, images, strict=False):
            if bpy.utils.flip_name(bone.name) != image.name:
                differs = "'{image}' is not the mirror image of '{bone}'. Rename or reparent the bones"
                raise UserError(differs, image=image.name, bone=bone.name)
        if len(images) < len(bones):
            few = "'{other}' has too few parents: {count}, but the chain needs {needed}"
            raise UserError(few, other=self.other.name, count=len(images) - 1, needed=len(bones) - 1)
        return list(zip(bones, images, strict=True))

    def end_pair(self) -> _Pair | None:
        """Return the end bone of the chain with that of the other side; None if it has no end bone."""
        end = end_of(self.tip)
        if end is None:
            return None
        name = bpy.utils.flip_name(end.name)
        image = below(self.other, name)
        if image is None:
            lacking = "There is no bone '{name}' below '{other}' to mirror the end bone '{end}' to"
            raise UserError(lacking, other=self.other.name, name=name, end=end.name)
        return end, image

    def add_control_bones(self, roles: Sequence[str]) -> None:
        """Make control bones on the other side where those of the chain have no image."""
        names = [goal_of(chain_of(self.tip), role)[1] for role in roles if self._lacks_control(role)]
        if names:
            tips = self.tip.name, self.other.name
            wanted = [make_controls.image_of(self.ob, name, self._mirrored_bone(name)) for name in names]
            make_controls.add_bones(self.context, self.ob, wanted)
            self.tip, self.other = (self.ob.pose.bones[name] for name in tips)

    def _lacks_control(self, role: str) -> bool:
        """Return whether the target or pole is a control bone that Add Chain made and that has no image yet."""
        goal, bone = goal_of(chain_of(self.tip), role)
        flipped = bpy.utils.flip_name(bone)
        return goal == self.ob and Goal(goal, bone).is_made and flipped != bone and flipped not in goal.pose.bones

    def _mirrored_bone(self, name: str) -> Matrix:
        """Return the mirrored pose of a bone of the armature, in world space."""
        return mirrored_matrix(self.ob.matrix_world @ self.ob.pose.bones[name].matrix, self.ob.matrix_world)

    # ---- targets and poles

    def image(self, role: str) -> _Image:
        """Return what the mirrored chain follows in place of the target or pole."""
        source, bone = goal_of(chain_of(self.tip), role)
        if source is None:
            return _Image(None, "", "", None)
        if reason := why_absent(source, Presence(self.context.view_layer)):
            raise UserError(reason)
        if source.type == "ARMATURE" and bone:
            return self._image_of_bone(role, source, bone)
        if (chosen := self._chosen(role, {Goal(source)})) is not None:
            return chosen
        depsgraph = self.context.view_layer.depsgraph
        plane = self.ob.evaluated_get(depsgraph).matrix_world
        world = mirrored_matrix(Goal(source).world(depsgraph), plane)
        name = bpy.utils.flip_name(source.name)
        if source.name.endswith(self.tip.name):
            name = source.name.removesuffix(self.tip.name) + self.other.name
        elif name == source.name:
            name = f"IK {role.title()} {self.other.name}"
        return _Image(source, "", name, world, self._already_there(role, source, name))

    def _image_of_bone(self, role: str, source: Object, bone: str) -> _Image:
        ob, flipped = self.ob, bpy.utils.flip_name(bone)
        if flipped not in source.pose.bones and not self._lacks_control(role):
            lacking = {
                "target": "The target of the chain is bone '{bone}', but '{source}' has no bone '{flipped}'",
                "pole": "The pole of the chain is bone '{bone}', but '{source}' has no bone '{flipped}'",
            }
            raise UserError(lacking[role], bone=bone, source=source.name, flipped=flipped)
        if (chosen := self._chosen(role, {Goal(source, bone), Goal(source, flipped)})) is not None:
            return chosen
        own = ob.pose.bones.get(flipped) if source == ob and flipped != bone else None
        if own is None or not Goal(ob, flipped).is_made:
            return _Image(source, flipped, "", None)
        turned = Matrix((np.diag(ACROSS) @ across_bones(ob.data.bones[bone], own.bone).T).tolist()).to_4x4()
        return _Image(source, flipped, "", self._mirrored_bone(bone) @ turned, source)

    def _chosen(self, role: str, replaced: Collection[Goal]) -> _Image | None:
        """Return the target or pole that a user chose for the other side; None: none, or one to be replaced."""
        goal, name = goal_of(chain_of(self.other), role)
        if goal is None or why_absent(goal, Presence(self.context.view_layer)):
            return None
        own = Goal(goal, name if Goal(goal, name).is_bone else "")
        return None if own in replaced or own.is_made else _Image(goal, own.bone, "", Matrix(), goal)

    def _already_there(self, role: str, source: Object, name: str) -> Object | None:
        """Return the target or pole made for the other side: the one that it has, or one that nobody follows now."""
        goal, bone = goal_of(chain_of(self.other), role)
        left = own_object(name)
        if goal is None or bone or not Goal(goal).is_made or owner_of(goal) not in (self.ob, None):
            goal = None if left is None or not Goal(left).is_made or followers(left) else left
        is_usable = goal is not None and goal != source and not why_absent(goal, Presence(self.context.view_layer))
        return goal if is_usable else None

    def place(self, goal: _Image, remarks: list[str]) -> Object | None:
        """Return the object of a goal and place it, unless it is the user's or animated; a remark then says so."""
        ob, view_layer = self.ob, self.context.view_layer
        if goal.world is None:
            return goal.source
        if goal.own is not None:
            own = Goal(goal.own, goal.bone)
            if not (own.is_made and make_controls.is_free(own, ob)):
                remarks.append(say("'{goal}' stays where it is", goal=own.name))
                return goal.own
        if goal.bone:
            view_layer.update()
            ob.pose.bones[goal.bone].matrix = ob.matrix_world.inverted_safe() @ goal.world
            return goal.source
        found = _copy(ob, goal) if goal.own is None else goal.own
        view_layer.update()
        found.matrix_world = goal.world
        return found


def _mirrored_offset(chain: IKAddonChain, end: PoseBone, image: PoseBone) -> Quaternion:
    """Return the end offset of the mirrored chain, relative to its target, a mirrored object or bone."""
    of_target = np.diag(ACROSS)
    if chain.target is not None and chain.target.type == "ARMATURE" and chain.target_bone:
        bones = chain.target.data.bones
        of_target = across_bones(bones[chain.target_bone], bones[bpy.utils.flip_name(chain.target_bone)])
    offset = np.array(chain.end_offset.normalized().to_matrix())
    return Matrix((of_target @ offset @ across_bones(end.bone, image.bone).T).tolist()).to_quaternion()


def _mirror_limits(bone: PoseBone, image: PoseBone) -> str:
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
    differs = "The roll of '{image}' doesn't mirror '{bone}', so its limits are only approximate"
    is_aligned = np.abs(axes).max(axis=1).min() >= ALIGNED
    return "" if is_aligned else say(differs, image=image.name, bone=bone.name)


def _copy(ob: Object, goal: _Image) -> Object:
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
