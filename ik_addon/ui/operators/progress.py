"""Operators that work in steps, with progress and Esc to cancel in a window, and all at once anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

import bpy

from ...core import interruption
from ...core.steps import finished
from ...core.translation.sentences import UserError, marked, say
from .active import ArmatureOperator

PATIENCE = 0.05
"""Seconds of work between checks for events."""
KNOWN_AFTER = 1.0
"""Seconds of work after which the remaining time is shown."""
BAR = 14.0
"""Width of the progress bar in the status bar, in Blender's UI units."""
WIDE_ICON = 1.2
"""Extra width of the Esc icon, in Blender's separators."""


class Progress:
    """The progress of some work and its remaining time."""

    def __init__(self, doing: str, now: float) -> None:
        """Start at a time in seconds; `doing` describes the work."""
        self.doing = doing
        self.share = 0.0
        self.left: float | None = None
        """Remaining seconds; None: not known yet."""
        self._since = now, 0.0

    def reach(self, share: float, now: float) -> None:
        """Record the progress (0 to 1) at a time in seconds. If it falls, the work restarted with another method."""
        if share < self.share:
            self._since = now, share
        self.share = share
        start, first = self._since
        is_known = now - start >= KNOWN_AFTER and share > first
        self.left = (now - start) * (1.0 - share) / (share - first) if is_known else None

    @property
    def text(self) -> str:
        """The work, its progress and the remaining time in words."""
        return say("{doing}: {amount}", doing=self.doing, amount=self.amount)

    @property
    def amount(self) -> str:
        """The progress and the remaining time in words."""
        percent = f"{100.0 * self.share:.0f}"
        if self.left is None:
            return say("{percent}%", percent=percent)
        minutes, seconds = divmod(round(self.left), 60)
        if not minutes:
            return say("{percent}%, {seconds} s left", percent=percent, seconds=seconds)
        return say("{percent}%, {minutes} min {seconds} s left", percent=percent, minutes=minutes, seconds=seconds)


_running: list[Progress] = []


def running() -> Progress | None:
    """Return the progress of the operator running in a window, or None."""
    return _running[-1] if _running else None


def draw_keys(layout: bpy.types.UILayout) -> None:
    """Draw the icons of the keys that cancel."""
    row = layout.row(align=True)
    row.alignment = "LEFT"
    row.label(text="", icon="EVENT_ESC")
    row.separator(factor=WIDE_ICON)
    row.label(text="", icon="MOUSE_RMB")
    row.label(text="Cancel")


def draw_status(header: bpy.types.Header, _context: bpy.types.Context) -> None:
    """Draw progress into the status bar while an operator runs."""
    progress = running()
    if progress is None:
        return
    row = header.layout.row()
    draw_keys(row)
    bar = row.row()
    bar.ui_units_x = BAR
    bar.progress(factor=progress.share, text=progress.text)


class Run:
    """Work that goes on step by step while Blender handles events, until it is finished, stopped or interrupted."""

    def __init__(self, context: bpy.types.Context, todo: Generator[float, None, Any], doing: str) -> None:
        """Do the first step, which raises most errors; `doing` describes the work."""
        next(todo)
        self.is_interrupted = False
        """Whether the work was put back because somebody saved, opened a file or disabled the extension."""
        self._todo = todo
        self._progress = Progress(doing, time.perf_counter())
        _running.append(self._progress)
        interruption.begin(self._interrupt)
        manager = context.window_manager
        self._timer = None if context.window is None else manager.event_timer_add(0.01, window=context.window)
        redraw(context)

    def go_on(self, context: bpy.types.Context) -> Any:
        """Work for `PATIENCE` seconds; raises `StopIteration` with the result when the work is finished."""
        until = time.perf_counter() + PATIENCE
        done = self._progress.share
        try:
            while time.perf_counter() < until:
                done = next(self._todo)
        except ReferenceError:
            raise UserError("What was worked on was deleted, so the work was cancelled") from None
        self._progress.reach(done, time.perf_counter())
        redraw(context)

    def stop(self) -> None:
        """Put everything back, unless the work is finished, and stop; does nothing the second time."""
        interruption.end(self._interrupt)
        self._todo.close()
        if self._progress in _running:
            _running.remove(self._progress)
        if self._timer is not None:
            bpy.context.window_manager.event_timer_remove(self._timer)
            self._timer = None
        redraw(bpy.context)

    def _interrupt(self) -> None:
        self.is_interrupted = True
        self.stop()


Steps = Generator[float, None, set[str]]
"""Yields progress (0 to 1), undoes all if closed, and reports at the end what was done."""


class StepsOperator(ArmatureOperator):
    """Base of operators that work in steps."""

    doing = ""
    """Describes the work in the progress bar."""
    cancelled = marked("Cancelled. Nothing was changed")
    """Reported after Esc."""

    _run: Run | None = None
    _in_window = False

    def steps(self, context: bpy.types.Context, ob: bpy.types.Object) -> Steps:
        """Do the work, and report it."""
        raise NotImplementedError

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Work step by step if started in a window, or all at once if called from a script."""
        todo = self.steps(context, ob)
        if not self._in_window:
            return finished(todo)
        self._in_window = False
        try:
            self._run = Run(context, todo, say(self.doing))
        except StopIteration as done:
            return done.value
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Continue the work on each timer tick, or cancel it."""
        is_over = self._run.is_interrupted
        if is_over or (event.type in {"ESC", "RIGHTMOUSE"} and event.value == "PRESS"):
            self.cancel(context)
            self.report({"INFO"}, say(self.cancelled))
            return {"CANCELLED"}
        return self.attempt(self._go_on, context) if event.type == "TIMER" else {"RUNNING_MODAL"}

    def _go_on(self, context: bpy.types.Context) -> set[str]:
        try:
            self._run.go_on(context)
        except StopIteration as done:
            self._run.stop()
            return done.value
        except Exception:
            self.cancel(context)
            raise
        return {"RUNNING_MODAL"}

    def cancel(self, _context: bpy.types.Context) -> None:
        """Undo the work so far; Blender also calls this when the window is closed."""
        if self._run is not None:
            self._run.stop()


def redraw(context: bpy.types.Context) -> None:
    """Update the progress in the status bar and the sidebars."""
    show_status(context, None if running() is None else draw_status)
    if context.screen is not None:
        redraw_sidebars(context.screen)


def show_status(context: bpy.types.Context, draw: Callable[[Any, bpy.types.Context], None] | None) -> None:
    """Let a function draw the status bar, or Blender again."""
    workspace: Any = context.workspace
    if workspace is not None:
        workspace.status_text_set(draw)


def redraw_sidebars(screen: bpy.types.Screen) -> None:
    """Let Blender draw the sidebars of the 3D viewports again."""
    for area in screen.areas:
        for region in area.regions if area.type == "VIEW_3D" else ():
            if region.type == "UI":
                region.tag_redraw()
