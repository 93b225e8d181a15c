"""Drags in Pose Mode that follow the 3D cursor while Blender's own transform operators move the cursor.

These operators can move the cursor in any mode, whatever is selected, with axes, planes, precision, snapping, typed
numbers, rotation, and hints in the status bar. Only Move has a property for it, but all of them obey it. Operators that
keys turn a move into get the property too, or they would transform bones when repeated.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Protocol

import bpy
from bpy.props import BoolProperty
from bpy.types import Context, Depsgraph, Object, Scene, Window
from mathutils import Matrix, Quaternion, Vector

from ..core import interruption
from ..core.goals import Goal
from ..core.untyped import Struct
from ..live import registry
from .edit_range import EditRange
from .edits import last_operator

WATCH = 0.02
"""Seconds between checks whether Blender's operator still runs."""
REST = 0.1
"""Seconds without movement after which the chain is solved to full accuracy."""
MOVE, TURN = "TRANSFORM_OT_translate", "TRANSFORM_OT_rotate"
"""Blender's operators in the macros; keys can turn a move into another operator."""
MACROS = ("IK_ADDON_OT_goal_move", "IK_ADDON_OT_goal_turn", "IK_ADDON_OT_body_move")
"""The macros that run a drag: take hold, transform the cursor, release."""
SETTING = "cursor_transform"
"""The property of Move that makes it move the cursor."""
CHANNELS = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle")
"""Channels of the cursor."""


class Held(Protocol):
    """Something that a user drags."""

    turns_in_place: bool
    """If a key changes the move to a rotation, turn at the current place instead of the initial one."""
    ob: Object
    """The armature object that follows."""
    reach: EditRange
    """How many frames around the current one the drag reaches when it ends."""
    goal: Goal
    """What is in hand."""
    world: Matrix
    """The world matrix at the start of the drag."""

    def move(self, context: Context, offset: Vector, turn: Quaternion | None = None) -> object:
        """Move by an offset from the start, and turn in place, both in world space; see `Drag.move`."""

    def settle(self, context: Context) -> None:
        """Solve to full accuracy after hurried moves."""

    def cancel(self, context: Context) -> None:
        """Restore everything exactly."""

    @property
    def done(self) -> str:
        """The report at the end of a drag without remarks."""

    def finish(self, context: Context) -> list[str]:
        """Keep the result; return remarks as sentences."""


current: CursorDrag | None = None
"""The drag that is following the cursor."""


def is_moving(window: Window) -> bool:
    """Whether one of the macros runs in a window."""
    running = filter(None, window.modal_operators)  # None: its class was unregistered meanwhile
    return any(operator.bl_idname in MACROS for operator in running)


def is_move(macro: Struct) -> bool:
    """Whether a macro still moves; a key may have replaced Blender's move by another operator."""
    return bool(macro.macros[1].bl_idname == MOVE)


class CursorDrag:
    """A drag that follows the 3D cursor from its creation until `end` or `cancel`."""

    def __init__(self, context: Context, drag: Held) -> None:
        """Move the cursor to what is dragged, and start to follow the cursor.

        If the macro stops without ending the drag, the drag is cancelled: Blender sends no notice when a macro is
        cancelled.
        """
        global current
        forget()
        current = self
        self.drag = drag
        self._window: Struct = context.window
        self._cursor = context.scene.cursor
        self._kept = {name: getattr(self._cursor, name)[:] for name in CHANNELS}
        location, rotation, _scale = drag.world.decompose()
        self._cursor.matrix = Matrix.LocRotScale(location, rotation, None)
        self._start = self._seen = self._cursor.matrix.copy()
        self.offset = Vector()
        """The last offset."""
        self._last = last_operator()
        self._unsettled_since: float | None = None
        """Time of the last move if nothing has been solved to full accuracy since; None otherwise."""
        self._is_interrupted = False
        """Whether the drag was cancelled, but Blender's operator may still move the cursor."""
        interruption.begin(self.interrupt)
        bpy.app.handlers.depsgraph_update_post.append(self.on_update)
        bpy.app.timers.register(self._watch, first_interval=WATCH)

    def end(self, context: Context) -> None:
        """Follow the last move, solve to full accuracy, and restore the cursor."""
        self._follow(context)
        self._settle(context)
        self._let_go()

    def cancel(self, context: Context) -> None:
        """Restore everything exactly."""
        self._let_go()
        self.drag.cancel(context)

    def interrupt(self) -> None:
        """Cancel the drag for somebody who saves or disables the extension, while Blender still moves the cursor."""
        self._is_interrupted = True
        with bpy.context.temp_override(window=self._window):
            self.cancel(bpy.context)

    def _follow(self, context: Context) -> None:
        now = self._cursor.matrix.copy()
        if now == self._seen:
            return
        self._seen = now
        turn = None
        if now.to_3x3() != self._start.to_3x3():
            turn = now.to_quaternion() @ self._start.to_quaternion().inverted()
        # R moves the cursor back to the start and turns it there.
        running = self._window.modal_operators if self.drag.turns_in_place else ()
        if not any(operator.bl_idname in MACROS and not is_move(operator) for operator in running):
            self.offset = now.translation - self._start.translation
        with registry.hurried():
            self.drag.move(context, self.offset, turn)
        self._unsettled_since = time.monotonic()

    def _settle(self, context: Context) -> None:
        if self._unsettled_since is not None:
            self._unsettled_since = None
            self.drag.settle(context)

    def on_update(self, _scene: Scene, _depsgraph: Depsgraph) -> None:
        """Follow the cursor, which updates its scene when it moves."""
        # Blender calls update handlers without a window.
        with bpy.context.temp_override(window=self._window):
            self._follow(bpy.context)

    def _watch(self) -> float | None:
        if current is self and not is_moving(self._window):
            with bpy.context.temp_override(window=self._window):
                self.cancel(bpy.context)
                if last_operator() != self._last:
                    # The first part of the macro was done, so Blender has made an undo step, of what was just restored.
                    bpy.ops.ed.undo()
        elif current is self and self._unsettled_since is not None and time.monotonic() > self._unsettled_since + REST:
            with bpy.context.temp_override(window=self._window):
                self._settle(bpy.context)
        elif self._is_interrupted and not is_moving(self._window):
            self._is_interrupted = False
            self._put_cursor_back()
        return WATCH if current is self or self._is_interrupted else None

    def _let_go(self) -> None:
        forget()
        self._put_cursor_back()

    def _put_cursor_back(self) -> None:
        for name, value in self._kept.items():
            setattr(self._cursor, name, value)


def forget() -> None:
    """Stop following the cursor, and leave everything where it is."""
    global current
    if current is not None:
        with suppress(ValueError):  # Blender removes the handler itself when another file is opened
            bpy.app.handlers.depsgraph_update_post.remove(current.on_update)
        interruption.end(current.interrupt)
    current = None


def register() -> None:
    """Add the property that moves the cursor to Blender's other transform operators."""
    for properties in _settings_of_others():
        if SETTING not in properties.bl_rna.properties:
            setattr(properties, SETTING, BoolProperty(name="Transform Cursor", options={"HIDDEN", "SKIP_SAVE"}))


def unregister() -> None:
    """Stop following the cursor, and remove the property from Blender's transform operators."""
    forget()
    for properties in _settings_of_others():
        if SETTING in vars(properties):
            delattr(properties, SETTING)


def _settings_of_others() -> list[Struct]:
    """Return the property types of the transform operators that keys can turn a move into."""
    manager = bpy.context.window_manager
    names = ("transform.rotate", "transform.trackball", "transform.resize")
    return [type(manager.operator_properties_last(name)) for name in names]
