"""What is added to Blender's own menus and popovers."""

from __future__ import annotations

from typing import Any

import bpy

from ..data.settings import object_of, overlay_of
from ..operators.active import armature, obstacle


class IK_ADDON_MT_pie(bpy.types.Menu):
    """The most used operators, around the mouse."""

    bl_idname = "IK_ADDON_MT_pie"
    bl_label = "IK Chains"

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the entries, from the left on as Blender wants them: W, E, S, N, NW, NE, SW, SE."""
        pie = self.layout.menu_pie()
        pie.operator("ik_addon.solve", icon="CON_KINEMATIC")
        if obstacle(context):
            pie.separator()
        else:
            live = object_of(armature(context))
            pie.prop(live, "live", toggle=True, icon="PAUSE" if live.live else "PLAY")
        pie.operator("ik_addon.drag_target", icon="VIEW_PAN")
        pie.operator("ik_addon.chain_add", icon="ADD")
        pie.operator("ik_addon.restore_pose", icon="LOOP_BACK")
        pie.prop(overlay_of(context.scene), "show_overlay", text="Overlay", icon="OVERLAY")
        pie.operator("ik_addon.limit_from_pose", icon="POSE_HLT")
        pie.operator("ik_addon.bake", icon="KEYFRAME_HLT")


class IK_ADDON_MT_pose(bpy.types.Menu):
    """The entries in the Pose menu."""

    bl_idname = "IK_ADDON_MT_pose"
    bl_label = "IK Chains"

    def draw(self, _context: bpy.types.Context) -> None:
        """Draw the entries."""
        layout = self.layout
        # A menu should open dialogs and follow the mouse, unlike a script.
        layout.operator_context = "INVOKE_DEFAULT"
        layout.operator("ik_addon.chain_add", icon="ADD")
        layout.operator("ik_addon.chain_remove", icon="REMOVE")
        layout.separator()
        layout.operator("ik_addon.drag_target", icon="VIEW_PAN")
        layout.operator("ik_addon.solve", icon="CON_KINEMATIC")
        layout.operator("ik_addon.restore_pose", icon="LOOP_BACK")
        layout.operator("ik_addon.bake", icon="KEYFRAME_HLT")
        layout.separator()
        layout.operator("ik_addon.limit_from_pose", icon="POSE_HLT")
        layout.operator("ik_addon.limits_copy", icon="PASTEDOWN")


def draw_pose_entry(menu: bpy.types.Menu, _context: bpy.types.Context) -> None:
    """Draw the entry of the sub-menu into the menu Pose."""
    menu.layout.separator()
    menu.layout.menu(IK_ADDON_MT_pose.bl_idname)


def draw_overlay_options(panel: bpy.types.Panel, context: bpy.types.Context) -> None:
    """Draw the options of the overlay into the popover Overlays."""
    options, space = overlay_of(context.scene), context.space_data
    layout = panel.layout
    layout.active = isinstance(space, bpy.types.SpaceView3D) and space.overlay.show_overlays
    layout.label(text="Inverse Kinematics")
    row = layout.row(align=True)
    row.prop(options, "show_overlay")
    parts = row.row()
    parts.active = options.show_overlay
    parts.prop(options, "show_limits")
    parts.prop(options, "show_reach")


CLASSES = (IK_ADDON_MT_pie, IK_ADDON_MT_pose)

_ADDED: tuple[tuple[str, Any], ...] = (
    ("VIEW3D_PT_overlay", draw_overlay_options),
    ("VIEW3D_MT_pose", draw_pose_entry),
)


def register() -> None:
    """Add the entries."""
    for menu, draw in _ADDED:
        getattr(bpy.types, menu).append(draw)


def unregister() -> None:
    """Take them out again."""
    for menu, draw in reversed(_ADDED):
        getattr(bpy.types, menu).remove(draw)
