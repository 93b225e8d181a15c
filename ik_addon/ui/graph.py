"""A small graph in a panel, drawn as an image because Blender's layouts can't draw lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy
import bpy.utils.previews
import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 256, 256
"""Size of the image in pixels. Blender draws icons in squares, so only a square fills the sidebar."""
LINE = (0.45, 0.7, 1.0, 1.0)
AREA = (0.14, 0.21, 0.3, 0.3)
GROUND = (0.3, 0.3, 0.3, 0.6)
"""Colors with premultiplied alpha, as Blender expects them."""
MARGIN = 70.0
"""Width that tabs and margins take from the graph, in pixels at a resolution scale of 1."""
UNIT = 20.0
"""Height of a button in the same pixels."""

_images: Any = None
"""Blender's collection of previews, while the extension is registered."""


def pixels(values: Sequence[float]) -> NDArray[np.float32]:
    """Return an image (HEIGHT, WIDTH, 4) of a curve of non-negative values, scaled to fit, with a line at zero.

    Rows go from the bottom up.
    """
    found = np.zeros((HEIGHT, WIDTH, 4), dtype=np.float32)
    places = np.linspace(0.0, 1.0, WIDTH)
    # Steps rather than slopes: each value stands for a part of the range.
    part = np.minimum((places * len(values)).astype(int), len(values) - 1)
    curve = np.asarray(values, dtype=np.float64)[part]
    tops = np.rint(curve / max(curve.max(), 1e-30) * (HEIGHT - 3)).astype(int) + 1
    rows = np.arange(HEIGHT)[:, None]
    found[rows[:, 0] < 1] = GROUND
    found[(rows > 0) & (rows < tops)] = AREA
    low = np.minimum(tops, np.concatenate([tops[:1], tops[:-1]]))
    found[(rows >= low) & (rows <= tops + 1)] = LINE
    return found


def draw(layout: bpy.types.UILayout, context: bpy.types.Context, values: Sequence[float]) -> None:
    """Draw the curve of non-negative values, as wide as the sidebar."""
    if _images is None or not values:
        return
    name = ",".join(f"{value:.3g}" for value in values)
    if name not in _images:
        _images.clear()
        image = _images.new(name)
        image.image_size = WIDTH, HEIGHT
        image.image_pixels_float = pixels(values).ravel().tolist()
    width = context.region.width / context.preferences.system.ui_scale - MARGIN
    layout.template_icon(icon_value=_images[name].icon_id, scale=max(width / UNIT, 1.0))


def register() -> None:
    """Create the collection of previews."""
    global _images
    _images = bpy.utils.previews.new()


def unregister() -> None:
    """Remove the collection of previews."""
    global _images
    if _images is not None:
        bpy.utils.previews.remove(_images)
        _images = None
