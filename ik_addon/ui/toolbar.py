"""The tools in the toolbar of Pose Mode, what is drawn around the mouse with Pose Body, and gizmos.

The gizmos are rings around targets and poles, and arrows and dials on those of the active chain. All of them start a
macro of Drag Target, so that Blender's own transform handles the rest of the gesture.
"""

import logging
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import blf
import bpy
import numpy as np
from bpy.types import Context, Gizmo, GizmoGroup, Object, PoseBone, UILayout, WorkSpaceTool
from mathutils import Matrix, Vector

from ..core.preferences import preferences
from ..core.settings import ROLES, chain_of, goal_of, overlay_of
from ..core.translation.sentences import say
from ..core.untyped import Struct
from ..posing.pick import picked
from ..rig.plan.chain import takes_orientation, tips
from ..rig.plan.presence import why_closed
from ..targets import cursor
from .operators.active import active_chain, obstacle
from .operators.body import TOOL, held_body, is_in_hand
from .overlay.draw import draw_lines
from .overlay.geometry import faded, loop, ring

log = logging.getLogger(__name__)

RING, RING_OF_ACTIVE = 0.11, 0.14
"""Radii, in Blender's gizmo units."""
DIAL = 0.55
"""Radius of a dial in gizmo units, so that the arrows extend beyond it."""
FAINT, CLEAR = 0.5, 0.9
"""Opacity of gizmos of other chains, and of gizmos that are highlighted or belong to the active chain."""
AXES = Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)), Vector((0.0, 0.0, 1.0))
ALONG = [AXES[2].rotation_difference(axis).to_matrix().to_4x4() for axis in AXES]
"""Turns a gizmo from Z, along which it is made, to each world axis."""


def grips(context: Context) -> Iterator[tuple[PoseBone, str, Object]]:
    """Yield tip, role and object of the visible goals of the enabled chains of all armatures in Pose Mode."""
    for rig in context.objects_in_mode:
        for tip in tips(rig) if not why_closed(rig) else ():
            if chain_of(tip).enabled:
                yield from ((tip, role, ob) for role, ob in grips_of(context, tip).items())


def grips_of(context: Context, tip: PoseBone) -> dict[str, Object]:
    """Return the visible goals of a chain that are objects, by role; bones are moved by Blender's own transform."""
    space: Struct = context.space_data
    found = {}
    for role in ROLES:
        ob, bone = goal_of(chain_of(tip), role)
        if ob is not None and not (bone and ob.type == "ARMATURE") and ob.visible_get(viewport=space):
            found[role] = ob
    return found


def take_hold(
    gizmo: Struct, role: str, rig: str = "", tip: str = "", axis: int | None = None, *, turns: bool = False
) -> None:
    """Make a gizmo drag a goal until the mouse is released.

    Args:
        gizmo: the gizmo.
        role: "target" or "pole".
        rig: name of the armature object.
        tip: name of the chain's tip bone; empty, like `rig`: the chain that is active when the drag starts.
        axis: index of the axis to move along or turn about; None: move in the plane of the view.
        turns: turn the goal instead of moving it.
    """
    options = gizmo.target_set_operator("ik_addon.goal_turn" if turns else "ik_addon.goal_move")
    hold = options.IK_ADDON_OT_goal_hold
    hold.rig, hold.tip, hold.role, hold.turns = rig, tip, role.upper(), turns
    transform = getattr(options, cursor.TURN if turns else cursor.MOVE)
    transform.cursor_transform = True
    transform.release_confirm = True
    if axis is not None:
        transform.constraint_axis = [i == axis for i in range(3)]
        transform.orient_type = "GLOBAL"


class GoalGizmos(GizmoGroup):
    """Base of both gizmo groups, with the conditions under which they show."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "WINDOW"

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Show in Pose Mode on a usable armature, but not during playback, where a hundred rings take 4 ms a frame."""
        return context.mode == "POSE" and not context.screen.is_animation_playing and not obstacle(context)


class IK_ADDON_GGT_rings(GoalGizmos):
    """A ring to drag each target and pole by, with any tool; with Pose Body only poles have one."""

    bl_label = "IK Targets and Poles"
    bl_options = {"3D", "PERSISTENT", "SHOW_MODAL_ALL"}  # noqa: RUF012 - as Blender wants it

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Show only together with the overlay."""
        return overlay_of(context.scene).show_overlay and super().poll(context)

    def setup(self, _context: Context) -> None:
        """Start without rings."""
        self.rings: dict[tuple[str, str, str], Gizmo] = {}

    def draw_prepare(self, context: Context) -> None:
        """Add, remove and place the rings to match the goals."""
        # With Pose Body the joint under a target is dragged, which takes the target along.
        roles = {"pole"} if is_in_hand(context) else ROLES
        shown = {(tip.id_data.name, tip.name, role): ob for tip, role, ob in grips(context) if role in roles}
        for key in self.rings.keys() - shown.keys():
            self.gizmos.remove(self.rings.pop(key))
        theme = context.preferences.themes[0].user_interface
        size: float = preferences().ring_size
        active = active_chain(context)
        for key, ob in shown.items():
            ring = self.rings.get(key) or self._new(*key)
            is_active = active is not None and key[:2] == (active.id_data.name, active.name)
            ring.color = theme.gizmo_primary if is_active else theme.gizmo_secondary
            ring.alpha = CLEAR if is_active else FAINT
            ring.scale_basis = size * (RING_OF_ACTIVE if is_active else RING)
            ring.matrix_basis = Matrix.Translation(ob.matrix_world.translation)

    def _new(self, rig: str, tip: str, role: str) -> Gizmo:
        ring: Struct = self.gizmos.new("GIZMO_GT_move_3d")
        ring.draw_style = "RING_2D"
        ring.draw_options = {"ALIGN_VIEW", "FILL_SELECT"}
        ring.color_highlight, ring.alpha_highlight = (1.0, 1.0, 1.0), CLEAR
        ring.use_tooltip = False  # after a drag the mouse rests on the ring, and a tooltip would cover the character
        take_hold(ring, role, rig, tip)
        self.rings[rig, tip, role] = ring
        return ring


class IK_ADDON_GGT_tool(GoalGizmos):
    """The gizmos of the tool: arrows on the active chain's target and pole, and dials if it takes an orientation."""

    bl_label = "IK Target and Pole of the Active Chain"
    bl_options = {"3D"}  # noqa: RUF012 - as Blender wants it

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Show only while a tool with these gizmos is active: a file opened with its UI brings its own tools."""
        tool = context.workspace.tools.from_space_view3d_mode("POSE")
        return tool is not None and tool.widget == cls.__name__ and super().poll(context)

    def setup(self, context: Context) -> None:
        """Make the arrows and the dials."""
        self.handles: list[tuple[Gizmo, str, int, bool]] = []
        for axis, (role, turns) in product(range(3), (("target", False), ("pole", False), ("target", True))):
            gizmo: Struct = self.gizmos.new("GIZMO_GT_dial_3d" if turns else "GIZMO_GT_arrow_3d")
            color = getattr(context.preferences.themes[0].user_interface, f"axis_{'xyz'[axis]}")
            gizmo.color = gizmo.color_highlight = color
            gizmo.alpha, gizmo.alpha_highlight = FAINT, 1.0
            gizmo.line_width = 2.0
            gizmo.use_draw_modal = True
            if turns:
                gizmo.draw_options, gizmo.scale_basis = {"CLIP"}, DIAL
            else:
                gizmo.length = 0.8
            take_hold(gizmo, role, axis=axis, turns=turns)
            self.handles.append((gizmo, role, axis, turns))

    def draw_prepare(self, context: Context) -> None:
        """Move arrows and dials to the goals of the active chain."""
        tip = active_chain(context)
        usable = tip if tip is not None and chain_of(tip).enabled else None
        shown = {} if usable is None else grips_of(context, usable)
        turnable = usable is not None and takes_orientation(usable)
        for gizmo, role, axis, turns in self.handles:
            ob = shown.get(role) if turnable or not turns else None
            gizmo.hide = ob is None
            if ob is not None:
                gizmo.matrix_basis = Matrix.Translation(ob.matrix_world.translation) @ ALONG[axis]


# ---- tools

FONT = 0
MARK = 8.0
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
        draw_lines(ends[int(found.use_tail)] + MARK * scale * CIRCLE, color, LINE / 2.0 * scale)


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
