"""The tool in the toolbar of Pose Mode."""

from __future__ import annotations

import bpy

from .gizmos import IK_ADDON_GGT_arrows


class IKAddonTool(bpy.types.WorkSpaceTool):
    """Select bones, and move the target and the pole of the active chain by arrows."""

    bl_space_type = "VIEW_3D"
    bl_context_mode = "POSE"
    bl_idname = "ik_addon.goals"
    bl_label = "IK Target and Pole"
    bl_description = "Move the target and the pole of the active chain; drag elsewhere to select bones"
    bl_icon = "ops.armature.extrude_cursor"
    bl_widget = IK_ADDON_GGT_arrows.bl_idname
    bl_keymap = (("view3d.select_box", {"type": "LEFTMOUSE", "value": "CLICK_DRAG"}, None),)


def register() -> None:
    """Put the tool below Blender's transform tools."""
    bpy.utils.register_tool(IKAddonTool, after={"builtin.transform"}, separator=False)


def unregister() -> None:
    """Take it away."""
    bpy.utils.unregister_tool(IKAddonTool)
