"""The colours and sizes of the overlay, from the preferences; by default the colours of Blender's theme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import bpy

Colour = tuple[float, float, float, float]
"""RGBA"""
REACH = 0.35
"""Opacity of the reach circle."""


@dataclass(frozen=True)
class Palette:
    """The colours of the overlay."""

    states: tuple[Colour, ...]
    """One colour for each `State`, in its order."""
    swing: Colour
    twist: Colour
    at_limit: Colour
    reach: Colour
    pin: Colour


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
    """Return the colours of the overlay from the theme or from the add-on's preferences, depending on `use_theme`."""
    return themed(theme) if own.use_theme else chosen(own)


def chosen(own: Any) -> Palette:
    """Return the colours set in the add-on's preferences."""
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
    """Return colours derived from the theme."""
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


def _opaque(colour: Any) -> Colour:
    return float(colour[0]), float(colour[1]), float(colour[2]), 1.0


def _lighter(colour: Any) -> Colour:
    """Return a gizmo colour at full brightness, so that it shows as a line over a shaded body."""
    top = max(colour)
    return _opaque([min(1.0, part / top) if top > 0.0 else part for part in colour])


def faded(colour: Colour, opacity: float) -> Colour:
    """Return a colour with its opacity multiplied."""
    return *colour[:3], colour[3] * opacity
