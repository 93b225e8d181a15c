"""The operator that bakes chains to keyframes."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty

from ...bake import BakeReport, bake_report, bake_stepwise, chosen_tips, frames_between
from ...core.translation.sentences import marked
from ...feet import floor
from .active import ArmatureOperator, ChainedOperator, active_chain, armature
from .clip.frame_range import FrameRangeOperator

CHAINS = (
    ("ALL", "All Chains", "All enabled chains of the armature"),
    ("SELECTED", "Selected Bones", "The chains that a selected bone belongs to"),
    ("ACTIVE", "Active Bone", "The chain that the active bone belongs to"),
)


class IK_ADDON_OT_bake(FrameRangeOperator, ChainedOperator):
    """Bake chains of the active armature; after an error nothing has changed."""

    bl_idname = "ik_addon.bake"
    bl_label = "Bake IK"
    bl_description = "Write the solved pose to keyframes and disable the chains, so that it plays without the add-on"

    chains: EnumProperty(name="Chains", description="The chains to bake", items=CHAINS, default="ALL")
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
    smooth: BoolProperty(
        name="Smooth",
        description="Where the solution jumps from one frame to the next, use other solutions that reach the targets "
        "just as well and turn less",
        default=False,
    )
    reduce_keys: BoolProperty(
        name="Reduce Keys",
        description="Keep as few keys as possible with all joints within Max Distance of the full bake",
        default=False,
    )
    max_distance: FloatProperty(
        name="Max Distance",
        description="Maximum distance of joints from their places in the full bake",
        default=0.001,
        min=1e-6,
        soft_max=0.1,
        precision=4,
        subtype="DISTANCE",
        unit="LENGTH",
    )

    first, own = ("chains",), ("step", "new_action", "smooth")
    confirm = marked("Bake")
    doing = marked("Baking IK")
    cancelled = marked("Bake cancelled. Nothing was changed")

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Open the dialog with the options."""
        if not self.properties.is_property_set("max_distance"):
            self.max_distance = 0.001 / context.scene.unit_settings.scale_length
        self.frame_range = self.frame_range  # mark as set: `ends` must use the range that the dialog shows
        return super().invoke(context, event)

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the options."""
        super().draw(context)
        row = self.layout.row(heading="Reduce Keys")
        row.prop(self, "reduce_keys", text="")
        distance = row.row()
        distance.active = self.reduce_keys
        distance.prop(self, "max_distance", text="")

    def ends(self, context: bpy.types.Context) -> tuple[int, int]:
        """Return the first and last frame; a script that sets frames but no range gets its own frames."""
        names_frames = any(map(self.properties.is_property_set, ("frame_start", "frame_end")))
        if names_frames and not self.properties.is_property_set("frame_range"):
            return self.frame_start, self.frame_end
        return super().ends(context)

    def steps(self, context: bpy.types.Context) -> Generator[float, None, BakeReport]:
        """Bake; yields progress (0 to 1)."""
        ob = armature(context)
        chosen = chosen_tips(ob, self.chains, active_chain(context))
        frames = frames_between(*self.ends(context), self.step)
        distance = self.max_distance if self.reduce_keys else 0.0
        return bake_stepwise(
            context,
            ob,
            chosen,
            frames,
            new_action=self.new_action,
            smooth=self.smooth,
            reduce=distance,
            floor=floor.of(context.view_layer, ob),
        )

    def finish(self, result: BakeReport) -> set[str]:
        """Report the bake in one line, and in full in the sidebar."""
        self.report({"INFO"} if result.plays_alike else {"WARNING"}, result.summary)
        return {"FINISHED"}


class IK_ADDON_OT_report_close(ArmatureOperator):
    """Close the report on the last bake."""

    bl_idname = "ik_addon.report_close"
    bl_label = "Close Report"
    bl_description = "Close the report on the last bake of this armature"
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    def perform(self, context: bpy.types.Context) -> set[str]:
        """Discard the report."""
        bake_report.forget(armature(context))
        return {"FINISHED"}


CLASSES: tuple[Any, ...] = (IK_ADDON_OT_bake, IK_ADDON_OT_report_close)
