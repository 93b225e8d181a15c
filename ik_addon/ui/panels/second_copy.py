"""What the tab says of a copy of the extension that does nothing, because another one is enabled."""

from __future__ import annotations

import bpy

from ...core.preferences import PACKAGE
from ...core.translation.sentences import say
from ..panel import IKPanel
from ..text import draw_message


class VIEW3D_PT_ik_addon_second_copy(IKPanel):
    """Says which copy does nothing."""

    bl_label = "IK Chains"

    def draw(self, context: bpy.types.Context) -> None:
        """Draw what to do."""
        text = say("IK Chains is enabled twice, so '{copy}' does nothing. Disable both, then enable one", copy=PACKAGE)
        draw_message(self.layout, context, text, icon="ERROR")
