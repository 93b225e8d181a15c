"""Marks on pinned bones: a diamond for a pinned location, a ring for a pinned rotation; no gpu."""

from __future__ import annotations

from collections.abc import Sequence

import bpy
import numpy as np

from ...core.skeleton import matrix_array
from ...solve.problem import Floats
from .layout import Layout

DOT, DIAMOND, RING = 1.5, 6.0, 9.0
"""Radii of the marks, in pixels at a resolution scale of 1."""
SIDES = {DOT: 4, DIAMOND: 4, RING: 24}


def pinned(rigs: Sequence[tuple[bpy.types.Object, Layout]], depsgraph: bpy.types.Depsgraph) -> dict[float, Floats]:
    """Return the world positions (k, 3) of the marks, by their radius."""
    found: dict[float, list[tuple[float, ...]]] = {DIAMOND: [], RING: []}
    for ob, layout in rigs:
        evaluated = ob.evaluated_get(depsgraph)
        for name, flags in layout.pins.items():
            place = (evaluated.matrix_world @ evaluated.pose.bones[name].head).to_tuple()
            for flag, radius in (("LOCATION", DIAMOND), ("ROTATION", RING)):
                if flag in flags:
                    found[radius].append(place)
    return {radius: np.array(places).reshape(-1, 3) for radius, places in found.items()}


def marks(places: dict[float, Floats], view: bpy.types.RegionView3D, width: float, scale: float) -> Floats:
    """Return the lines (k, 3) of the marks in world space; all marks have the same size on the screen.

    Args:
        places: the result of `pinned`.
        view: the view of the scene.
        width: width of the region in pixels.
        scale: resolution scale.
    """
    to_clip = matrix_array(view.perspective_matrix)
    right, up = matrix_array(view.view_matrix)[:2, :3]
    return np.concatenate(
        [
            _polygons(own, SIDES[radius], radius * scale * _pixel(to_clip, own, width), right, up)
            for radius, own in places.items()
        ]
    ).astype(np.float32)


def _pixel(to_clip: Floats, places: Floats, width: float) -> Floats:
    """Return the size (k,) of a pixel in world units at positions (k, 3); NaN behind the viewer."""
    depths = places.dot(to_clip[3, :3]) + to_clip[3, 3]
    across = np.sqrt((to_clip[0, :3] * to_clip[0, :3]).sum())
    return np.where(depths > 0.0, 2.0 * depths / (width * across), np.nan)


def _polygons(places: Floats, sides: int, radii: Floats, right: Floats, up: Floats) -> Floats:
    """Return the lines (k, 3) of polygons that face the viewer, leaving out those that are not finite."""
    keep = np.isfinite(places).all(axis=1) & np.isfinite(radii)
    angles = 2.0 * np.pi * np.arange(sides + 1) / sides
    corners = np.cos(angles)[:, None] * right + np.sin(angles)[:, None] * up
    pairs = np.stack([corners[:-1], corners[1:]], axis=1).reshape(-1, 3)
    return np.asarray(places[keep, None] + radii[keep, None, None] * pairs).reshape(-1, 3)
