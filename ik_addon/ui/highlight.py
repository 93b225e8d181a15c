"""Draw the feedback of the tool Pose Body: the joint under the mouse, and during a drag how many bones follow."""

from __future__ import annotations

import logging
from typing import Any

import blf
import bpy
import numpy as np
from mathutils import Vector

from ..core.translation.sentences import say
from ..posing.pick import picked
from ..targets import cursor
from .operators.active import obstacle
from .operators.body.tool import held_body
from .overlay.colors import faded
from .overlay.draw import draw_lines

log = logging.getLogger(__name__)
FONT = 0
RING = 8.0
"""Radius of the ring around the joint, in pixels at a resolution scale of 1."""
LINE = 4.0
"""Width of the line along the bone, in the same pixels."""
BESIDE = (18.0, -26.0)
"""Offset of the text from the mouse, in the same pixels."""
SHADOW = 3
"""Blur of the text's shadow, without which it can't be read on a light background; one of Blender's levels."""
ANGLES = np.repeat(2.0 * np.pi * np.arange(25) / 24, 2)[1:-1]
CIRCLE = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
"""(48, 2) ends of the line segments of a unit circle."""


class _State:
    broken = False
    """An unexpected error was logged: draw nothing until Blender is restarted."""


def draw(context: bpy.types.Context, place: tuple[int, int]) -> None:
    """Draw around the mouse at a position in the window; log an unexpected error once."""
    if _State.broken:
        return
    try:
        _draw(context, place)
    except Exception:
        _State.broken = True  # log it once, not at every mouse move
        log.exception("The Pose Body tool no longer shows what is under the mouse")


def _draw(context: bpy.types.Context, place: tuple[int, int]) -> None:
    drag = held_body()
    if drag is not None:
        _write(context, place, follow(drag.extent.length))
        return
    if cursor.current is not None or context.mode != "POSE" or context.region_data is None or obstacle(context):
        return
    corner = np.array([context.region.x, context.region.y])
    found = picked(context, Vector((place[0] - corner[0], place[1] - corner[1])))
    if found is not None:
        scale = context.preferences.system.ui_scale
        hue = context.preferences.themes[0].user_interface.gizmo_hi
        color = (hue[0], hue[1], hue[2], 1.0)
        ends = corner + found.ends
        draw_lines(_flat(ends), faded(color, 0.5), LINE * scale)
        draw_lines(_flat(ends[int(found.use_tail)] + RING * scale * CIRCLE), color, LINE / 2.0 * scale)


def follow(count: int) -> str:
    """Return the text for how many bones follow; 0: the whole body."""
    return say("Bones: {count}", count=count) if count else say("Bones: All")


def _flat(points: Any) -> Any:
    """Return points (k, 2) on the screen as (k, 3)."""
    return np.pad(points, ((0, 0), (0, 1))).astype(np.float32)


def _write(context: bpy.types.Context, place: tuple[int, int], text: str) -> None:
    """Draw text beside the mouse."""
    scale = context.preferences.system.ui_scale
    color = context.preferences.themes[0].view_3d.space.text_hi
    blf.size(FONT, context.preferences.ui_styles[0].widget.points * scale)
    blf.color(FONT, color[0], color[1], color[2], 1.0)
    blf.position(FONT, place[0] + BESIDE[0] * scale, place[1] + BESIDE[1] * scale, 0.0)
    blf.enable(FONT, blf.SHADOW)
    blf.shadow(FONT, SHADOW, 0.0, 0.0, 0.0, 0.8)
    blf.draw(FONT, text)
    blf.disable(FONT, blf.SHADOW)
