"""The operator that bakes to a skeleton of deform bones alone."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from ....bake import skeleton
from ....bake.skeleton_motion import RootMotion
from ....core.translation.sentences import marked, say
from ..active import armature
from .frame_range import FrameRangeOperator


class IK_ADDON_OT_bake_skeleton(FrameRangeOperator):
    """Make a skeleton of deform bones alone, and key it to play like the armature."""

    bl_idname = "ik_addon.bake_skeleton"
    bl_label = "Bake to Skeleton"
    bl_description = (
        "Make a new armature of only the deform bones and key it to match this one, for game engines: "
        "ready for Blender's glTF and FBX exporters. This armature stays as it is"
    )

    only_deform: BoolProperty(
        name="Only Deform Bones",
        description="Leave out bones that deform no mesh",
        default=skeleton.Options.only_deform,
    )
    meshes: BoolProperty(
        name="Meshes",
        description="Copy the meshes that this armature deforms; the copies follow the new armature",
        default=skeleton.Options.meshes,
    )
    use_root: BoolProperty(
        name="Root Motion",
        description="Move a bone along the ground with the hips, so that engines can move the character",
    )
    root: StringProperty(
        name="Root",
        description="The bone that gets the motion; added if no bone has this name",
        default="root",
    )
    root_height: BoolProperty(name="Up and Down", description="The root also moves up and down with the hips")
    root_turn: BoolProperty(name="Turn", description="The root also turns about the vertical with the hips")

    own = ("only_deform", "meshes", "use_root")
    confirm = marked("Bake")
    doing = marked("Baking to a skeleton")
    cancelled = marked("Bake cancelled. Nothing was changed")

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the options."""
        super().draw(context)
        if self.use_root:
            column = self.layout.column(align=True)
            column.prop_search(self, "root", armature(context).data, "bones", results_are_suggestions=True)
            column.prop(self, "root_height")
            column.prop(self, "root_turn")

    def steps(self, context: bpy.types.Context) -> Generator[float, None, skeleton.Made]:
        """Make and key the skeleton; yields progress (0 to 1)."""
        root = RootMotion(self.root or "root", self.root_height, self.root_turn) if self.use_root else None
        options = skeleton.Options(self.only_deform, root, self.meshes)
        return skeleton.make_stepwise(context, armature(context), self.frames(context), options)

    def finish(self, result: skeleton.Made) -> set[str]:
        """Select the new armature and its meshes for export, and report them."""
        skeleton.select(bpy.context, result)
        made, *remarks = result.sentences()
        return self.done(say("{done}, which is selected for export", done=made), remarks)


CLASSES: tuple[Any, ...] = (IK_ADDON_OT_bake_skeleton,)
