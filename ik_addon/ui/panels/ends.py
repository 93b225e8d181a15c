"""The rows in the panel for the hand or foot at the end of a chain."""

from __future__ import annotations

import bpy

from ...data.settings import chain_of
from ...setup import ends
from ...translation.sentences import say
from ..text import draw_button, draw_message, draw_search


def draw_end(layout: bpy.types.UILayout, context: bpy.types.Context, tip: bpy.types.PoseBone) -> None:
    """Draw the field for a chain's end bone, and the settings and buttons that make the bone turn with the target."""
    chain = chain_of(tip)
    draw_search(layout, context, chain, "end_bone", tip.id_data.data)
    waiting = ends.waiting(tip)
    if waiting is not None:
        text = say("'{bone}' is animated. Snap a range to turn it with the target", bone=waiting.name)
        draw_message(layout, context, text, "INFO")
        layout.operator("ik_addon.end_fit", text="Snap Range", icon="SNAP_ON").snap = True
        return
    row = layout.row(align=True)
    if chain.end_bone:
        row.prop(chain, "use_end_rotation")
        row.operator("ik_addon.end_fit", text="", icon="ORIENTATION_LOCAL")
    else:
        draw_button(row, context, "ik_addon.end_fit", "ORIENTATION_LOCAL", "Turn")
