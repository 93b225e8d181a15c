"""Text that is longer than the sidebar is wide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import blf
import bpy

from ..translation.sentences import say

FONT = 0
Icon = Literal["NONE", "BLANK1", "ERROR", "INFO"]
MARGIN = 92.0
"""Pixels at a resolution scale of 1 that a line in a box of the sidebar loses to tabs, margins and an icon."""


def wrapped(text: str, width: float, width_of: Callable[[str], float]) -> list[str]:
    """Break a text into lines of at most `width`, between words; a longer word has a line of its own."""
    lines: list[str] = []
    for word in text.split():
        if lines and width_of(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def draw_message(
    layout: bpy.types.UILayout, context: bpy.types.Context, text: str, icon: Icon = "NONE", alert: bool = False
) -> None:
    """Draw a sentence over as many lines as it needs, in the language of the interface."""
    scale = context.preferences.system.ui_scale
    blf.size(FONT, context.preferences.ui_styles[0].widget.points * scale)
    dimensions: Any = blf.dimensions  # the stubs know of no result
    lines = wrapped(say(text), context.region.width - MARGIN * scale, lambda line: dimensions(FONT, line)[0])
    column = layout.column(align=True)
    column.alert = alert
    column.scale_y = 0.8 if len(lines) > 1 else 1.0
    for i, line in enumerate(lines):
        column.label(text=line, icon=icon if i == 0 else ("NONE" if icon == "NONE" else "BLANK1"), translate=False)
