"""Operators that work in steps, many of them on a range of frames: with progress and Esc in a window, else at once."""

import time
from collections.abc import Callable, Generator

import bpy
from bpy.props import EnumProperty, IntProperty, StringProperty
from bpy.types import Context, Event, Header, Object, PoseBone, Screen, UILayout

from ...anatomy.figure import Figure
from ...bake import frame_range, frames_between
from ...core import interruption
from ...core.steps import finished
from ...core.translation.sentences import UserError, marked, say
from ...feet.sampled_feet import is_of_leg
from ...rig.plan.chain import tips
from .active import ArmatureOperator, armature, asked
from .solve import CHAINS, ChainsOperator

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


def draw_keys(layout: UILayout) -> None:
    """Draw the icons of the keys that cancel."""
    row = layout.row(align=True)
    row.alignment = "LEFT"
    row.label(text="", icon="EVENT_ESC")
    row.separator(factor=WIDE_ICON)
    row.label(text="", icon="MOUSE_RMB")
    row.label(text="Cancel")


def draw_status(header: Header, _context: Context) -> None:
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

    def __init__(self, context: Context, todo: Generator[float, None, object], doing: str) -> None:
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

    def go_on(self, context: Context) -> None:
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

    def steps(self, context: Context, ob: Object) -> Steps:
        """Do the work, and report it."""
        raise NotImplementedError

    def perform_on(self, context: Context, ob: Object) -> set[str]:
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

    def modal(self, context: Context, event: Event) -> set[str]:
        """Continue the work on each timer tick, or cancel it."""
        if self._run.is_interrupted or (event.type in {"ESC", "RIGHTMOUSE"} and event.value == "PRESS"):
            self.cancel(context)
            self.report({"INFO"}, say(self.cancelled))
            return {"CANCELLED"}
        return self.attempt(self._go_on, context) if event.type == "TIMER" else {"RUNNING_MODAL"}

    def _go_on(self, context: Context) -> set[str]:
        try:
            self._run.go_on(context)
        except StopIteration as done:
            self._run.stop()
            return done.value
        except Exception:
            self.cancel(context)
            raise
        return {"RUNNING_MODAL"}

    def cancel(self, _context: Context) -> None:
        """Undo the work so far; Blender also calls this when the window is closed."""
        if self._run is not None:
            self._run.stop()


def redraw(context: Context) -> None:
    """Update the progress in the status bar and the sidebars."""
    show_status(context, None if running() is None else draw_status)
    if context.screen is not None:
        redraw_sidebars(context.screen)


def show_status(context: Context, draw: Callable[[Header, Context], None] | None) -> None:
    """Let a function draw the status bar, or Blender again."""
    if context.workspace is not None:
        context.workspace.status_text_set(draw)


def redraw_sidebars(screen: Screen) -> None:
    """Let Blender draw the sidebars of the 3D viewports again."""
    for area in screen.areas:
        for region in area.regions if area.type == "VIEW_3D" else ():
            if region.type == "UI":
                region.tag_redraw()


# ---- operators on a range of frames, a whole clip among them

FRAME_RANGES = (
    ("SCENE", "Scene", "The frame range of the scene"),
    ("PREVIEW", "Preview", "The preview range of the scene"),
    ("ACTION", "Action", "The frames of the armature's action"),
    ("CUSTOM", "Custom", "From Start to End"),
)
FRAMES = (("PRESENT", "Current Frame", "The current frame, keyed if auto keying is on"), *FRAME_RANGES)
CLIP_CHAINS = (("LEGS", "Legs", "The chains on legs, or all chains if there are none"), *CHAINS)
OBJECTS = {"on", "ground"}
"""Options that name an object."""


class FrameRange:
    """The chosen frames of an operator."""

    frame_range: EnumProperty(name="Frames", description="The frames to key", items=FRAME_RANGES, default="SCENE")
    frame_start: IntProperty(name="Start", description="First frame to key", default=1)
    frame_end: IntProperty(name="End", description="Last frame to key", default=250)

    def ends(self, context: Context) -> tuple[int, int]:
        """Return the first and last of the chosen frames."""
        if self.frame_range == "CUSTOM":
            return self.frame_start, self.frame_end
        return frame_range(context.scene, armature(context), self.frame_range)

    def frames(self, context: Context) -> list[int]:
        """Return the chosen frames."""
        return frames_between(*self.ends(context))

    def draw_frames(self, layout: UILayout) -> None:
        """Draw the frame range; start and end only if they are used."""
        layout.prop(self, "frame_range")
        if self.frame_range == "CUSTOM":
            column = layout.column(align=True)
            column.prop(self, "frame_start")
            column.prop(self, "frame_end")


class FrameRangeOperator(FrameRange, StepsOperator):
    """Base of operators that work on a range of frames."""

    title = ""
    """Title of the dialog; empty: the operator's label."""
    confirm = ""
    """Label of the dialog's button."""
    first: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    """Names of the options before and after the frames."""

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Open the dialog with the options; the operator then runs in steps and can be cancelled."""
        if not self.properties.is_property_set("frame_start"):
            self.frame_start, self.frame_end = context.scene.frame_start, context.scene.frame_end
        self._in_window = True
        return context.window_manager.invoke_props_dialog(self, title=self.title, confirm_text=self.confirm)

    def draw(self, context: Context) -> None:
        """Draw the options."""
        layout = self.layout
        layout.use_property_split = True
        for name in self.first:
            layout.prop(self, name)
        self.draw_frames(layout)
        for name in self.own:
            if name in OBJECTS:
                layout.prop_search(self, name, context.view_layer, "objects")
            else:
                layout.prop(self, name)


class FramesOperator(FrameRangeOperator, ChainsOperator):
    """Base of operators on some chains, on the current frame or on a range of frames."""

    chains: EnumProperty(name="Chains", description="The chains to work on", items=CHAINS, default="ACTIVE")
    frame_range: asked(EnumProperty, "Frames", "The frames to work on", items=FRAMES, default="PRESENT")

    first: tuple[str, ...] = ("chains",)

    def invoke(self, context: Context, event: Event) -> set[str]:
        """Run at once for the current frame; open the dialog for a range."""
        return self.execute(context) if self.frame_range == "PRESENT" else super().invoke(context, event)

    def frames_or_now(self, context: Context) -> list[int] | None:
        """Return the chosen frames; None: the current frame."""
        return None if self.frame_range == "PRESENT" else self.frames(context)


class ClipOperator(FramesOperator):
    """Base of operators on chains over a range of frames."""

    chains: EnumProperty(name="Chains", description="The chains to work on", items=CLIP_CHAINS, default="LEGS")
    frame_range: EnumProperty(name="Frames", description="The frames to work on", items=FRAME_RANGES, default="SCENE")
    on: StringProperty(
        name="On", description="The object that the feet stand on, if it moves, such as a lift or a horse"
    )

    def chosen(self, context: Context) -> list[PoseBone]:
        """Return the tips of the chosen chains; raise `UserError` if there is none."""
        if self.chains != "LEGS":
            return super().chosen(context)
        ob = armature(context)
        figure = Figure.of(ob)
        return [tip for tip in tips(ob) if is_of_leg(figure, tip)] or tips(ob)

    def named(self, context: Context, name: str) -> Object | None:
        """Return the object with the name set in an option; None: the option is empty.

        Raises:
            UserError: there is no such object, or it is the armature itself.
        """
        if not name:
            return None
        found: Object | None = context.view_layer.objects.get(name)
        if found is None:
            raise UserError("There is no object '{name}' in this view layer", name=name)
        if found == armature(context):
            raise UserError("An armature can't stand on itself. Pick another object")
        return found
