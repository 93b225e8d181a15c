"""What is added to Blender's own menus and popovers."""

from __future__ import annotations

from typing import Any

import bpy

from ..settings import overlay_of


def draw_overlay_options(panel: bpy.types.Panel, context: bpy.types.Context) -> None:
    """Draw the options of the overlay into the popover Overlays."""
    options, space = overlay_of(context.scene), context.space_data
    layout = panel.layout
    layout.active = isinstance(space, bpy.types.SpaceView3D) and space.overlay.show_overlays
    layout.label(text="Inverse Kinematics")
    row = layout.row(align=True)
    row.prop(options, "show_overlay")
    parts = row.row()
    parts.active = options.show_overlay
    parts.prop(options, "show_limits")
    parts.prop(options, "show_reach")


_ADDED: tuple[tuple[str, Any], ...] = (("VIEW3D_PT_overlay", draw_overlay_options),)


def register() -> None:
    """Add the entries."""
    for menu, draw in _ADDED:
        getattr(bpy.types, menu).append(draw)


def unregister() -> None:
    """Take them out again."""
    for menu, draw in reversed(_ADDED):
        getattr(bpy.types, menu).remove(draw)
