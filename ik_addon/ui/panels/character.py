"""The panel with remarks of Set Up Character: what it did not find or did differently."""

from __future__ import annotations

import bpy

from ...chains import character
from ...chains.conversion import sources
from ...core.translation.sentences import is_one_of
from ...rig.plan.chain import tips
from ...targets.movable import goals_of
from ..panel import ArmaturePanel
from ..text import draw_button, draw_message


class VIEW3D_PT_ik_addon_character(ArmaturePanel):
    """The remarks on the last character setup."""

    bl_label = "Character Setup"

    @classmethod
    def is_of_use(cls, _context: bpy.types.Context, ob: bpy.types.Object) -> bool:
        """Show the panel only if there are remarks."""
        return bool(remarks_on(ob))

    def draw_rig(self, layout: bpy.types.UILayout, context: bpy.types.Context, ob: bpy.types.Object) -> None:
        """Draw a row for each remark."""
        column = layout.column()
        for remark in remarks_on(ob):
            draw_message(column, context, remark, icon="INFO")
            if is_one_of(remark, character.WITH_CONSTRAINTS):
                draw_button(column, context, "ik_addon.convert_constraints", "CON_KINEMATIC", "Convert IK")
            elif is_one_of(remark, character.ANIMATED):
                snap = draw_button(
                    column,
                    context,
                    "ik_addon.snap_target",
                    "PREVIEW_RANGE",
                    "To Pose (Range)",
                    text="Targets to Pose (Range)",
                )
                snap.frame_range, snap.chains = "SCENE", "ALL"


def remarks_on(ob: bpy.types.Object) -> tuple[str, ...]:
    """Return the remarks on the last setup of an armature, without advice that was followed."""
    outcome = character.last(ob)
    return () if outcome is None else tuple(remark for remark in outcome.remarks if not _is_followed(ob, remark))


def _is_followed(ob: bpy.types.Object, remark: str) -> bool:
    if is_one_of(remark, character.ANIMATED):
        return any(goal.is_keyed for tip in tips(ob) for goal in goals_of(tip))
    return is_one_of(remark, character.WITH_CONSTRAINTS) and not any(sources(ob))
