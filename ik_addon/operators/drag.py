"""Drag Target: the tip of a chain follows its target, or bends to its pole, with Blender's own transform keys."""

from __future__ import annotations

from typing import Any

import bpy
from bpy.props import EnumProperty, FloatVectorProperty, StringProperty
from mathutils import Vector

from .. import compat
from ..data.settings import chain_of
from ..drag import cursor
from ..drag.drag import Drag
from ..goals.autokey import auto_key
from ..live import reports
from ..rig.plan.chain import ChainError
from ..translation.sentences import say
from .active import ArmatureOperator, active_chain, armature

ROLES = (
    ("TARGET", "Target", "What the tip of the chain follows"),
    ("POLE", "Pole", "What the chain bends to"),
)


def why_not_draggable(tip: bpy.types.PoseBone | None) -> str:
    """Why no goal of a chain can be dragged, and what to do about it; empty where one can."""
    if tip is None:
        return say("Select a bone of a chain")
    if not chain_of(tip).enabled:
        return say("The chain on '{tip}' is switched off; enable it in the panel", tip=tip.name)
    return ""


class IK_ADDON_OT_goal_hold(ArmatureOperator):
    """The first part of a drag with the mouse: the 3D cursor goes to the goal, for Blender to move it."""

    bl_idname = "ik_addon.goal_hold"
    bl_label = "Take Hold"
    bl_description = "Take hold of the target or the pole of a chain"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    tip: StringProperty(
        name="Tip", description="The bone that carries the chain; empty: the active chain", options={"HIDDEN"}
    )
    role: EnumProperty(name="Goal", description="What is moved", items=ROLES, options={"HIDDEN"})

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        """Take hold for a drag with the mouse."""
        return self._hold(context)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Take hold for a drag that is repeated or adjusted, or of which a script calls the parts."""
        if cursor.turned_last(context):
            self.report({"WARNING"}, say("A rotation can't be repeated. Drag the target again"))
            return {"CANCELLED"}
        return self._hold(context)

    def _hold(self, context: bpy.types.Context) -> set[str]:
        """Take hold, and make the chain the active one."""
        ob = armature(context)
        assert ob is not None
        tip = ob.pose.bones.get(self.tip) if self.tip else active_chain(context)
        reason = why_not_draggable(tip)
        if reason:
            self.report({"ERROR"}, reason)
            return {"CANCELLED"}
        try:
            drag = Drag(context, tip, self.role.lower())
        except ChainError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        if self.tip and tip != active_chain(context):
            compat.select_bone(ob, tip)
        cursor.CursorDrag(context, drag)
        return {"FINISHED"}


class IK_ADDON_OT_goal_release(bpy.types.Operator):
    """The last part of a drag with the mouse."""

    bl_idname = "ik_addon.goal_release"
    bl_label = "Let Go"
    bl_description = "Leave the target or the pole where it is"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    @classmethod
    def poll(cls, _context: bpy.types.Context) -> bool:
        """The macro asks before it takes hold."""
        return True

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Let go."""
        held = cursor.current
        if held is None:
            return {"CANCELLED"}
        held.end(context)
        return finish(self, context, held.drag) if isinstance(held.drag, Drag) else {"CANCELLED"}


class IK_ADDON_OT_goal_move(bpy.types.Macro):
    """Move or turn the target or the pole of a chain with the mouse."""

    bl_idname = "ik_addon.goal_move"
    bl_label = "Drag Target"
    bl_description = "Move the target or the pole of a chain; the chain follows, with Live on or off"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it


class IK_ADDON_OT_drag_target(ArmatureOperator):
    """Drag the target of the active chain."""

    bl_idname = "ik_addon.drag_target"
    bl_label = "Drag Target"
    bl_description = "Move the target of the active chain with the mouse; the chain follows, with Live on or off"
    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012 - as Blender wants it

    offset: FloatVectorProperty(
        name="Move", description="How far the target moves, in world space", subtype="TRANSLATION", size=3
    )

    @classmethod
    def why_unavailable(cls, context: bpy.types.Context, _ob: bpy.types.Object) -> str:
        """There must be a chain with a target."""
        tip = active_chain(context)
        reason = why_not_draggable(tip)
        if reason or chain_of(tip).target:
            return reason
        return say("The chain on '{tip}' has no target; choose one in the panel", tip=tip.name)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Move the target by `offset` and solve."""
        try:
            drag = Drag(context, active_chain(context))
        except ChainError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        drag.move(context, Vector(self.offset))
        return finish(self, context, drag)

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        """Take hold of the target, and leave the rest to the mouse."""
        if context.area is None or context.area.type != "VIEW_3D":
            self.report({"ERROR"}, say("Use this in a 3D viewport"))
            return {"CANCELLED"}
        view = next(region for region in context.area.regions if region.type == "WINDOW")
        operators: Any = bpy.ops
        try:
            with context.temp_override(region=view):
                operators.ik_addon.goal_move("INVOKE_DEFAULT")
        except RuntimeError as error:
            self.report({"ERROR"}, str(error).removeprefix("Error: ").strip())
            return {"CANCELLED"}
        return {"INTERFACE"}  # the macro makes the step of undo, and is what can be adjusted afterwards


def finish(operator: bpy.types.Operator, context: bpy.types.Context, drag: Drag) -> set[str]:
    """Key what was moved, and say what came of it."""
    auto_key(context, drag.handle.owner, drag.handle.moved)
    report = reports.get(drag.ob, drag.tip)
    if report is None or report.failed:
        operator.report({"WARNING"}, say("The target was moved, but not solved") if report is None else report.message)
    else:
        operator.report({"INFO"}, f"'{drag.tip}': {report.message}")
    return {"FINISHED"}


CLASSES = (IK_ADDON_OT_goal_hold, IK_ADDON_OT_goal_release, IK_ADDON_OT_goal_move, IK_ADDON_OT_drag_target)


def register() -> None:
    """Say what the macro consists of; Blender forgets it together with its class."""
    IK_ADDON_OT_goal_move.define(IK_ADDON_OT_goal_hold.__name__)
    IK_ADDON_OT_goal_move.define(cursor.MOVE).properties.cursor_transform = True
    IK_ADDON_OT_goal_move.define(IK_ADDON_OT_goal_release.__name__)


def unregister() -> None:
    """Let nothing follow the cursor any more."""
    cursor.forget()
