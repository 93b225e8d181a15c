"""Operators on a range of frames, a whole clip among them: their settings, the chosen frames, and the dialog."""

from __future__ import annotations

from typing import Any

import bpy
from bpy.props import EnumProperty, IntProperty, StringProperty

from ...anatomy.figure import Figure
from ...bake import frame_range, frames_between
from ...core.translation.sentences import UserError
from ...feet.pivots import is_of_leg
from ...rig.plan.chain import tips
from .active import armature, asked
from .progress import StepsOperator
from .solve import CHAINS, ChainsOperator

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

    def ends(self, context: bpy.types.Context) -> tuple[int, int]:
        """Return the first and last of the chosen frames."""
        if self.frame_range == "CUSTOM":
            return self.frame_start, self.frame_end
        return frame_range(context.scene, armature(context), self.frame_range)

    def frames(self, context: bpy.types.Context) -> list[int]:
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


class FramesOperator(FrameRangeOperator, ChainsOperator):
    """Base of operators on some chains, on the current frame or on a range of frames."""

    chains: EnumProperty(name="Chains", description="The chains to work on", items=CHAINS, default="ACTIVE")
    frame_range: asked(EnumProperty, "Frames", "The frames to work on", items=FRAMES, default="PRESENT")

    first: tuple[str, ...] = ("chains",)

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Run at once for the current frame; open the dialog for a range."""
        return self.execute(context) if self.frame_range == "PRESENT" else super().invoke(context, event)

    def frames_or_now(self, context: bpy.types.Context) -> list[int] | None:
        """Return the chosen frames; None: the current frame."""
        return None if self.frame_range == "PRESENT" else self.frames(context)


class ClipOperator(FramesOperator):
    """Base of operators on chains over a range of frames."""

    chains: EnumProperty(name="Chains", description="The chains to work on", items=CLIP_CHAINS, default="LEGS")
    frame_range: EnumProperty(name="Frames", description="The frames to work on", items=FRAME_RANGES, default="SCENE")
    on: StringProperty(
        name="On", description="The object that the feet stand on, if it moves, such as a lift or a horse"
    )

    def chosen(self, context: bpy.types.Context) -> list[bpy.types.PoseBone]:
        """Return the tips of the chosen chains; raise `UserError` if there is none."""
        if self.chains != "LEGS":
            return super().chosen(context)
        ob = armature(context)
        figure = Figure.of(ob)
        return [tip for tip in tips(ob) if is_of_leg(figure, tip)] or tips(ob)

    def named(self, context: bpy.types.Context, name: str) -> bpy.types.Object | None:
        """Return the object with the name set in an option; None: the option is empty.

        Raises:
            UserError: there is no such object, or it is the armature itself.
        """
        if not name:
            return None
        found: bpy.types.Object | None = context.view_layer.objects.get(name)
        if found is None:
            raise UserError("There is no object '{name}' in this view layer", name=name)
        if found == armature(context):
            raise UserError("An armature can't stand on itself. Pick another object")
        return found
