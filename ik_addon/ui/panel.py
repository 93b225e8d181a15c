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
        return not obstacle(context) and cls.is_of_use(context, armature(context))

    @classmethod
    def is_of_use(cls, _context: bpy.types.Context, _ob: bpy.types.Object) -> bool:
        """Whether there is something to show about an armature."""
        return True

    def draw(self, context: bpy.types.Context) -> None:
        """Draw what there is to show about the active armature."""
        self.draw_rig(self.layout, context, armature(context))

    def draw_rig(self, layout: bpy.types.UILayout, context: bpy.types.Context, ob: bpy.types.Object) -> None:
        """Draw what there is to show about an armature."""
        raise NotImplementedError


def is_chained(context: bpy.types.Context, ob: bpy.types.Object) -> bool:
    """Whether an armature has chains."""
    return kept(context, ob, "chained", lambda: bool(tips(ob)))
