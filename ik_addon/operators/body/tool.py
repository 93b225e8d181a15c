"""The Pose tool: any bone is dragged with the mouse, by Blender's own transform, and the body comes along."""

from __future__ import annotations

from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Vector

from ...drag import cursor
from ...posing.drag import Ask, BodyDrag
from ...rig.plan.chain import ChainError
from ..active import ArmatureOperator, active_bone, armature
from ..gesture import compose, start
from .pose import name_of_active


class IK_ADDON_OT_body_hold(ArmatureOperator):
    """The first part of a drag with the mouse: the 3D cursor goes to the joint, for Blender to move it."""

    bl_idname = "ik_addon.body_hold"
    bl_label = "Take Hold of a Bone"
    bl_description = "Take hold of a bone of the body"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    bone: StringProperty(
        name="Bone", description="The bone that is dragged; empty: the active bone", options={"HIDDEN"}
    )
    use_tail: BoolProperty(
        name="Tail", description="Drag the tail of the bone instead of its head", default=False, options={"HIDDEN"}
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Take hold."""
        ob = armature(context)
        assert ob is not None
        name = self.bone or name_of_active(self, ob)
        if not name:
            return {"CANCELLED"}
        try:
            drag = BodyDrag(context, ob, Ask(name, self.use_tail))
        except ChainError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        cursor.CursorDrag(context, drag)
        return {"FINISHED"}


class IK_ADDON_OT_body_move(bpy.types.Macro):
    """Drag a bone with the mouse, and the body with it."""

    bl_idname = "ik_addon.body_move"
    bl_label = "Drag Body"
    bl_description = "Drag a bone with the mouse; pinned bones hold, and the whole body comes along within its limits"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it


class IK_ADDON_OT_body_grab(ArmatureOperator):
    """Drag the bone under the mouse."""

    bl_idname = "ik_addon.body_grab"
    bl_label = "Drag Body"
    bl_description = "Drag the bone under the mouse by its nearest joint; the whole body comes along"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Select the bone where the mouse was pressed, and leave the rest to Blender's Move."""
        region: Any = context.region
        ob = armature(context)
        if ob is None or ob.mode != "POSE" or context.area is None or context.area.type != "VIEW_3D":
            return {"PASS_THROUGH"}
        pressed = Vector((event.mouse_prev_press_x - region.x, event.mouse_prev_press_y - region.y))
        operators: Any = bpy.ops
        if "FINISHED" not in operators.view3d.select(location=(int(pressed.x), int(pressed.y))):
            operators.view3d.select_box("INVOKE_DEFAULT", wait_for_input=False)
            return {"INTERFACE"}
        ob = armature(context)
        active = None if ob is None else active_bone(ob)
        if active is None:
            return {"PASS_THROUGH"}
        places = [_on_screen(context, ob.matrix_world @ end) for end in (active.head, active.tail)]
        far = [float("inf") if place is None else (place - pressed).length for place in places]
        return start(
            self,
            operators.ik_addon.body_move,
            IK_ADDON_OT_body_hold={"bone": active.name, "use_tail": far[1] < far[0]},
            TRANSFORM_OT_translate={"cursor_transform": True, "release_confirm": True},
        )


def _on_screen(context: bpy.types.Context, place: Vector) -> Vector | None:
    """Where a place in the world is drawn in the region; None: behind the view."""
    found: Vector | None = location_3d_to_region_2d(context.region, context.region_data, place)
    return found


CLASSES = (IK_ADDON_OT_body_hold, IK_ADDON_OT_body_move, IK_ADDON_OT_body_grab)


def register() -> None:
    """Say what the macro consists of."""
    compose(IK_ADDON_OT_body_move, IK_ADDON_OT_body_hold, cursor.MOVE)
