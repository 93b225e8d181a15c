"""The panel with the report on the last bake of an armature."""

from __future__ import annotations

from typing import Any

import bpy

from ..bake.bake_report import BakeReport, last, sentences
from ..data.settings import chain_of
from ..operators.active import armature
from .panel import ArmaturePanel
from .text import draw_message


def shown(ob: bpy.types.Object) -> BakeReport | None:
    """The last bake of an armature, while its chains are off: not once it was undone, or they are solved again."""
    report = last(ob)
    if report is None or any(_is_solved(ob, name) for name in report.chains):
        return None
    return report


def _is_solved(ob: bpy.types.Object, name: str) -> bool:
    bone: bpy.types.PoseBone | None = ob.pose.bones.get(name)
    return bone is not None and chain_of(bone).enabled


class VIEW3D_PT_ik_addon_bake(ArmaturePanel):
    """The report on the last bake."""

    bl_idname = "VIEW3D_PT_ik_addon_bake"
    bl_label = "Last Bake"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Only after one."""
        return super().poll(context) and shown(armature(context)) is not None

    def draw(self, context: bpy.types.Context) -> None:
        """Draw a row for each finding."""
        report = shown(armature(context))
        if report is None:
            return
        column = self.layout.column()
        for text, is_remarkable in sentences(report):
            draw_message(column, context, text, icon="ERROR" if is_remarkable else "BLANK1")


CLASSES: tuple[Any, ...] = (VIEW3D_PT_ik_addon_bake,)
