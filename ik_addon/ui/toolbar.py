"""The tools in the toolbar of Pose Mode, and what is drawn around the mouse with the tool Pose Body."""

import logging
from pathlib import Path

import blf
import bpy
import numpy as np
from bpy.types import Context, UILayout, WorkSpaceTool
from mathutils import Vector

from ..core.settings import chain_of, overlay_of
from ..core.translation.sentences import say
from ..posing.pick import picked
from ..targets import cursor
from .gizmos import IK_ADDON_GGT_tool
from .operators.active import active_chain, obstacle
from .operators.body import TOOL, held_body
from .overlay.colors import faded
from .overlay.draw import draw_lines
from .overlay.geometry import loop, ring

log = logging.getLogger(__name__)
FONT = 0
RING = 8.0
"""Radius of the ring around the joint, in pixels at a resolution scale of 1."""
LINE = 4.0
"""Width of the line along the bone, in the same pixels."""
BESIDE = (18.0, -26.0)
"""Offset of the text from the mouse, in the same pixels."""
SHADOW = 3
"""Blur of the text's shadow, without which it can't be read on a light background; one of Blender's levels."""
CIRCLE = loop(ring(np.eye(3)[0], np.eye(3)[1], 24))
"""The lines (48, 3) of a unit circle on the screen."""


class IKAddonTool(WorkSpaceTool):
    """Select bones, move the target and pole of the active chain with arrows, and turn the target with dials."""

    bl_space_type = "VIEW_3D"
    bl_context_mode = "POSE"
    bl_idname = "ik_addon.goals"
    bl_label = "IK Target and Pole"
    bl_description = (
        "Move the target and the pole of the active chain, and rotate the target if the chain turns with it.\n"
        "Drag elsewhere to select bones"
    )
    bl_icon = "ops.armature.extrude_cursor"
    bl_widget = IK_ADDON_GGT_tool.__name__
    bl_keymap = (("view3d.select_box", {"type": "LEFTMOUSE", "value": "CLICK_DRAG"}, None),)

    @staticmethod
    def draw_settings(context: Context, layout: UILayout, _tool: WorkSpaceTool) -> None:
        """Draw into the header the chain whose goals have the arrows, and its main settings."""
        tip = None if obstacle(context) else active_chain(context)
        if tip is None:
            layout.label(text="No active chain")
            return
        layout.label(text=tip.name, icon="CON_KINEMATIC", translate=False)
        layout.prop(chain_of(tip), "influence")
        layout.prop(chain_of(tip), "use_rotation")
        draw_range(context, layout)


class IKAddonPoseTool(WorkSpaceTool):
    """Drag any bone; the body follows."""

    bl_space_type = "VIEW_3D"
    bl_context_mode = "POSE"
    bl_idname = TOOL
    bl_label = "Pose Body"
    bl_description = (
        "Drag any bone by its nearest joint; the rest of the body follows, pinned bones and feet stay.\n"
        "The wheel sets how many bones follow, P pins the selected bones, drag elsewhere to select"
    )
    bl_icon = str(Path(__file__).with_name("pose_body"))  # Blender adds .dat to the path, which may be a whole one
    bl_keymap = (
        ("ik_addon.body_grab", {"type": "LEFTMOUSE", "value": "CLICK_DRAG"}, None),
        ("ik_addon.pin", {"type": "P", "value": "PRESS"}, None),
    )

    @staticmethod
    def draw_settings(context: Context, layout: UILayout, tool: WorkSpaceTool) -> None:
        """Draw into the header what holds the body when nothing is pinned, and how many bones follow."""
        settings = tool.operator_properties("ik_addon.body_grab")
        layout.prop(settings, "without_pins")
        layout.prop(settings, "length")
        draw_range(context, layout)

    @staticmethod
    def draw_cursor(context: Context, _tool: WorkSpaceTool, place: tuple[int, int]) -> None:
        """Draw around the mouse at a position in the window; log an unexpected error once, not at every mouse move."""
        if _State.draws:
            try:
                _draw(context, place)
            except Exception:
                _State.draws = False
                log.exception("The Pose Body tool no longer shows what is under the mouse")


def draw_range(context: Context, layout: UILayout) -> None:
    """Draw how far an edit reaches over other frames."""
    scene = overlay_of(context.scene)
    row = layout.row(align=True)
    row.prop(scene, "edit_range")
    row.prop(scene, "edit_falloff", text="", icon_only=True)


def register() -> None:
    """Add the tools below Blender's transform tools."""
    bpy.utils.register_tool(IKAddonTool, after={"builtin.transform"}, separator=False)
    bpy.utils.register_tool(IKAddonPoseTool, after={IKAddonTool.bl_idname}, separator=False)
    _State.draws = True


def unregister() -> None:
    """Remove the tools."""
    _State.draws = False
    bpy.utils.unregister_tool(IKAddonPoseTool)
    bpy.utils.unregister_tool(IKAddonTool)


class _State:
    draws = False
    """Not before `register`, nor after `unregister`, when Blender still draws the tool that was active, nor once an
    unexpected error was logged."""


def _draw(context: Context, place: tuple[int, int]) -> None:
    drag = held_body()
    if drag is not None:
        _write(context, place, follow(drag.extent.length))
        return
    if cursor.current is not None or context.mode != "POSE" or context.region_data is None or obstacle(context):
        return
    corner = np.array([context.region.x, context.region.y])
    found = picked(context, Vector((place[0] - corner[0], place[1] - corner[1])))
    if found is not None:
        scale = context.preferences.system.ui_scale
        hue = context.preferences.themes[0].user_interface.gizmo_hi
        color = (hue[0], hue[1], hue[2], 1.0)
        ends = np.pad(corner + found.ends, ((0, 0), (0, 1)))
        draw_lines(ends, faded(color, 0.5), LINE * scale)
        draw_lines(ends[int(found.use_tail)] + RING * scale * CIRCLE, color, LINE / 2.0 * scale)


def follow(count: int) -> str:
    """Return the text for how many bones follow; 0: the whole body."""
    return say("Bones: {count}", count=count) if count else say("Bones: All")


def _write(context: Context, place: tuple[int, int], text: str) -> None:
    """Draw text beside the mouse."""
    scale = context.preferences.system.ui_scale
    color = context.preferences.themes[0].view_3d.space.text_hi
    blf.size(FONT, context.preferences.ui_styles[0].widget.points * scale)
    blf.color(FONT, color[0], color[1], color[2], 1.0)
    blf.position(FONT, place[0] + BESIDE[0] * scale, place[1] + BESIDE[1] * scale, 0.0)
    blf.enable(FONT, blf.SHADOW)
    blf.shadow(FONT, SHADOW, 0.0, 0.0, 0.0, 0.8)
    blf.draw(FONT, text)
    blf.disable(FONT, blf.SHADOW)
