"""The sub-panel "Whole Body": a list of fixed height of what is pinned, and how readily the active bone comes along."""

from __future__ import annotations

from typing import Any

import bpy

from ... import compat
from ...data.settings import chain_of
from ...operators.active import active_bone, armature
from ...posing.pins import Extremities, stored_pins
from ...translation.sentences import say
from ..active_row import ActiveRow
from ..panel import ArmaturePanel
from ..text import MARGIN, VALUE, draw_button, fit, is_narrow

ROWS = 4
"""Of the list."""
ICONS = {"LOCATION": "CON_LOCLIKE", "ROTATION": "CON_ROTLIKE"}


class IK_ADDON_UL_pins(bpy.types.UIList):
    """A row for each pinned bone: its name, what of it is pinned, and a button that releases it."""

    def draw_item(
        self,
        _context: bpy.types.Context,
        layout: bpy.types.UILayout,
        _data: Any,
        bone: bpy.types.PoseBone,
        _icon: int,
        _active_data: Any,
        _active_property: str,
        _index: int = 0,
        _flag: int = 0,
    ) -> None:
        """Draw a row."""
        row = layout.row(align=True)
        row.label(text=bone.name, icon="PINNED", translate=False)
        for flag, icon in ICONS.items():
            row.prop_enum(chain_of(bone), "pin", flag, text="", icon=icon)  # type: ignore[arg-type]
        row.operator("ik_addon.pin_release", text="", icon="X", emboss=False).bone = bone.name

    def draw_filter(self, _context: bpy.types.Context, layout: bpy.types.UILayout) -> None:
        """Draw the search for a name."""
        layout.prop(self, "filter_name", text="", icon="VIEWZOOM")

    def filter_items(self, _context: bpy.types.Context, pose: Any, name: str) -> tuple[list[int], list[int]]:
        """Show the pinned bones, in the order of the armature."""
        wanted = {bone for bone in stored_pins(pose.id_data) if self.filter_name.lower() in bone.lower()}
        return [self.bitflag_filter_item if bone.name in wanted else 0 for bone in getattr(pose, name)], []


def _active(context: bpy.types.Context) -> bpy.types.PoseBone | None:
    return active_bone(armature(context))


def _select(_context: bpy.types.Context, bone: bpy.types.PoseBone) -> None:
    compat.select_bone(bone.id_data, bone)


ROW = ActiveRow("ik_addon_pin", "Active Bone", "The active bone of the armature", _active, _select)


class VIEW3D_PT_ik_addon_body(ArmaturePanel):
    """Pins, and what bones give."""

    bl_idname = "VIEW3D_PT_ik_addon_body"
    bl_label = "Whole Body"
    bl_options = {"DEFAULT_CLOSED"}  # noqa: RUF012 - as Blender wants it

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the list, what pins and releases, and the active bone."""
        layout, ob = self.layout, armature(context)
        layout.template_list(
            "IK_ADDON_UL_pins",
            "",
            ob.pose,
            "bones",
            context.window_manager,
            ROW.property,
            rows=ROWS,
            maxrows=ROWS,
        )
        column = layout.column(align=True)
        draw_button(column, context, "ik_addon.pin", "PINNED", "Pin")
        both = column if is_narrow(context) else column.row(align=True)
        both.operator("ik_addon.pin", text="Pin Feet").which = Extremities.FEET.name
        both.operator("ik_addon.pin", text="Pin Hands").which = Extremities.HANDS.name
        draw_button(column, context, "ik_addon.pin_release", "UNPINNED", "Release")
        bone = active_bone(ob)
        if bone is None:
            layout.label(text="No active bone")
        else:
            text = fit(context, [say("Give of {bone}", bone=bone.name), say("Give")], MARGIN + VALUE)
            layout.prop(chain_of(bone), "give", text=text, translate=False)


CLASSES = (IK_ADDON_UL_pins, VIEW3D_PT_ik_addon_body)


register = ROW.register
unregister = ROW.unregister
