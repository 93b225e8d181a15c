"""Draw the preferences of the add-on."""

from __future__ import annotations

from typing import Any

import bpy

from ...core import preferences
from . import keymap

COLORS = "color_"
"""Prefix of the color settings' names."""
SIZES = ("line_width", "outline_width", "point_size", "ring_size")


def register() -> None:
    """Start drawing the preferences."""
    preferences.on_draw.append(draw)


def unregister() -> None:
    """Stop drawing the preferences."""
    preferences.on_draw.remove(draw)


def draw(own: Any, context: bpy.types.Context) -> None:
    """Draw the preferences."""
    layout: bpy.types.UILayout = own.layout
    layout.use_property_split = True
    layout.use_property_decorate = False
    layout.prop(own, "tab")

    box = layout.box()
    box.label(text="New Chains")
    column = box.column()
    column.prop(own, "controls")
    column.prop(own, "with_pole")
    column.prop(own, "live")

    box = layout.box()
    box.label(text="Overlay")
    column = box.column()
    column.prop(own, "use_theme")
    if not own.use_theme:
        for name in own.bl_rna.properties.keys():  # noqa: SIM118 - a collection, not a dict
            if name.startswith(COLORS):
                column.prop(own, name)
    column = box.column(align=True)
    for name in SIZES:
        column.prop(own, name)

    box = layout.box()
    box.label(text="Shortcuts")
    keymap.draw(box.column(), context)
