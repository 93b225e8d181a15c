"""The operator that switches chains between IK and FK."""

from __future__ import annotations

import bpy
from bpy.props import EnumProperty

from ....core.settings import object_of
from ....core.translation.sentences import marked, say
from ....targets.ik_fk import is_ik, switch
from ..active import armature
from ..solve import CHAINS, ChainsOperator

WAYS = (
    ("OTHER", "Toggle", "From IK to FK, or from FK to IK"),
    ("IK", "IK", "Follow the target, which is keyed where the tip is"),
    ("FK", "FK", "Follow the bones, which are keyed in the visible pose"),
)
TOOLTIPS = {
    "IK": marked(
        "From the current frame on, follow the target. It is keyed along with the pole and Influence; nothing jumps"
    ),
    "FK": marked("From the current frame on, follow the bones. They are keyed along with Influence; nothing jumps"),
}
"""Tooltips of buttons that switch in one direction."""


class IK_ADDON_OT_switch_ik_fk(ChainsOperator):
    """Switch chains from IK to FK, or back, on the current frame."""

    bl_idname = "ik_addon.switch_ik_fk"
    bl_label = "Switch IK/FK"
    bl_description = "Switch between IK and FK from the current frame on, without a jump; everything needed is keyed"

    to: EnumProperty(name="Switch To", description="What to switch to", items=WAYS, options={"SKIP_SAVE"})
    chains: EnumProperty(name="Chains", description="The chains to switch", items=CHAINS, default="ACTIVE")

    @classmethod
    def description(cls, _context: bpy.types.Context, properties: bpy.types.OperatorProperties) -> str:
        """Return a tooltip for the direction of the switch."""
        return say(TOOLTIPS.get(getattr(properties, "to", ""), cls.bl_description))

    def perform(self, context: bpy.types.Context) -> set[str]:
        """Switch the chosen chains."""
        ob = armature(context)
        chosen = self.chosen(context)
        to_ik = not is_ik(chosen[0]) if self.to == "OTHER" else self.to == "IK"
        way = "IK" if to_ik else "FK"
        others = [tip for tip in chosen if is_ik(tip) != to_ik]
        if not others:
            self.report({"INFO"}, say("Already in {way} on this frame", way=way))
            return {"CANCELLED"}
        remarks = switch(context, ob, others, to_ik=to_ik)
        frame = f"{context.scene.frame_current_final:g}"
        if len(others) == 1:
            done = say("Switched '{tip}' to {way} from frame {frame} on", tip=others[0].name, way=way, frame=frame)
        else:
            done = say(
                "Switched {count} chains to {way} from frame {frame} on", count=len(others), way=way, frame=frame
            )
        if not object_of(ob).live:
            done += ". " + say("Turn Live on to see it in playback")
        return self.done(done, remarks)


CLASSES = (IK_ADDON_OT_switch_ik_fk,)
