"""The tools in the toolbar of Pose Mode."""

from __future__ import annotations

import bpy

from .gizmos import IK_ADDON_GGT_tool


class IKAddonTool(bpy.types.WorkSpaceTool):
    """Select bones, move the target and the pole of the active chain by arrows, and turn the target by dials."""

    bl_space_type = "VIEW_3D"
    bl_context_mode = "POSE"
    bl_idname = "ik_addon.goals"
    bl_label = "IK Target and Pole"
    bl_description = (
        "Move the target and the pole of the active chain, and rotate the target if the chain takes its orientation.\n"
        "Drag elsewhere to select bones"
    )
    bl_icon = "ops.armature.extrude_cursor"
    bl_widget = IK_ADDON_GGT_tool.bl_idname
    bl_keymap = (("view3d.select_box", {"type": "LEFTMOUSE", "value": "CLICK_DRAG"}, None),)


class IKAddonPoseTool(bpy.types.WorkSpaceTool):
    """Drag any bone, and the body with it."""

    bl_space_type = "VIEW_3D"
    bl_context_mode = "POSE"
    bl_idname = "ik_addon.body"
    bl_label = "Pose Body"
    bl_description = (
        "Drag any bone by its nearest joint; the whole body comes along, pinned bones and feet stay.\n"
        "P pins the selected bones, drag elsewhere to select"
    )
    bl_icon = "ops.pose.push"
    bl_keymap = (
        ("ik_addon.body_grab", {"type": "LEFTMOUSE", "value": "CLICK_DRAG"}, None),
        ("ik_addon.pin", {"type": "P", "value": "PRESS"}, None),
    )


def register() -> None:
    """Put the tools below Blender's transform tools."""
    bpy.utils.register_tool(IKAddonTool, after={"builtin.transform"}, separator=False)
    bpy.utils.register_tool(IKAddonPoseTool, after={IKAddonTool.bl_idname}, separator=False)


def unregister() -> None:
    """Take them away."""
    bpy.utils.unregister_tool(IKAddonPoseTool)
    bpy.utils.unregister_tool(IKAddonTool)
