"""Draw the preferences of the add-on."""

from __future__ import annotations

from typing import Any

import bpy

from ...core import preferences
from . import keymap

COLORS = "color_"
"""Prefix of the color settings' names."""
SIZES = ("line_width", "outline_width", "point_size", "ring_size")


def draw(own: Any, context: bpy.types.Context) -> None:
    """Draw the preferences."""
    layout: bpy.types.UILayout = own.layout
    layout.use_property_split = True
    layout.use_property_decorate = False
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

    keymap.draw(_titled(layout, text="Shortcuts"), context)


def _titled(layout: bpy.types.UILayout, text: str) -> bpy.types.UILayout:
    """Return a column in a box with a title."""
    box = layout.box()
    box.label(text=text)
    return box.column()


LISTENERS = ((preferences.on_draw, draw),)
