"""The sub-panels that are closed at first: "Limits", "Whole Body" and "Motion Clip"."""

from __future__ import annotations

import math

import bpy
from bpy.types import Context, Menu, Object, PoseBone, Scene, UILayout

from ...bake.scene import time_scale
from ...chains.profile import FOLDER, SHIPPED, SUBDIR, names_of
from ...core import compat, contact_keys
from ...core.chain_settings import CONTACTS
from ...core.settings import chain_of
from ...core.skeleton import angles_of
from ...core.translation.sentences import CONTEXT, say
from ...core.untyped import Struct
from ...posing.pins import stored_pins
from ...rig.plan.chain import chain_with, end_of, tips
from ...rig.plan.followers import goals_of
from ..operators.active import active_bone, active_chain, armature
from ..operators.body import is_in_hand
from ..operators.limits import MENU, SIDES, label_of, selected
from ..panel import BoneList, FoldedPanel, draw_aside, is_chained, kept
from ..text import BESIDE, MARGIN, VALUE, draw_button, draw_setting, fit, is_narrow

# ---- Limits: presets, and Blender's own IK limits of a bone, named by what each direction does

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
        names = kept(context, ob, ("directions", bone.name), lambda: names_of(bone))
        for axis in "xzy":
            draw_axis(layout, context, bone, axis, names, None if is_narrow(context) else angles[axis])
        column = layout.column(align=True)
        several = kept(context, ob, "several", lambda: len(selected(ob)) > 1)
        column.operator("ik_addon.limit_from_pose", icon="POSE_HLT").all_selected = several
        draw_button(column, context, "ik_addon.limits_copy", "PASTEDOWN", "Copy Limits")


def is_own(name: str) -> bool:
    """Whether the menu shows a preset of the user, which can be removed; none that came with the extension can."""
    return name != "Presets" and name not in {label_of(path.name) for path in SHIPPED.glob("*.py")}


def draw_axis(
    layout: UILayout, context: Context, bone: PoseBone, axis: str, names: dict[str, str], angle: float | None
) -> None:
    """Draw the limits of a bone about one axis, given the names of its directions.

    `angle` is the current one in radians, None without room for it.
    """
    locked = getattr(bone, f"lock_ik_{axis}")
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


# ---- Whole Body: a list of pinned bones with a fixed height, and the give of the active bone

ROWS = 4
"""Height of the list, in rows."""
ICONS: dict[str, bpy.stub_internal.rna_enums.IconItems] = {"LOCATION": "CON_LOCLIKE", "ROTATION": "CON_ROTLIKE"}


class IK_ADDON_UL_pins(BoneList):
    """One row per pinned bone: its name, toggles for pinned location and rotation, and a button to release it."""

    row = "ik_addon_pin"
    label = "Active Bone"
    description = "The active bone of the armature"
    listed = staticmethod(stored_pins)
    active = staticmethod(lambda context: active_bone(armature(context)))
    choose = staticmethod(compat.select_bone)

    def draw_row(self, _context: Context, layout: UILayout, bone: PoseBone) -> None:
        """Draw a row."""
        row = layout.row(align=True)
        row.label(text=bone.name, icon="PINNED", translate=False)
        for flag, icon in ICONS.items():
            row.prop_enum(chain_of(bone), "pin", flag, text="", icon=icon)
        row.operator("ik_addon.pin_release", text="", icon="X", emboss=False).bone = bone.name


class VIEW3D_PT_ik_addon_body(FoldedPanel):
    """The pinned bones, and the give of the active bone."""

    bl_label = "Whole Body"

    @classmethod
    def is_of_use(cls, context: Context, ob: Object) -> bool:
        """Show the panel once there are chains or pins, or while the tool is in use."""
        return is_chained(context, ob) or is_in_hand(context) or bool(stored_pins(ob))

    def draw_rig(self, layout: UILayout, context: Context, ob: Object) -> None:
        """Draw the tool, the list, the buttons that pin and release, and the give of the active bone."""
        if ob.mode == "POSE":
            layout.operator("ik_addon.body_tool", icon="MOD_ARMATURE", depress=is_in_hand(context))
        IK_ADDON_UL_pins.draw_list(layout, context, ob, ROWS, ROWS)
        column = layout.column(align=True)
        draw_button(column, context, "ik_addon.pin", "PINNED", "Pin")
        both = column if is_narrow(context) else column.row(align=True)
        both.operator("ik_addon.pin", text="Pin Feet").which = "FEET"
        both.operator("ik_addon.pin", text="Pin Hands").which = "HANDS"
        draw_button(column, context, "ik_addon.pin_release", "UNPINNED", "Release")
        bone = active_bone(ob)
        if bone is None:
            layout.label(text="No active bone")
        else:
            text = fit(context, [say("{bone} Follows Easily", bone=bone.name), say("Follows Easily")], MARGIN + VALUE)
            layout.prop(chain_of(bone), "give", text=text, translate=False)


# ---- Motion Clip: operators for a range of frames


def is_moved(ob: Object) -> bool:
    """Whether an action or a strip moves an armature or what a chain of it follows."""
    movers = {ob, *(goal.ob for tip in tips(ob) for goal in goals_of(tip))}
    return any((data := mover.animation_data) and (data.action or data.nla_tracks) for mover in movers)


class VIEW3D_PT_ik_addon_clip(FoldedPanel):
    """Contacts, and the operators that use them."""

    bl_label = "Motion Clip"
    bl_translation_context = CONTEXT  # French Blender trims with this word

    @classmethod
    def is_of_use(cls, context: Context, ob: Object) -> bool:
        """Show the panel once there are chains that something moves."""
        return is_chained(context, ob) and kept(context, ob, "moved", lambda: is_moved(ob))

    def draw_rig(self, layout: UILayout, context: Context, _ob: Object) -> None:
        """Draw the buttons in the order of use, and the contact of the active chain."""
        column = layout.column(align=True)
        draw_button(column, context, "ik_addon.find_contacts", "VIEWZOOM", "Find Contacts")
        draw_button(column, context, "ik_addon.plant", "SNAP_FACE", "Lock Feet")
        draw_button(layout, context, "ik_addon.bake_skeleton", "EXPORT", "Bake to Skeleton")
        tip = active_chain(context)
        if tip is None:
            return
        chain = chain_of(tip)
        row = layout.row(align=True)
        for name, label, *_rest in CONTACTS:
            row.operator("ik_addon.mark_contact", text=label, depress=name in chain.contact).contact = name
        if chain.contact:
            row.operator("ik_addon.remove_contact", text="", icon="X")
            layout.label(text=_when(context.scene, tip), translate=False)
        if end_of(tip) is not None:
            column = layout.column(align=True)
            column.use_property_split = not is_narrow(context)
            column.use_property_decorate = False
            draw_setting(column, context, chain, "heel_pivot")
            draw_setting(column, context, chain, "toe_pivot")
            column.operator("ik_addon.find_pivots", icon="ORIENTATION_LOCAL")


def _when(scene: Scene, tip: PoseBone) -> str:
    """Return a sentence with the first and last frame of the contact on the current frame."""
    scale = time_scale(scene)
    start, end = contact_keys.whole(tip, scene.frame_current_final * scale) or (-math.inf, math.inf)
    if math.isinf(start) and math.isinf(end):
        return say("Contact on all frames")
    if math.isinf(start):
        return say("Contact up to frame {last}", last=round(end / scale) - 1)
    if math.isinf(end):
        return say("Contact from frame {first} on", first=round(start / scale))
    return say("Contact from frame {first} to {last}", first=round(start / scale), last=round(end / scale) - 1)
