"""The operator that lets the stiffness of a chain of 0.1.0 do what it does since."""

from __future__ import annotations

import bpy

from ..data.settings import chain_of
from ..rig.plan.chain import chain_bones
from ..rig.plan.chain_plan import has_old_stiffness
from .active import ArmatureOperator, active_chain


class IK_ADDON_OT_stiffness_share(ArmatureOperator):
    """Let stiffness share the bend out."""

    bl_idname = "ik_addon.stiffness_share"
    bl_label = "Share Bend by Stiffness"
    bl_description = (
        "This chain was made by version 0.1.0, where stiffness without limits changed the whole pose. "
        "Keep the even bend, and let stiff bones take a smaller share of it; the pose changes"
    )
    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012 - as Blender wants it

    @classmethod
    def why_unavailable(cls, context: bpy.types.Context, _ob: bpy.types.Object) -> str:
        """There must be a chain of that kind."""
        tip = active_chain(context)
        if tip is None:
            return "Select a bone of a chain"
        return "" if has_old_stiffness(chain_bones(tip)) else "Stiffness shares out the bend of this chain already"

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Do so."""
        tip = active_chain(context)
        assert tip is not None
        chain_of(tip).stiff_as_limited = False
        context.view_layer.update()  # solves where Live is on
        return {"FINISHED"}


CLASSES = (IK_ADDON_OT_stiffness_share,)
