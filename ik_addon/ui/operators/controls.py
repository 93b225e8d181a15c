"""Operators on the controls of a limb or of the whole figure."""

from __future__ import annotations

import bpy

from ...core.goals import Goal
from ...core.translation.sentences import UserError, count, say
from ...targets import controls
from .active import armature
from .solve import ChainsOperator


class ControlsOperator(ChainsOperator):
    """Base of operators on controls."""

    def controls(self, context: bpy.types.Context) -> list[Goal]:
        """Return the controls of the chosen chains, and of the trunk if all are chosen.

        Raises:
            UserError: there are none.
        """
        ob = armature(context)
        found = controls.controls_of(ob, self.chosen(context), with_trunk=self.chains == "ALL")
        if not found:
            raise UserError("No target or pole here can be moved")
        return found


class IK_ADDON_OT_select_controls(ControlsOperator):
    """Select controls."""

    bl_idname = "ik_addon.select_controls"
    bl_label = "Select Controls"
    bl_description = (
        "Select the targets and poles of the character, and its hips and root, so that they can be keyed, copied or "
        "moved together"
    )

    def perform(self, context: bpy.types.Context) -> set[str]:
        """Select them."""
        found = controls.select(context, self.controls(context))
        return self.done(count(found, "Selected 1 control", "Selected {count} controls"))


class IK_ADDON_OT_key_controls(ControlsOperator):
    """Key controls."""

    bl_idname = "ik_addon.key_controls"
    bl_label = "Key Controls"
    bl_description = (
        "Insert keyframes for location and rotation of the targets and poles of the character, and of its hips and root"
    )

    def perform(self, context: bpy.types.Context) -> set[str]:
        """Key them."""
        found = self.controls(context)
        try:
            controls.key(context, found)
        except RuntimeError as error:
            raise UserError("Can't key '{object}': {error}", object=armature(context).name, error=error) from None
        frame = f"{context.scene.frame_current_final:g}"
        return self.done(
            say(
                "{done} on frame {frame}",
                done=count(len(found), "Keyed 1 control", "Keyed {count} controls"),
                frame=frame,
            )
        )


CLASSES = (IK_ADDON_OT_select_controls, IK_ADDON_OT_key_controls)
