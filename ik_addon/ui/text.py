"""Wrap and shorten texts to fit the width of the sidebar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import blf
import bpy
from bpy.types import Context, UILayout

from ..core.translation.sentences import say
from ..core.untyped import Struct, Value
from .operators.active import operators

FONT = 0
Icon = Literal["NONE", "BLANK1", "ERROR", "INFO"]
NARROW = 260.0
"""Width of a sidebar below which it counts as narrow, in pixels at a resolution scale of 1."""
MARGIN = 92.0
"""Width that tabs, margins and an icon take from a line in a box, in pixels at a resolution scale of 1."""
BARE = 56.0
"""The same for a line without an icon and without a box."""
VALUE = 40.0
"""Width that the number in a field needs beside its name, in the same pixels."""
BUTTON_MARGIN = 78.0
"""`MARGIN` for the text of a button."""
BESIDE = 100.0
"""`MARGIN` for the text of a button with a small one beside it."""


def wrapped(text: str, width: float, width_of: Callable[[str], float]) -> list[str]:
    """Break a text between words into lines no wider than `width`; a longer word gets a line of its own."""
    lines: list[str] = []
    for word in text.split():
        if lines and width_of(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def fitting(texts: Sequence[str], width: float, width_of: Callable[[str], float]) -> str:
    """Return the first text, of several ordered longest first, that is at most `width` wide, or the last one."""
    return next((text for text in texts if width_of(text) <= width), texts[-1])


def is_narrow(context: Context) -> bool:
    """Whether the sidebar is too narrow for names beside the fields of settings."""
    return bool(context.region.width < NARROW * context.preferences.system.ui_scale)


def fit(context: Context, texts: Sequence[str], margin: float = MARGIN, share: float = 1.0) -> str:
    """Return the first text, of several ordered longest first, that fits into a share of a line of the sidebar."""
    width = share * (context.region.width - margin * context.preferences.system.ui_scale)
    return fitting(texts, width, _width_in(context))


def draw_setting(layout: UILayout, context: Context, data: Struct, name: str) -> None:
    """Draw a setting."""
    layout, options = named(layout, context, data, name)
    layout.prop(data, name, **options)


def draw_search(layout: UILayout, context: Context, data: Struct, name: str, bones: Struct, label: str = "") -> None:
    """Draw a field to pick a bone of an armature, with the setting's own name or another label."""
    layout, options = named(layout, context, data, name)
    if label and not options:
        options = {"text": label, "translate": False}
    layout.prop_search(data, name, bones, "bones", **options)


def named(layout: UILayout, context: Context, data: Struct, name: str) -> tuple[UILayout, dict[str, Value]]:
    """Return the layout and the options for the field of a setting; in a narrow sidebar the name goes above it."""
    prop = data.bl_rna.properties[name]
    if prop.type == "BOOLEAN" or not is_narrow(context):
        return layout, {}
    layout = layout.column(align=True)
    layout.label(text=prop.name, text_ctxt=prop.translation_context)
    return layout, {"text": ""}


def draw_button(
    layout: UILayout,
    context: Context,
    operator: str,
    icon: bpy.stub_internal.rna_enums.IconItems,
    short: str,
    *,
    margin: float = BUTTON_MARGIN,
    share: float = 1.0,
    text: str = "",
) -> Struct:
    """Draw an operator button, with a shorter text if its name or `text` is too long; return its properties."""
    own = text or getattr(operators.ik_addon, operator.removeprefix("ik_addon.")).get_rna_type().name
    shown = fit(context, [say(own), say(short)], margin, share)
    return layout.operator(operator, text=shown, icon=icon, translate=False)


def draw_fix(layout: UILayout, context: Context, label: str) -> Struct:
    """Draw a button that fixes something; return its operator's properties. A label that is too long goes above it."""
    text = fit(context, [label, say("Fix")], BUTTON_MARGIN + 16.0)  # the button may be in a box
    if text != label:
        draw_message(layout, context, f"{label}:")
    return layout.operator("ik_addon.fix", text=text, icon="TOOL_SETTINGS", translate=False)


def draw_message(layout: UILayout, context: Context, text: str, icon: Icon = "NONE", alert: bool = False) -> None:
    """Draw a sentence in the language of the interface, wrapped over as many lines as it needs."""
    width = context.region.width - MARGIN * context.preferences.system.ui_scale
    lines = wrapped(say(text), width, _width_in(context))
    column = layout.column(align=True)
    column.alert = alert
    column.scale_y = 0.8 if len(lines) > 1 else 1.0
    for i, line in enumerate(lines):
        column.label(text=line, icon=icon if i == 0 else ("NONE" if icon == "NONE" else "BLANK1"), translate=False)


def _width_in(context: Context) -> Callable[[str], float]:
    """Return a function that measures the width of text at the size panels use."""
    blf.size(FONT, context.preferences.ui_styles[0].widget.points * context.preferences.system.ui_scale)
    return lambda text: blf.dimensions(FONT, text)[0]
