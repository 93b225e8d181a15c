"""The main panel of the tab: without chains, how to begin; with chains, Live and the list.

Nothing here moves when a chain is solved or fails, so whatever is under the mouse stays there.
"""

from bpy.types import Context, Object, UILayout

from ...chains import character
from ...chains.convert import converted_bones, sources
from ...core import hooks
from ...core.settings import chain_of, object_of, overlay_of
from ...core.translation.sentences import is_one_of, say
from ...live import simulations
from ...rig.plan import chain as chains
from ...targets.movable import goals_of
from ..menus import IK_ADDON_MT_pose
from ..operators.active import active_bone, armature, obstacle
from ..operators.body import is_in_hand
from ..operators.fixes import needs_lock, rig_fix_of
from ..overlay import draw as overlay
from ..panel import ArmaturePanel, IKPanel, is_chained, kept
from ..text import BUTTON_MARGIN, draw_button, draw_fix, draw_message, fit, is_narrow
from .chain import ROWS, IK_ADDON_UL_chains, draw_line

BLIND_PATHS = "Motion paths don't show what Live solves. Bake the chains, then update the paths"


class VIEW3D_PT_ik_addon(IKPanel):
    """The main panel, for the active armature."""

    bl_label = "IK Chains"

    def draw_header_preset(self, context: Context) -> None:
        """Draw the overlay toggle."""
        self.layout.prop(overlay_of(context.scene), "show_overlay", text="", icon="OVERLAY")

    def draw(self, context: Context) -> None:
        """Draw Live and the chains; or how to begin; or the reason why there is nothing to draw."""
        hooks.put_back()
        layout, reason = self.layout, obstacle(context)
        if sum(own.mode == "POSE" for own in context.objects_in_mode) > 1:
            layout.label(text=armature(context).name, icon="ARMATURE_DATA", translate=False)
        if reason:
            draw_message(layout, context, reason, icon="INFO")
            if fix := rig_fix_of(context):
                draw_fix(layout, context, fix.label)
            return
        ob = armature(context)
        if not is_chained(context, ob):
            draw_start(layout, context, ob)
            return
        draw_live(layout, context, ob)
        draw_list(layout, context, ob)
        draw_remarks(layout, context, ob)
        draw_conversion(layout, context, ob)


def draw_start(layout: UILayout, context: Context, ob: Object) -> None:
    """Draw how to begin with an armature that has no chains; only what can be pressed now."""
    is_posing = ob.mode == "POSE"
    hint = "Set up the whole character, or go to Pose Mode and add a chain to a limb"
    if is_posing:
        hint = "Set up the character, or add a chain"
    draw_message(layout, context, hint, icon="INFO")
    column = layout.column(align=True)
    column.operator("ik_addon.character_setup", icon="OUTLINER_OB_ARMATURE")
    if not is_posing and context.active_object == ob:
        column.operator("object.mode_set", text="Pose Mode", icon="POSE_HLT").mode = "POSE"
    if is_posing:
        if active_bone(ob) is not None:
            column.operator("ik_addon.chain_add", icon="ADD")
        column.operator("ik_addon.body_tool", icon="MOD_ARMATURE", depress=is_in_hand(context))
    draw_conversion(column, context, ob)


def draw_live(layout: UILayout, context: Context, ob: Object) -> None:
    """Draw Live and Bake IK; where Live is off, Solve IK as well, and the way back to the FK pose."""
    settings = object_of(ob)
    column = layout.column(align=True)
    row = column.row(align=True)
    row.scale_y = 1.3
    text = fit(context, kept(context, ob, "live", lambda: live_texts(ob)), margin=BUTTON_MARGIN)
    row.prop(settings, "live", text=text, translate=False, toggle=True, icon="PAUSE" if settings.live else "PLAY")
    if not settings.live:
        row = column.column(align=True) if is_narrow(context) else column.row(align=True)
        row.operator("ik_addon.solve")
        draw_button(row, context, "ik_addon.restore_pose", "NONE", "FK Pose")
    column.operator("ik_addon.bake", icon="KEYFRAME_HLT")


def live_texts(ob: Object) -> list[str]:
    """Return texts for the Live button, longest first, also for when Live is on but no chain is enabled."""
    if object_of(ob).live and not any(chain_of(tip).enabled for tip in chains.tips(ob)):
        return [say("Live, but All Chains Are Off"), say("No Enabled Chain")]
    return [say("Live")]


def draw_list(layout: UILayout, context: Context, ob: Object) -> None:
    """Draw the list of chains with the buttons beside it, the state of the active chain, and what acts on controls."""
    narrow = is_narrow(context)
    row = layout.column() if narrow else layout.row()
    IK_ADDON_UL_chains.draw_list(row, context, ob, *ROWS)
    beside = row.row(align=True) if narrow else row.column(align=True)
    beside.operator("ik_addon.chain_add", text="", icon="ADD")
    beside.operator("ik_addon.chain_remove", text="", icon="REMOVE")
    beside.menu(IK_ADDON_MT_pose.__name__, text="", icon="DOWNARROW_HLT")
    draw_line(layout, context)
    if ob.mode != "POSE" and context.active_object == ob:  # an empty that is active has no Pose Mode
        layout.operator("object.mode_set", text="Pose Mode", icon="POSE_HLT").mode = "POSE"
    else:
        row = layout.row(align=True)
        draw_button(row, context, "ik_addon.select_controls", "RESTRICT_SELECT_OFF", "Select", share=0.5)
        draw_button(row, context, "ik_addon.key_controls", "KEYINGSET", "Key", share=0.5)


def draw_remarks(layout: UILayout, context: Context, ob: Object) -> None:
    """Draw what a user should know about the armature as a whole."""
    if kept(context, ob, "lock", lambda: needs_lock(context)):
        lock = "Lock Interface for Renders"
        draw_button(layout, context, "ik_addon.lock_interface", "ERROR", "Lock Interface", text=lock)
    if overlay.state.broken and overlay_of(context.scene).show_overlay:
        text = say("The overlay is off because of an error: {error}. Turn it off and on", error=overlay.state.broken)
        draw_message(layout, context, text, icon="ERROR")
    if kept(context, ob, "paths", lambda: has_blind_paths(ob)):
        draw_message(layout, context, BLIND_PATHS, icon="INFO")
    if kept(context, ob, "late", lambda: simulations.is_late(ob)):
        physics = kept(context, ob, "physics", lambda: simulations.warning(ob, context.scene), always=True)
        if physics:
            draw_message(layout, context, physics, icon="ERROR")
            draw_button(layout, context, "ik_addon.bake", "KEYFRAME_HLT", "Bake IK")


def draw_conversion(layout: UILayout, context: Context, ob: Object) -> None:
    """Draw the ways to convert Blender's IK constraints and back, where there are any."""
    column = layout.column(align=True)
    if kept(context, ob, "sources", lambda: any(sources(ob))):
        draw_button(column, context, "ik_addon.convert_constraints", "CON_KINEMATIC", "Convert IK")
    if kept(context, ob, "converted", lambda: bool(converted_bones(ob))):
        draw_button(column, context, "ik_addon.restore_constraints", "LOOP_BACK", "Restore IK")


def has_blind_paths(ob: Object) -> bool:
    """Whether a live armature has motion paths; Blender calls no handlers while it calculates these."""
    return simulations.is_solving(ob) and any(owner.motion_path is not None for owner in (ob, *ob.pose.bones))


# ---- remarks of Set Up Character


class VIEW3D_PT_ik_addon_character(ArmaturePanel):
    """The remarks on the last character setup."""

    bl_label = "Character Setup"

    @classmethod
    def is_of_use(cls, _context: Context, ob: Object) -> bool:
        """Show the panel only if there are remarks."""
        return bool(remarks_on(ob))

    def draw_rig(self, layout: UILayout, context: Context, ob: Object) -> None:
        """Draw a row for each remark."""
        column = layout.column()
        for remark in remarks_on(ob):
            draw_message(column, context, remark, icon="INFO")
            if is_one_of(remark, character.ANIMATED):
                text = "Targets to Pose (Range)"
                op = draw_button(column, context, "ik_addon.snap_target", "PREVIEW_RANGE", "To Pose (Range)", text=text)
                op.frame_range, op.chains = "SCENE", "ALL"


def remarks_on(ob: Object) -> tuple[str, ...]:
    """Return the remarks on the last setup of an armature, without advice that was followed."""
    outcome = character.last(ob)
    return () if outcome is None else tuple(remark for remark in outcome.remarks if not _is_followed(ob, remark))


def _is_followed(ob: Object, remark: str) -> bool:
    if is_one_of(remark, character.ANIMATED):
        return any(goal.is_keyed for tip in chains.tips(ob) for goal in goals_of(tip))
    return is_one_of(remark, character.WITH_CONSTRAINTS) and not any(sources(ob))
