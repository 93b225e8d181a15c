"""Operators on a range of frames: their settings, the chosen frames, and the dialog."""

from __future__ import annotations

from typing import Any

import bpy
from bpy.props import EnumProperty, IntProperty

from ....bake import frame_range, frames_between
from ..active import armature
from ..progress import StepsOperator

FRAME_RANGES = (
    ("SCENE", "Scene", "The frame range of the scene"),
    ("PREVIEW", "Preview", "The preview range of the scene"),
    ("ACTION", "Action", "The frames of the armature's action"),
    ("CUSTOM", "Custom", "From Start to End"),
)

OBJECTS = {"on", "ground"}
"""Options that name an object."""


class FrameRange:
    """The chosen frames of an operator."""

    frame_range: EnumProperty(name="Frames", description="The frames to key", items=FRAME_RANGES, default="SCENE")
    frame_start: IntProperty(name="Start", description="First frame to key", default=1)
    frame_end: IntProperty(name="End", description="Last frame to key", default=250)

    def ends(self, context: bpy.types.Context) -> tuple[int, int]:
        """Return the first and last of the chosen frames."""
        if self.frame_range == "CUSTOM":
            return self.frame_start, self.frame_end
        return frame_range(context.scene, armature(context), self.frame_range)

    def frames(self, context: bpy.types.Context) -> list[int] | None:
        """Return the chosen frames."""
        return frames_between(*self.ends(context))

    def draw_frames(self, layout: bpy.types.UILayout) -> None:
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

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        """Open the dialog with the options; the operator then runs in steps and can be cancelled."""
        if not self.properties.is_property_set("frame_start"):
            self.frame_start, self.frame_end = context.scene.frame_start, context.scene.frame_end
        self._in_window = True
        manager: Any = context.window_manager
        return manager.invoke_props_dialog(self, title=self.title, confirm_text=self.confirm)

    def draw(self, context: bpy.types.Context) -> None:
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
