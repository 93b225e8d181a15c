"""The tab "IK" of the sidebar."""

from __future__ import annotations

import math
from typing import Literal

import bpy
import numpy as np

from ..data import versions
from ..data.chain_settings import FOLDS, IKAddonChain
from ..data.settings import chain_of, goal_of, object_of, overlay_of
from ..live import reports
from ..operators.active import active_chain, armature, obstacle
from ..operators.fix import fix_of, needs_lock
from ..rig.plan import chain as chains
from ..rig.plan.chain_plan import has_old_stiffness, is_limited
from ..setup import bend_side
from ..setup.constraints import sources
from ..solve import Solver
from .ends import draw_end
from .presets import VIEW3D_PT_ik_addon_presets
from .text import draw_message

Icon = Literal["CHECKBOX_DEHLT", "RADIOBUT_OFF", "ERROR", "CHECKMARK", "TRACKER"]


class IKPanel(bpy.types.Panel):
    """Where the panels are."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "IK"


class VIEW3D_PT_ik_addon(IKPanel):
    """What can be done with the active armature."""

    bl_idname = "VIEW3D_PT_ik_addon"
    bl_label = "Inverse Kinematics"

    def draw_header_preset(self, context: bpy.types.Context) -> None:
        """Draw the switch of the overlay."""
        self.layout.prop(overlay_of(context.scene), "show_overlay", text="", icon="OVERLAY", emboss=False)

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the buttons, or what is in their way."""
        layout = self.layout
        reason = obstacle(context)
        if reason:
            draw_message(layout, context, reason, icon="INFO")
            return
        if not chains.tips(armature(context)):
            draw_start(layout, context)
            return
        settings = object_of(armature(context))
        column = layout.column(align=True)
        column.scale_y = 1.3
        column.prop(settings, "live", toggle=True, icon="PAUSE" if settings.live else "PLAY")
        column.operator("ik_addon.solve", icon="CON_KINEMATIC")
        column = layout.column(align=True)
        column.operator("ik_addon.bake", icon="KEYFRAME_HLT")
        column.operator("ik_addon.restore_pose", icon="LOOP_BACK")
        if needs_lock(context):
            layout.operator("ik_addon.lock_interface", text="Lock Interface for Renders", icon="ERROR")
        if has_blind_paths(armature(context)):
            draw_message(layout, context, BLIND_PATHS, icon="INFO")


BLIND_PATHS = "Motion paths don't show what Live solves; bake the chains, then update the paths"


def has_blind_paths(ob: bpy.types.Object) -> bool:
    """Whether a live armature has motion paths: Blender calls no add-on while it calculates them."""
    if not (object_of(ob).live and any(chain_of(tip).enabled for tip in chains.tips(ob))):
        return False
    return any(owner.motion_path is not None for owner in (ob, *ob.pose.bones))


def draw_start(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    """Draw the way to the first chain, and nothing that needs one."""
    ob = armature(context)
    if ob.mode == "POSE":
        text = (
            "Set up the whole character, or click any bone of an arm, leg, finger, spine or tail, then press Add Chain"
        )
    else:
        text = (
            "Set up the whole character, or switch to Pose Mode and click any bone of an arm, leg, finger, spine or "
            "tail"
        )
    draw_message(layout, context, text, icon="INFO")
    column = layout.column(align=True)
    column.scale_y = 1.3
    column.operator("ik_addon.character_setup", icon="ARMATURE_DATA")
    if ob.mode != "POSE":
        column.operator("object.mode_set", text="Pose Mode", icon="POSE_HLT").mode = "POSE"
    column.operator("ik_addon.chain_add", icon="ADD")
    if any(sources(ob)):
        layout.operator("ik_addon.convert_constraints", icon="CON_KINEMATIC")


class ArmaturePanel(IKPanel):
    """A sub-panel for an armature that can be worked on."""

    bl_parent_id = "VIEW3D_PT_ik_addon"
    bl_order = 1
    """Below the report on the last bake."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Whether the panel is shown."""
        return not obstacle(context)


class VIEW3D_PT_ik_addon_chains(ArmaturePanel):
    """The chains of the armature and how they fare."""

    bl_idname = "VIEW3D_PT_ik_addon_chains"
    bl_label = "Chains"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Only where there are chains; the first is added in the panel above."""
        return super().poll(context) and bool(chains.tips(armature(context)))

    def draw(self, context: bpy.types.Context) -> None:
        """Draw a row for each chain."""
        layout = self.layout
        active = active_chain(context)
        column = layout.box().column()
        for tip in chains.tips(armature(context)):
            draw_row(column, context, tip, tip == active)
        row = layout.row(align=True)
        row.operator("ik_addon.chain_add", text="Add Chain", icon="ADD")
        row.operator("ik_addon.chain_remove", text="Remove Chain", icon="REMOVE")
        layout.operator("ik_addon.character_setup", icon="ARMATURE_DATA")


def draw_row(layout: bpy.types.UILayout, context: bpy.types.Context, tip: bpy.types.PoseBone, active: bool) -> None:
    """Draw the name of a chain, which selects it, and what became of it."""
    report = reports.get(tip.id_data, tip.name) if chain_of(tip).enabled else None
    icon, text = state_of(tip, report)
    row = layout.row()
    name = row.row()
    name.alignment = "LEFT"
    select = name.operator("ik_addon.chain_select", text=tip.name, icon=icon, emboss=active, depress=active)
    select.tip = tip.name
    if report is None or report.reached:
        state = row.row()
        state.alignment = "RIGHT"
        state.active = report is not None
        state.label(text=text)
    else:
        draw_message(layout, context, text, icon="BLANK1", alert=report.failed)
    if report is not None and report.at_limit:
        draw_message(layout, context, "At a limit: " + ", ".join(report.at_limit), icon="BLANK1")
    fix = fix_of(tip, report, context.view_layer)
    if fix is not None:
        layout.operator("ik_addon.chain_fix", text=fix.label, icon="TOOL_SETTINGS", translate=False).tip = tip.name


def state_of(tip: bpy.types.PoseBone, report: reports.Report | None) -> tuple[Icon, str]:
    """Icon and words for what became of a chain."""
    if not chain_of(tip).enabled:
        return "CHECKBOX_DEHLT", "Off"
    if report is None:
        return "RADIOBUT_OFF", "Not solved yet"
    if report.failed:
        return "ERROR", report.message
    return "CHECKMARK" if report.reached else "TRACKER", report.message


class ChainPanel(ArmaturePanel):
    """A sub-panel for the active chain."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Only where a chain is active."""
        return super().poll(context) and active_chain(context) is not None


class VIEW3D_PT_ik_addon_chain(ChainPanel):
    """The settings of the active chain."""

    bl_idname = "VIEW3D_PT_ik_addon_chain"
    bl_label = "Active Chain"

    def draw_header(self, context: bpy.types.Context) -> None:
        """Draw the switch of the chain."""
        tip = active_chain(context)
        if tip is not None:
            self.layout.prop(chain_of(tip), "enabled", text="")

    def draw_header_preset(self, _context: bpy.types.Context) -> None:
        """Draw the button of the presets."""
        VIEW3D_PT_ik_addon_presets.draw_panel_header(self.layout)

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the settings."""
        tip = active_chain(context)
        if tip is None:
            return
        chain = chain_of(tip)
        layout = self.layout
        layout.use_property_split = True
        layout.active = chain.enabled
        draw_faults(layout, context, tip)

        bones = chains.chain_bones(tip)
        column = layout.column()
        column.prop(chain, "solver")
        if is_even_bend(tip, bones):
            column.prop(chain, "bend_lead", slider=True)
        if has_old_stiffness(bones):
            column.operator("ik_addon.stiffness_share", icon="TOOL_SETTINGS")
        column.prop(chain, "chain_length")
        row = column.row()
        row.alignment = "RIGHT"
        row.active = False
        row.label(text=f"{bones[0].name} … {tip.name}" if len(bones) > 1 else tip.name, translate=False)

        column = layout.column()
        draw_goal(column, chain, "target")
        column.operator("ik_addon.drag_target", icon="VIEW_PAN")
        column.prop(chain, "use_rotation")
        draw_end(column, context, tip)
        column = layout.column()
        draw_goal(column, chain, "pole")
        if chain.pole is not None:
            draw_keyed(column, tip, "use_pole")
            draw_keyed(column, tip, "pole_angle", text="Angle")
        draw_bend_side(column, context, tip, chains.bending_bones(tip))

        column = layout.column()
        draw_keyed(column, tip, "influence")
        column.prop(chain, "use_limits")
        column.prop(chain, "planar")
        if shares_bones(tip):
            column.prop(chain, "weight")
            return  # a tree has no reach of its own
        column.prop(chain, "out_of_reach")
        if chain.out_of_reach == "PUSH_ROOT":
            draw_keyed(column, tip, "push_limit")
        draw_keyed(column, tip, "softness")


def draw_keyed(layout: bpy.types.UILayout, tip: bpy.types.PoseBone, setting: str, text: str | None = None) -> None:
    """Draw a setting of a chain with a button that keys it."""
    row = layout.row(align=True)
    row.use_property_decorate = False
    row.prop(chain_of(tip), setting, text=text)
    key = row.operator("ik_addon.setting_key", text="", icon="KEYFRAME")
    key.tip, key.setting = tip.name, setting


def is_even_bend(tip: bpy.types.PoseBone, bones: list[bpy.types.PoseBone]) -> bool:
    """Whether a chain, root first, bends evenly: one on its own, without limits, that is no limb of two bones."""
    solver, chain = versions.solver_of(chain_of(tip)), chain_of(tip)
    asked = solver is Solver.EVEN_BEND or (solver is Solver.AUTO and len(bones) > 2)
    return asked and not (chain.use_rotation or is_limited(bones) or shares_bones(tip))


def draw_bend_side(
    layout: bpy.types.UILayout, context: bpy.types.Context, tip: bpy.types.PoseBone, bones: list[bpy.types.PoseBone]
) -> None:
    """Draw what can be done about the side to which a chain bends, and where it is not known."""
    row = layout.row(align=True)
    row.operator("ik_addon.flip_bend", icon="ARROW_LEFTRIGHT")
    row.operator("ik_addon.find_bend_side", text="", icon="VIEWZOOM")
    side = np.array(chain_of(tip).bend_side)
    if len(bones) > 2 or chain_of(tip).bends_both_ways:
        layout.prop(chain_of(tip), "bends_both_ways")
    if side.any() and np.isfinite(side).all() and not chain_of(tip).bends_both_ways:
        away = bend_side.hyperextension(tip.id_data, bones, side, context.scene.frame_current_final)
        if away > bend_side.BENT:
            text = f"The FK pose is hyperextended by {math.degrees(away):.0f}°; the chain bends to its own side"
            draw_message(layout, context, text, icon="INFO")
    if any(chain_of(tip).folds):
        column = layout.column(align=True)
        for joint, bone in zip(range(FOLDS), bones[:0:-1], strict=False):
            column.prop(chain_of(tip), "folds", index=joint, text=f"Fold {bone.name}", slider=True, translate=False)
    if side.any() and bend_side.is_from_roll(tip.id_data, bones, side):
        draw_message(
            layout,
            context,
            f"Bends to the side that the roll of '{bones[0].name}' gives; nothing else shows one",
            icon="INFO",
        )


def shares_bones(tip: bpy.types.PoseBone) -> bool:
    """Whether other enabled chains run through the bones of a chain."""
    own = set(chains.chain_bones(tip))
    others = (other for other in chains.tips(tip.id_data) if other != tip and chain_of(other).enabled)
    return any(not own.isdisjoint(chains.chain_bones(other)) for other in others)


def draw_faults(layout: bpy.types.UILayout, context: bpy.types.Context, tip: bpy.types.PoseBone) -> None:
    """Draw what is wrong with the settings of a chain as they are now, solved or not."""
    try:
        remarks = chains.check(tip.id_data, tip, context.view_layer)
    except chains.ChainError as error:
        report = reports.get(tip.id_data, tip.name)
        if report is not None and report.message == str(error):
            return  # the list says so already
        draw_message(layout.box(), context, str(error), icon="ERROR", alert=True)
        return
    for remark in remarks:
        draw_message(layout.box(), context, remark, icon="INFO")


def draw_goal(layout: bpy.types.UILayout, chain: IKAddonChain, role: str) -> None:
    """Draw the choice of a target or a pole, and of its bone where it is an armature."""
    layout.prop(chain, role)
    goal, _bone = goal_of(chain, role)
    if goal is not None and goal.type == "ARMATURE":
        layout.prop_search(chain, f"{role}_bone", goal.data, "bones", text="Bone")


class VIEW3D_PT_ik_addon_accuracy(ChainPanel):
    """When the solver is content."""

    bl_idname = "VIEW3D_PT_ik_addon_accuracy"
    bl_label = "Accuracy"
    bl_parent_id = "VIEW3D_PT_ik_addon_chain"
    bl_options = {"DEFAULT_CLOSED"}  # noqa: RUF012 - as Blender wants it

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the settings."""
        tip = active_chain(context)
        if tip is None:
            return
        chain = chain_of(tip)
        layout = self.layout
        layout.use_property_split = True
        layout.active = chain.enabled
        layout.prop(chain, "iterations")
        layout.prop(chain, "tolerance")


CLASSES = (
    VIEW3D_PT_ik_addon,
    VIEW3D_PT_ik_addon_chains,
    VIEW3D_PT_ik_addon_chain,
    VIEW3D_PT_ik_addon_accuracy,
)
