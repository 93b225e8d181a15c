"""Settings for all files, in the preferences of the add-on; `ui/preferences` draws them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, FloatVectorProperty, StringProperty

from .untyped import Declared, Struct

PACKAGE = __package__.rpartition(".ik_addon")[0]
"""The extension's package name in Blender."""
TAB = "IK"
"""Default name of the sidebar tab."""
CONTROLS = (
    ("EMPTIES", "Empties", "Empties in their own collection"),
    ("BONES", "Bones", "Control bones of the armature; empties if it is linked or overridden"),
)

on_tab_renamed: list[Callable[[], None]] = []
"""Called when the tab is renamed."""
on_draw: list[Callable[[IKAddonPreferences, bpy.types.Context], None]] = []
"""Called to draw the preferences."""


def _tab_renamed(_preferences: bpy.types.AddonPreferences, _context: bpy.types.Context) -> None:
    for listener in on_tab_renamed:
        listener()


def _color(name: str, description: str, default: tuple[float, float, float]) -> Declared:
    return FloatVectorProperty(
        name=name, description=description, default=default, min=0.0, max=1.0, subtype="COLOR_GAMMA"
    )


def _flag(name: str, description: str) -> Declared:
    return BoolProperty(name=name, description=description, default=True)


def _pixels(name: str, description: str, default: float) -> Declared:
    return FloatProperty(name=name, description=description, default=default, min=0.5, max=30.0, subtype="PIXEL")


class IKAddonPreferences(bpy.types.AddonPreferences):
    """The preferences of the add-on."""

    bl_idname = PACKAGE

    tab: StringProperty(
        name="Sidebar Tab",
        description="The sidebar tab that holds the panels; use the name of an existing tab to share it",
        default=TAB,
        maxlen=40,
        update=_tab_renamed,
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

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the preferences."""
        for drawer in on_draw:
            drawer(self, context)


def preferences() -> Struct:
    """Return the preferences of the add-on; their defaults if a script registered it without enabling it."""
    addon: bpy.types.Addon | None = bpy.context.preferences.addons.get(PACKAGE)
    own = None if addon is None else addon.preferences
    return _defaults() if own is None else own


def tab() -> str:
    """Return the name of the sidebar tab."""
    chosen: str = preferences().tab
    return chosen.strip() or TAB


@cache
def _defaults() -> SimpleNamespace:
    found = {}
    for setting in IKAddonPreferences.bl_rna.properties:
        default = "default_array" if getattr(setting, "is_array", False) else "default"
        found[setting.identifier] = getattr(setting, default, None)
    return SimpleNamespace(is_property_set=lambda _name: False, **found)
