"""The sub-panel "Tools": operators that are used occasionally."""

from __future__ import annotations

import bpy

from ..panel import ArmaturePanel
from ..text import draw_button


class VIEW3D_PT_ik_addon_tools(ArmaturePanel):
    """Operators for snapping, applying, switching spaces, mirroring and converting chains."""

    bl_idname = "VIEW3D_PT_ik_addon_tools"
    bl_label = "Tools"
    bl_options = {"DEFAULT_CLOSED"}  # noqa: RUF012 - as Blender wants it

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the buttons."""
        layout = self.layout
        column = layout.column(align=True)
        draw_button(column, context, "ik_addon.snap_target", "SNAP_ON", "Snap Target")
        ranged = draw_button(
            column, context, "ik_addon.snap_target", "PREVIEW_RANGE", "Snap Range", text="Snap Range to Pose"
        )
        ranged.frame_range = "SCENE"
        draw_button(column, context, "ik_addon.apply_pose", "ARMATURE_DATA", "Apply Pose")
        layout.operator("ik_addon.switch_space", icon="CON_CHILDOF")
        layout.operator("ik_addon.mirror_chain", icon="MOD_MIRROR")
        column = layout.column(align=True)
        draw_button(column, context, "ik_addon.convert_constraints", "CON_KINEMATIC", "Convert IK")
        draw_button(column, context, "ik_addon.restore_constraints", "LOOP_BACK", "Restore IK")


CLASSES = (VIEW3D_PT_ik_addon_tools,)
