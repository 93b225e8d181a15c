"""The sub-panel "Motion Clip": operators for a range of frames."""

import math

from bpy.types import Context, Object, PoseBone, Scene, UILayout

from ...bake.scene import time_scale
from ...core import contact_keys
from ...core.chain_settings import CONTACTS
from ...core.settings import chain_of
from ...core.translation.sentences import CONTEXT, say
from ...rig.plan.chain import end_of, tips
from ...rig.plan.followers import goals_of
from ..operators.active import active_chain
from ..panel import FoldedPanel, is_chained
from ..text import draw_button, draw_setting, is_narrow


class VIEW3D_PT_ik_addon_clip(FoldedPanel):
    """Contacts, and the operators that use them."""

    bl_label = "Motion Clip"
    bl_translation_context = CONTEXT  # French Blender trims with this word

    @classmethod
    def is_of_use(cls, context: Context, ob: Object) -> bool:
        """Show the panel once there are chains, and an action or a strip moves the armature or what a chain follows."""
        movers = {ob, *(goal.ob for tip in tips(ob) for goal in goals_of(tip))} if is_chained(context, ob) else ()
        return any((data := mover.animation_data) and (data.action or data.nla_tracks) for mover in movers)

    def draw_rig(self, layout: UILayout, context: Context, _ob: Object) -> None:
        """Draw the buttons in the order of use, and the contact of the active chain."""
        column = layout.column(align=True)
        draw_button(column, context, "ik_addon.find_contacts", "VIEWZOOM", "Find Contacts")
        draw_button(column, context, "ik_addon.plant", "SNAP_FACE", "Lock Feet")
        draw_button(layout, context, "ik_addon.bake_skeleton", "EXPORT", "Bake to Skeleton")
        tip = active_chain(context)
        if tip is None:
            return
        chain = chain_of(tip)
        row = layout.row(align=True)
        for name, label, *_rest in CONTACTS:
            row.operator("ik_addon.mark_contact", text=label, depress=name in chain.contact).contact = name
        if chain.contact:
            row.operator("ik_addon.remove_contact", text="", icon="X")
            layout.label(text=_when(context.scene, tip), translate=False)
        if end_of(tip) is not None:
            column = layout.column(align=True)
            column.use_property_split = not is_narrow(context)
            column.use_property_decorate = False
            draw_setting(column, context, chain, "heel_pivot")
            draw_setting(column, context, chain, "toe_pivot")
            column.operator("ik_addon.find_pivots", icon="ORIENTATION_LOCAL")


def _when(scene: Scene, tip: PoseBone) -> str:
    """Return a sentence with the first and last frame of the contact on the current frame."""
    scale = time_scale(scene)
    start, end = contact_keys.whole(tip, scene.frame_current_final * scale) or (-math.inf, math.inf)
    if math.isinf(start) and math.isinf(end):
        return say("Contact on all frames")
    if math.isinf(start):
        return say("Contact up to frame {last}", last=round(end / scale) - 1)
    if math.isinf(end):
        return say("Contact from frame {first} on", first=round(start / scale))
    return say("Contact from frame {first} to {last}", first=round(start / scale), last=round(end / scale) - 1)
