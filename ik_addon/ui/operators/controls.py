"""Operators on the controls of a limb or of the whole figure."""

from __future__ import annotations

import bpy

from ...core.goals import Goal
from ...core.translation.sentences import UserError, count, say
from ...targets import controls
from .active import ArmatureOperator, armature, operators
from .solve import ChainsOperator


class ControlsOperator(ChainsOperator):
    """Base of operators on controls."""

    def controls(self, context: bpy.types.Context, ob: bpy.types.Object) -> list[Goal]:
        """Return the controls of the chosen chains, and of the trunk if all are chosen.

        Raises:
            UserError: there are none.
        """
        found = controls.controls_of(ob, self.chosen(context), with_trunk=self.chains == "ALL")
        if not found:
            raise UserError("No target or pole here can be moved")
        return found


class IK_ADDON_OT_select_controls(ControlsOperator):
    """Select controls."""

    bl_label = "Select Controls"
    bl_description = (
        "Select the targets and poles of the character, and its shoulders, hips and root, so that they can be keyed, "
        "copied or moved together"
    )

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Select them."""
        found = controls.select(context, self.controls(context, ob))
        return self.done(count(found, "Selected 1 control", "Selected {count} controls"))


class IK_ADDON_OT_key_controls(ControlsOperator):
    """Key controls."""

    bl_label = "Key Controls"
    bl_description = (
        "Insert keyframes for location and rotation of the targets and poles of the character, and of its shoulders, "
        "hips and root"
    )

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Key them."""
        found = self.controls(context, ob)
        try:
            controls.key(context, found)
        except RuntimeError as error:
            raise UserError("Can't key '{object}': {error}", object=ob.name, error=error) from None
        done = count(len(found), "Keyed 1 control", "Keyed {count} controls")
        return self.done(say("{done} on frame {frame}", done=done, frame=f"{context.scene.frame_current_final:g}"))


class IK_ADDON_OT_copy_pose(ArmatureOperator):
    """Blender's Copy Pose, where selected controls are empties, which it leaves out without a word."""

    bl_label = "Copy Pose"
    bl_description = (
        "Copy the pose of the selected bones, and say which selected targets and poles are empties, which are left out"
    )
    bl_options = {"INTERNAL"}  # noqa: RUF012 - as Blender wants it

    @classmethod
    def why_unavailable(cls, _context: bpy.types.Context, _ob: bpy.types.Object) -> str:
        """Require what Blender's operator does."""
        return "" if operators.pose.copy.poll() else say("Switch to Pose Mode")

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        """Leave the key to Blender where nothing is left out."""
        return self.execute(context) if controls.not_copied(context, armature(context)) else {"PASS_THROUGH"}

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Copy what can be copied, and say what can't."""
        bpy.ops.pose.copy()
        left_out = count(len(controls.not_copied(context, ob)), "1 control", "{count} controls")
        text = "Left out {controls}: Copy Pose takes no empties. To copy a limb, select all its bones"
        return self.done(say(text, controls=left_out), warns=True)
