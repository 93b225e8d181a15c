"""The operator that switches a target or pole to another space."""

from __future__ import annotations

from typing import Any, ClassVar

import bpy
from bpy.props import EnumProperty, StringProperty

from ....core.choices import ROLES
from ....core.goals import Goal
from ....core.settings import chain_of, goal_of
from ....core.translation.sentences import UserError, say
from ....targets.movable import why_lacking
from ....targets.space_switch import switch
from ....targets.spaces import Space, spaces_of
from ..active import ChainOperator, active_chain, armature

SPACES = (
    ("WORLD", "World", "Stay in place, whatever the body does"),
    ("PARENT", "Parent Bone", "Follow the bone that carries the limb, such as the hips or the chest"),
    ("CHEST", "Chest", "Follow the chest"),
    ("HEAD", "Head", "Follow the head"),
    ("OBJECT", "Object", "Follow the object named below, or the other selected object if none is named"),
)


class IK_ADDON_OT_switch_space(ChainOperator):
    """Switch a target or pole of the active chain to another space on the current frame."""

    bl_idname = "ik_addon.switch_space"
    bl_label = "Attach To"
    bl_description = (
        "Make the target or pole follow the world, a part of the body or an object from the current frame "
        "on; it stays where it is, and the switch is keyed"
    )

    role: EnumProperty(name="Target or Pole", description="What is attached", items=ROLES, default="TARGET")
    space: EnumProperty(name="Space", description="What the target or pole follows", items=SPACES)
    object: StringProperty(
        name="Object",
        description="The object to follow; if empty, the other selected object",
        options={"SKIP_SAVE"},
    )
    bone: StringProperty(
        name="Bone", description="The bone of that object to follow; if empty, the object itself", options={"SKIP_SAVE"}
    )

    last: ClassVar = ("", "")
    """The object and the bone that were named last: a hand that puts a thing down often takes it again."""

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        """Switch to a space that was picked in the panel; open the dialog for an object to pick, or for any choice."""
        ob, tip = armature(context), active_chain(context)
        is_picked = self.properties.is_property_set("space")
        if is_picked and (self.space != "OBJECT" or self._space(context) is not None):
            if not self.properties.is_property_set("role"):
                self.role = "TARGET"  # not the one of the last time
            return self.execute(context)
        if ob != context.active_object and context.active_object == chain_of(tip).pole:
            self.role = "POLE"
        if not self.object and self._other(context) is None:
            self.object, self.bone = self.last
        manager: Any = context.window_manager
        return manager.invoke_props_dialog(self, confirm_text="Attach")

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the options; the object only if it is followed, and its bone only for an armature."""
        layout = self.layout
        layout.use_property_split = True
        layout.prop(self, "role")
        layout.prop(self, "space")
        objects: Any = context.scene.objects
        other = objects.get(self.object)
        if self.space == "OBJECT":
            layout.prop_search(self, "object", context.scene, "objects")
            if other is not None and other.type == "ARMATURE":
                layout.prop_search(self, "bone", other.data, "bones")
        space = self._space(context)
        layout.label(text=self._lack(context) if space is None else outlook(space), translate=False)

    def perform(self, context: bpy.types.Context) -> set[str]:
        """Switch the space."""
        tip, space = active_chain(context), self._space(context)
        if reason := why_lacking(tip, self.role.lower()):
            raise UserError(reason)
        if space is None:
            return self.refuse(self._lack(context))
        movable = Goal(*goal_of(chain_of(tip), self.role.lower()))
        later = switch(context, tip, movable, space)
        if space.identifier == "OBJECT":
            type(self).last = space.ob.name, space.bone
        frame = f"{context.scene.frame_current_final:g}"
        message = say(
            "'{movable}' follows {space} from frame {frame} on", movable=movable.name, space=space.name, frame=frame
        )
        if later:
            message += ". " + say("Later switches updated: {count}", count=later)
        remarks = []
        movable = Goal(*goal_of(chain_of(active_chain(context)), self.role.lower()))
        if movable.last_key > context.scene.frame_current_final:
            remarks.append(say("Its keys on later frames go along with {space} now", space=space.name))
        return self.done(message, remarks)

    def _space(self, context: bpy.types.Context) -> Space | None:
        """Return the chosen space; None if the active chain has no such space."""
        spaces = spaces_of(active_chain(context), self._other(context), self.bone)
        return next((space for space in spaces if space.identifier == self.space), None)

    def _other(self, context: bpy.types.Context) -> bpy.types.Object | None:
        """Return the named object; if there is none, the other selected object."""
        ob, tip = armature(context), active_chain(context)
        goals = (chain_of(tip).target, chain_of(tip).pole)
        objects: Any = context.scene.objects
        others = (found for found in context.selected_objects if found != ob and found not in goals)
        return objects.get(self.object) or next(others, None)

    def _lack(self, context: bpy.types.Context) -> str:
        """Return why the active chain has no such space, and what to do."""
        lacks = {
            "OBJECT": "Pick an object to follow",
            "PARENT": "The chain on '{tip}' has no parent bone. Pick an object",
            "CHEST": "No chest found in '{object}'. Pick an object",
            "HEAD": "No head found in '{object}'. Pick an object",
        }
        return say(lacks[self.space], tip=active_chain(context).name, object=armature(context).name)


def outlook(space: Space) -> str:
    """Return what a target or pole will do in a space."""
    return say("Stays in place") if space.ob is None else say("Follows {space}", space=space.name)


CLASSES = (IK_ADDON_OT_switch_space,)
