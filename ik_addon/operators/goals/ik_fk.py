"""The switch of a chain between IK and FK."""

from __future__ import annotations

import bpy
from bpy.props import EnumProperty

from ...data.settings import object_of
from ...goals.ik_fk import is_ik, switch
from ...rig.plan.chain import tips
from ..active import active_chain, armature
from ..solve import CHAINS, NONE_ACTIVE, ChainsOperator
from ..steps import ERRORS

WAYS = (
    ("OTHER", "The Other", "From IK to FK, or from FK to IK"),
    ("IK", "IK", "Follow the target, which is keyed where the tip is"),
    ("FK", "FK", "Follow the bones, which are keyed in the pose that is shown"),
)


class IK_ADDON_OT_switch_ik_fk(ChainsOperator):
    """Go over from IK to FK, or back, at the current frame."""

    bl_idname = "ik_addon.switch_ik_fk"
    bl_label = "Switch IK/FK"
    bl_description = "Switch between IK and FK from the current frame on, without a jump; everything needed is keyed"
    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012 - as Blender wants it

    to: EnumProperty(name="Switch To", description="What to switch to", items=WAYS, options={"SKIP_SAVE"})
    chains: EnumProperty(name="Chains", description="The chains to switch", items=CHAINS, default="ACTIVE")

    @classmethod
    def description(cls, _context: bpy.types.Context, properties: bpy.types.OperatorProperties) -> str:
        """Say which way."""
        ways = {
            "IK": "From the current frame on, follow the target. It is keyed with pole and Influence; nothing jumps",
            "FK": "From the current frame on, follow the bones. They are keyed with Influence, and nothing jumps",
        }
        return ways.get(getattr(properties, "to", ""), cls.bl_description)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Switch."""
        ob = armature(context)
        chosen = tips(ob) if self.chains == "ALL" else [tip for tip in (active_chain(context),) if tip is not None]
        if not chosen:
            self.report({"ERROR"}, NONE_ACTIVE)
            return {"CANCELLED"}
        to_ik = not is_ik(chosen[0]) if self.to == "OTHER" else self.to == "IK"
        name = "IK" if to_ik else "FK"
        others = [tip for tip in chosen if is_ik(tip) != to_ik]
        if not others:
            self.report({"INFO"}, f"Already in {name} on this frame")
            return {"CANCELLED"}
        try:
            remarks = switch(context, ob, others, to_ik=to_ik)
        except ERRORS as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        which = f"'{others[0].name}'" if len(others) == 1 else f"{len(others)} chains"
        said = [f"Switched {which} to {name} from frame {context.scene.frame_current_final:g} on", *remarks]
        if not object_of(ob).live:
            said.append("Turn Live on to see it play")
        self.report({"WARNING"} if remarks else {"INFO"}, ". ".join(said))
        return {"FINISHED"}


CLASSES = (IK_ADDON_OT_switch_ik_fk,)
