"""The shortcuts of the add-on, which users can change in its preferences or under Keymap > Pose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bpy
import rna_keymap_ui

KEYMAP = "Pose"
PIE = "IK_ADDON_MT_pie"
"""The pie menu in `ui/menus`."""
UNASSIGNED = (
    "ik_addon.chain_add",
    "ik_addon.drag_target",
    "ik_addon.solve",
    "ik_addon.snap_target",
    "ik_addon.bake",
)
"""Operators without a shortcut until the user assigns one."""

_items: list[tuple[bpy.types.KeyMap, bpy.types.KeyMapItem]] = []


def register() -> None:
    """Set the shortcuts in Pose Mode.

    The pie menu opens with Shift+Alt+I, near Blender's Shift+I (Add IK) and Ctrl+Alt+I (Remove IK). G stays Blender's
    Move, except on hands and feet that it could only turn, and Ctrl C its Copy Pose, which says what it leaves out.
    """
    configuration = bpy.context.window_manager.keyconfigs.addon
    if configuration is None:
        return  # in background mode Blender may have no keymaps
    keymap = configuration.keymaps.new(name=KEYMAP)
    add = keymap.keymap_items.new
    pie: Any = add("wm.call_menu_pie", "I", "PRESS", shift=True, alt=True)
    pie.properties.name = PIE
    given = (pie, add("ik_addon.grab", "G", "PRESS"), add("ik_addon.copy_pose", "C", "PRESS", ctrl=True))
    _items.extend((keymap, item) for item in (*given, *(add(operator, "NONE", "PRESS") for operator in UNASSIGNED)))


def unregister() -> None:
    """Remove the shortcuts."""
    for keymap, item in _items:
        keymap.keymap_items.remove(item)
    _items.clear()


def of_user(context: bpy.types.Context) -> Iterator[tuple[Any, Any]]:
    """Yield each shortcut as the user has set it, with its keymap; Blender acts on these."""
    keymaps = context.window_manager.keyconfigs.user.keymaps
    for own, item in _items:
        keymap: Any = keymaps.get(own.name)
        for other in () if keymap is None else keymap.keymap_items:
            if _is_same(other, item):
                yield keymap, other


def _is_same(item: Any, own: Any) -> bool:
    """Whether an item of the user's keymap is the add-on's item `own`, whatever its key is now."""
    is_menu = own.idname == "wm.call_menu_pie"
    return item.idname == own.idname and not (is_menu and getattr(item.properties, "name", "") != own.properties.name)


def is_complete(context: bpy.types.Context) -> bool:
    """Whether the user has all shortcuts; one that was removed can only be restored together with its keymap."""
    return len(list(of_user(context))) >= len(_items)


def draw(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    """Draw the shortcuts as editable keymap items, as Blender's own preferences do."""
    configuration = context.window_manager.keyconfigs.user
    for keymap, item in of_user(context):
        layout.context_pointer_set("keymap", keymap)
        rna_keymap_ui.draw_kmi([], configuration, keymap, item, layout, 0)
    if not is_complete(context):
        layout.context_pointer_set("keymap", configuration.keymaps[KEYMAP])
        layout.operator("preferences.keymap_restore", text="Restore Keymap Pose")
