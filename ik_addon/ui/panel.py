"""What all panels of the "IK" tab in the sidebar have in common."""

from __future__ import annotations

import bpy

from ..rig.plan.chain import tips
from .operators.active import armature, obstacle
from .playing import kept


class IKPanel(bpy.types.Panel):
    """Base of all panels in the tab."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "IK"


class ArmaturePanel(IKPanel):
    """Base of sub-panels that need a usable armature."""

    bl_parent_id = "VIEW3D_PT_ik_addon"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Whether the panel is shown."""
        return not obstacle(context)


def is_chained(context: bpy.types.Context) -> bool:
    """Whether the active armature has chains."""
    ob = armature(context)
    return kept(context, ob, "chained", lambda: bool(tips(ob)))
