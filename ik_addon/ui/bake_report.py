"""The panel that shows the progress of a running operator and the report on the last bake of an armature."""

from __future__ import annotations

import bpy

from ..bake.bake_report import BakeReport, last
from ..core.report import Remark
from ..core.settings import chain_of
from ..core.translation.sentences import say
from . import graph
from .operators.progress import draw_keys, running
from .panel import ArmaturePanel
from .text import draw_message


def shown(ob: bpy.types.Object) -> BakeReport | None:
    """Return the report on the last bake of an armature, or None once a baked chain is enabled again."""
    report = last(ob)
    if report is None or any(_is_solved(ob, name) for name in report.chains):
        return None
    return report


def _is_solved(ob: bpy.types.Object, name: str) -> bool:
    bone: bpy.types.PoseBone | None = ob.pose.bones.get(name)
    return bone is not None and chain_of(bone).is_chain and chain_of(bone).enabled


class VIEW3D_PT_ik_addon_bake(ArmaturePanel):
    """The progress of a bake and then its report, below all other panels so that nothing moves."""

    bl_label = "Last Bake"

    @classmethod
    def is_of_use(cls, _context: bpy.types.Context, ob: bpy.types.Object) -> bool:
        """Show the panel while an operator runs and after a bake."""
        return running() is not None or shown(ob) is not None

    def draw_header_preset(self, context: bpy.types.Context) -> None:
        """Draw the button that closes the report."""
        if running() is None:
            self.layout.operator("ik_addon.report_close", text="", icon="X", emboss=False)

    def draw_rig(self, layout: bpy.types.UILayout, context: bpy.types.Context, ob: bpy.types.Object) -> None:
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
                graph.draw(column, context, report.turns)
                draw_ends(column, *map(str, report.ends))


def draw_ends(layout: bpy.types.UILayout, left: str, right: str) -> None:
    """Draw a text at the left and one at the right."""
    row = layout.row()
    row.label(text=left, translate=False)
    end = row.row()
    end.alignment = "RIGHT"
    end.label(text=right, translate=False)
