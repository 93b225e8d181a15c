"""The colours of the overlay, from Blender's theme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import bpy

Colour = tuple[float, float, float, float]
"""RGBA"""


@dataclass(frozen=True)
class Palette:
    """The colours of the overlay."""

    states: tuple[Colour, ...]
    """One for each `State`."""
    swing: Colour
    twist: Colour
    at_limit: Colour
    reach: Colour


def palette(theme: bpy.types.Theme) -> Palette:
    """The colours of the overlay, from the theme."""
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
        reach=(*_opaque(view.bone_pose)[:3], 0.35),
    )


def _opaque(colour: Any) -> Colour:
    return float(colour[0]), float(colour[1]), float(colour[2]), 1.0


def _lighter(colour: Any) -> Colour:
    """Gizmos are drawn on a background of their own; a line over a shaded body must be brighter."""
    top = max(colour)
    return _opaque([min(1.0, part / top) if top > 0.0 else part for part in colour])


def faded(colour: Colour, opacity: float) -> Colour:
    """A colour with its opacity multiplied."""
    return *colour[:3], colour[3] * opacity
