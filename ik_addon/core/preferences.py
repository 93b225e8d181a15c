"""Settings for all files, in the preferences of the add-on, and what they act on: the tab and the shortcuts."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import bpy
import rna_keymap_ui
from bpy.props import BoolProperty, EnumProperty, FloatProperty, FloatVectorProperty, StringProperty
from bpy.types import Addon, AddonPreferences, Context, KeyMap, KeyMapItem, Panel, UILayout

from .untyped import Declared, Struct

PACKAGE = __package__.rpartition(".ik_addon")[0]
"""The extension's package name in Blender."""
TAB = "IK"
"""Default name of the sidebar tab."""
CONTROLS = (
    ("EMPTIES", "Empties", "Empties in their own collection"),
    ("BONES", "Bones", "Control bones of the armature; empties if it is linked or overridden"),
)

COLORS = "color_"
"""Prefix of the color settings' names."""
SIZES = ("line_width", "outline_width", "point_size", "ring_size")
KEYMAP = "Pose"
PIE = "IK_ADDON_MT_pie"
"""The pie menu in `ui/menus`."""
GUIDE = Path(__file__).parents[1] / "docs" / "guide.html"
"""The user guide as the build makes it of the source."""
GUIDE_SOURCE = Path(__file__).parents[2] / "docs" / "guide.md"
"""The same in a checkout."""
UNASSIGNED = ("ik_addon.chain_add", "ik_addon.drag_target", "ik_addon.solve", "ik_addon.snap_target", "ik_addon.bake")
"""Operators without a shortcut until the user assigns one."""

_items: list[tuple[KeyMap, KeyMapItem]] = []
_panels: list[type[Panel]] = []
"""The panels of the tab, parents before their sub-panels."""


def _color(name: str, description: str, default: tuple[float, float, float]) -> Declared:
    return FloatVectorProperty(
        name=name, description=description, default=default, min=0.0, max=1.0, subtype="COLOR_GAMMA"
    )


def _flag(name: str, description: str) -> Declared:
    return BoolProperty(name=name, description=description, default=True)


def _pixels(name: str, description: str, default: float) -> Declared:
    return FloatProperty(name=name, description=description, default=default, min=0.5, max=30.0, subtype="PIXEL")


class IKAddonPreferences(AddonPreferences):
    """The preferences of the add-on."""

    bl_idname = PACKAGE

    tab: StringProperty(
        name="Sidebar Tab",
        description="The sidebar tab that holds the panels; use the name of an existing tab to share it",
        default=TAB,
        maxlen=40,
        update=lambda _preferences, _context: rename(),
    )

    with_pole: _flag("Pole", "Make poles for limbs, unless an operator overrides this")
    controls: EnumProperty(
        name="Controls",
        description="Type of object or bone used for targets and poles, unless an operator overrides this",
        items=CONTROLS,
        default=CONTROLS[0][0],
    )
    live: _flag("Go Live", "Turn Live on with the first chain of an armature")

    use_theme: _flag("Theme Colors", "Derive the colors of the overlay from the theme")
    color_unsolved: _color("Not Solved", "Chains that are not solved yet", (0.31, 0.78, 1.0))
    color_reached: _color("Reached", "Chains that reach their target", (0.6, 1.0, 0.2))
    color_limited: _color("Limited", "Chains that are held back by limits, and joints at a limit", (0.96, 0.95, 0.27))
    color_out_of_reach: _color("Out of Reach", "Chains whose target is too far or too close", (1.0, 0.6, 0.16))
    color_failed: _color("Not Solvable", "Chains that can't be solved", (1.0, 0.3, 0.3))
    color_swing: _color("Swing Limits", "Cones of the directions that limits allow", (0.39, 1.0, 1.0))
    color_twist: _color("Twist Limits", "Arcs of the twist that limits allow", (0.55, 0.86, 0.0))
    color_reach: _color("Reach", "Circle showing the reach of the active chain", (0.31, 0.78, 1.0))
    color_pin: _color("Pins", "Marks on pinned bones", (1.0, 1.0, 1.0))
    line_width: _pixels("Chain Width", "Width of the lines along chains", 3.0)
    outline_width: _pixels("Outline Width", "Width of the lines for limits, goals and reach", 1.5)
    point_size: _pixels("Point Size", "Size of the points on joints at a limit", 7.0)
    ring_size: FloatProperty(
        name="Handle Size",
        description="Size of the rings around targets and poles",
        default=1.0,
        min=0.25,
        max=4.0,
        subtype="FACTOR",
    )

    def draw(self, context: Context) -> None:
        """Draw the preferences."""
        layout: UILayout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.operator("wm.url_open", text="Guide", icon="HELP").url = guide()
        layout.prop(self, "tab")

        column = _titled(layout, text="New Chains")
        for name in ("controls", "with_pole", "live"):
            column.prop(self, name)

        column = _titled(layout, text="Overlay")
        column.prop(self, "use_theme")
        for setting in () if self.use_theme else self.bl_rna.properties:
            if setting.identifier.startswith(COLORS):
                column.prop(self, setting.identifier)
        column = column.column(align=True)
        for name in SIZES:
            column.prop(self, name)

        column, configuration = _titled(layout, text="Shortcuts"), context.window_manager.keyconfigs.user
        for keymap, item in of_user(context):  # as Blender's own preferences do
            column.context_pointer_set("keymap", keymap)
            rna_keymap_ui.draw_kmi([], configuration, keymap, item, column, 0)
        if not is_complete(context):
            column.context_pointer_set("keymap", configuration.keymaps[KEYMAP])
            column.operator("preferences.keymap_restore", text="Restore Keymap Pose")


def preferences() -> Struct:
    """Return the preferences of the add-on; their defaults if a script registered it without enabling it."""
    addon: Addon | None = bpy.context.preferences.addons.get(PACKAGE)
    own = None if addon is None else addon.preferences
    return _defaults() if own is None else own


def guide() -> str:
    """Return the address of the user guide on this computer."""
    return (GUIDE if GUIDE.exists() else GUIDE_SOURCE).as_uri()


def tab() -> str:
    """Return the name of the sidebar tab."""
    chosen: str = preferences().tab
    return chosen.strip() or TAB


def _defaults() -> SimpleNamespace:
    found = {}
    for setting in IKAddonPreferences.bl_rna.properties:
        default = "default_array" if getattr(setting, "is_array", False) else "default"
        found[setting.identifier] = getattr(setting, default, None)
    return SimpleNamespace(is_property_set=lambda _name: False, **found)


def _titled(layout: UILayout, text: str) -> UILayout:
    """Return a column in a box with a title."""
    box = layout.box()
    box.label(text=text)
    return box.column()


# ---- the tab


def show(classes: Iterable[type]) -> None:
    """Add the shortcuts, and move the panels among registered classes to their tab."""
    add_shortcuts()
    _panels.extend(cls for cls in classes if issubclass(cls, Panel) and hasattr(cls, "bl_category"))
    rename()


def hide() -> None:
    """Remove the shortcuts, and leave the panels in their tab."""
    _panels.clear()
    for keymap, item in _items:
        keymap.keymap_items.remove(item)
    _items.clear()


def rename() -> None:
    """Move the panels to the tab named in the preferences; Blender reads the name only on registration."""
    name = tab()
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


def of_user(context: Context) -> Iterator[tuple[KeyMap, KeyMapItem]]:
    """Yield each shortcut as the user has set it, with its keymap; Blender acts on these."""
    keymaps = context.window_manager.keyconfigs.user.keymaps
    item: Struct
    for own, item in _items:
        keymap: Struct = keymaps.get(own.name)
        for other in () if keymap is None else keymap.keymap_items:
            is_menu = item.idname == "wm.call_menu_pie"
            if other.idname == item.idname and not (is_menu and getattr(other.properties, "name", "") != PIE):
                yield keymap, other


def is_complete(context: Context) -> bool:
    """Whether the user has all shortcuts; one that was removed can only be restored together with its keymap."""
    return len(list(of_user(context))) >= len(_items)
