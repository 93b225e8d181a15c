"""Mouse drags: macros that take hold of something, let Blender's transform move the 3D cursor, and let go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import bpy

from ...core.falloff import falloff_setting, range_setting
from ...core.settings import overlay_of
from ...core.translation.sentences import UserError
from ...targets import cursor
from ...targets.edit_range import EditRange
from .active import ReportingOperator

MORE, LESS = frozenset({"WHEELDOWNMOUSE", "PAGE_UP"}), frozenset({"WHEELUPMOUSE", "PAGE_DOWN"})
"""Events that change how many bones follow, or with Shift how many frames, in the directions of Blender's Auto IK."""


class RangeOptions:
    """How far an edit reaches, as options of an operator."""

    range: range_setting()
    falloff: falloff_setting()


class IK_ADDON_OT_release(ReportingOperator):
    """The last part of a mouse drag."""

    bl_idname = "ik_addon.release"
    bl_label = "Let Go"
    bl_description = "Leave the dragged target or bone where it is"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    @classmethod
    def poll(cls, _context: bpy.types.Context) -> bool:
        """Always run: the first part of the macro has done the checks."""
        return True

    def perform(self, context: bpy.types.Context) -> set[str]:
        """End the drag and keep its result."""
        held = cursor.current
        if held is None:
            return {"CANCELLED"}
        held.end(context)
        return finish(self, context, held.drag)


def finish(
    operator: ReportingOperator, context: bpy.types.Context, drag: cursor.Held, remarks: Iterable[str] = ()
) -> set[str]:
    """Keep the result of a drag and report it.

    Args:
        operator: the operator that reports.
        context: gives the view layer.
        drag: the drag to finish.
        remarks: sentences to report before those of the drag.

    Raises:
        UserError: the result can't be kept; everything is as before.
    """
    try:
        said = [*remarks, *drag.finish(context)]
    except UserError:
        drag.cancel(context)
        raise
    operator.report({"WARNING"} if said else {"INFO"}, ". ".join(said) or drag.done)
    return {"FINISHED"}


class IK_ADDON_OT_drag_range(bpy.types.Operator):
    """Handle the mouse wheel during a drag of a target, which Blender's own transform leaves alone."""

    bl_idname = "ik_addon.drag_range"
    bl_label = "Range"
    bl_description = "Let the drag reach more or fewer frames"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        """Receive every event first from here on."""
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Handle the wheel with Shift and pass every other event to Blender."""
        if cursor.current is None:
            return {"FINISHED", "PASS_THROUGH"}
        return {"RUNNING_MODAL" if turn_range(context, event) else "PASS_THROUGH"}


def turn_range(context: bpy.types.Context, event: bpy.types.Event) -> bool:
    """Let the drag in progress reach farther, or less far, at a turn of the wheel with Shift; return whether it is."""
    held, scene = cursor.current, overlay_of(context.scene)
    if held is None or not event.shift or event.value != "PRESS" or event.type not in MORE | LESS:
        return False
    step = max(1, scene.edit_range // 5)
    scene.edit_range += step if event.type in MORE else -step
    held.drag.reach = EditRange.of_scene(context.scene)
    for hold in running_holds(context, *cursor.MACROS):
        take_range(hold, context.scene)
    for area in context.screen.areas:
        area.tag_redraw()
    return True


def running_holds(context: bpy.types.Context, *macros: str) -> Iterator[Any]:
    """Yield the settings of the first parts of drags that run in the window, from which their repetition takes them."""
    running: Any = context.window.modal_operators
    yield from (macro.macros[0].properties for macro in filter(None, running) if macro.bl_idname in macros)


def take_range(hold: Any, scene: bpy.types.Scene) -> None:
    """Let a mouse drag, given by its first part, reach as far as the scene says."""
    hold.range, hold.falloff = overlay_of(scene).edit_range, overlay_of(scene).edit_falloff


def start(operator: ReportingOperator, macro: Callable[..., Any], **parts: dict[str, Any]) -> set[str]:
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


class DragMacro(bpy.types.Macro):
    """Base of mouse drags: take hold, let Blender's transform move the 3D cursor, let go."""

    bl_options = {"REGISTER", "UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it
    hold: type[bpy.types.Operator]
    transform = cursor.MOVE
    """Blender's operator."""

    @classmethod
    def compose(cls) -> None:
        """Define the parts; Blender forgets them when the class is unregistered."""
        parts: Any = cls
        parts.define(cls.hold.__name__)
        parts.define(cls.transform).properties.cursor_transform = True
        parts.define(IK_ADDON_OT_release.__name__)
