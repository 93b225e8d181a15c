"""Mouse drags, in which Blender's own transform moves the 3D cursor with its keys, and Drag Target, the first of them.

A macro takes hold of something, lets the transform move the cursor, and lets go.
"""

from collections.abc import Callable
from functools import partial

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatVectorProperty, StringProperty
from bpy.types import Context, Event, Macro, Object, Operator, PoseBone, Region, Scene, Window
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Vector

from ...core import compat
from ...core.chain_settings import ROLES
from ...core.falloff import falloff_setting, range_setting
from ...core.names import chain_name
from ...core.settings import chain_of, object_of, overlay_of
from ...core.translation.sentences import UserError, say
from ...core.untyped import Json, Struct
from ...rig.plan import chain
from ...targets import cursor
from ...targets.drag import Drag
from ...targets.edit_range import EditRange
from ...targets.movable import why_lacking
from .active import ArmatureOperator, ChainOperator, Internal, active_chain, active_tip, armature, hidden, operators


class RangeOptions:
    """How far an edit reaches, as options of an operator."""

    range: range_setting()
    falloff: falloff_setting()


class IK_ADDON_OT_release(Internal, ArmatureOperator):
    """Leave the dragged target or bone where it is."""

    # The last part of a mouse drag.
    bl_label = "Let Go"

    @classmethod
    def poll(cls, _context: Context) -> bool:
        """Always run: the first part of the macro has done the checks."""
        return True

    def perform(self, context: Context) -> set[str]:
        """End the drag and keep its result."""
        held = cursor.current
        if held is None:
            return {"CANCELLED"}
        held.end(context)
        return finish(self, context, held.drag)


def finish(operator: ArmatureOperator, context: Context, drag: cursor.Held) -> set[str]:
    """Keep the result of a drag and report it.

    Args:
        operator: the operator that reports.
        context: gives the view layer.
        drag: the drag to finish.

    Raises:
        UserError: the result can't be kept; everything is as before.
    """
    try:
        said = drag.finish(context)
    except UserError:
        drag.cancel(context)
        raise
    operator.report({"WARNING"} if said else {"INFO"}, ". ".join(said) or drag.done)
    return {"FINISHED"}


def take_range(hold: Struct, scene: Scene) -> None:
    """Let a mouse drag, given by its first part, reach as far as the scene says."""
    hold.range, hold.falloff = overlay_of(scene).edit_range, overlay_of(scene).edit_falloff


def start(operator: ArmatureOperator, macro: Callable[..., object], **parts: Json) -> set[str]:
    """Start a drag from another operator, which reports why the drag can't start.

    Args:
        operator: the operator that starts the drag.
        macro: the macro in `bpy.ops`.
        parts: properties of the macro's parts, by their class names.
    """
    try:
        macro("INVOKE_DEFAULT", **parts)
    except RuntimeError as error:
        return operator.refuse(str(error).removeprefix("Error: ").strip())
    return {"INTERFACE"}  # the macro adds the undo step, and Adjust Last Operation applies to it


class DragMacro(Macro):
    """Base of mouse drags: take hold, let Blender's transform move the 3D cursor, let go."""

    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it
    hold: type[Operator]
    transform = cursor.MOVE
    """Blender's operator."""

    @classmethod
    def register(cls) -> None:
        """Define the parts; Blender calls this once it knows the class, and forgets them with it."""
        parts: Struct = cls
        parts.define(cls.hold.__name__)
        parts.define(cls.transform).properties.cursor_transform = True
        parts.define(IK_ADDON_OT_release.__name__)


class HoldOperator(Internal, RangeOptions, ArmatureOperator):
    """Base of the first parts of mouse drags, which move the 3D cursor to something, for Blender to move it on."""

    def hold(self, _context: Context, _ob: Object) -> set[str]:
        """Take hold."""
        raise NotImplementedError

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Take hold for a mouse drag."""
        take_range(self, context.scene)
        if context.window is not None:  # once Blender's transform runs, the wheel is handled before it
            bpy.app.timers.register(partial(_handle_wheel, context.window))
        return self.attempt(lambda context: self.hold(context, armature(context)), context)

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Take hold when a drag is repeated or adjusted, or when a script calls the parts."""
        return self.hold(context, ob)


def _handle_wheel(window: Window) -> None:
    with bpy.context.temp_override(window=window):
        if cursor.is_moving(window):
            operators.ik_addon.drag_wheel("INVOKE_DEFAULT")


# ---- Drag Target


def why_not_draggable(tip: PoseBone) -> str:
    """Return why no goal of a chain can be dragged and what to do about it, or an empty string if one can."""
    disabled = "The chain on '{tip}' is disabled. Enable it in the panel"
    return "" if chain_of(tip).enabled else say(disabled, tip=chain_name(tip))


class IK_ADDON_OT_goal_hold(HoldOperator):
    """Grab the target or the pole of a chain."""

    bl_label = "Take Hold"

    rig: hidden(StringProperty, "Armature", "The armature with the chain; empty: the active armature")
    tip: hidden(StringProperty, "Tip", "The bone that carries the chain; empty: the active chain")
    role: hidden(EnumProperty, "Goal", "What is moved", items=ROLES)
    turns: hidden(BoolProperty, "Rotate", "It is rotated, and need not be free to move")

    def hold(self, context: Context, ob: Object) -> set[str]:
        """Take hold of the goal, and make its chain the active one."""
        ob = context.view_layer.objects.get(self.rig) or ob
        tip: PoseBone | None = ob.pose.bones.get(self.tip) if self.tip else active_tip(context)
        if tip is None:
            raise UserError("'{object}' has no bone '{tip}'", object=ob.name, tip=self.tip)
        if reason := why_not_draggable(tip):
            raise UserError(reason)
        drag = Drag(context, tip, self.role.lower(), turns=self.turns, reach=EditRange.of(self))
        if self.tip and tip != active_chain(context):
            context.view_layer.objects.active = ob
            compat.select_bone(tip)
        cursor.CursorDrag(context, drag)
        return {"FINISHED"}


class IK_ADDON_OT_goal_move(DragMacro):
    """Move the target or the pole of a chain; the chain follows, with Live on or off."""

    # Move the target or pole of a chain with the mouse; keys can change the move to a rotation.
    bl_label = "Drag Target"
    hold = IK_ADDON_OT_goal_hold


class IK_ADDON_OT_goal_turn(DragMacro):
    """Rotate the target of a chain; the chain follows, with Live on or off."""

    bl_label = "Rotate Target"
    hold = IK_ADDON_OT_goal_hold
    transform = cursor.TURN


class IK_ADDON_OT_drag_target(RangeOptions, ChainOperator):
    """Move the target of the active chain with the mouse; the chain follows, with Live on or off."""

    bl_label = "Drag Target"

    offset: FloatVectorProperty(
        name="Move", description="How far the target moves, in world space", subtype="TRANSLATION"
    )

    @classmethod
    def why_unavailable(cls, context: Context, ob: Object) -> str:
        """Require an enabled chain with a target."""
        tip = active_chain(context)
        return super().why_unavailable(context, ob) if tip is None else why_not_draggable(tip) or why_lacking(tip)

    def perform_on_chain(self, context: Context, tip: PoseBone) -> set[str]:
        """Move the target by `offset` and solve."""
        drag = Drag(context, tip, reach=EditRange.of(self))
        drag.move(context, Vector(self.offset))
        return finish(self, context, drag)

    def invoke(self, context: Context, event: Event) -> set[str]:
        """Start a mouse drag of the target."""
        if context.area is None or context.area.type != "VIEW_3D":
            return self.refuse(say("Use this in a 3D Viewport"))

        def begin(context: Context) -> set[str]:
            view, sidebar = (next(own for own in context.area.regions if own.type == kind) for kind in ("WINDOW", "UI"))
            if is_over(sidebar, event.mouse_x, event.mouse_y):
                # Blender measures a move from where the mouse was: from a button in the sidebar, the target would stay
                # as far from the mouse as the button is.
                place = Drag(context, active_tip(context)).world.translation
                seen = location_3d_to_region_2d(view, view.data, place)
                if seen is not None and is_over(view, view.x + seen.x, view.y + seen.y):
                    context.window.cursor_warp(round(view.x + seen.x), round(view.y + seen.y))
            with context.temp_override(region=view):
                return start(self, operators.ik_addon.goal_move)

        return self.attempt(begin, context)


class IK_ADDON_OT_grab(Internal):
    """Move the target of the selected hand, foot or tip; other bones are moved as usual."""

    # Move the target of a hand or foot that Blender's own Move can only turn, because it is connected.
    bl_label = "Move Hand or Foot"

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Start a mouse drag of the target, or leave the key to Blender."""
        tip = connected_end(context)
        if tip is None:
            return {"PASS_THROUGH"}
        try:
            operators.ik_addon.goal_move("INVOKE_DEFAULT", IK_ADDON_OT_goal_hold={"tip": tip.name})
        except RuntimeError:
            return {"PASS_THROUGH"}  # a target that can't be moved leaves the edit to FK
        return {"FINISHED"}


def connected_end(context: Context) -> PoseBone | None:
    """Return the tip of the live chain that ends in the one selected bone, if that bone is connected.

    Below an influence of 1 a target alone can't take the bone along.
    """
    selected = context.selected_pose_bones or ()
    if len(selected) != 1 or not object_of(selected[0].id_data).live:
        return None
    (bone,) = selected
    if bone.parent is None or not bone.bone.use_connect:
        return None
    ends = (tip for tip in chain.tips(bone.id_data) if chain.posed_bones(tip)[-1] == bone)
    return next((tip for tip in ends if chain_of(tip).enabled and chain_of(tip).influence == 1.0), None)


def is_over(region: Region, x: float, y: float) -> bool:
    """Whether a place in the window is over a region."""
    return 0 <= x - region.x < region.width and 0 <= y - region.y < region.height
