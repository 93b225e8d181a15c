"""The 3D cursor as what Blender's transform operators move for us, in Pose Mode, and what a drag follows.

They move the cursor in any mode without a look at the selection: with axes, planes, precision, snapping, typed numbers,
rotation, and the hints in the status bar. Only Move has a setting for that, but all of them heed it: those that keys
make of a move get it as well, or they would transform bones when they are repeated.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

import bpy
from bpy.props import BoolProperty
from mathutils import Matrix, Quaternion, Vector

WATCH = 0.02
"""Seconds between two looks at whether Blender's operator still runs."""
REST = 0.1
"""Seconds without a move after which the chain is solved to the end."""
MOVE, TURN = "TRANSFORM_OT_translate", "TRANSFORM_OT_rotate"
"""Blender's operators in the macros; keys make others of a move."""
MACROS = ("IK_ADDON_OT_goal_move", "IK_ADDON_OT_goal_turn", "IK_ADDON_OT_body_move")
"""The macros by which what is dragged, Blender's operator and the cursor come together."""
SETTING = "cursor_transform"
"""That of Move by which it moves the cursor."""
CHANNELS = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle")
"""Of the cursor."""


class Held(Protocol):
    """What a user has in the hand."""

    turns_in_place: bool
    """Where a key makes a move a rotation, it turns where it has come to, and not where it was."""

    @property
    def world(self) -> Matrix:
        """Where it was when the drag began."""

    def move(
        self, context: bpy.types.Context, offset: Vector, turn: Quaternion | None = None, *, hurried: bool = False
    ) -> object:
        """Bring it to an offset from there, turned about itself, both in world space; see `Drag.move`."""

    def settle(self, context: bpy.types.Context) -> None:
        """Solve to the end what was moved in a hurry."""

    def cancel(self, context: bpy.types.Context) -> None:
        """Restore everything exactly."""

    @property
    def done(self) -> str:
        """What is said when it is let go, and there is nothing to remark."""

    def finish(self, context: bpy.types.Context) -> list[str]:
        """Keep what came of it; returns what there is to remark, in sentences."""


current: CursorDrag | None = None
"""The drag that follows the cursor now."""


def is_moving(window: bpy.types.Window) -> bool:
    """Whether something follows the mouse in a window."""
    return any(operator.bl_idname in MACROS for operator in window.modal_operators)


def is_move(macro: Any) -> bool:
    """Whether a macro moves what is dragged: a key may have made another operator of Blender's move."""
    return bool(macro.macros[1].bl_idname == MOVE)


class CursorDrag:
    """A drag that follows the 3D cursor, from when it is made until it is ended."""

    def __init__(self, context: bpy.types.Context, drag: Held) -> None:
        """Put the cursor onto what is held, and follow it from then on.

        As soon as the macro does not run any more, the drag is cancelled if nobody has ended it: Blender tells no one
        that a macro was cancelled.
        """
        global current
        forget()
        current = self
        self.drag = drag
        self._window = context.window
        self._cursor = context.scene.cursor
        self._kept = {name: getattr(self._cursor, name)[:] for name in CHANNELS}
        location, rotation, _scale = drag.world.decompose()
        self._cursor.matrix = Matrix.LocRotScale(location, rotation, None)
        self._start = self._seen = self._cursor.matrix.copy()
        self._offset = Vector()
        """How far it was moved last."""
        self._unsettled_since: float | None = None
        """When it was moved last, where it was not solved to the end since."""
        bpy.app.handlers.depsgraph_update_post.append(self.on_update)
        bpy.app.timers.register(self._watch, first_interval=WATCH)

    def end(self, context: bpy.types.Context) -> None:
        """Follow to the end, and give the cursor back."""
        self._follow(context)
        self._settle(context)
        self._let_go()

    def cancel(self, context: bpy.types.Context) -> None:
        """Restore everything exactly."""
        self._let_go()
        self.drag.cancel(context)

    def _follow(self, context: bpy.types.Context) -> None:
        now = self._cursor.matrix.copy()
        if now == self._seen:
            return
        self._seen = now
        turn = None
        if now.to_3x3() != self._start.to_3x3():
            turn = now.to_quaternion() @ self._start.to_quaternion().inverted()
        # R puts the cursor back and turns it there.
        if not (self.drag.turns_in_place and self._is_turning()):
            self._offset = now.translation - self._start.translation
        self.drag.move(context, self._offset, turn, hurried=True)
        self._unsettled_since = time.monotonic()

    def _is_turning(self) -> bool:
        running: Any = self._window.modal_operators
        return any(operator.bl_idname in MACROS and not is_move(operator) for operator in running)

    def _settle(self, context: bpy.types.Context) -> None:
        if self._unsettled_since is not None:
            self._unsettled_since = None
            self.drag.settle(context)

    def on_update(self, _scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph) -> None:
        """Follow: moving the cursor updates its scene."""
        # Handlers of updates are called without a window.
        with bpy.context.temp_override(window=self._window):
            self._follow(bpy.context)

    def _watch(self) -> float | None:
        if current is self and not is_moving(self._window):
            with bpy.context.temp_override(window=self._window):
                self.cancel(bpy.context)
        elif current is self and self._unsettled_since is not None and time.monotonic() > self._unsettled_since + REST:
            with bpy.context.temp_override(window=self._window):
                self._settle(bpy.context)
        return WATCH if current is self else None

    def _let_go(self) -> None:
        forget()
        for name, value in self._kept.items():
            setattr(self._cursor, name, value)


def forget() -> None:
    """Let nothing follow the cursor any more, wherever it and what it took along are."""
    global current
    followers = bpy.app.handlers.depsgraph_update_post
    # Blender forgets it itself when another file is opened.
    if current is not None and current.on_update in followers:
        followers.remove(current.on_update)
    current = None


def register() -> None:
    """Let Blender's other transforms change the cursor where they are told to."""
    for properties in _settings_of_others():
        if SETTING not in properties.bl_rna.properties:
            make: Any = BoolProperty  # the stubs have it return nothing
            setattr(properties, SETTING, make(name="Transform Cursor", options={"HIDDEN", "SKIP_SAVE"}))


def unregister() -> None:
    """Let nothing follow the cursor any more, and Blender's transforms be as they were."""
    forget()
    for properties in _settings_of_others():
        if SETTING in vars(properties):
            delattr(properties, SETTING)


def _settings_of_others() -> list[Any]:
    """The types of the settings of the transforms that keys make of a move."""
    manager = bpy.context.window_manager
    names = ("transform.rotate", "transform.trackball", "transform.resize")
    return [type(manager.operator_properties_last(name)) for name in names]
