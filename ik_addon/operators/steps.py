"""Operators whose work is done in steps: with progress and Esc in a window, at once anywhere else."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import bpy

from ..bake import BakeError
from ..goals.snapped import SnapError
from ..pose.keyframes import KeysError
from .active import ArmatureOperator

PATIENCE = 0.05
"""Seconds of work between two checks for events."""
ERRORS = (BakeError, KeysError, SnapError)
"""What says why something can't be done; nothing is changed then."""


class StepsOperator(ArmatureOperator):
    """An operator that does its work in steps, which yield the share that is done; closing them takes all back."""

    doing = ""
    """For the status bar: what is done."""
    cancelled = ""
    """What is reported after Esc."""

    _todo: Generator[float, None, Any] | None = None
    _timer: bpy.types.Timer | None = None
    _in_window = False

    def steps(self, context: bpy.types.Context) -> Generator[float, None, Any]:
        """The work."""
        raise NotImplementedError

    def finish(self, result: Any) -> set[str]:
        """Report what was done."""
        raise NotImplementedError

    def run(self, context: bpy.types.Context) -> set[str]:
        """Work: at once when called from a script, step by step from a window."""
        try:
            self._todo = self.steps(context)
            if self._in_window:
                self._in_window = False
                return self._start(context)
            while True:
                next(self._todo)
        except StopIteration as done:
            return self.finish(done.value)
        except ERRORS as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Work for a moment at each tick of the timer."""
        if event.type in {"ESC", "RIGHTMOUSE"} and event.value == "PRESS":
            self.cancel(context)
            self.report({"INFO"}, self.cancelled)
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"RUNNING_MODAL"}
        try:
            until = time.perf_counter() + PATIENCE
            while time.perf_counter() < until:
                done = next(self._todo)
        except StopIteration as finished:
            self._stop(context)
            return self.finish(finished.value)
        except ERRORS as error:
            self.cancel(context)
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        except Exception:
            self.cancel(context)
            raise
        context.window_manager.progress_update(100.0 * done)
        context.workspace.status_text_set(f"{self.doing}: {100.0 * done:.0f}%.  Esc or right click: cancel")
        return {"RUNNING_MODAL"}

    def cancel(self, context: bpy.types.Context) -> None:
        """Take back what was done; Blender calls this, too, when the window is closed."""
        self._stop(context)
        if self._todo is not None:
            self._todo.close()

    def _start(self, context: bpy.types.Context) -> set[str]:
        next(self._todo)  # errors are reported here, before the work runs in steps
        manager = context.window_manager
        self._timer = manager.event_timer_add(0.01, window=context.window)
        manager.progress_begin(0.0, 100.0)
        manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def _stop(self, context: bpy.types.Context) -> None:
        if self._timer is not None:
            context.window_manager.event_timer_remove(self._timer)
            context.window_manager.progress_end()
            context.workspace.status_text_set(None)
            self._timer = None
