"""Operators that add chains to a whole figure, and that mirror a chain to the other side."""

from __future__ import annotations

from dataclasses import replace

import bpy
from bpy.props import BoolProperty, EnumProperty

from ...anatomy.body import Region
from ...chains import character, mirror
from ...chains.make_controls import Controls
from ...core.preferences import CONTROLS, preferences
from ...core.translation.sentences import say
from .active import ArmatureOperator, ChainOperator
from .settings import asked

NAMED = 2
"""Number of remarks in the report after a click; the panel shows all."""


class IK_ADDON_OT_character_setup(ArmatureOperator):
    """Add chains to a whole figure."""

    bl_idname = "ik_addon.character_setup"
    bl_label = "Set Up Character"
    bl_description = (
        "Add IK chains to the arms, legs, spine and head of the armature, with targets and poles; the pose stays as it "
        "is, and bones that already have a chain are left alone"
    )

    regions: EnumProperty(
        name="Parts",
        description="The parts of the character to add chains to",
        items=(
            (Region.ARM.name, "Arms", "Arms and wings"),
            (Region.LEG.name, "Legs", "Legs, including animals' front legs"),
            (Region.SPINE.name, "Spine", "The spine above the hips"),
            (Region.HEAD.name, "Head", "The neck and head"),
        ),
        options={"ENUM_FLAG"},
        default={region.name for region in Region},
    )
    with_poles: asked(BoolProperty, "Poles", "Make poles that arms and legs bend towards", default=True)
    with_presets: BoolProperty(
        name="Human Limits",
        description="Apply the presets Human Elbow, Human Knee and Human Spine if the character is human",
        default=True,
    )
    controls: asked(
        EnumProperty,
        "Controls",
        "Type of object or bone used for targets and poles; an armature that can't be edited gets empties",
        items=CONTROLS,
        default=Controls.BONES.name,
    )
    arms: EnumProperty(
        name="Arms Follow",
        description="What the hands follow at first; Attached To changes it at any time",
        items=(
            ("WORLD", "World", "Hands stay in place while the body moves, as feet do"),
            ("CHEST", "Chest", "Hands go along with the chest"),
        ),
    )
    live: asked(BoolProperty, "Live", "Turn Live on so that the chains follow their targets at once", default=True)

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        """Run from a button: take Live from the preferences."""
        self.prefer(live="live")
        return self.execute(context)

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Add the chains."""
        self.prefer(with_poles="with_pole")
        if preferences().is_property_set("controls"):
            self.prefer(controls="controls")
        wishes = character.Wishes(
            regions=frozenset(Region[name] for name in self.regions),
            with_poles=self.with_poles,
            with_presets=self.with_presets,
            live=self.live,
            controls=Controls[self.controls],
            arms_with_chest=self.arms == "CHEST",
        )
        outcome = character.set_up(context, ob, wishes)
        more = len(outcome.remarks) - NAMED
        if self.options.is_invoke and more > 0:  # the panel shows them, but scripts don't see it
            in_panel = say("More remarks in the panel: {count}", count=more)
            outcome = replace(outcome, remarks=(*outcome.remarks[:NAMED], in_panel))
        if not outcome.made:
            # Nothing changed, so don't add an undo step.
            self.report({"INFO"} if outcome.tips else {"ERROR"}, outcome.message)
            return {"CANCELLED"}
        made, *remarks = outcome.sentences()
        next_step = () if ob.mode == "POSE" else (say("To pose it, go to Pose Mode"),)
        return self.done(". ".join([made, *next_step]), remarks)

    def draw(self, _context: bpy.types.Context) -> None:
        """Draw the options."""
        layout = self.layout
        layout.use_property_split = True
        layout.column().prop(self, "regions", expand=True)
        for name in ("with_poles", "with_presets", "controls", "arms", "live"):
            layout.prop(self, name)


class IK_ADDON_OT_mirror_chain(ChainOperator):
    """Mirror the active chain."""

    bl_idname = "ik_addon.mirror_chain"
    bl_label = "Mirror Chain"
    bl_description = (
        "Mirror the active chain to the bones of the other side, with its settings, limits, target and pole"
    )

    def perform_on_chain(self, context: bpy.types.Context, tip: bpy.types.PoseBone) -> set[str]:
        """Mirror the chain."""
        other, remarks = mirror.mirror_chain(context, tip)
        message = say("Mirrored the chain on '{tip}' to '{other}'", tip=tip.name, other=other.name)
        return self.done(message, remarks)
