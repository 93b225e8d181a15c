"""What operators and panels work on, an armature, its active bone and its active chain, and what operators share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import bpy

from .. import compat
from ..anatomy import limbs
from ..anatomy.figure import Figure
from ..anatomy.parts import Part
from ..controls.bones import MADE
from ..data.preferences import preferences
from ..data.settings import chain_of
from ..rig.plan.chain import chain_with, tips, why_closed
from ..setup.new_chain import why_unposed
from ..translation.sentences import UserError, marked, say


def armature(context: bpy.types.Context) -> bpy.types.Object | None:
    """The active armature object; while a target or pole of Add Chain is active, the armature that follows it."""
    ob: Any = context.active_object  # the stubs know of no custom properties
    if ob is None or ob.type == "ARMATURE" or MADE not in ob:
        return ob
    # A linked armature may have the same name.
    rigs = (rig for rig in context.view_layer.objects if rig.name == ob[MADE] and rig.type == "ARMATURE")
    return next((rig for rig in rigs if _follower(rig, ob) is not None), ob)


def _follower(rig: bpy.types.Object, goal: bpy.types.Object | None, bone: str = "") -> bpy.types.PoseBone | None:
    """The tip of the chain that follows an object, or one of its bones."""
    chains = ((tip, chain_of(tip)) for tip in tips(rig))
    both = ((tip, ((c.target, c.target_bone), (c.pole, c.pole_bone))) for tip, c in chains)
    return next((tip for tip, goals in both if (goal, bone) in goals), None)


def obstacle(context: bpy.types.Context) -> str:
    """Why no operator can run on the active object, and what to do about it; empty where they can."""
    ob = armature(context)
    if ob is None or ob.type != "ARMATURE":
        return say("Select an armature")
    if ob.mode not in {"POSE", "OBJECT"}:
        return say("Switch to Pose Mode or Object Mode")
    return why_unposed(ob) or why_closed(ob)


def active_bone(ob: bpy.types.Object) -> bpy.types.PoseBone | None:
    """The active bone of an armature object, in Pose and in Object Mode."""
    bone = ob.data.bones.active
    return None if bone is None else ob.pose.bones.get(bone.name)


def active_chain(context: bpy.types.Context) -> bpy.types.PoseBone | None:
    """The tip of the chain that the active bone belongs to, or that follows the active object."""
    ob = armature(context)
    if ob != context.active_object:
        return _follower(ob, context.active_object)
    bone = active_bone(ob)
    return None if bone is None else chain_with(bone) or _follower(ob, ob, bone.name)


def is_picked(ob: bpy.types.Object) -> bool:
    """Whether somebody can have meant the active bone of an armature.

    In Object Mode nobody sees which it is. Of a character that was just added or imported all bones are selected, and
    the last one made is active, be it in an eyebrow.
    """
    if ob.mode != "OBJECT" or not all(map(compat.is_selected, ob.pose.bones)):
        return True
    figure, bone = Figure.of(ob), active_bone(ob)
    is_body = bone is None or limbs.part_of(figure, figure.names.index(bone.name)) is not Part.UNKNOWN
    return is_body or next(limbs.tops(figure), None) is None


NONE_ACTIVE = marked("No chain is active. Select a bone of a chain")


def why_chainless(ob: bpy.types.Object) -> str:
    """What to do on an armature without chains; empty where there is one."""
    return "" if tips(ob) else say("'{object}' has no chain. Select a bone and press Add Chain", object=ob.name)


class ReportingOperator(bpy.types.Operator):
    """An operator whose report says what it did, or why it can't be done; a step of undo unless it says otherwise."""

    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012 - as Blender wants it

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Do it."""
        return self.attempt(self.perform, context)

    def perform(self, _context: bpy.types.Context) -> set[str]:
        """The work; a `UserError` says why it can't be done."""
        raise NotImplementedError

    def attempt(self, work: Callable[[bpy.types.Context], set[str]], context: bpy.types.Context) -> set[str]:
        """Do some work, and report why it can't be done."""
        try:
            return work(context)
        except UserError as error:
            return self.refuse(str(error))

    def refuse(self, reason: str) -> set[str]:
        """Report why nothing was done."""
        self.report({"ERROR"}, reason)
        return {"CANCELLED"}

    def done(self, message: str, remarks: Sequence[str] = ()) -> set[str]:
        """Report what was done, as a warning where there is more to say about it."""
        self.report({"WARNING"} if remarks else {"INFO"}, ". ".join([message, *remarks]))
        return {"FINISHED"}


class ArmatureOperator(ReportingOperator):
    """An operator on the active armature, whose button says why it is disabled."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Whether the operator can run."""
        reason = obstacle(context) or cls.why_unavailable(context, armature(context))
        if reason:
            cls.poll_message_set(reason)
        return not reason

    @classmethod
    def why_unavailable(cls, _context: bpy.types.Context, _ob: bpy.types.Object) -> str:
        """Why this operator cannot run on an armature, and what to do about it; empty where it can."""
        return ""

    def prefer(self, **settings: str) -> None:
        """Take what this operator was not told from the preferences, each setting with its name there."""
        for setting, name in settings.items():
            if not self.properties.is_property_set(setting):
                setattr(self, setting, getattr(preferences(), name))


class ChainOperator(ArmatureOperator):
    """An operator on the active chain."""

    @classmethod
    def why_unavailable(cls, context: bpy.types.Context, ob: bpy.types.Object) -> str:
        """There must be a chain, one that this operator can do something with."""
        tip = active_chain(context)
        return why_chainless(ob) or say(NONE_ACTIVE) if tip is None else cls.why_unfit(ob, tip)

    @classmethod
    def why_unfit(cls, _ob: bpy.types.Object, _tip: bpy.types.PoseBone) -> str:
        """Why this operator can do nothing with a chain of an armature; empty where it can."""
        return ""
