"""The tools in the toolbar of Pose Mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bpy

from ..core.settings import chain_of, overlay_of
from . import highlight
from .gizmos import IK_ADDON_GGT_tool
from .operators.active import active_chain, obstacle
from .operators.body.tool import TOOL


class IKAddonTool(bpy.types.WorkSpaceTool):
    """Select bones, move the target and pole of the active chain with arrows, and turn the target with dials."""

    bl_space_type = "VIEW_3D"
    bl_context_mode = "POSE"
    bl_idname = "ik_addon.goals"
    bl_label = "IK Target and Pole"
    bl_description = (
        "Move the target and the pole of the active chain, and rotate the target if the chain turns with it.\n"
        "Drag elsewhere to select bones"
    )
    bl_icon = "ops.armature.extrude_cursor"
    bl_widget = IK_ADDON_GGT_tool.__name__
    bl_keymap = (("view3d.select_box", {"type": "LEFTMOUSE", "value": "CLICK_DRAG"}, None),)

    @staticmethod
    def draw_settings(context: bpy.types.Context, layout: bpy.types.UILayout, _tool: Any) -> None:
        """Draw into the header the chain whose goals have the arrows, and its main settings."""
        tip = None if obstacle(context) else active_chain(context)
        if tip is None:
            layout.label(text="No active chain")
            return
        layout.label(text=tip.name, icon="CON_KINEMATIC", translate=False)
        layout.prop(chain_of(tip), "influence")
        layout.prop(chain_of(tip), "use_rotation")
        draw_range(context, layout)


class IKAddonPoseTool(bpy.types.WorkSpaceTool):
    """Drag any bone; the body follows."""

    bl_space_type = "VIEW_3D"
    bl_context_mode = "POSE"
    bl_idname = TOOL
    bl_label = "Pose Body"
    bl_description = (
        "Drag any bone by its nearest joint; the rest of the body follows, pinned bones and feet stay.\n"
        "The wheel sets how many bones follow, P pins the selected bones, drag elsewhere to select"
    )
    bl_icon = str(Path(__file__).with_name("pose_body"))  # Blender adds .dat to the path, which may be a whole one
    bl_keymap = (
        ("ik_addon.body_grab", {"type": "LEFTMOUSE", "value": "CLICK_DRAG"}, None),
        ("ik_addon.pin", {"type": "P", "value": "PRESS"}, None),
    )

    @staticmethod
    def draw_settings(context: bpy.types.Context, layout: bpy.types.UILayout, tool: Any) -> None:
        """Draw into the header what holds the body when nothing is pinned, and how many bones follow."""
        settings = tool.operator_properties("ik_addon.body_grab")
        layout.prop(settings, "without_pins")
        layout.prop(settings, "length")
        draw_range(context, layout)

    @staticmethod
    def draw_cursor(context: bpy.types.Context, _tool: Any, place: tuple[int, int]) -> None:
        """Highlight the joint that would be dragged."""
        highlight.draw(context, place)


def draw_range(context: bpy.types.Context, layout: bpy.types.UILayout) -> None:
    """Draw how far an edit reaches over other frames."""
    scene = overlay_of(context.scene)
    row = layout.row(align=True)
    row.prop(scene, "edit_range")
    row.prop(scene, "edit_falloff", text="", icon_only=True)


def register() -> None:
    """Add the tools below Blender's transform tools."""
    bpy.utils.register_tool(IKAddonTool, after={"builtin.transform"}, separator=False)
    bpy.utils.register_tool(IKAddonPoseTool, after={IKAddonTool.bl_idname}, separator=False)


def unregister() -> None:
    """Remove the tools."""
    bpy.utils.unregister_tool(IKAddonPoseTool)
    bpy.utils.unregister_tool(IKAddonTool)
