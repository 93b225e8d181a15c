"""The keys of the add-on, which a user may change in the preferences under Keymap, Pose."""

from __future__ import annotations

from typing import Any

import bpy

from .menus import IK_ADDON_MT_pie

_items: list[tuple[bpy.types.KeyMap, bpy.types.KeyMapItem]] = []


def register() -> None:
    """Open the pie menu with Shift+Alt+I in Pose Mode, beside Blender's Shift+I (Add IK) and Ctrl+Alt+I (Remove IK)."""
    configuration = bpy.context.window_manager.keyconfigs.addon
    if configuration is None:
        return  # Blender may run without keymaps, in background
    keymap = configuration.keymaps.new(name="Pose")
    item: Any = keymap.keymap_items.new("wm.call_menu_pie", "I", "PRESS", shift=True, alt=True)
    item.properties.name = IK_ADDON_MT_pie.bl_idname
    _items.append((keymap, item))


def unregister() -> None:
    """Take the keys away."""
    for keymap, item in _items:
        keymap.keymap_items.remove(item)
    _items.clear()
