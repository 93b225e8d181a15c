"""The operator that plants feet."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import bpy
from bpy.props import BoolProperty, FloatProperty, IntProperty

from ...bake import bake_report
from ...live import reports
from ...planting import plant
from ...translation.sentences import count, marked, say
from ..active import armature
from .options import ClipOperator


class IK_ADDON_OT_plant(ClipOperator):
    """Key targets and hips so that contacts hold still."""

    bl_idname = "ik_addon.plant"
    bl_label = "Plant"
    bl_description = (
        "Key the targets so that feet and hands stand still while they touch, roll about heel and toe, and move as "
        "before in between; the hips move so that legs reach"
    )
    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012 - as Blender wants it

    length: IntProperty(
        name="Blend",
        description="Frames over which a foot goes over into a contact and out of it",
        default=plant.Options.length,
        min=0,
        soft_max=50,
    )
    hips: BoolProperty(
        name="Hips",
        description="Move the hips as little and as smoothly as possible so that legs reach. The Softness of a chain "
        "keeps its knee bent",
        default=plant.Options.hips,
    )
    cap: FloatProperty(
        name="Hips Limit",
        description="How far the hips may move, as a fraction of the leg",
        subtype="FACTOR",
        default=plant.Options.cap,
        min=0.0,
        max=1.0,
        soft_max=0.3,
    )
    smooth: FloatProperty(
        name="Hips Smooth",
        description="Frames over which a movement of the hips begins and ends",
        default=plant.Options.smooth,
        min=1.0,
        soft_max=50.0,
        max=1000.0,
    )

    own = ("length", "hips", "cap", "smooth")
    confirm = marked("Plant")
    doing = marked("Planting")
    cancelled = marked("Planting cancelled. Nothing was changed")

    def steps(self, context: bpy.types.Context) -> Generator[float, None, plant.Planted]:
        """Plant."""
        frames = self.frames(context)
        assert frames is not None, "there is no current frame to choose"
        options = plant.Options(
            length=self.length, hips=self.hips, cap=self.cap, smooth=self.smooth, on=self.ground(context)
        )
        return plant.steps(context, armature(context), self.chosen(context), frames, options)

    def finish(self, result: plant.Planted) -> set[str]:
        """Report how much feet slid, before and after, and what the hips did."""
        before, after = (reports.percent(slide) for slide in result.slide)
        said = [
            say(
                "{contacts} on {frames}: slide {before} before, {after} now",
                contacts=count(result.contacts, "Planted 1 contact", "Planted {count} contacts"),
                frames=bake_report.count_of_frames(result.frames),
                before=before,
                after=after,
            )
        ]
        if result.hips:
            said.append(say("The hips moved by up to {distance} of the leg", distance=reports.percent(result.hips)))
        if result.short_frames:
            said.append(
                say(
                    "A leg is up to {distance} too short on {frames}",
                    distance=reports.percent(result.short),
                    frames=bake_report.count_of_frames(result.short_frames),
                )
            )
        self.report(
            {"WARNING"} if result.short_frames or result.remarks else {"INFO"}, ". ".join([*said, *result.remarks])
        )
        return {"FINISHED"}


CLASSES: tuple[Any, ...] = (IK_ADDON_OT_plant,)
