"""The sub-panel "Whole Body": a list of pinned bones with a fixed height, and the give of the active bone."""

from __future__ import annotations

import bpy
from bpy.types import Context, Object, PoseBone, UILayout

from ...core import compat
from ...core.settings import chain_of
from ...core.translation.sentences import say
from ...posing.pins import stored_pins
from ..operators.active import active_bone, armature
from ..operators.body import is_in_hand
from ..panel import BoneList, FoldedPanel, is_chained
from ..text import MARGIN, VALUE, draw_button, fit, is_narrow

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
