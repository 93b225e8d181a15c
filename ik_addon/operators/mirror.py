"""The operator that puts the mirror image of a chain on the other side."""

from __future__ import annotations

import bpy

from ..setup import mirror
from .active import ArmatureOperator, active_chain, armature


class IK_ADDON_OT_mirror_chain(ArmatureOperator):
    """Mirror the active chain."""

    bl_idname = "ik_addon.mirror_chain"
    bl_label = "Mirror Chain"
    bl_description = (
        "Mirror the active chain to the bones of the other side, with its settings, limits, target and pole"
    )
    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012 - as Blender wants it

    @classmethod
    def why_unavailable(cls, context: bpy.types.Context, _ob: bpy.types.Object) -> str:
        """There must be a chain to mirror."""
        return "" if active_chain(context) else "Select a bone of a chain"

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Mirror it."""
        tip = active_chain(context)
        try:
            other, remarks = mirror.mirror_chain(context, armature(context), tip)
        except mirror.MirrorError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        message = f"Mirrored the chain on '{tip.name}' to '{other.name}'"
        self.report({"WARNING"} if remarks else {"INFO"}, ". ".join([message, *remarks]))
        return {"FINISHED"}


CLASSES = (IK_ADDON_OT_mirror_chain,)
