"""Mouse drags: macros that take hold of something, let Blender's transform move the 3D cursor, and let go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import bpy

from ...core.settings import overlay_of
from ...core.translation.sentences import UserError
from ...targets import cursor
from .active import ReportingOperator


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


def compose(macro: type[bpy.types.Macro], hold: type[bpy.types.Operator], transform: str) -> None:
    """Define the parts of a macro; Blender forgets them when the macro's class is unregistered."""
    parts: Any = macro
    parts.define(hold.__name__)
    parts.define(transform).properties.cursor_transform = True
    parts.define(IK_ADDON_OT_release.__name__)


CLASSES = (IK_ADDON_OT_release,)
