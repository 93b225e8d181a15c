"""The sub-panel "Limits": presets, and Blender's own IK limits of a bone, named by what each direction does."""

from __future__ import annotations

import math

import bpy

from ...chains.joint_names import names_of
from ...core.joints import angles_of
from ...core.settings import chain_of
from ...core.translation.sentences import say
from ...rig.plan.chain import chain_with
from .. import presets
from ..operators.active import active_bone, armature
from ..operators.limits import SIDES, selected
from ..panel import ArmaturePanel
from ..text import BESIDE, VALUE, draw_button, fit, is_narrow


class VIEW3D_PT_ik_addon_limits(ArmaturePanel):
    """The joint limits of the active bone."""

    bl_idname = "VIEW3D_PT_ik_addon_limits"
    bl_label = "Limits"
    bl_options = {"DEFAULT_CLOSED"}  # noqa: RUF012 - as Blender wants it

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Show the panel if a bone is active."""
        return super().poll(context) and active_bone(armature(context)) is not None

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the limits of each axis, and the operators that set them."""
        ob = armature(context)
        bone = active_bone(ob)
        layout = self.layout
        row = layout.row()
        row.label(text=bone.name, icon="BONE_DATA", translate=False)
        tip = chain_with(bone)
        presets.draw(layout, with_chain=tip is not None)
        if tip is not None:
            layout.prop(chain_of(tip), "use_limits")
        evaluated = ob.evaluated_get(context.view_layer.depsgraph)
        angles = dict(zip("xyz", angles_of(evaluated.pose.bones[bone.name]), strict=True))
        names = names_of(bone)
        for axis in "xzy":
            own = [names[name] for name, (of, _end) in SIDES.items() if of == axis]
            about = say("About {axis}", axis=axis.upper())
            title = say("Twist") if axis == "y" else fit(context, [" / ".join(own), about])
            draw_axis(layout, context, bone, axis, title, names, None if is_narrow(context) else angles[axis])
        column = layout.column(align=True)
        operator = column.operator("ik_addon.limit_from_pose", icon="POSE_HLT")
        operator.all_selected = len(selected(ob)) > 1
        draw_button(column, context, "ik_addon.limits_copy", "PASTEDOWN", "Copy Limits")


def draw_axis(
    layout: bpy.types.UILayout,
    context: bpy.types.Context,
    bone: bpy.types.PoseBone,
    axis: str,
    title: str,
    names: dict[str, str],
    angle: float | None,
) -> None:
    """Draw the limits of a bone about one axis.

    Args:
        layout: where to draw.
        context: gives the width of the sidebar.
        bone: the bone.
        axis: "x", "y" or "z".
        title: label for both directions together.
        names: label of each direction.
        angle: current angle of the bone in radians; None: no room to show it.
    """
    locked = getattr(bone, f"lock_ik_{axis}")
    own = {name: end for name, (of, end) in SIDES.items() if of == axis}
    column = layout.column(align=True)
    row = column.row(align=True)
    limit = row.row()
    limit.active = not locked
    limit.prop(bone, f"use_ik_limit_{axis}", text=title, translate=False)
    if angle is not None:
        now = row.row()
        now.alignment = "RIGHT"
        now.active = False
        now.label(text=f"{round(math.degrees(angle), 1) + 0.0:.1f}°", translate=False)
    # An active toggle shows the next icon in Blender's list, here the closed lock.
    row.prop(bone, f"lock_ik_{axis}", text="", icon="UNLOCKED", emboss=False)
    if locked:
        return
    if getattr(bone, f"use_ik_limit_{axis}"):
        for name, end in own.items():
            row = column.row(align=True)
            text = fit(context, [say("{direction} To", direction=names[name]), names[name]], BESIDE + VALUE)
            row.prop(bone, f"ik_{end}_{axis}", text=text, translate=False)
            if angle is not None:
                row.operator("ik_addon.limit_from_pose", text="", icon="POSE_HLT").direction = name
    column.prop(bone, f"ik_stiffness_{axis}", text="Stiffness", slider=True)


CLASSES = (VIEW3D_PT_ik_addon_limits,)
