"""Operators on contacts: find them, add or remove one by hand, and keep feet still on them."""

import math
from collections.abc import Sequence

import numpy as np
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, StringProperty
from bpy.types import Context, Object, PoseBone

from ...anatomy.figure import Figure
from ...bake.scene import time_scale
from ...core import contact_keys
from ...core.chain_settings import CONTACTS
from ...core.names import chain_name
from ...core.report import count_of_frames
from ...core.translation.sentences import UserError, count, marked, say
from ...feet import plant
from ...feet.contacts import HEEL, key_contacts
from ...feet.sampled_feet import found_pivots, store_pivots
from ...rig.plan.chain import end_of
from .active import ChainOperator, asked, seconds
from .progress import ClipOperator, Steps

NO_CONTACTS = marked(
    "No contacts found on {frames}: the feet never stand still. Is this clip in place? If not, raise Sensitivity"
)
MARKED = marked("Marked a contact on {frames}: {what} of '{tip}'")
UNMARKED = marked("Unmarked a contact on {frames}: {what} of '{tip}'")
ACTIONS = (
    ("TOGGLE", "Toggle", "Unmark the frames if all of them are marked, otherwise mark them"),
    ("ADD", "Mark", "The heel or toe touches on these frames"),
    ("REMOVE", "Unmark", "The heel or toe touches on none of these frames"),
)


class IK_ADDON_OT_find_contacts(ClipOperator):
    """Find where heels, toes and hands touch on a range of frames, and key these contacts on the chains.

    Uses the targets if they have keys, otherwise the FK pose.
    """

    bl_label = "Find Foot Contacts"

    ground: StringProperty(
        name="Ground",
        description="The object that the feet were recorded on, if it is in the scene. A foot that is held in the air "
        "above it has no contact",
    )
    sensitivity: FloatProperty(
        name="Sensitivity",
        description="How fast and how high a point may be and still count as touching. Use more than 1 if feet slide a "
        "lot in the recording",
        default=1.0,
        min=0.1,
        max=10.0,
        soft_min=0.5,
        soft_max=3.0,
    )
    shortest: seconds("Shortest", "Contacts shorter than this don't count", HEEL.shortest)

    own = ("on", "ground", "sensitivity", "shortest")
    confirm = marked("Find")
    doing = marked("Finding contacts")

    def steps(self, context: Context, ob: Object) -> Steps:
        """Find and key contacts."""
        frames = self.frames(context)
        found = yield from key_contacts(
            context,
            self.chosen(context),
            frames,
            on=self.named(context, self.on),
            floor=self.named(context, self.ground),
            sensitivity=self.sensitivity,
            shortest=self.shortest,
        )
        on_frames = count_of_frames(len(frames))
        if not found:
            return self.done(say(NO_CONTACTS, frames=on_frames), warns=True)
        done = count(found, "Found 1 contact", "Found {count} contacts")
        return self.done(say("{done} on {frames}", done=done, frames=on_frames))


def mark(context: Context, tip: PoseBone, names: Sequence[str], frames: tuple[float, float], *, on: bool) -> None:
    """Mark or unmark contacts from the first of two frames up to, but not including, the second.

    Raises:
        UserError: the contacts can't be keyed; the message says why.
    """
    scale = time_scale(context.scene)
    contact_keys.mark(tip, names, (frames[0] * scale, frames[1] * scale), scale, on=on)
    contact_keys.show(tip, context.scene.frame_current_final * scale)
    context.view_layer.update()


class IK_ADDON_OT_mark_contact(ChainOperator):
    """Mark a contact of the active chain on the current frame, or on the preview range if there is one.

    If these frames are marked, unmark them.
    """

    bl_label = "Mark Contact"

    contact: EnumProperty(name="Contact", description="What touches", items=[item[:3] for item in CONTACTS])
    action: asked(EnumProperty, "Action", "What to do on these frames", items=ACTIONS, default="TOGGLE")
    frame_start: asked(IntProperty, "Start", "First frame to mark")
    frame_end: asked(IntProperty, "End", "Last frame to mark")

    def perform_on_chain(self, context: Context, tip: PoseBone) -> set[str]:
        """Mark or unmark the frames."""
        scene, now = context.scene, context.scene.frame_current
        preview = scene.frame_preview_start, scene.frame_preview_end
        start, end = preview if scene.use_preview_range else (now, now)
        if not self.properties.is_property_set("frame_start"):
            self.frame_start = start
        if not self.properties.is_property_set("frame_end"):
            self.frame_end = max(end, self.frame_start)
        if self.frame_end < self.frame_start:
            raise UserError("The last frame is before the first one")
        if self.action == "TOGGLE":  # store the choice, so that Adjust Last Operation keeps it
            flag = list(contact_keys.FLAGS).index(self.contact)
            frames = np.arange(self.frame_start, self.frame_end + 1.0) * time_scale(scene)
            self.action = "REMOVE" if contact_keys.read(tip, frames)[flag].all() else "ADD"
        mark(context, tip, [self.contact], (self.frame_start, self.frame_end + 1), on=self.action == "ADD")
        done = MARKED if self.action == "ADD" else UNMARKED
        what = say(next(label for name, label, *_rest in CONTACTS if name == self.contact))
        frames_marked = count_of_frames(self.frame_end + 1 - self.frame_start)
        return self.done(say(done, what=what, tip=chain_name(tip), frames=frames_marked))


class IK_ADDON_OT_remove_contact(ChainOperator):
    """Remove the contact of the active chain on the current frame, heel and toe, from its first frame to its last."""

    bl_label = "Remove Contact"

    def perform_on_chain(self, context: Context, tip: PoseBone) -> set[str]:
        """Remove the contact."""
        scale = time_scale(context.scene)
        span = contact_keys.whole(tip, context.scene.frame_current * scale)
        if span is None:
            raise UserError("'{tip}' has no contact on the current frame", tip=chain_name(tip))
        mark(context, tip, list(contact_keys.FLAGS), (span[0] / scale, span[1] / scale), on=False)
        return self.done(say("Removed a contact of '{tip}'", tip=chain_name(tip)))


class IK_ADDON_OT_find_pivots(ChainOperator):
    """Find where the heel and the toe of the active chain touch, from its bones."""

    bl_label = "Find Pivots"

    def perform_on_chain(self, _context: Context, tip: PoseBone) -> set[str]:
        """Find and store the pivots."""
        if end_of(tip) is None:
            raise UserError("There is no hand or foot below '{tip}'. Choose an End Bone", tip=tip.name)
        store_pivots(tip, found_pivots(Figure.of(tip.id_data), tip))
        return {"FINISHED"}


class IK_ADDON_OT_plant(ClipOperator):
    """Key the targets so that feet and hands stay still while they touch, roll about heel and toe, and move as
    before in between; the hips move so that the legs reach.
    """

    bl_label = "Lock Feet"

    ground: StringProperty(
        name="Ground",
        description="The object that hands and feet rest on and don't pass through: a mesh, or the XY plane of any "
        "other object",
    )
    slope: FloatProperty(
        name="Slope",
        description="Maximum angle by which feet turn to follow the ground",
        subtype="ANGLE",
        default=float(plant.Options.slope),
        min=0.0,
        max=math.radians(90.0),
    )
    blend: seconds("Blend", "How long a foot takes to ease into and out of a contact", plant.Options.blend, max=100.0)
    hips: BoolProperty(
        name="Hips",
        description="Move the hips as little and as smoothly as possible so that the legs reach. The Softness of a "
        "chain keeps its knee bent",
        default=plant.Options.hips,
    )
    cap: FloatProperty(
        name="Hips Limit",
        description="How far the hips may move, as a fraction of the leg's length",
        subtype="FACTOR",
        default=plant.Options.cap,
        min=0.0,
        max=1.0,
        soft_max=0.3,
    )
    smooth: seconds(
        "Hips Smooth", "How long the hips take to ease into and out of a movement", plant.Options.smooth, max=100.0
    )

    own = ("on", "ground", "slope", "blend", "hips", "cap", "smooth")
    confirm = marked("Lock Feet")
    doing = marked("Locking feet")
    cancelled = marked("Locking cancelled. Nothing was changed")

    def steps(self, context: Context, ob: Object) -> Steps:
        """Plant the feet."""
        options = plant.Options(
            blend=self.blend,
            hips=self.hips,
            cap=self.cap,
            smooth=self.smooth,
            on=self.named(context, self.on),
            ground=self.named(context, self.ground),
            slope=self.slope,
        )
        done = yield from plant.plant_feet(context, ob, self.chosen(context), self.frames(context), options)
        return self.done(done.message, warns=done.needs_attention)
