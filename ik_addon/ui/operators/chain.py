"""Operators that add, remove and select chains, and on their settings: bend side, rotation, keys."""

from contextlib import ExitStack
from copy import copy

import numpy as np
from bpy.props import BoolProperty, EnumProperty, IntProperty, StringProperty
from bpy.types import Context, Event, Object, PoseBone

from ...anatomy import chain_ends, limbs
from ...anatomy.figure import Figure
from ...anatomy.parts import Part
from ...chains import bend_side, new_chain, removal
from ...chains.make_controls import Controls
from ...core import compat
from ...core.constraints import steered_bones
from ...core.names import chain_name
from ...core.preferences import CONTROLS, preferences
from ...core.settings import chain_of, object_of, stored_folds
from ...core.steps import finished
from ...core.translation.sentences import UserError, count, quoted, say
from ...live import registry
from ...rig.plan.chain import bending_bones, bending_end, chain_bones, chain_with, reach_of, tips, turning_end
from ...targets import snap
from ...targets.movable import why_lacking
from .active import ArmatureOperator, ChainedOperator, ChainOperator, InternalStep, active_bone, armature, asked, given
from .progress import FrameRange


class IK_ADDON_OT_chain_add(ArmatureOperator):
    """Add an IK chain to the limb, finger, spine or tail that the active bone belongs to, with a target at its tip;
    the pose stays as it is.
    """

    bl_label = "Add Chain"

    tip: asked(
        StringProperty,
        "Tip",
        "The last bone of the chain, which follows the target; if empty, found from the active bone",
    )
    chain_length: asked(
        IntProperty,
        "Chain Length",
        "Number of bones, counted from the tip; 0 goes up to the armature's root",
        default=2,
        min=0,
        soft_max=64,
    )
    with_pole: asked(BoolProperty, "Pole", "Make a pole that a chain of two bones bends towards", default=True)
    controls: asked(
        EnumProperty,
        "Controls",
        "Type of object or bone used for the target and pole",
        items=CONTROLS,
        default=Controls.EMPTIES.name,
    )
    live: asked(BoolProperty, "Live", "Turn Live on so that the chain follows its target at once")
    found_from: given(StringProperty, "Found From", "The bone that was active when the ends of the chain were found")

    @classmethod
    def why_unavailable(cls, _context: Context, ob: Object) -> str:
        """Require an active bone, and in Object Mode, where users can't see which one it is, a visible one."""
        bone = active_bone(ob)
        if bone is None:
            text = "'{object}' has no active bone. Click a bone of the limb, finger or tail in Pose Mode"
            return say(text, object=ob.name)
        hidden = "The active bone '{bone}' is hidden. Click a bone of the limb, finger or tail in Pose Mode"
        return "" if ob.mode == "POSE" or compat.is_visible(bone) else say(hidden, bone=bone.name)

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Run from a button: turn Live on for the first chain if so set in the preferences; later chains keep it."""
        ob = armature(context)
        if not self.properties.is_property_set("live"):
            self.live = object_of(ob).live or (preferences().live and not tips(ob))
        return self.execute(context)

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Add the chain."""
        self.prefer(with_pole="with_pole", controls="controls")
        if not self.properties.is_property_set("tip") and not is_picked(ob):
            none = "No bone of '{rig}' is selected. Click a bone of the limb, finger or tail in Pose Mode"
            raise UserError(none, rig=ob.name)
        self._find(ob)
        tip: PoseBone | None = ob.pose.bones.get(self.tip) if self.tip else active_bone(ob)
        if tip is None:
            raise UserError("'{object}' has no bone '{tip}'", object=ob.name, tip=self.tip)
        bones = new_chain.add_chain(context, tip, self.chain_length, self.with_pole, Controls[self.controls])
        tip = bones[-1]
        if active_bone(ob) not in bones:
            compat.select_bone(tip)  # the panel shows the chain of the active bone
        if self.live and not object_of(ob).live:
            object_of(ob).live = True
            context.view_layer.update()
        root = bones[0].name
        if self.chain_length > len(bones):
            message = count(len(bones), "Added a chain of only 1 bone", "Added a chain of only {count} bones")
            short = say("Chain Length is {length}, but '{root}' has no parent", length=self.chain_length, root=root)
            return self.done(message, [short])
        said = [say("Added a chain from '{root}' to '{tip}'", root=root, tip=tip.name)]
        return self.done(". ".join(said + why_waiting(tip)))

    def _find(self, ob: Object) -> None:
        """Find the chain's ends unless the caller set them, also when the operator is repeated on another bone."""
        active = active_bone(ob)
        is_asked = any(self.properties.is_property_set(name) for name in ("tip", "chain_length"))
        if active is None or (is_asked and self.found_from in ("", active.name)):
            return
        figure = Figure.of(ob, steered_bones(ob))
        bone = figure.names.index(active.name)
        found = chain_ends.find(figure, bone)
        if chain_of(ob.pose.bones[figure.names[found[-1]]]).is_chain and chain_with(active) is None:
            found = chain_ends.find_above(figure, bone)  # such as the hand of an arm that already has a chain
        self.tip, self.chain_length, self.found_from = figure.names[found[-1]], len(found), active.name

    def draw(self, context: Context) -> None:
        """Draw the options."""
        layout = self.layout
        layout.use_property_split = True
        if self.poll(context):
            layout.prop_search(self, "tip", armature(context).data, "bones", icon="BONE_DATA")
        for name in ("chain_length", "with_pole", "controls", "live"):
            layout.prop(self, name)


def is_picked(ob: Object) -> bool:
    """Whether the user may have picked the active bone of an armature on purpose.

    In Object Mode users can't see the active bone. A character that was just added or imported has all bones selected,
    and its last bone is active, even if that is in an eyebrow.
    """
    if ob.mode != "OBJECT" or not all(map(compat.is_selected, ob.pose.bones)):
        return True
    figure, bone = Figure.of(ob), active_bone(ob)
    is_body = bone is None or limbs.part_of(figure, figure.names.index(bone.name)) is not Part.UNKNOWN
    return is_body or next(limbs.tops(figure), None) is None


class _RemovingOperator(ArmatureOperator):
    """Base of operators that remove chains."""

    remove_targets: BoolProperty(
        name="Remove Targets",
        description="Also delete the target and pole if Add Chain made them and nothing else uses them",
        default=True,
    )

    def remove(self, context: Context, own: list[PoseBone], message: str) -> set[str]:
        """Remove the chains on tip bones, and say so."""
        if kept := removal.remove_chains(context, own, self.remove_targets):
            message += ". " + say("Kept what is animated or used elsewhere: {names}", names=quoted(kept))
        return self.done(message)


class IK_ADDON_OT_chain_remove(_RemovingOperator, ChainOperator):
    """Remove the chain of the active bone and return its bones to their FK pose."""

    bl_label = "Remove Chain"

    def perform_on_chain(self, context: Context, tip: PoseBone) -> set[str]:
        """Remove the chain."""
        return self.remove(context, [tip], say("Removed the chain on '{tip}'", tip=chain_name(tip)))


class IK_ADDON_OT_chains_remove(_RemovingOperator, ChainedOperator):
    """Remove all chains of the armature and return its bones to their FK pose."""

    bl_label = "Remove All Chains"

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Remove the chains."""
        own = tips(ob)
        return self.remove(context, own, count(len(own), "Removed 1 chain", "Removed {count} chains"))


def turn_end(context: Context, tip: PoseBone, frames: list[int] | None = None) -> tuple[str, list[str]]:
    """Make the hand or foot of a chain turn with the target; return a message and remarks.

    `frames` are those on which the target is snapped to its animation; None: none.
    """
    ob, chain, reach = tip.id_data, chain_of(tip), reach_of(tip)
    remarks: list[str] = []
    with ExitStack() as undo:
        undo.callback(context.view_layer.update)
        for name in ("end_bone", "end_offset", "use_end_rotation", "use_rotation"):
            undo.callback(setattr, chain, name, copy(getattr(chain, name)))
        with registry.paused(ob):
            chain.use_rotation = False
            end = new_chain.turn_end(context, tip)
            if reach_of(tip) != reach and frames is None:
                # The head of an unconnected end bone is not where the tip bone's tail was.
                remarks = snap.snap_here(context, [tip], shown=True)
        compat.tag(ob)
        context.view_layer.update()
        if frames is not None:
            remarks = finished(snap.key_range(context, [tip], frames))
        undo.pop_all()
    return say("'{end}' turns with the target of the chain on '{tip}'", end=end.name, tip=chain_name(tip)), remarks


def why_waiting(tip: PoseBone) -> list[str]:
    """Say, at most once, that the hand or foot of a chain can turn with the target once its animation is snapped."""
    text = "'{bone}' is animated. Bring the target to the pose on a range to turn it with the target"
    bone = new_chain.waiting_end(tip)
    return [] if bone is None else [say(text, bone=bone.name)]


FOLLOWING = (
    ("NONE", "None", "The target gives a place alone; the bones turn as they have to"),
    ("TIP", "Tip", "The last bone of the chain takes the orientation of the target"),
    ("END", "Hand or Foot", "The bone below the chain turns with the target from its current orientation"),
)


def following(tip: PoseBone) -> str:
    """Return which bone of a chain turns with its target, as in `FOLLOWING`."""
    if chain_of(tip).use_rotation:
        return "TIP"
    return "END" if turning_end(tip) is not None else "NONE"


class IK_ADDON_OT_follow_rotation(FrameRange, ChainOperator):
    """Choose which bone turns with the target of the active chain; to an animated hand or foot, bring the target on
    a range of frames.
    """

    bl_label = "Follow Rotation"

    to: asked(EnumProperty, "Bone", "The bone that turns with the target", items=FOLLOWING, default="END")
    snap: asked(
        BoolProperty,
        "Target to Pose (Range)",
        "Key the target on a range of frames so that it follows the animation of the hand or foot",
    )

    def perform_on_chain(self, context: Context, tip: PoseBone) -> set[str]:
        """Set it."""
        if self.to == "END":
            if reason := why_lacking(tip):
                raise UserError(reason)
            return self.done(*turn_end(context, tip, self.frames(context) if self.snap else None))
        chain_of(tip).use_rotation, chain_of(tip).use_end_rotation = self.to == "TIP", False
        context.view_layer.update()
        if self.to == "TIP":
            return self.done(say("'{tip}' turns with its target", tip=tip.name))
        return self.done(say("No bone turns with the target of '{tip}'", tip=chain_name(tip)))

    def draw(self, _context: Context) -> None:
        """Draw the options; the frames only if they are used."""
        layout = self.layout
        layout.use_property_split = True
        layout.prop(self, "to")
        if self.to == "END":
            layout.prop(self, "snap")
            if self.snap:
                self.draw_frames(layout)


class IK_ADDON_OT_chain_select(ArmatureOperator):
    """Make the tip of this chain the active bone. Hold Shift to keep other tips selected."""

    bl_label = "Select Chain"
    bl_options = {"UNDO", "INTERNAL"}  # noqa: RUF012 - as Blender wants it

    tip: given(StringProperty, "Tip", "The bone that carries the chain")

    extend: given(BoolProperty, "Extend", "Keep other bones selected")

    def invoke(self, context: Context, event: Event) -> set[str]:
        """Extend the selection with Shift."""
        self.extend = event.shift
        return self.execute(context)

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Select the bone."""
        bone: PoseBone | None = ob.pose.bones.get(self.tip)
        if bone is None:
            raise UserError("'{object}' has no bone '{tip}'", object=ob.name, tip=self.tip)
        context.view_layer.objects.active = ob
        compat.select_bone(bone, extend=self.extend)
        return {"FINISHED"}


class IK_ADDON_OT_setting_key(InternalStep, ArmatureOperator):
    """Insert a keyframe for this setting of the chain on the current frame."""

    # Key a setting of a chain; Blender finds no animation path to it from its own button.
    bl_label = "Key Setting"

    tip: given(StringProperty, "Tip", "The bone that carries the chain")
    setting: StringProperty(name="Setting", description="The setting to key", default="influence")

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Insert the key."""
        bone: PoseBone | None = ob.pose.bones.get(self.tip)
        if bone is None or not chain_of(bone).is_chain:
            raise UserError("'{object}' has no chain on bone '{tip}'", object=ob.name, tip=self.tip)
        try:
            ob.keyframe_insert(f"{bone.path_from_id()}.ik_addon.{self.setting}", group=bone.name)
        except (RuntimeError, TypeError) as error:  # the second: it can't be animated, or there is none of that name
            raise UserError("Can't key '{object}': {error}", object=ob.name, error=error) from None
        done = "Keyed {setting} of the chain on '{bone}' on frame {frame}"
        setting = say(chain_of(bone).bl_rna.properties[self.setting].name)
        return self.done(say(done, setting=setting, bone=chain_name(bone), frame=context.scene.frame_current))


def find(context: Context, tip: PoseBone) -> bend_side.Found:
    """Find the bend side of a chain."""
    return bend_side.find(tip.id_data, bending_bones(tip), bending_end(tip), context.evaluated_depsgraph_get())


class IK_ADDON_OT_flip_bend(ChainOperator):
    """Make the active chain bend to the opposite side; a pole that Add Chain made moves there too."""

    bl_label = "Flip Bend"

    def perform_on_chain(self, context: Context, tip: PoseBone) -> set[str]:
        """Flip the bend side."""
        side = np.array(chain_of(tip).bend_side)
        if not side.any():
            found = find(context, tip)
            side, chain_of(tip).bends_both_ways = found.side, found.both_ways
        remarks = new_chain.set_bend_side(context, tip, -side)
        return self.done(say("Flipped the bend of the chain on '{tip}'", tip=chain_name(tip)), remarks)


class IK_ADDON_OT_find_bend_side(ChainOperator):
    """Set the side that the active chain bends to from its poses, its animation, its limits and the character's
    anatomy.
    """

    bl_label = "Find Bend Side"

    def perform_on_chain(self, context: Context, tip: PoseBone) -> set[str]:
        """Find and store the bend side."""
        found = find(context, tip)
        chain_of(tip).bends_both_ways = found.both_ways
        # A tip that takes an orientation gets no fold.
        chain_of(tip).folds = stored_folds((*found.folds, *(0.0,) * (len(chain_bones(tip)) - len(found.folds))))
        found_from = "Found the bend side of the chain on '{tip}' from {evidence}"
        message = say(found_from, tip=chain_name(tip), evidence=say(found.evidence.value))
        return self.done(message, new_chain.set_bend_side(context, tip, found.side))
