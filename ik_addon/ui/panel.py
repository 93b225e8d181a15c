"""The main panel of the "IK" tab in the sidebar."""

from __future__ import annotations

from typing import Any

import bpy

from ..core import hooks
from ..core.settings import chain_of, object_of, overlay_of
from ..core.translation.sentences import say
from ..live import simulations
from ..rig.plan import chain as chains
from .operators.active import armature, obstacle
from .operators.fixes.chains import needs_lock
from .operators.fixes.rig import rig_fix_of
from .overlay import draw as overlay
from .playing import kept
from .text import BUTTON_MARGIN, draw_button, draw_fix, draw_message, fit


class IKPanel(bpy.types.Panel):
    """Base of all panels in the tab."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "IK"


class VIEW3D_PT_ik_addon(IKPanel):
    """The main panel, with the buttons for the active armature."""

    bl_idname = "VIEW3D_PT_ik_addon"
    bl_label = "IK Chains"

    def draw_header_preset(self, context: bpy.types.Context) -> None:
        """Draw the overlay toggle."""
        self.layout.prop(overlay_of(context.scene), "show_overlay", text="", icon="OVERLAY")

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the buttons, or the reason why there are none. They stay the same with and without chains."""
        hooks.put_back()
        layout = self.layout
        reason = obstacle(context)
        if reason:
            draw_message(layout, context, reason, icon="INFO")
            fix = rig_fix_of(context)
            if fix is not None:
                draw_fix(layout, context, "ik_addon.rig_fix", fix.label)
            return
        ob = armature(context)
        settings = object_of(ob)
        column = layout.column(align=True)
        column.scale_y = 1.3
        if kept(context, ob, "chained", lambda: bool(chains.tips(ob))):
            text = fit(context, kept(context, ob, "live", lambda: live_texts(ob)), margin=BUTTON_MARGIN)
            options: dict[str, Any] = {"toggle": True, "icon": "PAUSE" if settings.live else "PLAY"}
            column.prop(settings, "live", text=text, translate=False, **options)
        else:
            column.operator("ik_addon.live_on", icon="PLAY")
        column.operator("ik_addon.solve", icon="CON_KINEMATIC")
        column = layout.column(align=True)
        column.operator("ik_addon.bake", icon="KEYFRAME_HLT")
        draw_button(column, context, "ik_addon.restore_pose", "LOOP_BACK", "Restore")
        if kept(context, ob, "lock", lambda: needs_lock(context)):
            draw_button(
                layout, context, "ik_addon.lock_interface", "ERROR", "Lock Interface", text="Lock Interface for Renders"
            )
        if overlay.state.broken and overlay_of(context.scene).show_overlay:
            text = say(
                "The overlay is off because of an error: {error}. Turn it off and on", error=overlay.state.broken
            )
            draw_message(layout, context, text, icon="ERROR")
        if kept(context, ob, "paths", lambda: has_blind_paths(ob)):
            draw_message(layout, context, BLIND_PATHS, icon="INFO")
        if kept(context, ob, "late", lambda: simulations.is_late(ob)):
            physics = kept(context, ob, "physics", lambda: blind_physics(ob, context.scene), always=True)
            if physics:
                draw_message(layout, context, physics, icon="ERROR")
                draw_button(layout, context, "ik_addon.bake", "KEYFRAME_HLT", "Bake IK")


BLIND_PATHS = "Motion paths don't show what Live solves. Bake the chains, then update the paths"


def live_texts(ob: bpy.types.Object) -> list[str]:
    """Return texts for the Live button, longest first, also for when Live is on but no chain is enabled."""
    if object_of(ob).live and not any(chain_of(tip).enabled for tip in chains.tips(ob)):
        return [say("Live, but No Enabled Chain"), say("No Enabled Chain")]
    return [say("Live")]


def has_blind_paths(ob: bpy.types.Object) -> bool:
    """Whether a live armature has motion paths; Blender calls no handlers while it calculates these."""
    if not simulations.is_solving(ob):
        return False
    return any(owner.motion_path is not None for owner in (ob, *ob.pose.bones))


def blind_physics(ob: bpy.types.Object, scene: bpy.types.Scene) -> str:
    """Return which physics of a live armature are simulated on its FK pose; empty if there are none."""
    return simulations.message(simulations.simulations(ob, scene)) if simulations.is_late(ob) else ""


class ArmaturePanel(IKPanel):
    """Base of sub-panels that need a usable armature."""

    bl_parent_id = "VIEW3D_PT_ik_addon"
    bl_order = 1
    """Places the sub-panels below the report on the last bake."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Whether the panel is shown."""
        return not obstacle(context)


CLASSES = (VIEW3D_PT_ik_addon,)
"""The panel that contains all others."""
