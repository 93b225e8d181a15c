"""Operators on targets and poles: select, key and snap them, attach them to something, switch between IK and FK."""

from typing import ClassVar

import bpy
from bpy.props import EnumProperty, StringProperty
from bpy.types import Context, Event, Object, OperatorProperties, PoseBone

from ...core.chain_settings import ROLES
from ...core.goals import Goal
from ...core.names import chain_name
from ...core.report import count_of_frames
from ...core.settings import chain_of, goal_of, object_of
from ...core.translation.sentences import UserError, count, marked, quoted, say
from ...targets import ik_fk, snap, space_switch
from ...targets.movable import controls_of, key_controls, not_copied, select_controls, why_lacking
from ...targets.snap import Poles
from ...targets.space_switch import Space, spaces_of
from .active import ArmatureOperator, ChainOperator, Internal, active_tip, armature, asked, operators
from .progress import FramesOperator, Steps
from .solve import CHAINS, ChainsOperator


class ControlsOperator(ChainsOperator):
    """Base of operators on controls."""

    def controls(self, context: Context, ob: Object) -> list[Goal]:
        """Return the controls of the chosen chains, and of the trunk if all are chosen.

        Raises:
            UserError: there are none.
        """
        found = controls_of(ob, self.chosen(context), with_trunk=self.chains == "ALL")
        if not found:
            raise UserError("No target or pole here can be moved")
        return found


class IK_ADDON_OT_select_controls(ControlsOperator):
    """Select the targets and poles of the character, and its shoulders, hips and root, so that they can be keyed,
    copied or moved together.
    """

    bl_label = "Select Controls"

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Select them."""
        found = select_controls(context, self.controls(context, ob))
        return self.done(count(found, "Selected 1 control", "Selected {count} controls"))


class IK_ADDON_OT_key_controls(ControlsOperator):
    """Insert keyframes for location and rotation of the targets and poles of the character, and of its shoulders,
    hips and root.
    """

    bl_label = "Key Controls"

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Key them."""
        found = self.controls(context, ob)
        try:
            key_controls(context, found)
        except RuntimeError as error:
            raise UserError("Can't key '{object}': {error}", object=ob.name, error=error) from None
        done = count(len(found), "Keyed 1 control", "Keyed {count} controls")
        return self.done(say("{done} on frame {frame}", done=done, frame=f"{context.scene.frame_current_final:g}"))


class IK_ADDON_OT_copy_pose(Internal, ArmatureOperator):
    """Copy the pose of the selected bones, and say which selected targets and poles are empties, which are left out."""

    # Blender's Copy Pose, where selected controls are empties, which it leaves out without a word.
    bl_label = "Copy Pose"

    @classmethod
    def why_unavailable(cls, _context: Context, _ob: Object) -> str:
        """Require what Blender's operator does."""
        return "" if operators.pose.copy.poll() else say("Switch to Pose Mode")

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Leave the key to Blender where nothing is left out."""
        return self.execute(context) if not_copied(context, armature(context)) else {"PASS_THROUGH"}

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Copy what can be copied, and say what can't."""
        bpy.ops.pose.copy()
        left_out = count(len(not_copied(context, ob)), "1 control", "{count} controls")
        text = "Left out {controls}: Copy Pose takes no empties. To copy a limb, select all its bones"
        return self.done(say(text, controls=left_out), warns=True)


# ---- snapping targets to the pose, and the pose to FK

POSES = (
    ("AUTO", "Automatic", "The visible pose of solved chains; on a range of frames, the FK pose"),
    ("FK", "FK Pose", "The pose of the bones without this chain"),
    ("SHOWN", "Shown Pose", "The visible pose, with everything solved"),
)


POLES = (
    ("MATCH", "Match Pose", "Move poles to where the limbs bend in the pose"),
    ("TWIST", "Keep Twist", "Move poles so that limbs keep their twist when their FK keys are removed afterwards"),
    ("FOOT", "Follow Foot", "Move the poles of legs to where their toes point, and other poles to match the pose"),
    ("KEEP", "Leave Alone", "Leave poles where they are; the limbs bend towards them"),
)


class IK_ADDON_OT_snap_target(FramesOperator):
    """Move the target and the pole to match the visible pose, so that solving changes nothing."""

    bl_label = "Targets to Pose"

    pose: EnumProperty(name="Pose", description="The pose to match", items=POSES, default="AUTO")
    poles: EnumProperty(name="Poles", description="What to do with poles", items=POLES, default="MATCH")

    first = ("chains", "pose", "poles")
    title = marked("Targets to Pose (Range)")
    confirm = marked("Snap")
    doing = marked("Snapping targets")
    cancelled = marked("Snapping cancelled. Nothing was changed")

    def steps(self, context: Context, ob: Object) -> Steps:
        """Snap goals."""
        found = self.chosen(context)
        done = count(len(found), "Snapped the target", "Snapped the targets of {count} chains")
        frames, poles = self.frames_or_now(context), Poles[self.poles]
        if frames is not None:
            remarks = yield from snap.key_range(context, found, frames, shown=self.pose == "SHOWN", poles=poles)
            return self.done(say("{done} on {frames}", done=done, frames=count_of_frames(len(frames))), remarks)
        remarks = []
        is_shown = {tip.name: snap.is_solved(tip) if self.pose == "AUTO" else self.pose == "SHOWN" for tip in found}
        for shown in (True, False):
            own = [tip for tip in found if is_shown[tip.name] == shown]
            remarks += snap.snap_here(context, own, shown=shown, poles=poles) if own else []
        return self.done(done, remarks)


class IK_ADDON_OT_apply_pose(FramesOperator):
    """Make the solved pose the FK pose, so that it stays when the chain is disabled."""

    bl_label = "Solved Pose to FK"

    confirm = marked("Apply")
    doing = marked("Applying the solved pose")
    cancelled = marked("Applying cancelled. Nothing was changed")

    def steps(self, context: Context, ob: Object) -> Steps:
        """Apply the solved pose."""
        found = [tip for tip in self.chosen(context) if chain_of(tip).enabled]
        if not found:
            raise UserError("None of these chains is enabled. Select a bone of an enabled chain")
        done = say("Applied the solved pose to {names}", names=quoted(map(chain_name, found)))
        frames = self.frames_or_now(context)
        if frames is not None:
            report = yield from ik_fk.apply_range(context, ob, found, frames)
            done = say("{done} on {frames}", done=done, frames=count_of_frames(report.frames))
            return self.done(done, [] if report.plays_alike and not report.missed else [report.message])
        return self.done(done, ik_fk.apply_pose(context, ob, found))


# ---- switching between IK and FK, and to other spaces

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
SPACES = (
    ("WORLD", "World", "Stay in place, whatever the body does"),
    ("PARENT", "Parent Bone", "Follow the bone that carries the limb, such as the hips or the chest"),
    ("CHEST", "Chest", "Follow the chest"),
    ("HEAD", "Head", "Follow the head"),
    ("OBJECT", "Object", "Follow the object named below, or the other selected object if none is named"),
)


class IK_ADDON_OT_switch_ik_fk(ChainsOperator):
    """Switch between IK and FK from the current frame on, without a jump; everything needed is keyed."""

    bl_label = "Switch IK/FK"

    to: asked(EnumProperty, "Switch To", "What to switch to", items=WAYS)
    chains: EnumProperty(name="Chains", description="The chains to switch", items=CHAINS, default="ACTIVE")

    @classmethod
    def description(cls, _context: Context, properties: OperatorProperties) -> str:
        """Return a tooltip for the direction of the switch."""
        return say(TOOLTIPS.get(getattr(properties, "to", ""), cls.bl_description))

    def perform_on(self, context: Context, ob: Object) -> set[str]:
        """Switch the chosen chains."""
        chosen = self.chosen(context)
        to_ik = not ik_fk.is_ik(chosen[0]) if self.to == "OTHER" else self.to == "IK"
        way = "IK" if to_ik else "FK"
        others = [tip for tip in chosen if ik_fk.is_ik(tip) != to_ik]
        if not others:
            self.report({"INFO"}, say("Already in {way} on this frame", way=way))
            return {"CANCELLED"}
        remarks = ik_fk.switch(context, ob, others, to_ik=to_ik)
        one = "Switched '{tip}' to {way} from frame {frame} on"
        several = "Switched {count} chains to {way} from frame {frame} on"
        frame, tip, number = f"{context.scene.frame_current_final:g}", chain_name(others[0]), len(others)
        done = say(one if number == 1 else several, tip=tip, count=number, way=way, frame=frame)
        if not object_of(ob).live:
            done += ". " + say("Turn Live on to see it in playback")
        return self.done(done, remarks)


class IK_ADDON_OT_switch_space(ChainOperator):
    """Make the target or pole follow the world, a part of the body or an object from the current frame on; it stays
    where it is, and the switch is keyed.
    """

    bl_label = "Attach To"

    role: EnumProperty(name="Target or Pole", description="What is attached", items=ROLES, default="TARGET")
    space: EnumProperty(name="Space", description="What the target or pole follows", items=SPACES)
    object: asked(StringProperty, "Object", "The object to follow; if empty, the other selected object")
    bone: asked(StringProperty, "Bone", "The bone of that object to follow; if empty, the object itself")

    last: ClassVar = ("", "")
    """The object and the bone that were named last: a hand that puts a thing down often takes it again."""

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Switch to a space that was picked in the panel; open the dialog for an object to pick, or for any choice."""
        tip = active_tip(context)
        is_picked = self.properties.is_property_set("space")
        if is_picked and (self.space != "OBJECT" or self._space(context, tip) is not None):
            if not self.properties.is_property_set("role"):
                self.role = "TARGET"  # not the one of the last time
            return self.execute(context)
        if tip.id_data != context.active_object and context.active_object == chain_of(tip).pole:
            self.role = "POLE"
        if not self.object and self._other(context, tip) is None:
            self.object, self.bone = self.last
        return context.window_manager.invoke_props_dialog(self, confirm_text="Attach")

    def draw(self, context: Context) -> None:
        """Draw the options; the object only if it is followed, and its bone only for an armature."""
        layout = self.layout
        layout.use_property_split = True
        layout.prop(self, "role")
        layout.prop(self, "space")
        if self.space == "OBJECT":
            layout.prop_search(self, "object", context.scene, "objects")
            other = context.scene.objects.get(self.object)
            if other is not None and other.type == "ARMATURE":
                layout.prop_search(self, "bone", other.data, "bones")
        tip = active_tip(context)
        space = self._space(context, tip)
        if space is None:
            text = self._lack(tip)
        else:
            text = say("Stays in place") if space.ob is None else say("Follows {space}", space=space.name)
        layout.label(text=text, translate=False)

    def perform_on_chain(self, context: Context, tip: PoseBone) -> set[str]:
        """Switch the space."""
        role, space = self.role.lower(), self._space(context, tip)
        goal, bone = goal_of(chain_of(tip), role)
        if goal is None:
            raise UserError(why_lacking(tip, role))
        if space is None:
            raise UserError(self._lack(tip))
        movable = Goal(goal, bone)
        later = space_switch.switch(context, tip, movable, space)
        if space.identifier == "OBJECT" and space.ob is not None:
            type(self).last = space.ob.name, space.bone
        frame = f"{context.scene.frame_current_final:g}"
        follows = "'{movable}' follows {space} from frame {frame} on"
        message = say(follows, movable=movable.name, space=space.name, frame=frame)
        if later:
            message += ". " + say("Later switches updated: {count}", count=later)
        remarks = []
        if movable.last_key > context.scene.frame_current_final:
            remarks.append(say("Its keys on later frames go along with {space} now", space=space.name))
        return self.done(message, remarks)

    def _space(self, context: Context, tip: PoseBone) -> Space | None:
        """Return the chosen space; None if the chain has no such space."""
        spaces = spaces_of(tip, self._other(context, tip), self.bone)
        return next((space for space in spaces if space.identifier == self.space), None)

    def _other(self, context: Context, tip: PoseBone) -> Object | None:
        """Return the named object; if there is none, the other selected object."""
        own = (tip.id_data, chain_of(tip).target, chain_of(tip).pole)
        others = (found for found in context.selected_objects if found not in own)
        return context.scene.objects.get(self.object) or next(others, None)

    def _lack(self, tip: PoseBone) -> str:
        """Return why the chain has no such space, and what to do."""
        lacks = {
            "OBJECT": "Pick an object to follow",
            "PARENT": "The chain on '{tip}' has no parent bone. Pick an object",
            "CHEST": "No chest found in '{object}'. Pick an object",
            "HEAD": "No head found in '{object}'. Pick an object",
        }
        return say(lacks[self.space], tip=chain_name(tip), object=tip.id_data.name)
