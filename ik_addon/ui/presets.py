"""The menu of chain presets."""

from __future__ import annotations

from typing import Any

import bpy

from ..chains.profile import FOLDER, SHIPPED, SUBDIR
from .operators.presets import MENU, label_of

utils: Any = bpy.utils  # the stubs lack the functions for presets


class IK_ADDON_MT_presets(bpy.types.Menu):
    """Presets for the active chain."""

    bl_idname = MENU
    bl_label = "Presets"
    preset_subdir = SUBDIR
    preset_operator = "ik_addon.preset_apply"

    def draw(self, context: bpy.types.Context) -> None:
        """Draw an entry for each preset."""
        self.draw_preset(context)


CLASSES = (IK_ADDON_MT_presets,)


def draw(layout: bpy.types.UILayout, *, with_chain: bool) -> None:
    """Draw the menu; with a chain, also buttons to add and remove a preset."""
    row = layout.row(align=True)
    row.menu(MENU, text=IK_ADDON_MT_presets.bl_label)
    if not with_chain:
        return
    row.operator("ik_addon.preset_add", text="", icon="ADD")
    if is_own(IK_ADDON_MT_presets.bl_label):
        row.operator("ik_addon.preset_add", text="", icon="REMOVE").remove_active = True


def is_own(name: str) -> bool:
    """Whether the menu shows a preset of the user, which can be removed; none that came with the extension can."""
    return name != "Presets" and name not in {label_of(path.name) for path in SHIPPED.glob("*.py")}


def register() -> None:
    """Add the folder of the shipped presets to Blender's preset paths."""
    utils.register_preset_path(str(FOLDER))


def unregister() -> None:
    """Remove the folder from Blender's preset paths."""
    utils.unregister_preset_path(str(FOLDER))
