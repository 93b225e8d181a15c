"""The sub-panel "Chains": a list of fixed height, a status line for the active chain, and buttons that add chains.

Nothing here moves when a chain is added, solved or fails, so whatever is under the mouse stays there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import bpy

from ...chains.ik_constraints import sources
from ...core.settings import chain_of
from ...core.translation.sentences import say
from ...live import reports
from ...live.reports import Report, percent
from ...rig.plan import chain as chains
from ...solve import Status
from ..active_row import ActiveRow, BoneList
from ..menus import IK_ADDON_MT_pose
from ..operators.active import armature
from ..operators.fixes.chains import fix_of
from ..panel import ArmaturePanel
from ..playing import is_playing, kept, shown_chain
from ..text import draw_button, draw_message, fit, is_narrow

Icon = Literal["CHECKBOX_DEHLT", "RADIOBUT_OFF", "ERROR", "CHECKMARK", "TRACKER", "INFO"]
ROWS = 5
"""Height of the list, in rows."""
LINE_MARGIN = 100.0
"""Width that tabs, margins, an icon and a button take from the status line, in pixels at a resolution scale of 1."""
SHORT = {
    Status.TOO_FAR: "{error} too far",
    Status.TOO_NEAR: "{error} too close",
    Status.LIMITED: "{error} short",
    Status.NOT_CONVERGED: "{error} missed",
}
"""Short texts for a missed target, for where there is little room."""


class IK_ADDON_UL_chains(BoneList):
    """One row per chain: its toggle, the icon of its state, and its name."""

    def draw_item(
        self,
        context: bpy.types.Context,
        layout: bpy.types.UILayout,
        _data: Any,
        tip: bpy.types.PoseBone,
        _icon: int,
        _active_data: Any,
        _active_property: str,
    ) -> None:
        """Draw a row."""
        report = reports.get(tip.id_data, tip.name) if chain_of(tip).enabled and not is_playing(context) else None
        both = layout.row(align=True)
        if not is_narrow(context):  # the header of Active Chain has the toggle as well
            both.prop(chain_of(tip), "enabled", text="")
        row = both.row()
        row.active = is_bright(context, tip)
        row.alignment = "LEFT"
        icon = state_of(tip, report)[0]
        select = row.operator("ik_addon.chain_select", text=tip.name, icon=icon, emboss=False, translate=False)
        select.tip = tip.name

    def listed(self, ob: bpy.types.Object) -> Iterable[str]:
        """Return the tip bones of the chains."""
        return (tip.name for tip in chains.tips(ob))


def is_bright(context: bpy.types.Context, tip: bpy.types.PoseBone) -> bool:
    """Whether the row of a chain is not dimmed; on the blue of the active row, dimmed text can't be read."""
    return chain_of(tip).enabled or tip == shown_chain(context)


def _select(_context: bpy.types.Context, bone: bpy.types.PoseBone) -> None:
    operators: Any = bpy.ops
    operators.ik_addon.chain_select("EXEC_DEFAULT", True, tip=bone.name)


ROW = ActiveRow("ik_addon_chain", "Active Chain", "The chain of the active bone", shown_chain, _select)


class VIEW3D_PT_ik_addon_chains(ArmaturePanel):
    """The chains of the armature and their states."""

    bl_idname = "VIEW3D_PT_ik_addon_chains"
    bl_label = "Chains"

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the list, and the buttons that add and remove chains."""
        layout, ob = self.layout, armature(context)
        narrow = is_narrow(context)
        row = layout.column() if narrow else layout.row()
        ROW.draw(row, context, IK_ADDON_UL_chains, ROWS)
        beside = row.row(align=True) if narrow else row.column(align=True)
        beside.menu(IK_ADDON_MT_pose.bl_idname, text="", icon="DOWNARROW_HLT")
        beside.separator()
        beside.operator("ik_addon.chain_remove", text="", icon="REMOVE")
        draw_line(layout, context)
        column = layout.column(align=True)
        column.operator("ik_addon.chain_add", icon="ADD")
        column.operator("ik_addon.character_setup", icon="OUTLINER_OB_ARMATURE")
        if not kept(context, ob, "chained", lambda: bool(chains.tips(ob))):
            draw_start(layout, context)


def draw_start(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    """Draw instructions for adding the first chain."""
    ob = armature(context)
    if ob.mode != "POSE":
        layout.operator("object.mode_set", text="Pose Mode", icon="POSE_HLT").mode = "POSE"
        text = "Set up the whole character, or go to Pose Mode, click a bone of a limb, and press Add Chain"
    else:
        text = "Set up the whole character, or click a bone of an arm, leg, finger, spine or tail and press Add Chain"
    draw_message(layout, context, text, icon="INFO")
    if any(sources(ob)):
        draw_button(layout, context, "ik_addon.convert_constraints", "CON_KINEMATIC", "Convert IK")


def draw_line(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    """Draw the status line of the active chain, with a button that fixes its error if possible."""
    tip = shown_chain(context)
    row = layout.row(align=True)
    if tip is None:
        row.active = False
        none = [say("No chain yet")]
        ob = armature(context)
        if kept(context, ob, "chained", lambda: bool(chains.tips(ob))):
            none = [say("Click a bone to choose its chain"), say("No active chain")]
        row.label(text=fit(context, none, LINE_MARGIN), translate=False)
        return
    if is_playing(context):
        row.label(text=say("Playing") if chain_of(tip).enabled else say("Off"), icon="PLAY", translate=False)
        return
    report = reports.get(tip.id_data, tip.name) if chain_of(tip).enabled else None
    row.alert = report is not None and report.failed
    texts = texts_of(tip, report)
    note = reports.note_on(tip, context.scene.frame_current_final)
    if note and not row.alert:
        texts = [f"{texts[0]}. {note}", note, *texts]
    row.label(text=fit(context, texts, LINE_MARGIN), icon=state_of(tip, report)[0], translate=False)
    if fix_of(tip, report, context.view_layer) is not None:
        row.operator("ik_addon.chain_fix", text="", icon="TOOL_SETTINGS").tip = tip.name


def state_of(tip: bpy.types.PoseBone, report: Report | None) -> tuple[Icon, str]:
    """Return the icon and the text for the state of a chain."""
    if not chain_of(tip).enabled:
        return "CHECKBOX_DEHLT", say("Off")
    if report is None:
        return "RADIOBUT_OFF", say("Not solved yet")
    if report.failed:
        return "ERROR", report.message
    return "CHECKMARK" if report.reached else "TRACKER", report.message


def texts_of(tip: bpy.types.PoseBone, report: Report | None) -> list[str]:
    """Return one-line texts for the state of a chain, longest first."""
    text = state_of(tip, report)[1]
    if report is None:
        return [text, say("Not solved")] if chain_of(tip).enabled else [text]
    if report.failed:
        return [text, say("See Active Chain"), say("Not solved")]
    if report.reached:
        short = list(dict.fromkeys((text, say("Reached"))))
    else:
        error = percent(report.error)
        short = [text, say(SHORT[report.status], error=error), error]
    if not report.at_limit:
        return short
    where = say("{state}. At a limit: {bones}", state=text, bones=", ".join(report.at_limit))
    return [where, *(say("{state}, at a limit", state=own) for own in short), *short]


CLASSES = (IK_ADDON_UL_chains, VIEW3D_PT_ik_addon_chains)


register = ROW.register
unregister = ROW.unregister
