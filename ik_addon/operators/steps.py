"""Operators whose work is done in steps: with progress and Esc in a window, at once anywhere else."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import bpy

from ..translation.sentences import marked, say
from .active import ArmatureOperator

PATIENCE = 0.05
"""Seconds of work between two checks for events."""
KNOWN_AFTER = 1.0
"""Seconds of work after which it is said how long the rest takes."""
BAR = 14.0
"""Width of the bar in the status bar, in Blender's units of its interface."""
WIDE_ICON = 1.2
"""What the icon of Esc is wider than others, in Blender's separators."""


class Progress:
    """How far some work is, and how long the rest takes."""

    def __init__(self, doing: str, now: float) -> None:
        """Begin at a time in seconds; `doing` says what is done."""
        self.doing = doing
        self.share = 0.0
        self.left: float | None = None
        """Seconds; None: not known yet."""
        self._since = now, 0.0

    def reach(self, share: float, now: float) -> None:
        """Note which share, 0 to 1, is done at a time. Work that goes back began anew, in another way."""
        if share < self.share:
            self._since = now, share
        self.share = share
        start, first = self._since
        is_known = now - start >= KNOWN_AFTER and share > first
        self.left = (now - start) * (1.0 - share) / (share - first) if is_known else None

    @property
    def text(self) -> str:
        """The same in words."""
        return say("{doing}: {amount}", doing=self.doing, amount=self.amount)

    @property
    def amount(self) -> str:
        """The share and the rest in words."""
        percent = f"{100.0 * self.share:.0f}"
        if self.left is None:
            return say("{percent}%", percent=percent)
        minutes, seconds = divmod(round(self.left), 60)
        if not minutes:
            return say("{percent}%, {seconds} s left", percent=percent, seconds=seconds)
        return say("{percent}%, {minutes} min {seconds} s left", percent=percent, minutes=minutes, seconds=seconds)


_running: list[Progress] = []


def running() -> Progress | None:
    """What is being done in a window now; None: nothing is."""
    return _running[-1] if _running else None


def draw_progress(layout: bpy.types.UILayout, progress: Progress, text: str) -> None:
    """Draw the bar with a text in it."""
    bar: Any = layout
    bar.progress(factor=progress.share, text=text)


def draw_keys(layout: bpy.types.UILayout) -> None:
    """Draw the keys that cancel, with Blender's icons."""
    row = layout.row(align=True)
    row.alignment = "LEFT"
    row.label(text="", icon="EVENT_ESC")
    row.separator(factor=WIDE_ICON)
    row.label(text="", icon="MOUSE_RMB")
    row.label(text="Cancel")


def draw_status(header: bpy.types.Header, _context: bpy.types.Context) -> None:
    """Draw the status bar while something is being done."""
    progress = running()
    if progress is None:
        return
    row = header.layout.row()
    draw_keys(row)
    bar = row.row()
    bar.ui_units_x = BAR
    draw_progress(bar, progress, progress.text)


class StepsOperator(ArmatureOperator):
    """An operator that does its work in steps, which yield the share that is done; closing them takes all back."""

    doing = ""
    """For the bar: what is done."""
    cancelled = marked("Cancelled. Nothing was changed")
    """What is reported after Esc."""

    _todo: Generator[float, None, Any] | None = None
    _timer: bpy.types.Timer | None = None
    _progress: Progress | None = None
    _in_window = False
    was_in_window = False
    """Whether the work was done step by step."""

    def steps(self, context: bpy.types.Context) -> Generator[float, None, Any]:
        """The work."""
        raise NotImplementedError

    def finish(self, result: Any) -> set[str]:
        """Report what was done."""
        raise NotImplementedError

    def perform(self, context: bpy.types.Context) -> set[str]:
        """Work: at once when called from a script, step by step from a window."""
        try:
            self._todo = self.steps(context)
            if self._in_window:
                self._in_window, self.was_in_window = False, True
                return self._start(context)
            while True:
                next(self._todo)
        except StopIteration as done:
            return self.finish(done.value)

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Go on at each tick of the timer, until the work is cancelled."""
        if event.type in {"ESC", "RIGHTMOUSE"} and event.value == "PRESS":
            self.cancel(context)
            self.report({"INFO"}, say(self.cancelled))
            return {"CANCELLED"}
        return self.attempt(self._go_on, context) if event.type == "TIMER" else {"RUNNING_MODAL"}

    def _go_on(self, context: bpy.types.Context) -> set[str]:
        """Work for a moment."""
        try:
            until = time.perf_counter() + PATIENCE
            while time.perf_counter() < until:
                done = next(self._todo)
        except StopIteration as finished:
            self._stop(context)
            return self.finish(finished.value)
        except Exception:
            self.cancel(context)
            raise
        self._progress.reach(done, time.perf_counter())
        redraw(context)
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
        self._progress = Progress(say(self.doing), time.perf_counter())
        _running.append(self._progress)
        redraw(context)
        manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def _stop(self, context: bpy.types.Context) -> None:
        if self._timer is not None:
            context.window_manager.event_timer_remove(self._timer)
            self._timer = None
            _running.remove(self._progress)
            redraw(context)


def redraw(context: bpy.types.Context) -> None:
    """Show the progress of what runs now, or that nothing does, in the status bar and in the sidebars."""
    workspace: Any = context.workspace
    workspace.status_text_set(None if running() is None else draw_status)
    for area in context.screen.areas if context.screen is not None else ():
        for region in area.regions if area.type == "VIEW_3D" else ():
            if region.type == "UI":
                region.tag_redraw()
