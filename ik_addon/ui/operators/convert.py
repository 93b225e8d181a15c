"""Operators that convert Blender's IK constraints to chains, and back."""

from __future__ import annotations

import bpy

from ...chains import convert
from ...chains.conversion_records import converted_bones
from ...chains.ik_constraints import sources
from ...core.translation.sentences import quoted, say
from .active import ArmatureOperator, armature


class IK_ADDON_OT_convert_constraints(ArmatureOperator):
    """Convert constraints to chains."""

    bl_idname = "ik_addon.convert_constraints"
    bl_label = "Convert IK Constraints"
    bl_description = (
        "Replace every enabled IK constraint of the armature with a chain, mute the constraint, and turn Live on. "
        "Restore Constraints undoes this"
    )

    @classmethod
    def why_unavailable(cls, _context: bpy.types.Context, ob: bpy.types.Object) -> str:
        """Require an enabled IK constraint."""
        return "" if any(sources(ob)) else say("'{object}' has no enabled IK constraint", object=ob.name)

    def perform(self, context: bpy.types.Context) -> set[str]:
        """Convert the constraints."""
        done = convert.convert(context, armature(context))
        self.report({"WARNING"} if done.warnings else {"INFO"}, done.message)
        return {"FINISHED"}


class IK_ADDON_OT_restore_constraints(ArmatureOperator):
    """Undo a conversion."""

    bl_idname = "ik_addon.restore_constraints"
    bl_label = "Restore Constraints"
    bl_description = "Remove the chains that Convert IK Constraints added, and enable the constraints again"

    @classmethod
    def why_unavailable(cls, _context: bpy.types.Context, ob: bpy.types.Object) -> str:
        """Require a converted constraint."""
        return "" if converted_bones(ob) else say("No IK constraint of '{object}' was converted", object=ob.name)

    def perform(self, context: bpy.types.Context) -> set[str]:
        """Restore the constraints."""
        bones = convert.restore(context, armature(context))
        return self.done(say("Restored the IK constraints on {names}", names=quoted(bones)))


CLASSES = (IK_ADDON_OT_convert_constraints, IK_ADDON_OT_restore_constraints)
