"""The list of chains, by limb, and the line that says how the active chain stands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import bpy

from ...chains.joint_names import names_by_tip, trunk_names
from ...core.report import percent
from ...core.settings import chain_of
from ...core.translation.sentences import say
from ...live import reports
from ...live.reports import Report
from ...rig.plan import chain as chains
from ...solve import Status
from ...targets.ik_fk import is_ik
from ...targets.spaces import space_name
from ..active_row import BoneList
from ..operators.active import operators
from ..operators.fixes.chains import fix_of
from ..playing import is_playing, kept, shown_chain
from ..text import fit, is_narrow

Icon = Literal["CHECKBOX_DEHLT", "RADIOBUT_OFF", "ERROR", "CHECKMARK", "TRACKER", "INFO"]
ROWS = 3, 6
"""Smallest and largest height of the list, in rows: the limbs of a figure, with its spine and head, fit."""
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
    """One row per chain: its toggle, the icon of its state, its name, and what it follows."""

    row = "ik_addon_chain"
    label = "Active Chain"
    description = "The chain of the active bone"

    def draw_row(self, context: bpy.types.Context, layout: bpy.types.UILayout, tip: bpy.types.PoseBone) -> None:
        """Draw a row."""
        report = reports.get(tip.id_data, tip.name) if chain_of(tip).enabled and not is_playing(context) else None
        both = layout.row(align=True)
        both.prop(chain_of(tip), "enabled", text="")
        row = both.row()
        row.active = is_bright(context, tip)
        row.alignment = "LEFT"
        icon = state_of(tip, report)[0]
        name = names_of(context, tip.id_data).get(tip.name, tip.name)
        select = row.operator("ik_addon.chain_select", text=name, icon=icon, emboss=False, translate=False)
        select.tip = tip.name
        if not is_narrow(context):
            now = both.row()
            now.alignment = "RIGHT"
            now.active = False
            now.label(text=standing(context, tip), translate=False)

    def listed(self, ob: bpy.types.Object) -> Iterable[str]:
        """Return the tip bones of the chains."""
        return (tip.name for tip in chains.tips(ob))

    @classmethod
    def active(cls, context: bpy.types.Context) -> bpy.types.PoseBone | None:
        """Return the tip of the active chain."""
        return shown_chain(context)

    @classmethod
    def choose(cls, tip: bpy.types.PoseBone) -> None:
        """Select the tip."""
        operators.ik_addon.chain_select("EXEC_DEFAULT", True, tip=tip.name)


def names_of(context: bpy.types.Context, ob: bpy.types.Object) -> dict[str, str]:
    """Return the names of limbs by the tip bones of their chains."""
    return kept(context, ob, "limbs", lambda: names_by_tip(ob), always=True)


def standing(context: bpy.types.Context, tip: bpy.types.PoseBone) -> str:
    """Return what the target of a chain follows, or that the chain is in FK."""
    return space_words(context, tip) if is_ik(tip) else "FK"


def space_words(context: bpy.types.Context, tip: bpy.types.PoseBone) -> str:
    """Return what the target of a chain follows: a part of the body, another bone or object, or the world."""
    ob = tip.id_data
    name = kept(context, ob, ("space", tip.name), lambda: space_name(tip))
    return kept(context, ob, "trunk", lambda: trunk_names(ob), always=True).get(name, name)


def is_bright(context: bpy.types.Context, tip: bpy.types.PoseBone) -> bool:
    """Whether the row of a chain is not dimmed; on the blue of the active row, dimmed text can't be read."""
    return chain_of(tip).enabled or tip == shown_chain(context)


def draw_line(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    """Draw the status line of the active chain, with a button that fixes its error if possible."""
    tip = shown_chain(context)
    row = layout.row(align=True)
    if tip is None:
        row.active = False
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
