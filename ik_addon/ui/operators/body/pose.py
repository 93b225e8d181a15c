"""The operator Pose Body: move a bone to a place while pins hold and the rest of the body follows."""

from __future__ import annotations

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatVectorProperty,
    IntProperty,
    StringProperty,
)
from mathutils import Vector

from ....core.falloff import every_frame_setting
from ....core.report import percent
from ....core.translation.sentences import UserError, say
from ....posing.drag import MISSED, Ask, BodyDrag
from ....posing.figure import Free
from ....posing.pins import FLAGS
from ....solve import PosedBody
from ....targets.edit_range import EditRange
from ..active import ArmatureOperator, active_bone
from ..gesture import RangeOptions, finish
from ..settings import asked, given

NAMED = 3
"""Maximum number of joints at a limit that a message names."""
WITHOUT_PINS = (
    (Free.FEET.name, "Feet Stay", "The feet stay in place, and the hips follow"),
    (Free.ROOT.name, "Root Stays", "The root stays, and the bones from there to the moved one turn"),
    (Free.CHAIN.name, "Chain Alone", "Only the connected bones above the moved one turn, as with Auto IK"),
)


class BodyOptions:
    """What holds and what follows, as options of an operator."""

    without_pins: EnumProperty(
        name="Without Pins",
        description="What holds the body if nothing is pinned",
        items=WITHOUT_PINS,
        default=Free.FEET.name,
    )
    length: IntProperty(
        name="Bones",
        description="How many bones above the moved joint turn; if 0, the whole body follows",
        default=0,
        min=0,
        soft_max=32,
    )


class BodyDragOptions(RangeOptions, BodyOptions):
    """The same, and how far a drag reaches."""

    every_frame: every_frame_setting()

    def ask(self, bone: str, use_tail: bool, pins: dict[str, frozenset[str]] | None = None) -> Ask:
        """Return what to drag with these options."""
        return Ask(bone, use_tail, pins, Free[self.without_pins], self.length, EditRange.of(self))


class IKAddonPinArgument(bpy.types.PropertyGroup):
    """A pin passed by a script; `name` is the bone's name."""

    use_location: asked(BoolProperty, "Location", "The head of the bone stays in place", default=True)
    use_rotation: asked(BoolProperty, "Rotation", "The bone keeps its orientation", default=True)


class IK_ADDON_OT_pose_body(BodyDragOptions, ArmatureOperator):
    """Move a bone to a place; the body follows."""

    bl_idname = "ik_addon.pose_body"
    bl_label = "Pose Body"
    bl_description = "Move a bone to a place; pinned bones hold, and the rest of the body follows within its limits"

    bone: asked(StringProperty, "Bone", "The bone to move; if empty, the active bone")
    use_tail: asked(BoolProperty, "Tail", "Move the tail of the bone instead of its head")
    offset: asked(
        FloatVectorProperty, "Offset", "How far the joint moves from where it is, in world space", subtype="TRANSLATION"
    )
    location: given(
        FloatVectorProperty,
        "Location",
        "Where the joint goes, in world space, instead of by an offset",
        subtype="XYZ_LENGTH",
    )
    pins: given(CollectionProperty, "Pins", "Bones that hold; none: those that are pinned", type=IKAddonPinArgument)

    @classmethod
    def why_unavailable(cls, _context: bpy.types.Context, ob: bpy.types.Object) -> str:
        """Require an armature that is not linked from another file."""
        return "" if ob.is_editable else say("'{rig}' is linked from another file and can't be posed", rig=ob.name)

    def perform_on(self, context: bpy.types.Context, ob: bpy.types.Object) -> set[str]:
        """Pose the body, and report if the bone falls short of its place."""
        pins = {pin.name: _flags(pin) for pin in self.pins}
        unknown = next((pin for pin in pins if pin not in ob.pose.bones), None)
        if unknown is not None:
            raise UserError("'{rig}' has no bone '{bone}' to pin", rig=ob.name, bone=unknown)
        name = self.bone or name_of_active(ob)
        drag = BodyDrag(context, ob, self.ask(name, self.use_tail, pins or None))
        is_placed = self.properties.is_property_set("location")
        posed = drag.move(context, Vector(self.location) - drag.start if is_placed else Vector(self.offset))
        remarks = []
        if posed.error > MISSED * drag.size:
            remarks.append(_why_short(drag, posed))
        return finish(self, context, drag, remarks)


def _why_short(drag: BodyDrag, posed: PosedBody) -> str:
    """Say by how much a dragged joint fell short of its place, and what held it back."""
    short = percent(posed.error / drag.size)
    parts = drag.holding(posed)
    limited = [bone for bone, index in drag.stand.index.items() if posed.at_limit[index]]
    texts = [say("'{bone}' stopped short by {short} of the body's size", bone=drag.bone, short=short)]
    if parts:
        texts.append(say("Held by: {parts}", parts=", ".join(parts)))
    if limited:
        texts.append(say("At a limit: {joints}", joints=", ".join(limited[:NAMED])))
    return ". ".join(texts if len(texts) > 1 else [*texts, say("It is out of reach")])


def name_of_active(ob: bpy.types.Object) -> str:
    """Return the name of the active bone.

    Raises:
        UserError: no bone is active.
    """
    active = active_bone(ob)
    if active is None:
        raise UserError("No bone is active. Select the bone to move")
    return active.name


def _flags(pin: IKAddonPinArgument) -> frozenset[str]:
    return FLAGS - ({"LOCATION"} if not pin.use_location else set()) - ({"ROTATION"} if not pin.use_rotation else set())
