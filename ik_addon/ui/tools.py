"""The sub-panel "Tools": operators that are used now and then."""

from __future__ import annotations

import bpy

from ..data.settings import chain_of, has_settings
from ..operators.active import armature
from .panel import ArmaturePanel


class VIEW3D_PT_ik_addon_tools(ArmaturePanel):
    """Operators for setting up a rig, and for switching between FK and IK."""

    bl_idname = "VIEW3D_PT_ik_addon_tools"
    bl_label = "Tools"
    bl_options = {"DEFAULT_CLOSED"}  # noqa: RUF012 - as Blender wants it

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the buttons, and what is pinned."""
        column = self.layout.column(align=True)
        column.operator("ik_addon.snap_target", icon="SNAP_ON")
        column.operator("ik_addon.snap_target", text="Snap Range to Pose", icon="PREVIEW_RANGE").frame_range = "SCENE"
        column.operator("ik_addon.apply_pose", icon="ARMATURE_DATA")
        self.layout.operator("ik_addon.switch_space", icon="CON_CHILDOF")
        self.layout.operator("ik_addon.mirror_chain", icon="MOD_MIRROR")
        column = self.layout.column(align=True)
        column.operator("ik_addon.convert_constraints", icon="CON_KINEMATIC")
        column.operator("ik_addon.restore_constraints", icon="LOOP_BACK")
        column = self.layout.column(align=True)
        column.operator("ik_addon.pin", icon="PINNED")
        ob = armature(context)
        for bone in ob.pose.bones if ob is not None and ob.pose is not None else ():
            if has_settings(bone) and chain_of(bone).pin:
                row = column.row(align=True)
                row.label(text=bone.name, translate=False)
                row.prop(chain_of(bone), "pin", expand=True)


CLASSES = (VIEW3D_PT_ik_addon_tools,)
