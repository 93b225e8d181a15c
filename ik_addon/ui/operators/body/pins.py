"""Operators that pin and release bones."""

from __future__ import annotations

from typing import Any

import bpy
from bpy.props import EnumProperty, StringProperty

from ....core.goals import named
from ....core.translation.sentences import UserError, marked, say
from ....posing.pins import FLAGS, Extremities, extremities, set_pins, stored_pins
from ..active import ArmatureOperator, active_bone
from ..settings import asked, given


class IK_ADDON_OT_pin(ArmatureOperator):
    """Pin bones, or release them."""

    bl_label = "Pin Bones"
    bl_description = (
        "Pin bones so that they stay while others are dragged, or release them if they are pinned. "
        "X-Axis Mirror pins the other side as well"
    )

    what: EnumProperty(
        name="What",
        description="What the pins hold",
        items=(
            ("BOTH", "Both", "Location and rotation"),
            ("LOCATION", "Location", "The location of the head"),
            ("ROTATION", "Rotation", "The rotation"),
        ),
        default="BOTH",
    )
    which: asked(
        EnumProperty,
        "Bones",
        "The bones to pin",
        items=(
            ("SELECTED", "Selected", "The selected bones"),
            (Extremities.FEET.name, "Feet", "The feet of the figure"),
            (Extremities.HANDS.name, "Hands", "The hands of the figure"),
        ),
        default="SELECTED",
    )

    @classmethod
    def description(cls, _context: bpy.types.Context, properties: Any) -> str:
        """Return a tooltip that says which bones the button pins."""
        if properties.which == "SELECTED":
            return say(cls.bl_description)
        feet = marked("Pin the feet of the figure where they stand, or release them if they are pinned")
        hands = marked("Pin the hands of the figure where they are, or release them if they are pinned")
        return say(feet if properties.which == Extremities.FEET.name else hands)

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Pin the bones, or release them if all are pinned that way."""
        if self.which == "SELECTED":
            bones, none = _chosen(context, ob), marked("Select the bones to pin in Pose Mode")
        else:
            bones = extremities(ob, Extremities[self.which])
            none = marked("No such bones found. Select the bones to pin")
        if not bones:
            raise UserError(none)
        wanted = FLAGS if self.what == "BOTH" else frozenset((self.what,))
        stored = stored_pins(ob)
        released = all(stored.get(bone) == wanted for bone in bones)
        set_pins(ob, bones, frozenset() if released else wanted)
        return self.done(say("Released {bones}" if released else "Pinned {bones}", bones=named(bones)))


def _chosen(context: bpy.types.Context, ob: bpy.types.Object) -> list[str]:
    """Return the selected bones of an armature in Pose Mode, or its active bone if none is selected."""
    selected = [bone.name for bone in context.selected_pose_bones or () if bone.id_data == ob]
    active = active_bone(ob)
    return selected or ([] if active is None else [active.name])


class IK_ADDON_OT_pin_release(ArmatureOperator):
    """Release one pinned bone, or all of them."""

    bl_label = "Release Pins"
    bl_description = "Release all pinned bones of the armature"

    bone: given(StringProperty, "Bone", "The bone to release; empty: all")

    @classmethod
    def description(cls, _context: bpy.types.Context, properties: Any) -> str:
        """Return a tooltip that names the bone to release."""
        return say("Release '{bone}'", bone=properties.bone) if properties.bone else say(cls.bl_description)

    @classmethod
    def why_unavailable(cls, _context: bpy.types.Context, ob: bpy.types.Object) -> str:
        """Require a pinned bone."""
        return "" if stored_pins(ob) else say("No bone is pinned")

    def perform_on(self, _context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Release the bone or all bones."""
        pinned = stored_pins(ob)
        bones = [bone for bone in pinned if self.bone in ("", bone)]
        if not bones:
            raise UserError("'{bone}' is not pinned", bone=self.bone)
        set_pins(ob, bones, ())
        return self.done(say("Released {bones}", bones=named(bones)))
