"""The popover with chain presets."""

from __future__ import annotations

from typing import Any

import bpy
from bl_ui.utils import PresetPanel

from ..chains.profile import FOLDER, SUBDIR
from .operators.presets import MENU

utils: Any = bpy.utils  # the stubs lack the functions for presets


class VIEW3D_PT_ik_addon_presets(PresetPanel, bpy.types.Panel):
    """Presets for the active chain, with buttons to add and remove one."""

    bl_idname = MENU
    bl_label = "Chain Presets"
    preset_subdir = SUBDIR
    preset_operator = "ik_addon.preset_apply"
    preset_add_operator = "ik_addon.preset_add"


CLASSES = (VIEW3D_PT_ik_addon_presets,)


def register() -> None:
    """Add the folder of the shipped presets to Blender's preset paths."""
    utils.register_preset_path(str(FOLDER))


def unregister() -> None:
    """Remove the folder from Blender's preset paths."""
    utils.unregister_preset_path(str(FOLDER))
