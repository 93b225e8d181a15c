"""What the preferences of the add-on show, and what they act on: the name of the tab, and the shortcuts."""

from collections.abc import Iterable, Iterator

import bpy
import rna_keymap_ui

from ..core import guide, preferences
from ..core.untyped import Struct

COLORS = "color_"
"""Prefix of the color settings' names."""
SIZES = ("line_width", "outline_width", "point_size", "ring_size")
KEYMAP = "Pose"
PIE = "IK_ADDON_MT_pie"
"""The pie menu in `ui/menus`."""
UNASSIGNED = ("ik_addon.chain_add", "ik_addon.drag_target", "ik_addon.solve", "ik_addon.snap_target", "ik_addon.bake")
"""Operators without a shortcut until the user assigns one."""

_items: list[tuple[bpy.types.KeyMap, bpy.types.KeyMapItem]] = []
_panels: list[type[bpy.types.Panel]] = []
"""The panels of the tab, parents before their sub-panels."""


def register(classes: Iterable[type]) -> None:
    """Start drawing the preferences, add the shortcuts, and move the panels among registered classes to their tab."""
    preferences.on_draw.append(draw)
    add_shortcuts()
    _panels.extend(cls for cls in classes if issubclass(cls, bpy.types.Panel) and hasattr(cls, "bl_category"))
    preferences.on_tab_renamed.append(rename)
    rename()


def unregister() -> None:
    """Stop drawing the preferences, remove the shortcuts, and leave the panels in their tab."""
    preferences.on_tab_renamed.remove(rename)
    _panels.clear()
    for keymap, item in _items:
        keymap.keymap_items.remove(item)
    _items.clear()
    preferences.on_draw.remove(draw)


def draw(own: preferences.IKAddonPreferences, context: bpy.types.Context) -> None:
    """Draw the preferences."""
    layout: bpy.types.UILayout = own.layout
    layout.use_property_split = True
    layout.use_property_decorate = False
    layout.operator("wm.url_open", text="Guide", icon="HELP").url = guide.url()
    layout.prop(own, "tab")

    column = _titled(layout, text="New Chains")
    for name in ("controls", "with_pole", "live"):
        column.prop(own, name)

    column = _titled(layout, text="Overlay")
    column.prop(own, "use_theme")
    for setting in () if own.use_theme else own.bl_rna.properties:
        if setting.identifier.startswith(COLORS):
            column.prop(own, setting.identifier)
    column = column.column(align=True)
    for name in SIZES:
        column.prop(own, name)

    draw_shortcuts(_titled(layout, text="Shortcuts"), context)


def _titled(layout: bpy.types.UILayout, text: str) -> bpy.types.UILayout:
    """Return a column in a box with a title."""
    box = layout.box()
    box.label(text=text)
    return box.column()


# ---- the tab


def rename() -> None:
    """Move the panels to the tab named in the preferences; Blender reads the name only on registration."""
    name = preferences.tab()
    if all(panel.bl_category == name for panel in _panels):
        return
    for panel in reversed(_panels):
        bpy.utils.unregister_class(panel)
        panel.bl_category = name
    for panel in _panels:
        bpy.utils.register_class(panel)


# ---- shortcuts, which users can also change under Keymap > Pose


def add_shortcuts() -> None:
    """Set the shortcuts in Pose Mode.

    The pie menu opens with Shift+Alt+I, near Blender's Shift+I (Add IK) and Ctrl+Alt+I (Remove IK). G stays Blender's
    Move, except on hands and feet that it could only turn, and Ctrl C its Copy Pose, which says what it leaves out.
    """
    configuration = bpy.context.window_manager.keyconfigs.addon
    if configuration is None:
        return  # in background mode Blender may have no keymaps
    keymap = configuration.keymaps.new(name=KEYMAP)
    add = keymap.keymap_items.new
    pie: Struct = add("wm.call_menu_pie", "I", "PRESS", shift=True, alt=True)
    pie.properties.name = PIE
    given = (pie, add("ik_addon.grab", "G", "PRESS"), add("ik_addon.copy_pose", "C", "PRESS", ctrl=True))
    _items.extend((keymap, item) for item in (*given, *(add(operator, "NONE", "PRESS") for operator in UNASSIGNED)))


def of_user(context: bpy.types.Context) -> Iterator[tuple[bpy.types.KeyMap, bpy.types.KeyMapItem]]:
    """Yield each shortcut as the user has set it, with its keymap; Blender acts on these."""
    keymaps = context.window_manager.keyconfigs.user.keymaps
    for own, item in _items:
        keymap: Struct = keymaps.get(own.name)
        for other in () if keymap is None else keymap.keymap_items:
            if _is_same(other, item):
                yield keymap, other


def _is_same(item: bpy.types.KeyMapItem, own: Struct) -> bool:
    """Whether an item of the user's keymap is the add-on's item `own`, whatever its key is now."""
    is_menu = own.idname == "wm.call_menu_pie"
    return item.idname == own.idname and not (is_menu and getattr(item.properties, "name", "") != own.properties.name)


def is_complete(context: bpy.types.Context) -> bool:
    """Whether the user has all shortcuts; one that was removed can only be restored together with its keymap."""
    return len(list(of_user(context))) >= len(_items)


def draw_shortcuts(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    """Draw the shortcuts as editable keymap items, as Blender's own preferences do."""
    configuration = context.window_manager.keyconfigs.user
    for keymap, item in of_user(context):
        layout.context_pointer_set("keymap", keymap)
        rna_keymap_ui.draw_kmi([], configuration, keymap, item, layout, 0)
    if not is_complete(context):
        layout.context_pointer_set("keymap", configuration.keymaps[KEYMAP])
        layout.operator("preferences.keymap_restore", text="Restore Keymap Pose")
