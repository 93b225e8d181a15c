"""What the operators and the panel work on: the active armature, its active bone, its active chain."""

from __future__ import annotations

import bpy

from ..rig.chain import chain_with, tips


def obstacle(context: bpy.types.Context) -> str:
    """Why nothing can be done with the active object, and what to do about it; empty where it can be worked on."""
    ob = context.active_object
    if ob is None or ob.type != "ARMATURE":
        return "Select an armature"
    if ob.mode not in {"POSE", "OBJECT"}:
        return "Switch to Pose Mode or Object Mode"
    if not ob.is_editable:
        return f"'{ob.name}' is linked from another file and can't be posed; make a library override of it"
    return ""


def has_chain(ob: bpy.types.Object) -> bool:
    """Whether an armature has a chain at all."""
    return bool(tips(ob))


def active_bone(ob: bpy.types.Object) -> bpy.types.PoseBone | None:
    """The active bone of an armature object, in Pose and in Object Mode."""
    bone = ob.data.bones.active
    return None if bone is None else ob.pose.bones.get(bone.name)


def active_chain(ob: bpy.types.Object) -> bpy.types.PoseBone | None:
    """The tip of the chain that the active bone belongs to."""
    bone = active_bone(ob)
    return None if bone is None else chain_with(bone)


class ArmatureOperator(bpy.types.Operator):
    """An operator on the active armature, whose button says why it is disabled."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Whether the operator can run."""
        reason = obstacle(context) or cls.missing(context.active_object)
        if reason:
            cls.poll_message_set(reason)
        return not reason

    @classmethod
    def missing(cls, _ob: bpy.types.Object) -> str:
        """What the armature lacks for this operator; empty where it lacks nothing."""
        return ""
