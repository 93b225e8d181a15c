"""The panel that shows the progress of a running operator and the report on the last bake of an armature."""

from collections.abc import Sequence

import bpy
import bpy.utils.previews
import numpy as np
from bpy.types import Context, Object, UILayout
from numpy.typing import NDArray

from ...bake.bake_report import BakeReport, last
from ...core.report import Remark
from ...core.settings import chain_of
from ...core.translation.sentences import say
from ...core.untyped import Struct
from ...rig.plan.chain import tips
from ..operators.progress import draw_keys, running
from ..panel import ArmaturePanel
from ..text import draw_message


def shown(ob: Object) -> BakeReport | None:
    """Return the report on the last bake of an armature, or None once a baked chain is enabled again."""
    report = last(ob)
    if report is None or any(chain_of(tip).enabled for tip in tips(ob) if tip.name in report.chains):
        return None
    return report


class VIEW3D_PT_ik_addon_bake(ArmaturePanel):
    """The progress of a bake and then its report, below all other panels so that nothing moves."""

    bl_label = "Last Bake"

    @classmethod
    def is_of_use(cls, _context: Context, ob: Object) -> bool:
        """Show the panel while an operator runs and after a bake."""
        return running() is not None or shown(ob) is not None

    def draw_header_preset(self, context: Context) -> None:
        """Draw the button that closes the report."""
        if running() is None:
            self.layout.operator("ik_addon.report_close", text="", icon="X", emboss=False)

    def draw_rig(self, layout: UILayout, context: Context, ob: Object) -> None:
        """Draw the progress, or a row for each finding."""
        box = layout.box()
        progress, report = running(), shown(ob)
        if progress is not None:
            box.label(text=progress.doing, translate=False)
            box.progress(factor=progress.share, text=progress.amount)
            draw_keys(box)
        elif report is not None:
            column = box.column()
            for text in report.sentences():
                draw_message(column, context, text, icon="ERROR" if isinstance(text, Remark) else "BLANK1")
            if len(report.turns) > 1:
                column = box.column(align=True)
                draw_ends(column, say("Turn per Frame"), f"{max(report.turns):.3g}°")
                draw_graph(column, context, report.turns)
                draw_ends(column, *map(str, report.ends))


def draw_ends(layout: UILayout, left: str, right: str) -> None:
    """Draw a text at the left and one at the right."""
    row = layout.row()
    row.label(text=left, translate=False)
    end = row.row()
    end.alignment = "RIGHT"
    end.label(text=right, translate=False)


# ---- the graph, an image because layouts can't draw lines

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

_images: Struct = None
"""Blender's collection of previews, while the extension is registered."""


def pixels(values: Sequence[float]) -> NDArray[np.float32]:
    """Return an image (HEIGHT, WIDTH, 4) of a curve of non-negative values, scaled to fit, with a line at zero.

    Rows go from the bottom up.
    """
    found = np.zeros((HEIGHT, WIDTH, 4), dtype=np.float32)
    # Steps rather than slopes: each value stands for a part of the range.
    part = np.minimum((np.linspace(0.0, 1.0, WIDTH) * len(values)).astype(int), len(values) - 1)
    curve = np.asarray(values, dtype=np.float64)[part]
    tops = np.rint(curve / max(curve.max(), 1e-30) * (HEIGHT - 3)).astype(int) + 1
    rows = np.arange(HEIGHT)[:, None]
    found[rows[:, 0] < 1] = GROUND
    found[(rows > 0) & (rows < tops)] = AREA
    low = np.minimum(tops, np.concatenate([tops[:1], tops[:-1]]))
    found[(rows >= low) & (rows <= tops + 1)] = LINE
    return found


def draw_graph(layout: UILayout, context: Context, values: Sequence[float]) -> None:
    """Draw the curve of non-negative values, as wide as the sidebar."""
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
    bpy.utils.previews.remove(_images)
