"""Operators that make chains for a whole figure, mirror one, or make them from Blender's IK constraints and back."""

from dataclasses import replace
from functools import partial
from operator import itemgetter

import numpy as np
from bpy.props import BoolProperty, EnumProperty
from bpy.types import Context, Event, Object, PoseBone

from ...anatomy.body import Region
from ...bake.sampling import stepped
from ...bake.scene import SceneSnapshot
from ...chains import character, convert, mirror
from ...chains.convert import converted_bones, sources
from ...chains.current_pose import read_poses, shifts
from ...chains.make_controls import Controls
from ...core.names import chain_name
from ...core.preferences import CONTROLS, preferences
from ...core.report import percent
from ...core.steps import finished
from ...core.translation.sentences import marked, quoted, say
from ...solve.problem import Floats
from .active import ArmatureOperator, ChainOperator, asked

NAMED = 2
"""Number of remarks in the report after a click; the panel shows all."""


class IK_ADDON_OT_character_setup(ArmatureOperator):
    """Add IK chains to the arms, legs, spine and head of the armature, with targets and poles; the pose stays as it
    is, and bones that already have a chain are left alone.
    """

    bl_label = "Set Up Character"

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

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Run from a button: take Live from the preferences."""
        self.prefer(live="live")
        return self.execute(context)

    def perform_on(self, context: Context, ob: Object) -> set[str]:
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

    def draw(self, _context: Context) -> None:
        """Draw the options."""
        layout = self.layout
        layout.use_property_split = True
        layout.column().prop(self, "regions", expand=True)
        for name in ("with_poles", "with_presets", "controls", "arms", "live"):
            layout.prop(self, name)


class IK_ADDON_OT_mirror_chain(ChainOperator):
    """Mirror the active chain to the bones of the other side, with its settings, limits, target and pole."""

    bl_label = "Mirror Chain"

    def perform_on_chain(self, context: Context, tip: PoseBone) -> set[str]:
        """Mirror the chain."""
        other, remarks = mirror.mirror_chain(context, tip)
        message = say("Mirrored the chain on '{tip}' to '{other}'", tip=chain_name(tip), other=chain_name(other))
        return self.done(message, remarks)


ON_FRAME = marked("On frame {frame}, joints of the chain on '{tip}' are elsewhere, by up to {distance} of its length")
ELSEWHERE = 0.01
"""A joint that is farther than this from where a constraint had it, in lengths of the chain, is reported."""
FRAMES = 12
"""Number of frames of the scene's range on which chains are compared with the constraints that they replace."""


def _poses(context: Context, ob: Object) -> dict[int, Floats]:
    """Return the poses (m, 4, 4) of all bones on frames of the scene's range."""
    scene, before = context.scene, SceneSnapshot(context.view_layer, ob)
    frames = np.unique(np.linspace(scene.frame_start, scene.frame_end, FRAMES).round()).astype(int).tolist()
    found = dict(zip(frames, finished(stepped(context.view_layer, frames, partial(read_poses, ob))), strict=True))
    before.restore()
    return found


class IK_ADDON_OT_convert_constraints(ArmatureOperator):
    """Replace every enabled IK constraint of the armature with a chain, mute the constraint, and turn Live on.

    Restore Constraints undoes this.
    """

    bl_label = "Convert IK Constraints"

    @classmethod
    def why_unavailable(cls, _context: Context, ob: Object) -> str:
        """Require an enabled IK constraint."""
        return "" if any(sources(ob)) else say("'{object}' has no enabled IK constraint", object=ob.name)

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Convert the constraints."""
        before = _poses(context, ob)
        done = convert.convert(context, ob)
        tips, elsewhere = [ob.pose.bones[tip] for tip in done.tips], []
        moved = {frame: shifts(ob, tips, before[frame], after) for frame, after in _poses(context, ob).items()}
        for tip in tips:
            frame, distance = max(((frame, own[tip.name]) for frame, own in moved.items()), key=itemgetter(1))
            if distance > ELSEWHERE:
                elsewhere.append(say(ON_FRAME, frame=frame, tip=chain_name(tip), distance=percent(distance)))
        done = replace(done, warnings=(*done.warnings, *elsewhere))
        return self.done(done.message, warns=done.needs_attention)


class IK_ADDON_OT_restore_constraints(ArmatureOperator):
    """Remove the chains that Convert IK Constraints added, and enable the constraints again."""

    bl_label = "Restore Constraints"

    @classmethod
    def why_unavailable(cls, _context: Context, ob: Object) -> str:
        """Require a converted constraint."""
        return "" if converted_bones(ob) else say("No IK constraint of '{object}' was converted", object=ob.name)

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Restore the constraints."""
        return self.done(say("Restored the IK constraints on {names}", names=quoted(convert.restore(context, ob))))
