"""The operator that bakes chains to keyframes."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, IntProperty

from ..bake import BakeError, BakeReport, chosen_tips, frame_range, frames_between, steps
from ..pose.keyframes import KeysError
from ..rig.plan.chain import tips
from .active import ArmatureOperator, active_chain, armature

CHAINS = (
    ("ALL", "All Chains", "All enabled chains of the armature"),
    ("SELECTED", "Selected Bones", "The chains that a selected bone belongs to"),
    ("ACTIVE", "Active Bone", "The chain that the active bone belongs to"),
)
FRAME_RANGES = (
    ("SCENE", "Scene", "The frame range of the scene"),
    ("PREVIEW", "Preview", "The preview range of the scene"),
    ("ACTION", "Action", "The frames of the armature's action"),
    ("CUSTOM", "Custom", "From Start to End"),
)
PATIENCE = 0.05
"""Seconds of baking between two checks for events."""


class IK_ADDON_OT_bake(ArmatureOperator):
    """Bake chains of the active armature; with an error nothing is changed."""

    bl_idname = "ik_addon.bake"
    bl_label = "Bake IK"
    bl_description = "Write the solved pose to keyframes and disable the chains, so that it plays without the add-on"
    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012

    chains: EnumProperty(name="Chains", description="The chains to bake", items=CHAINS, default="ALL")
    frame_range: EnumProperty(name="Frames", description="The frames to key", items=FRAME_RANGES, default="SCENE")
    frame_start: IntProperty(name="Start", description="First frame to key", default=1)
    frame_end: IntProperty(name="End", description="Last frame to key", default=250)
    step: IntProperty(
        name="Step",
        description="Frame interval between keys (the last frame is always keyed)",
        default=1,
        min=1,
        soft_max=10,
    )
    new_action: BoolProperty(
        name="New Action",
        description="Key into a copy of the current action and leave the original unchanged",
        default=False,
    )

    _todo: Generator[float, None, BakeReport] | None = None
    _timer: bpy.types.Timer | None = None
    _in_window = False

    @classmethod
    def why_unavailable(cls, _context: bpy.types.Context, ob: bpy.types.Object) -> str:
        """There must be a chain."""
        return "" if tips(ob) else f"'{ob.name}' has no IK chain. Add one first"

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        """Ask for the options; the bake then runs in steps and can be cancelled."""
        if not self.properties.is_property_set("frame_start"):
            self.frame_start, self.frame_end = context.scene.frame_start, context.scene.frame_end
        self.frame_range = self.frame_range  # what the dialog shows is chosen, see _steps
        self._in_window = True
        manager: Any = context.window_manager
        return manager.invoke_props_dialog(self, confirm_text="Bake")

    def draw(self, _context: bpy.types.Context) -> None:
        """The options; start and end only where they are used."""
        layout = self.layout
        layout.use_property_split = True
        layout.prop(self, "chains")
        layout.prop(self, "frame_range")
        if self.frame_range == "CUSTOM":
            column = layout.column(align=True)
            column.prop(self, "frame_start")
            column.prop(self, "frame_end")
        layout.prop(self, "step")
        layout.prop(self, "new_action")

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Bake: at once when called from a script, step by step after the dialog."""
        try:
            self._todo = self._steps(context)
            if self._in_window:
                self._in_window = False
                return self._start(context)
            while True:
                next(self._todo)
        except StopIteration as done:
            return self._finish(done.value)
        except (BakeError, KeysError) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Bake for a moment at each tick of the timer."""
        if event.type in {"ESC", "RIGHTMOUSE"} and event.value == "PRESS":
            self.cancel(context)
            self.report({"INFO"}, "Bake cancelled. Nothing was changed")
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"RUNNING_MODAL"}
        try:
            until = time.perf_counter() + PATIENCE
            while time.perf_counter() < until:
                done = next(self._todo)
        except StopIteration as finished:
            self._stop(context)
            return self._finish(finished.value)
        except (BakeError, KeysError) as error:
            self.cancel(context)
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        except Exception:
            self.cancel(context)
            raise
        context.window_manager.progress_update(100.0 * done)
        context.workspace.status_text_set(f"Baking IK: {100.0 * done:.0f}%.  Esc or right click: cancel")
        return {"RUNNING_MODAL"}

    def cancel(self, context: bpy.types.Context) -> None:
        """Take back what was done; Blender calls this, too, when the window is closed."""
        self._stop(context)
        if self._todo is not None:
            self._todo.close()

    def _steps(self, context: bpy.types.Context) -> Generator[float, None, BakeReport]:
        ob = armature(context)
        chosen = chosen_tips(ob, self.chains, active_chain(context))
        # A script that names a frame but no range means these frames.
        names_frames = any(map(self.properties.is_property_set, ("frame_start", "frame_end")))
        if self.frame_range == "CUSTOM" or (names_frames and not self.properties.is_property_set("frame_range")):
            first, last = self.frame_start, self.frame_end
        else:
            first, last = frame_range(context.scene, ob, self.frame_range)
        frames = frames_between(first, last, self.step)
        return steps(context, ob, chosen, frames, new_action=self.new_action)

    def _start(self, context: bpy.types.Context) -> set[str]:
        next(self._todo)  # errors are reported here, before the bake runs in steps
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

    def _finish(self, result: BakeReport) -> set[str]:
        self.report({"INFO"} if result.plays_alike else {"WARNING"}, result.message)
        return {"FINISHED"}


CLASSES: tuple[Any, ...] = (IK_ADDON_OT_bake,)
