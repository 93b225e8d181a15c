"""The colors and sizes of the overlay, from the preferences; by default the colors of Blender's theme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bpy.types import Theme

from ...core.preferences import IKAddonPreferences
from ...core.untyped import Value

Color = tuple[float, float, float, float]
"""RGBA"""
REACH = 0.35
"""Opacity of the reach circle."""


class Palette(NamedTuple):
    """The colors of the overlay."""

    states: tuple[Color, ...]
    """One color for each `State`, in its order."""
    swing: Color
    twist: Color
    at_limit: Color
    reach: Color
    pin: Color


class Sizes(NamedTuple):
    """The sizes of the overlay in pixels."""

    wide: float
    """Width of the lines along chains."""
    thin: float
    dot: float

    @classmethod
    def of(cls, own: IKAddonPreferences, scale: float) -> Sizes:
        """Return the sizes in the add-on's preferences, multiplied by a resolution scale."""
        return cls(wide=own.line_width * scale, thin=own.outline_width * scale, dot=own.point_size * scale)


def palette(theme: Theme, own: IKAddonPreferences) -> Palette:
    """Return the colors of the overlay from the theme or from the add-on's preferences, depending on `use_theme`."""
    if own.use_theme:
        return themed(theme)
    states = (own.color_unsolved, own.color_reached, own.color_limited, own.color_out_of_reach, own.color_failed)
    return _palette(states, own.color_swing, own.color_twist, own.color_reach, own.color_pin)


def themed(theme: Theme) -> Palette:
    """Return colors derived from the theme."""
    interface, view = theme.user_interface, theme.view_3d
    warning = _opaque(interface.gizmo_primary)
    between = [0.35 * a + 0.65 * b for a, b in zip(warning, (1.0, 0.4, 0.1), strict=False)]
    states = (view.bone_pose, _lighter(interface.gizmo_a), warning, between, _lighter(interface.gizmo_b))
    return _palette(states, interface.gizmo_secondary, interface.axis_y, view.bone_pose, interface.gizmo_view_align)


def _palette(states: Sequence[Value], swing: Value, twist: Value, reach: Value, pin: Value) -> Palette:
    """Return these colors as a palette; the color of chains that limits hold back is also that of their joints."""
    shown = tuple(map(_opaque, states))
    return Palette(shown, _opaque(swing), _opaque(twist), shown[2], faded(_opaque(reach), REACH), _opaque(pin))


def _opaque(color: Value) -> Color:
    return float(color[0]), float(color[1]), float(color[2]), 1.0


def _lighter(color: Value) -> list[float]:
    """Return a gizmo color at full brightness, so that it shows as a line over a shaded body."""
    top = max(color)
    return [min(1.0, part / top) if top > 0.0 else part for part in color]


def faded(color: Color, opacity: float) -> Color:
    """Return a color with its opacity multiplied."""
    return *color[:3], color[3] * opacity
