"""The operators of the tool Pose Body: drag any bone with Blender's own transform; the body follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty
from mathutils import Vector

from ....core import compat
from ....core.settings import overlay_of
from ....core.translation.sentences import say
from ....posing.drag import BodyDrag
from ....posing.pick import Picked, joint_of, picked, target_bones
from ....rig.plan.followers import follower_in
from ....targets import cursor
from ..active import ArmatureOperator, active_bone, armature, candidate, operators
from ..gesture import LESS, MORE, DragMacro, running_holds, start, take_range, turn_range
from ..progress import show_status
from .pose import BodyDragOptions, BodyOptions, name_of_active

TOOL = "ik_addon.body"


class IK_ADDON_OT_body_hold(BodyDragOptions, ArmatureOperator):
    """The first part of a mouse drag: move the 3D cursor to the joint, for Blender's transform to move it on."""

    bl_label = "Take Hold of a Bone"
    bl_description = "Grab a bone of the body"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    bone: StringProperty(
        name="Bone", description="The bone that is dragged; empty: the active bone", options={"HIDDEN"}
    )
    use_tail: BoolProperty(
        name="Tail", description="Drag the tail of the bone instead of its head", default=False, options={"HIDDEN"}
    )

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        """Take hold of the joint for a mouse drag."""
        take_range(self, context.scene)
        return self.attempt(lambda context: self._hold(context, armature(context)), context)

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Take hold of the joint when a drag is repeated or adjusted, or when a script calls the parts."""
        if _turned_last(context):
            self.report({"WARNING"}, say("A rotation can't be repeated. Drag the bone again"))
            return {"CANCELLED"}
        return self._hold(context, ob)

    def _hold(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        ask = self.ask(self.bone or name_of_active(ob), self.use_tail)
        cursor.CursorDrag(context, BodyDrag(context, ob, ask))
        return {"FINISHED"}


class IK_ADDON_OT_body_move(DragMacro):
    """Drag a bone with the mouse; the body follows."""

    bl_label = "Drag Body"
    bl_description = "Drag a bone with the mouse; pinned bones hold, and the rest of the body follows within its limits"
    hold = IK_ADDON_OT_body_hold


class IK_ADDON_OT_body_grab(BodyOptions, ArmatureOperator):
    """Drag the bone under the mouse."""

    bl_label = "Drag Body"
    bl_description = "Drag the bone under the mouse by its nearest joint; the rest of the body follows"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Select the bone where the mouse was pressed, let Blender move it, and handle the mouse wheel meanwhile."""
        region: Any = context.region
        ob = candidate(context)
        if ob is None or ob.mode != "POSE" or context.area is None or context.area.type != "VIEW_3D":
            return {"PASS_THROUGH"}
        pressed = Vector((event.mouse_prev_press_x - region.x, event.mouse_prev_press_y - region.y))
        grabbed = picked(context, pressed) or _selected(context, pressed)
        if grabbed is None:
            operators.view3d.select_box("INVOKE_DEFAULT", wait_for_input=False)
            return {"INTERFACE"}
        bone = grabbed.bone
        context.view_layer.objects.active = bone.id_data
        compat.select_bone(bone.id_data, bone)
        dragging = {"cursor_transform": True, "release_confirm": True}
        tip = follower_in(bone.id_data, bone.id_data, bone.name)
        if tip is not None:  # a pole moves alone; targets were passed over for the joints that follow them
            return start(
                self,
                operators.ik_addon.goal_move,
                IK_ADDON_OT_goal_hold={"rig": bone.id_data.name, "tip": tip.name, "role": "POLE"},
                TRANSFORM_OT_translate=dragging,
            )
        options = {"bone": bone.name, "use_tail": grabbed.use_tail}
        started = start(
            self,
            operators.ik_addon.body_move,
            IK_ADDON_OT_body_hold={**options, "without_pins": self.without_pins, "length": self.length},
            TRANSFORM_OT_translate=dragging,
        )
        if "CANCELLED" in started:
            return started
        show_status(context, draw_status)
        # From here on, this operator receives every event first.
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Handle the mouse wheel and pass every other event to Blender."""
        drag = held_body()
        if drag is None:
            self.cancel(context)
            return {"FINISHED", "PASS_THROUGH"}
        if turn_range(context, event):
            return {"RUNNING_MODAL"}
        if event.value != "PRESS" or event.type not in MORE | LESS or event.alt:  # with Alt Blender zooms
            return {"PASS_THROUGH"}
        drag.extend(context, 1 if event.type in MORE else -1)
        for remembered in self._remembered(context):
            remembered.length = drag.extent.length
        return {"RUNNING_MODAL"}

    def cancel(self, context: bpy.types.Context) -> None:
        """Leave the status bar to Blender; it also calls this when the window is closed."""
        show_status(context, None)

    def _remembered(self, context: bpy.types.Context) -> Iterator[Any]:
        """Yield the properties from which the next drag, and a repetition of this one, take their settings."""
        tool = context.workspace.tools.from_space_view3d_mode("POSE")
        if tool is not None and tool.idname == TOOL:
            yield tool.operator_properties(self.bl_idname)
        yield from running_holds(context, IK_ADDON_OT_body_move.__name__)


class IK_ADDON_OT_body_tool(ArmatureOperator):
    """Take the tool Pose Body, or put it away."""

    bl_label = "Pose Body"
    bl_description = "Take the tool that drags any bone while the rest of the body follows, or put it away"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    @classmethod
    def why_unavailable(cls, context: bpy.types.Context, _ob: bpy.types.Object) -> str:
        """Return that only a 3D View has the tool."""
        return "" if isinstance(context.space_data, bpy.types.SpaceView3D) else say("Use this in a 3D Viewport")

    def perform_on(self, context: bpy.types.Context, _ob: bpy.types.Object) -> set[str]:
        """Switch the tool."""
        operators.wm.tool_set_by_id(name="builtin.select_box" if is_in_hand(context) else TOOL)
        return {"FINISHED"}


def is_in_hand(context: bpy.types.Context) -> bool:
    """Whether the tool Pose Body is in use."""
    tool = context.workspace.tools.from_space_view3d_mode("POSE")
    return tool is not None and tool.idname == TOOL


def draw_status(header: Any, context: bpy.types.Context) -> None:
    """Draw the status bar during a drag: what the wheel does, then Blender's keys."""
    header.layout.label(text=say("More or Fewer Bones Follow"), icon=compat.WHEEL_ICON, translate=False)
    reach = say("Shift: Range, {frames} Frames", frames=overlay_of(context.scene).edit_range)
    header.layout.label(text=reach, icon=compat.WHEEL_ICON, translate=False)
    header.layout.template_input_status()


def _turned_last(context: bpy.types.Context) -> bool:
    """Whether the last operator is a drag of a bone that ended as a rotation.

    Such a drag remembers only the rotation, so repeating it would turn the bone without moving it.
    """
    done = context.window_manager.operators
    return bool(done) and done[-1].bl_idname == IK_ADDON_OT_body_move.__name__ and not cursor.is_move(done[-1])


def held_body() -> BodyDrag | None:
    """Return the body drag in progress, or None."""
    held = None if cursor.current is None else cursor.current.drag
    return held if isinstance(held, BodyDrag) else None


def _selected(context: bpy.types.Context, place: Vector) -> Picked | None:
    """Return the bone that Blender selects at a position in the region; custom shapes may be far from their bones.

    Of a target it is the bone that follows it.
    """
    if "FINISHED" not in operators.view3d.select(location=(int(place.x), int(place.y))):
        return None
    ob = armature(context)
    bone = active_bone(ob)
    if bone is None:
        return None
    tip = target_bones([ob]).get(bone)
    return Picked.nearest(context, bone, place) if tip is None else Picked.of(context, *joint_of(tip))
