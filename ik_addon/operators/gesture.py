"""Drags with the mouse: macros that take hold of something, let Blender's transform move the 3D cursor, and let go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import bpy

from ..drag import cursor
from ..translation.sentences import UserError
from .active import ReportingOperator


class IK_ADDON_OT_release(ReportingOperator):
    """The last part of a drag with the mouse."""

    bl_idname = "ik_addon.release"
    bl_label = "Let Go"
    bl_description = "Leave the dragged target or bone where it is"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    @classmethod
    def poll(cls, _context: bpy.types.Context) -> bool:
        """The macro asks before it takes hold."""
        return True

    def perform(self, context: bpy.types.Context) -> set[str]:
        """Let go."""
        held = cursor.current
        if held is None:
            return {"CANCELLED"}
        held.end(context)
        return finish(self, context, held.drag)


def finish(
    operator: ReportingOperator, context: bpy.types.Context, drag: cursor.Held, remarks: Iterable[str] = ()
) -> set[str]:
    """Keep what came of a drag, and say what that is.

    Args:
        operator: what reports it.
        context: of the view layer.
        drag: what was dragged.
        remarks: sentences to say before those of the drag.

    Raises:
        UserError: it can't be kept; everything is as before.
    """
    try:
        said = [*remarks, *drag.finish(context)]
    except UserError:
        drag.cancel(context)
        raise
    operator.report({"WARNING"} if said else {"INFO"}, ". ".join(said) or drag.done)
    return {"FINISHED"}


def start(operator: ReportingOperator, macro: Callable[..., Any], **parts: dict[str, Any]) -> set[str]:
    """Begin a drag from another operator, which reports why it can't begin.

    Args:
        operator: the one that begins it.
        macro: the drag, of `bpy.ops`.
        parts: settings of its parts, by the names of their classes.
    """
    try:
        macro("INVOKE_DEFAULT", **parts)
    except RuntimeError as error:
        return operator.refuse(str(error).removeprefix("Error: ").strip())
    return {"INTERFACE"}  # the macro makes the step of undo, and is what can be adjusted afterwards


def compose(macro: type[bpy.types.Macro], hold: type[bpy.types.Operator], transform: str) -> None:
    """Say what a drag consists of; Blender forgets it together with the macro's class."""
    parts: Any = macro
    parts.define(hold.__name__)
    parts.define(transform).properties.cursor_transform = True
    parts.define(IK_ADDON_OT_release.__name__)


CLASSES = (IK_ADDON_OT_release,)
