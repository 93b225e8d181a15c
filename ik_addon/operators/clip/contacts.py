"""Operators that find contacts, and that add or remove one by hand."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import bpy
from bpy.props import EnumProperty, FloatProperty

from ...anatomy.figure import Figure
from ...bake import bake_report
from ...bake.selection import time_scale
from ...clip.contacts import HEEL
from ...data.contact_settings import CONTACTS
from ...planting import contact_keys, find, pivots
from ...rig.plan.chain import end_of
from ...translation.sentences import UserError, count, marked, say
from ..active import ChainOperator, active_chain, armature
from .options import ClipOperator


class IK_ADDON_OT_find_contacts(ClipOperator):
    """Find contacts and key them."""

    bl_idname = "ik_addon.find_contacts"
    bl_label = "Find Contacts"
    bl_description = (
        "Find where heels, toes and hands touch on a range of frames, and key it on the chains, from the targets if "
        "they have keys, otherwise from the FK pose"
    )

    sensitivity: FloatProperty(
        name="Sensitivity",
        description="How fast and how high a point may be and still touch. Use more than 1 for recordings in which "
        "feet slide a lot",
        default=1.0,
        min=0.1,
        max=10.0,
        soft_min=0.5,
        soft_max=3.0,
    )
    shortest: FloatProperty(
        name="Shortest",
        description="Contacts shorter than this don't count",
        subtype="TIME",
        unit="TIME_ABSOLUTE",
        default=HEEL.shortest,
        min=0.0,
        soft_max=1.0,
    )

    own = ("sensitivity", "shortest")
    confirm = marked("Find")
    doing = marked("Finding contacts")
    cancelled = marked("Cancelled. Nothing was changed")

    def steps(self, context: bpy.types.Context) -> Generator[float, None, tuple[int, int]]:
        """Find them; the result is how many contacts, on how many frames."""
        chosen, frames = self.chosen(context), self.frames(context)
        assert frames is not None, "there is no current frame to choose"
        found = yield from find.steps(
            context,
            armature(context),
            chosen,
            frames,
            on=self.support(context),
            sensitivity=self.sensitivity,
            shortest=self.shortest,
        )
        return found, len(frames)

    def finish(self, result: tuple[int, int]) -> set[str]:
        """Report them."""
        found, frames = result
        on_frames = bake_report.count_of_frames(frames)
        if not found:
            self.report({"WARNING"}, say("Found no contact on {frames}. Raise Sensitivity", frames=on_frames))
            return {"FINISHED"}
        done = count(found, "Found 1 contact", "Found {count} contacts")
        return self.done(say("{done} on {frames}", done=done, frames=on_frames))


class IK_ADDON_OT_mark_contact(ChainOperator):
    """Add or remove a contact by hand."""

    bl_idname = "ik_addon.mark_contact"
    bl_label = "Mark Contact"
    bl_description = (
        "Add a contact of the active chain from the current frame to its next key, or remove the one that is there"
    )

    contact: EnumProperty(
        name="Contact", description="What touches", items=[item[:3] for item in CONTACTS], default="HEEL"
    )

    def perform(self, context: bpy.types.Context) -> set[str]:
        """Add or remove it."""
        tip = active_chain(context)
        time = context.scene.frame_current_final * time_scale(context.scene)
        with ExitStack() as undo:
            is_on = contact_keys.toggle(tip, self.contact, time, undo)
            undo.pop_all()
        contact_keys.show(tip, time)
        context.view_layer.update()
        what = next(label for name, label, *_rest in CONTACTS if name == self.contact)
        done = "Added a contact: {what} of '{tip}'" if is_on else "Removed a contact: {what} of '{tip}'"
        return self.done(say(done, what=say(what), tip=tip.name))


class IK_ADDON_OT_find_pivots(ChainOperator):
    """Find where a foot touches."""

    bl_idname = "ik_addon.find_pivots"
    bl_label = "Find Pivots"
    bl_description = "Find where the heel and the toe of the active chain touch, from its bones"

    def perform(self, context: bpy.types.Context) -> set[str]:
        """Find and store them."""
        tip, ob = active_chain(context), armature(context)
        if end_of(tip) is None:
            raise UserError("There is no hand or foot below '{tip}'. Choose an End Bone", tip=tip.name)
        pivots.store(tip, pivots.found(Figure.of(ob), tip))
        return {"FINISHED"}


CLASSES: tuple[Any, ...] = (IK_ADDON_OT_find_contacts, IK_ADDON_OT_mark_contact, IK_ADDON_OT_find_pivots)
