"""The active armature, bone and chain that operators and panels work on, and what operators are made of."""

from collections.abc import Callable, Sequence

import bpy
from bpy.props import FloatProperty
from bpy.types import Context, Object, Operator, PoseBone

from ...core import hooks
from ...core.preferences import preferences
from ...core.translation.sentences import UserError, marked, say
from ...core.untyped import Declared, Struct, Value
from ...rig.plan.chain import chain_with, tips
from ...rig.plan.followers import follower_in, followers
from ...rig.plan.presence import is_in, why_closed

operators: Struct = bpy.ops
"""Blender's operators and those of the extension, which the stubs don't know."""
NO_ARMATURE = marked("Select an armature")
NONE_ACTIVE = marked("No chain is active. Select a bone of a chain")


def candidate(context: Context) -> Object | None:
    """Return the active object, or the armature in this view layer that follows it if it is a target or pole."""
    ob = context.active_object
    if ob is None or ob.type == "ARMATURE" or ob.mode != "OBJECT":
        return ob
    rigs = (tip.id_data for tip in followers(ob))
    return next((rig for rig in rigs if is_in(context.view_layer.objects, rig)), ob)


def armature(context: Context) -> Object:
    """Return the armature that operators and panels work on, once `obstacle` has found that there is one."""
    ob = candidate(context)
    if ob is None:
        raise UserError(NO_ARMATURE)
    return ob


def obstacle(context: Context) -> str:
    """Return why operators can't run on the active object and what to do about it, or an empty string if they can."""
    ob = candidate(context)
    if ob is None or ob.type != "ARMATURE":
        return say(NO_ARMATURE)
    if ob.mode not in {"POSE", "OBJECT"}:
        return say("Switch to Pose Mode or Object Mode")
    if ob.pose is None:
        no_pose = "'{object}' has no pose until it is shown for the first time. Enable it in viewports"
        return say(no_pose, object=ob.name)
    if not ob.pose.bones:
        return say("'{object}' has no bones. Add them in Edit Mode", object=ob.name)
    return why_closed(ob)


def active_bone(ob: Object) -> PoseBone | None:
    """Return the active bone of an armature object, in Pose Mode or Object Mode."""
    bone = ob.data.bones.active
    return None if bone is None else ob.pose.bones.get(bone.name)


def active_chain(context: Context) -> PoseBone | None:
    """Return the tip of the chain that contains the active bone, or whose target or pole is active."""
    ob, active = candidate(context), context.active_object
    if ob is None or active is None:
        return None
    if ob != active:
        return follower_in(ob, active)
    bone = active_bone(ob)
    return None if bone is None else chain_with(bone) or follower_in(ob, ob, bone.name)


def active_tip(context: Context) -> PoseBone:
    """Return the tip of the active chain; raise a `UserError` if there is none."""
    tip = active_chain(context)
    if tip is None:
        raise UserError(NONE_ACTIVE)
    return tip


class Internal(Operator):
    """What buttons, keys and tools call, and Blender's search does not list."""

    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it


class InternalStep(Operator):
    """The same, with an undo step."""

    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it


class ReportingOperator(Operator):
    """Base of operators that report what they did or why they can't; adds an undo step unless overridden."""

    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012 - as Blender wants it

    def execute(self, context: Context) -> set[str]:
        """Run `perform`, and report a `UserError`."""
        return self.attempt(self.perform, context)

    def perform(self, _context: Context) -> set[str]:
        """Do the work; raise a `UserError` that says why it can't be done."""
        raise NotImplementedError

    def attempt(self, work: Callable[[Context], set[str]], context: Context) -> set[str]:
        """Run `work`, and report a `UserError` that it raises."""
        hooks.put_back()
        try:
            return work(context)
        except UserError as error:
            return self.refuse(str(error))

    def refuse(self, reason: str) -> set[str]:
        """Report an error and cancel the operator."""
        self.report({"ERROR"}, reason)
        return {"CANCELLED"}

    def done(self, message: str, remarks: Sequence[str] = (), *, warns: bool = False) -> set[str]:
        """Report what was done, as a warning if there are remarks or the message is one."""
        self.report({"WARNING"} if remarks or warns else {"INFO"}, ". ".join([message, *remarks]))
        return {"FINISHED"}


class ArmatureOperator(ReportingOperator):
    """Base of operators on the active armature; a disabled button says why it is disabled."""

    def perform(self, context: Context) -> set[str]:
        """Run `perform_on`, which gets what `poll` has looked for."""
        return self.perform_on(context, armature(context))

    def perform_on(self, _context: Context, _ob: Object) -> set[str]:
        """Do the work on the active armature, as `perform`."""
        raise NotImplementedError

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Whether the operator can run."""
        reason = obstacle(context) or cls.why_unavailable(context, armature(context))
        if reason:
            cls.poll_message_set(reason)
        return not reason

    @classmethod
    def why_unavailable(cls, _context: Context, _ob: Object) -> str:
        """Return why this operator can't run on an armature and what to do about it, or an empty string if it can."""
        return ""

    def prefer(self, **settings: str) -> None:
        """Set properties that the caller left unset from the preferences; values are the names used there."""
        for setting, name in settings.items():
            if not self.properties.is_property_set(setting):
                setattr(self, setting, getattr(preferences(), name))


class ChainedOperator(ArmatureOperator):
    """Base of operators on an armature with chains."""

    @classmethod
    def why_unavailable(cls, _context: Context, ob: Object) -> str:
        """Require a chain."""
        return "" if tips(ob) else say("'{object}' has no chain. Select a bone and press Add Chain", object=ob.name)


class ChainOperator(ChainedOperator):
    """Base of operators on the active chain."""

    def perform(self, context: Context) -> set[str]:
        """Run `perform_on_chain`."""
        return self.perform_on_chain(context, active_tip(context))

    def perform_on_chain(self, _context: Context, _tip: PoseBone) -> set[str]:
        """Do the work on the active chain, as `perform`."""
        raise NotImplementedError

    @classmethod
    def why_unavailable(cls, context: Context, ob: Object) -> str:
        """Require an active chain."""
        return super().why_unavailable(context, ob) or ("" if active_chain(context) else say(NONE_ACTIVE))


def asked(kind: Callable[..., Declared], name: str, description: str, **rest: Value) -> Declared:
    """Return a property that starts from its default each time, not from what was chosen last."""
    return kind(name=name, description=description, options={"SKIP_SAVE"}, **rest)


def given(kind: Callable[..., Declared], name: str, description: str, **rest: Value) -> Declared:
    """Return a property that buttons and scripts set, and that users don't see."""
    return kind(name=name, description=description, options={"HIDDEN", "SKIP_SAVE"}, **rest)


def hidden(kind: Callable[..., Declared], name: str, description: str, **rest: Value) -> Declared:
    """Return a property that users don't see, and that a repetition of the operator takes from the last time."""
    return kind(name=name, description=description, options={"HIDDEN"}, **rest)


def seconds(name: str, description: str, default: float, **rest: Value) -> Declared:
    """Return a property for a time, usually below a second."""
    return FloatProperty(
        name=name,
        description=description,
        subtype="TIME",
        unit="TIME_ABSOLUTE",
        default=default,
        min=0.0,
        soft_max=1.0,
        **rest,
    )
