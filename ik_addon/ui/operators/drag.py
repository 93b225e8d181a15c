"""Drag Target: drag a chain's target or pole with Blender's own transform and its keys, while the chain follows."""

from __future__ import annotations

from functools import partial

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatVectorProperty, StringProperty
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Vector

from ...core import compat
from ...core.chain_settings import ROLES
from ...core.settings import chain_of, object_of
from ...core.translation.sentences import UserError, say
from ...rig.plan import chain
from ...targets import cursor
from ...targets.drag import Drag
from ...targets.edit_range import EditRange
from ...targets.movable import why_lacking
from .active import NONE_ACTIVE, ArmatureOperator, ChainOperator, active_chain, active_tip, operators
from .gesture import DragMacro, RangeOptions, finish, start, take_range


def why_not_draggable(tip: bpy.types.PoseBone) -> str:
    """Return why no goal of a chain can be dragged and what to do about it, or an empty string if one can."""
    if not chain_of(tip).enabled:
        return say("The chain on '{tip}' is disabled. Enable it in the panel", tip=tip.name)
    return ""


class IK_ADDON_OT_goal_hold(RangeOptions, ArmatureOperator):
    """The first part of a mouse drag: move the 3D cursor to the goal, for Blender's transform to move it on."""

    bl_idname = "ik_addon.goal_hold"
    bl_label = "Take Hold"
    bl_description = "Grab the target or the pole of a chain"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    rig: StringProperty(
        name="Armature", description="The armature with the chain; empty: the active armature", options={"HIDDEN"}
    )
    tip: StringProperty(
        name="Tip", description="The bone that carries the chain; empty: the active chain", options={"HIDDEN"}
    )
    role: EnumProperty(name="Goal", description="What is moved", items=ROLES, options={"HIDDEN"})
    turns: BoolProperty(
        name="Rotate", description="It is rotated, and need not be free to move", default=False, options={"HIDDEN"}
    )

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        """Take hold of the goal for a mouse drag."""
        take_range(self, context.scene)
        if context.window is not None:  # once Blender's transform runs, the wheel is handled before it
            bpy.app.timers.register(partial(_handle_wheel, context.window))
        return self.execute(context)

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Take hold of the goal, and make its chain the active one."""
        ob = context.view_layer.objects.get(self.rig) or ob
        tip: bpy.types.PoseBone | None = ob.pose.bones.get(self.tip) if self.tip else active_chain(context)
        if tip is None:
            raise UserError(NONE_ACTIVE)
        if reason := why_not_draggable(tip):
            raise UserError(reason)
        drag = Drag(context, tip, self.role.lower(), turns=self.turns, reach=EditRange.of(self))
        if self.tip and tip != active_chain(context):
            context.view_layer.objects.active = ob
            compat.select_bone(ob, tip)
        cursor.CursorDrag(context, drag)
        return {"FINISHED"}


def _handle_wheel(window: bpy.types.Window) -> None:
    with bpy.context.temp_override(window=window):
        if cursor.is_moving(window):
            operators.ik_addon.drag_range("INVOKE_DEFAULT")


class IK_ADDON_OT_goal_move(DragMacro):
    """Move the target or pole of a chain with the mouse; keys can change the move to a rotation."""

    bl_idname = "ik_addon.goal_move"
    bl_label = "Drag Target"
    bl_description = "Move the target or the pole of a chain; the chain follows, with Live on or off"
    hold = IK_ADDON_OT_goal_hold


class IK_ADDON_OT_goal_turn(DragMacro):
    """Rotate the target of a chain with the mouse."""

    bl_idname = "ik_addon.goal_turn"
    bl_label = "Rotate Target"
    bl_description = "Rotate the target of a chain; the chain follows, with Live on or off"
    hold = IK_ADDON_OT_goal_hold
    transform = cursor.TURN


class IK_ADDON_OT_drag_target(RangeOptions, ChainOperator):
    """Drag the target of the active chain."""

    bl_idname = "ik_addon.drag_target"
    bl_label = "Drag Target"
    bl_description = "Move the target of the active chain with the mouse; the chain follows, with Live on or off"

    offset: FloatVectorProperty(
        name="Move", description="How far the target moves, in world space", subtype="TRANSLATION", size=3
    )

    @classmethod
    def why_unfit(cls, tip: bpy.types.PoseBone) -> str:
        """Require an enabled chain with a target."""
        return why_not_draggable(tip) or why_lacking(tip)

    def perform_on_chain(self, context: bpy.types.Context, tip: bpy.types.PoseBone) -> set[str]:
        """Move the target by `offset` and solve."""
        drag = Drag(context, tip, reach=EditRange.of(self))
        drag.move(context, Vector(self.offset))
        return finish(self, context, drag)

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Start a mouse drag of the target."""
        return self.attempt(lambda context: self._start(context, event), context)

    def _start(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if context.area is None or context.area.type != "VIEW_3D":
            return self.refuse(say("Use this in a 3D Viewport"))
        view = next(region for region in context.area.regions if region.type == "WINDOW")
        sidebar = next(region for region in context.area.regions if region.type == "UI")
        if is_over(sidebar, event.mouse_x, event.mouse_y):
            take_mouse_to(context, view, Drag(context, active_tip(context)).world.translation)
        with context.temp_override(region=view):
            return start(self, operators.ik_addon.goal_move)


class IK_ADDON_OT_grab(bpy.types.Operator):
    """Move the target of a hand or foot that Blender's own Move can only turn, because it is connected."""

    bl_idname = "ik_addon.grab"
    bl_label = "Move Hand or Foot"
    bl_description = "Move the target of the selected hand, foot or tip; other bones are moved as usual"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        """Start a mouse drag of the target, or leave the key to Blender."""
        tip = connected_end(context)
        if tip is None:
            return {"PASS_THROUGH"}
        try:
            operators.ik_addon.goal_move("INVOKE_DEFAULT", IK_ADDON_OT_goal_hold={"tip": tip.name})
        except RuntimeError:
            return {"PASS_THROUGH"}  # a target that can't be moved leaves the edit to FK
        return {"FINISHED"}


def connected_end(context: bpy.types.Context) -> bpy.types.PoseBone | None:
    """Return the tip of the live chain that ends in the one selected bone, if that bone is connected.

    Below an influence of 1 a target alone can't take the bone along.
    """
    selected = context.selected_pose_bones or ()
    if len(selected) != 1 or not object_of(selected[0].id_data).live:
        return None
    (bone,) = selected
    if bone.parent is None or not bone.bone.use_connect:
        return None
    ends = (tip for tip in chain.tips(bone.id_data) if chain.posed_bones(tip)[-1] == bone)
    return next((tip for tip in ends if chain_of(tip).enabled and chain_of(tip).influence == 1.0), None)


def is_over(region: bpy.types.Region, x: float, y: float) -> bool:
    """Whether a place in the window is over a region."""
    return 0 <= x - region.x < region.width and 0 <= y - region.y < region.height


def take_mouse_to(context: bpy.types.Context, view: bpy.types.Region, place: Vector) -> None:
    """Move the mouse to a place in the world, if it is in view.

    Blender measures a move from where the mouse was: from a button in the sidebar, the target would stay as far from
    the mouse as the button is.
    """
    seen = location_3d_to_region_2d(view, view.data, place)
    if seen is not None and is_over(view, view.x + seen.x, view.y + seen.y):
        context.window.cursor_warp(round(view.x + seen.x), round(view.y + seen.y))
