"""The list of chains, by limb, with the line that says how the active one stands, and the sub-panel "Active Chain".

The sub-panel shows what everybody needs, errors in full, and folded the other settings.
"""

import math
from typing import Literal

import numpy as np
from bpy.types import Context, Object, PoseBone, UILayout

from ...chains import bend_side
from ...core import compat
from ...core.chain_settings import FOLDS
from ...core.names import names_by_tip, trunk_names
from ...core.report import percent
from ...core.settings import chain_of, goal_of, object_of
from ...core.translation.sentences import UserError, say
from ...live import reports
from ...live.reports import Report
from ...rig.plan import chain as chains
from ...rig.plan.chain import shares_bones
from ...rig.plan.limits import is_limited
from ...solve import Solver, Status
from ...targets.ik_fk import is_ik
from ...targets.snap import goes_beyond_limits
from ...targets.space_switch import space_name
from ..operators.active import operators
from ..operators.chain import FOLLOWING, following, why_waiting
from ..operators.fixes import fix_of
from ..overlay import draw as overlay
from ..panel import ArmaturePanel, BoneList, FoldedPanel, draw_aside, is_playing, kept, shown_chain
from ..text import BARE, BESIDE, draw_button, draw_fix, draw_message, draw_search, draw_setting, fit, is_narrow, named

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
    listed = staticmethod(lambda ob: (tip.name for tip in chains.tips(ob)))
    active = staticmethod(shown_chain)
    choose = staticmethod(lambda tip: operators.ik_addon.chain_select("EXEC_DEFAULT", True, tip=tip.name))

    def draw_row(self, context: Context, layout: UILayout, tip: PoseBone) -> None:
        """Draw a row."""
        report = reports.get(tip.id_data, tip.name) if chain_of(tip).enabled and not is_playing(context) else None
        both = layout.row(align=True)
        both.prop(chain_of(tip), "enabled", text="")
        row = both.row()
        row.active = is_bright(context, tip)
        row.alignment = "LEFT"
        icon = state_of(tip, report)[0]
        limbs = kept(context, tip.id_data, "limbs", lambda: names_by_tip(tip.id_data), always=True)
        name = limbs.get(tip.name, tip.name)
        row.operator("ik_addon.chain_select", text=name, icon=icon, emboss=False, translate=False).tip = tip.name
        if not is_narrow(context):
            draw_aside(both, space_words(context, tip) if is_ik(tip) else "FK")


def space_words(context: Context, tip: PoseBone) -> str:
    """Return what the target of a chain follows: a part of the body, another bone or object, or the world."""
    ob = tip.id_data
    name = kept(context, ob, ("space", tip.name), lambda: space_name(tip))
    return kept(context, ob, "trunk", lambda: trunk_names(ob), always=True).get(name, name)


def is_bright(context: Context, tip: PoseBone) -> bool:
    """Whether the row of a chain is not dimmed; on the blue of the active row, dimmed text can't be read."""
    return chain_of(tip).enabled or tip == shown_chain(context)


def draw_line(layout: UILayout, context: Context) -> None:
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
        row.operator("ik_addon.fix", text="", icon="TOOL_SETTINGS").tip = tip.name


def state_of(tip: PoseBone, report: Report | None) -> tuple[Icon, str]:
    """Return the icon and the text for the state of a chain."""
    if not chain_of(tip).enabled:
        return "CHECKBOX_DEHLT", say("Off")
    if report is None:
        return "RADIOBUT_OFF", say("Not solved yet")
    text = as_known(tip, report.message)
    if report.failed:
        return "ERROR", text
    if report.is_blended or not object_of(tip.id_data).live:
        return "RADIOBUT_OFF", text
    return "CHECKMARK" if report.reached else "TRACKER", text


def as_known(tip: PoseBone, state: str) -> str:
    """Return the state of a chain as far as it is known: without Live, of the last solve, since when all may differ."""
    return state if object_of(tip.id_data).live else say("Last solve: {state}", state=state)


def texts_of(tip: PoseBone, report: Report | None) -> list[str]:
    """Return one-line texts for the state of a chain, longest first."""
    text = state_of(tip, report)[1]
    if report is None:
        return [text, say("Not solved")] if chain_of(tip).enabled else [text]
    if report.failed:
        return [text, say("See Active Chain"), say("Not solved")]
    if report.is_blended:
        return [text, as_known(tip, f"{percent(report.influence)} IK" if report.influence else "FK")]
    if report.reached:
        short = list(dict.fromkeys((text, as_known(tip, say("Reached")))))
    else:
        error = percent(report.error)
        short = [text, *(as_known(tip, own) for own in (say(SHORT[report.status], error=error), error))]
    if not report.at_limit:
        return short
    where = say("{state}. At a limit: {bones}", state=text, bones=", ".join(report.at_limit))
    return [where, *(say("{state}, at a limit", state=own) for own in short), *short]


# ---- the active chain


class ChainPanel(ArmaturePanel):
    """Base of sub-panels for the active chain."""

    @classmethod
    def is_of_use(cls, context: Context, _ob: Object) -> bool:
        """Show the panel only if a chain is active."""
        return shown_chain(context) is not None

    def draw_rig(self, layout: UILayout, context: Context, _ob: Object) -> None:
        """Draw the settings of the active chain, dimmed where it is disabled."""
        tip = shown_chain(context)
        if tip is not None:
            layout.use_property_split = not is_narrow(context)
            layout.use_property_decorate = False
            self.draw_state(layout, context, tip)
            column = layout.column()
            column.active = chain_of(tip).enabled
            self.draw_settings(column, context, tip)

    def draw_state(self, layout: UILayout, context: Context, tip: PoseBone) -> None:
        """Draw what is to be seen above the settings, bright in any case."""

    def draw_settings(self, column: UILayout, context: Context, tip: PoseBone) -> None:
        """Draw settings of a chain."""
        raise NotImplementedError


class VIEW3D_PT_ik_addon_chain(ChainPanel):
    """The settings of the active chain."""

    bl_label = "Active Chain"

    def draw_header(self, context: Context) -> None:
        """Draw the toggle that enables the chain."""
        tip = shown_chain(context)
        if tip is not None:
            self.layout.prop(chain_of(tip), "enabled", text="")

    def draw_state(self, layout: UILayout, context: Context, tip: PoseBone) -> None:
        """Draw what is wrong, and the switch between FK and IK, with the current state pressed."""
        draw_faults(layout, context, tip)
        row = layout.row(align=True)
        row.scale_y = 1.2
        for way in ("FK", "IK"):
            is_pressed = is_ik(tip) == (way == "IK")
            row.operator("ik_addon.switch_ik_fk", text=way, depress=is_pressed, translate=False).to = way

    def draw_settings(self, column: UILayout, context: Context, tip: PoseBone) -> None:
        """Draw what everybody needs; the rest is folded."""
        draw_goal(column, context, tip, "target")
        draw_goal(column, context, tip, "pole")
        draw_keyed(column, context, tip, "influence")
        follows = say(next(name for identifier, name, _about in FOLLOWING if identifier == following(tip)))
        draw_choice(column, context, say("Follow Rotation"), follows, "ik_addon.follow_rotation", "to")
        draw_choice(column, context, say("Attached To"), space_words(context, tip), "ik_addon.switch_space", "space")
        for text in why_waiting(tip):
            draw_message(column, context, text, "INFO")
            column.operator("ik_addon.follow_rotation", text="Target to Pose (Range)", icon="SNAP_ON").snap = True


class ChainSubPanel(ChainPanel, FoldedPanel):
    """Base of the panels folded under the active chain."""

    bl_parent_id = "VIEW3D_PT_ik_addon_chain"


class VIEW3D_PT_ik_addon_bend(ChainSubPanel):
    """Where the chain bends to, and how."""

    bl_label = "Bend"

    def draw_settings(self, column: UILayout, context: Context, tip: PoseBone) -> None:
        """Draw the settings."""
        chain = chain_of(tip)
        bones = chains.chain_bones(tip)
        draw_bend_side(column, context, tip, chains.bending_bones(tip))
        if chain.pole is not None:
            draw_keyed(column, context, tip, "use_pole")
            draw_keyed(column, context, tip, "pole_angle")
        if kept(context, tip.id_data, ("even", tip.name), lambda: is_even_bend(tip, bones)):
            column.prop(chain, "bend_lead", slider=True)
        column.prop(chain, "planar")


class VIEW3D_PT_ik_addon_reach(ChainSubPanel):
    """What happens where the target is out of reach."""

    bl_label = "Reach"

    def draw_settings(self, column: UILayout, context: Context, tip: PoseBone) -> None:
        """Draw the settings."""
        chain = chain_of(tip)
        if kept(context, tip.id_data, ("shares", tip.name), lambda: shares_bones(tip)):
            column.prop(chain, "weight")
            return  # a tree has no reach of its own
        draw_setting(column, context, chain, "out_of_reach")
        if chain.out_of_reach == "PUSH_ROOT":
            draw_keyed(column, context, tip, "push_limit")
        draw_keyed(column, context, tip, "softness")


class VIEW3D_PT_ik_addon_solver(ChainSubPanel):
    """Which bones are solved, and by what."""

    bl_label = "Solver"

    def draw_settings(self, column: UILayout, context: Context, tip: PoseBone) -> None:
        """Draw the settings."""
        chain = chain_of(tip)
        column.prop(chain, "chain_length")
        bones = chains.chain_bones(tip)
        first = [f"{bones[0].name} … {tip.name}"] if len(bones) > 1 else []
        draw_aside(column, fit(context, [*first, tip.name], BARE))
        draw_search(column, context, chain, "end_bone", tip.id_data.data)
        draw_setting(column, context, chain, "solver")
        draw_setting(column, context, chain, "iterations")
        draw_setting(column, context, chain, "tolerance")


def draw_choice(layout: UILayout, context: Context, label: str, now: str, operator: str, choices: str) -> None:
    """Draw a name, and a menu with the choices of an operator that shows what holds now."""
    narrow = is_narrow(context)
    both = layout.column() if narrow else layout.split(factor=0.4)
    name = both.row()
    name.alignment = "EXPAND" if narrow else "RIGHT"
    name.label(text=label, translate=False)
    both.row().operator_menu_enum(operator, choices, text=now, translate=False)


def draw_keyed(layout: UILayout, context: Context, tip: PoseBone, setting: str) -> None:
    """Draw a chain setting with a button that keys it, and that shows like Blender's own whether it is."""
    layout, options = named(layout, context, chain_of(tip), setting)
    row = layout.row(align=True)
    row.use_property_decorate = False
    row.prop(chain_of(tip), setting, **options)
    path = f"{tip.path_from_id()}.ik_addon.{setting}"
    icon = kept(context, tip.id_data, path, lambda: key_icon(tip.id_data, path, context.scene.frame_current_final))
    key = row.operator("ik_addon.setting_key", text="", icon=icon)
    key.tip, key.setting = tip.name, setting


def key_icon(ob: Object, path: str, frame: float) -> Literal["DECORATE", "DECORATE_KEYFRAME", "DECORATE_ANIMATE"]:
    """Return Blender's icon for a property that is keyed on a frame, on others, or not at all."""
    curve = compat.find_curve(ob, path)
    if curve is None:
        return "DECORATE"
    is_here = any(abs(point.co.x - frame) < 1e-3 for point in curve.keyframe_points)
    return "DECORATE_KEYFRAME" if is_here else "DECORATE_ANIMATE"


def is_even_bend(tip: PoseBone, bones: list[PoseBone]) -> bool:
    """Whether a chain with these bones, root first, bends evenly.

    It does if Even Bend is chosen, or Automatic with more than two bones, and the chain has no orientation goal, limits
    or shared bones.
    """
    chain = chain_of(tip)
    solver = Solver(chain.solver)
    asked = solver is Solver.EVEN_BEND or (solver is Solver.AUTO and len(bones) > 2)
    return asked and not (chain.use_rotation or is_limited(bones) or shares_bones(tip))


def draw_bend_side(layout: UILayout, context: Context, tip: PoseBone, bones: list[PoseBone]) -> None:
    """Draw the settings of a chain's bend side.

    Remarks say if the FK pose is hyperextended, and if nothing but the roll of a bone gives the side.
    """
    row = layout.row(align=True)
    draw_button(row, context, "ik_addon.flip_bend", "ARROW_LEFTRIGHT", "Flip", margin=BESIDE)
    row.operator("ik_addon.find_bend_side", text="", icon="VIEWZOOM")
    side = np.array(chain_of(tip).bend_side)
    if len(bones) > 2 or chain_of(tip).bends_both_ways:
        layout.prop(chain_of(tip), "bends_both_ways")
    ob, known, frame = tip.id_data, (tip.name, side.tobytes()), context.scene.frame_current_final
    has_one_side = side.any() and np.isfinite(side).all() and not chain_of(tip).bends_both_ways
    if has_one_side and not is_playing(context):
        name = ("away", frame, *known)
        away = kept(context, ob, name, lambda: bend_side.hyperextension(tip, side, frame), always=True)
        if away > bend_side.BENT:
            degrees = f"{math.degrees(away):.0f}"
            text = say("The FK pose is hyperextended by {angle}°; the chain bends to its bend side", angle=degrees)
            draw_message(layout, context, text, icon="INFO")
    if any(chain_of(tip).folds):
        column = layout.column(align=True)
        for joint, bone in zip(range(FOLDS), bones[:0:-1], strict=False):
            text = say("Fold {bone}", bone=bone.name)
            column.prop(chain_of(tip), "folds", index=joint, text=text, slider=True, translate=False)
    if bool(side.any()) and kept(context, ob, ("roll", *known), lambda: bend_side.is_from_roll(tip, side), always=True):
        text = say("Bend side taken from the roll of '{bone}'; nothing else indicates one", bone=bones[0].name)
        draw_message(layout, context, text, icon="INFO")


def findings(context: Context, tip: PoseBone) -> tuple[str, tuple[str, ...], str]:
    """Find why a chain can't be solved, remarks, and the label of the button that helps; each may be empty."""
    report = reports.get(tip.id_data, tip.name) if chain_of(tip).enabled else None
    fault = shown = ""
    if report is not None and report.failed:
        fault, shown = report.message, as_known(tip, report.message)
    remarks: list[str] = []
    try:
        remarks = chains.check(tip.id_data, tip, context.view_layer)
    except UserError as error:
        fault = shown = error.message
    if goes_beyond_limits(tip):
        remarks.append(say("The animation turns joints of this chain beyond their limits, so it leaves the record"))
    if hidden := overlay.state.reader.why_hidden(tip):
        remarks.append(
            say("The overlay hides this chain because of an error: {error}. Turn it off and on", error=hidden)
        )
    fix = fix_of(tip, report, context.view_layer, fault) if fault or remarks else None
    return shown, tuple(remarks), "" if fix is None else fix.label


def draw_faults(layout: UILayout, context: Context, tip: PoseBone) -> None:
    """Draw the error and remarks on a chain in full, with a button that fixes it."""
    fault, remarks, fix = kept(context, tip.id_data, ("findings", tip.name), lambda: findings(context, tip))
    if not (fault or remarks):
        return
    box = layout.box()
    if fault:
        draw_message(box, context, fault, icon="ERROR", alert=True)
    for remark in remarks:
        draw_message(box, context, remark, icon="INFO")
    if fix:
        draw_fix(box, context, fix).tip = tip.name


def draw_goal(layout: UILayout, context: Context, tip: PoseBone, role: str) -> None:
    """Draw the field for a target or pole; without either, beside it that for a bone of the same armature."""
    chain = chain_of(tip)
    goal, _bone = goal_of(chain, role)
    if goal == tip.id_data:
        draw_search(layout, context, chain, f"{role}_bone", goal.data, say(role.title()))
    elif goal is None:
        layout, options = named(layout, context, chain, f"{role}_object")
        row = layout.row(align=True)
        row.prop(chain, f"{role}_object", **options)
        row.use_property_split = False
        row.prop_search(chain, f"{role}_bone", tip.id_data.data, "bones", text="")
    else:
        draw_setting(layout, context, chain, f"{role}_object")
        if goal.type == "ARMATURE":
            draw_search(layout, context, chain, f"{role}_bone", goal.data)
