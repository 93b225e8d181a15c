"""What a user grasps in Pose Mode: rings round targets and poles, and arrows and dials on those of the active chain.

All of them start a macro of Drag Target, so the rest of the gesture is Blender's transform.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import bpy
from mathutils import Matrix, Vector

from ..data.preferences import preferences
from ..data.settings import chain_of, goal_of, overlay_of
from ..drag import cursor
from ..operators.active import active_chain, armature, obstacle
from ..rig.plan.chain import takes_orientation, tips

ROLES = ("target", "pole")
AXES = "xyz"
RING, RING_OF_ACTIVE = 0.11, 0.14
"""Radii, in Blender's unit of gizmos."""
DIAL = 0.55
"""Radius of a dial, in that unit: the arrows stand out of it."""
FAINT, CLEAR = 0.5, 0.9
"""Opacity of what belongs to other chains, and of what the mouse is over or belongs to the active one."""
Z = Vector((0.0, 0.0, 1.0))


class Goal(NamedTuple):
    """A target or a pole that is an object: bones as goals have Blender's own transform."""

    tip: str
    role: str
    ob: bpy.types.Object

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return self.tip, self.role


def goals(context: bpy.types.Context) -> Iterator[Goal]:
    """The goals of the armature's enabled chains that can be seen."""
    for tip in tips(armature(context)):
        if chain_of(tip).enabled:
            yield from goals_of(context, tip)


def goals_of(context: bpy.types.Context, tip: bpy.types.PoseBone) -> Iterator[Goal]:
    """The goals of a chain that can be seen."""
    space: Any = context.space_data
    for role in ROLES:
        ob, bone = goal_of(chain_of(tip), role)
        if ob is not None and not (bone and ob.type == "ARMATURE") and ob.visible_get(viewport=space):
            yield Goal(tip.name, role, ob)


def take_hold(gizmo: Any, role: str, tip: str = "", axis: int | None = None, *, turns: bool = False) -> None:
    """Let a gizmo drag a goal until the mouse is released.

    Args:
        gizmo: which one.
        role: of the goal.
        tip: of the chain; empty: the one that is active then.
        axis: index of the axis to go along, or to turn about; None: in the plane of the view.
        turns: turn the goal instead of moving it.
    """
    options = gizmo.target_set_operator("ik_addon.goal_turn" if turns else "ik_addon.goal_move")
    hold = options.IK_ADDON_OT_goal_hold
    hold.tip, hold.role, hold.turns = tip, role.upper(), turns
    transform = getattr(options, cursor.TURN if turns else cursor.MOVE)
    transform.cursor_transform = True
    transform.release_confirm = True
    if axis is not None:
        transform.constraint_axis = [i == axis for i in range(3)]
        transform.orient_type = "GLOBAL"


class GoalGizmos(bpy.types.GizmoGroup):
    """Where both groups of gizmos are shown."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "WINDOW"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """In Pose Mode, on an armature that can be worked on; not while playing, where a hundred rings take 4 ms."""
        if context.mode != "POSE" or context.screen.is_animation_playing:
            return False
        return not obstacle(context)


class IK_ADDON_GGT_rings(GoalGizmos):
    """A ring round each target and pole of the armature, to be dragged whichever tool is active."""

    bl_idname = "IK_ADDON_GGT_rings"
    bl_label = "IK Targets and Poles"
    bl_options = {"3D", "PERSISTENT", "SHOW_MODAL_ALL"}  # noqa: RUF012 - as Blender wants it

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """As a part of the overlay."""
        return overlay_of(context.scene).show_overlay and super().poll(context)

    def setup(self, _context: bpy.types.Context) -> None:
        """Begin without any."""
        self.rings: dict[tuple[str, str], Any] = {}

    def draw_prepare(self, context: bpy.types.Context) -> None:
        """Put the rings where the goals are now."""
        shown = {goal.key: goal for goal in goals(context)}
        for key in self.rings.keys() - shown.keys():
            self.gizmos.remove(self.rings.pop(key))
        theme = context.preferences.themes[0].user_interface
        size: float = preferences().ring_size
        active = active_chain(context)
        for key, goal in shown.items():
            ring = self.rings.get(key) or self._new(goal)
            is_active = active is not None and goal.tip == active.name
            ring.color = theme.gizmo_primary if is_active else theme.gizmo_secondary
            ring.alpha = CLEAR if is_active else FAINT
            ring.scale_basis = size * (RING_OF_ACTIVE if is_active else RING)
            ring.matrix_basis = Matrix.Translation(goal.ob.matrix_world.translation)

    def _new(self, goal: Goal) -> Any:
        ring: Any = self.gizmos.new("GIZMO_GT_move_3d")
        ring.draw_style = "RING_2D"
        ring.draw_options = {"ALIGN_VIEW", "FILL_SELECT"}
        ring.color_highlight, ring.alpha_highlight = (1.0, 1.0, 1.0), CLEAR
        take_hold(ring, goal.role, goal.tip)
        self.rings[goal.key] = ring
        return ring


class IK_ADDON_GGT_tool(GoalGizmos):
    """Arrows on the target and the pole of the active chain, and dials on a target that turns its end, for the tool."""

    bl_idname = "IK_ADDON_GGT_tool"
    bl_label = "IK Target and Pole of the Active Chain"
    bl_options = {"3D"}  # noqa: RUF012 - as Blender wants it

    def setup(self, context: bpy.types.Context) -> None:
        """Make the arrows and the dials."""
        theme = context.preferences.themes[0].user_interface
        self.arrows: dict[str, list[Any]] = {role: [] for role in ROLES}
        self.dials: list[Any] = []
        for axis, name in enumerate(AXES):
            color = getattr(theme, f"axis_{name}")
            for role in ROLES:
                arrow = self._new("GIZMO_GT_arrow_3d", color)
                arrow.length = 0.8
                take_hold(arrow, role, axis=axis)
                self.arrows[role].append(arrow)
            dial = self._new("GIZMO_GT_dial_3d", color)
            dial.draw_options = {"CLIP"}
            dial.scale_basis = DIAL
            take_hold(dial, "target", axis=axis, turns=True)
            self.dials.append(dial)

    def _new(self, kind: str, color: Any) -> Any:
        gizmo: Any = self.gizmos.new(kind)
        gizmo.color = gizmo.color_highlight = color
        gizmo.alpha, gizmo.alpha_highlight = FAINT, 1.0
        gizmo.line_width = 2.0
        gizmo.use_draw_modal = True
        return gizmo

    def draw_prepare(self, context: bpy.types.Context) -> None:
        """Put them where the goals of the active chain are now."""
        tip = active_chain(context)
        usable = tip is not None and chain_of(tip).enabled
        shown = {goal.role: goal.ob for goal in goals_of(context, tip)} if usable else {}
        for role, arrows in self.arrows.items():
            place_along_axes(arrows, shown.get(role))
        place_along_axes(self.dials, shown.get("target") if usable and takes_orientation(tip) else None)


def place_along_axes(gizmos: list[Any], ob: bpy.types.Object | None) -> None:
    """Show a gizmo for each axis of the world on an object; without one, hide them."""
    for axis, gizmo in enumerate(gizmos):
        gizmo.hide = ob is None
        if ob is not None:
            direction = Vector([float(i == axis) for i in range(3)])
            turn = Z.rotation_difference(direction).to_matrix().to_4x4()
            gizmo.matrix_basis = Matrix.Translation(ob.matrix_world.translation) @ turn


CLASSES = (IK_ADDON_GGT_rings, IK_ADDON_GGT_tool)
