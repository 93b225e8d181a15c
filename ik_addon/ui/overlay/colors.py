"""The colors and sizes of the overlay, from the preferences; by default the colors of Blender's theme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import bpy

Color = tuple[float, float, float, float]
"""RGBA"""
REACH = 0.35
"""Opacity of the reach circle."""


@dataclass(frozen=True)
class Palette:
    """The colors of the overlay."""

    states: tuple[Color, ...]
    """One color for each `State`, in its order."""
    swing: Color
    twist: Color
    at_limit: Color
    reach: Color
    pin: Color


@dataclass(frozen=True)
class Sizes:
    """The sizes of the overlay in pixels."""

    wide: float
    """Width of the lines along chains."""
    thin: float
    dot: float

    @classmethod
    def of(cls, own: Any, scale: float) -> Sizes:
        """Return the sizes in the add-on's preferences, multiplied by a resolution scale."""
        return cls(wide=own.line_width * scale, thin=own.outline_width * scale, dot=own.point_size * scale)


def palette(theme: bpy.types.Theme, own: Any) -> Palette:
    """Return the colors of the overlay from the theme or from the add-on's preferences, depending on `use_theme`."""
    return themed(theme) if own.use_theme else chosen(own)


def chosen(own: Any) -> Palette:
    """Return the colors set in the add-on's preferences."""
    states = (own.color_unsolved, own.color_reached, own.color_limited, own.color_out_of_reach, own.color_failed)
    return Palette(
        states=tuple(map(_opaque, states)),
        swing=_opaque(own.color_swing),
        twist=_opaque(own.color_twist),
        at_limit=_opaque(own.color_limited),
        reach=faded(_opaque(own.color_reach), REACH),
        pin=_opaque(own.color_pin),
    )


def themed(theme: bpy.types.Theme) -> Palette:
    """Return colors derived from the theme."""
    interface, view = theme.user_interface, theme.view_3d
    warning = _opaque(interface.gizmo_primary)
    failure = _lighter(interface.gizmo_b)
    between = [0.35 * a + 0.65 * b for a, b in zip(warning, (1.0, 0.4, 0.1), strict=False)]
    return Palette(
        states=(
            _opaque(view.bone_pose),
            _lighter(interface.gizmo_a),
            warning,
            (between[0], between[1], between[2], 1.0),
            failure,
        ),
        swing=_opaque(interface.gizmo_secondary),
        twist=_opaque(interface.axis_y),
        at_limit=warning,
        reach=faded(_opaque(view.bone_pose), REACH),
        pin=_opaque(interface.gizmo_view_align),
    )


def _opaque(color: Any) -> Color:
    return float(color[0]), float(color[1]), float(color[2]), 1.0


def _lighter(color: Any) -> Color:
    """Return a gizmo color at full brightness, so that it shows as a line over a shaded body."""
    top = max(color)
    return _opaque([min(1.0, part / top) if top > 0.0 else part for part in color])


def faded(color: Color, opacity: float) -> Color:
    """Return a color with its opacity multiplied."""
    return *color[:3], color[3] * opacity
