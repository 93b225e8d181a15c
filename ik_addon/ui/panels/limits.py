"""The sub-panel "Limits": presets, and Blender's own IK limits of a bone, named by what each direction does."""

import math

import bpy
from bpy.types import Context, Menu, Object, PoseBone, UILayout

from ...chains.profile import FOLDER, SHIPPED, SUBDIR, names_of
from ...core.settings import chain_of
from ...core.skeleton import angles_of
from ...core.translation.sentences import say
from ...core.untyped import Struct
from ...rig.plan.chain import chain_with
from ..operators.active import active_bone
from ..operators.limits import MENU, SIDES, label_of, selected
from ..panel import FoldedPanel, draw_aside
from ..text import BESIDE, VALUE, draw_button, fit, is_narrow

utils: Struct = bpy.utils  # the stubs lack the functions for presets


class IK_ADDON_MT_presets(Menu):
    """Presets for the active chain."""

    bl_label = "Presets"
    preset_subdir = SUBDIR
    preset_operator = "ik_addon.preset_apply"

    draw: Struct = bpy.types.Menu.draw_preset


class VIEW3D_PT_ik_addon_limits(FoldedPanel):
    """The joint limits of the active bone."""

    bl_label = "Limits"

    @classmethod
    def is_of_use(cls, _context: Context, ob: Object) -> bool:
        """Show the panel if a bone is active."""
        return active_bone(ob) is not None

    def draw_rig(self, layout: UILayout, context: Context, ob: Object) -> None:
        """Draw the limits of each axis, and the operators that set them."""
        bone = active_bone(ob)
        if bone is None:
            return
        layout.row().label(text=bone.name, icon="BONE_DATA", translate=False)
        tip = chain_with(bone)
        row = layout.row(align=True)
        row.menu(MENU, text=IK_ADDON_MT_presets.bl_label)
        if tip is not None:
            row.operator("ik_addon.preset_add", text="", icon="ADD")
            if is_own(IK_ADDON_MT_presets.bl_label):
                row.operator("ik_addon.preset_add", text="", icon="REMOVE").remove_active = True
            layout.prop(chain_of(tip), "use_limits")
        evaluated = ob.evaluated_get(context.view_layer.depsgraph)
        angles = dict(zip("xyz", angles_of(evaluated.pose.bones[bone.name]), strict=True))
        for axis in "xzy":
            draw_axis(layout, context, bone, axis, None if is_narrow(context) else angles[axis])
        column = layout.column(align=True)
        column.operator("ik_addon.limit_from_pose", icon="POSE_HLT").all_selected = len(selected(ob)) > 1
        draw_button(column, context, "ik_addon.limits_copy", "PASTEDOWN", "Copy Limits")


def is_own(name: str) -> bool:
    """Whether the menu shows a preset of the user, which can be removed; none that came with the extension can."""
    return name != "Presets" and name not in {label_of(path.name) for path in SHIPPED.glob("*.py")}


def draw_axis(layout: UILayout, context: Context, bone: PoseBone, axis: str, angle: float | None) -> None:
    """Draw the limits of a bone about one axis; `angle` is the current one in radians, None without room for it."""
    names, locked = names_of(bone), getattr(bone, f"lock_ik_{axis}")
    own = {name: end for name, (of, end) in SIDES.items() if of == axis}
    both = [" / ".join(names[name] for name in own), say("About {axis}", axis=axis.upper())]
    title = say("Twist") if axis == "y" else fit(context, both)
    column = layout.column(align=True)
    row = column.row(align=True)
    limit = row.row()
    limit.active = not locked
    limit.prop(bone, f"use_ik_limit_{axis}", text=title, translate=False)
    if angle is not None:
        draw_aside(row, f"{round(math.degrees(angle), 1) + 0.0:.1f}°")
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


def register() -> None:
    """Add the folder of the shipped presets to Blender's preset paths."""
    utils.register_preset_path(str(FOLDER))


def unregister() -> None:
    """Remove the folder from Blender's preset paths."""
    utils.unregister_preset_path(str(FOLDER))
