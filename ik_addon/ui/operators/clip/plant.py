"""The operator that plants feet."""

from __future__ import annotations

import math
from collections.abc import Generator

import bpy
from bpy.props import BoolProperty, FloatProperty, StringProperty

from ....core.translation.sentences import marked
from ....feet import plant
from ....feet.plant_report import Planted
from ..settings import seconds
from .frame_range import ClipOperator


class IK_ADDON_OT_plant(ClipOperator):
    """Key targets and hips so that contacts hold still."""

    bl_label = "Lock Feet"
    bl_description = (
        "Key the targets so that feet and hands stay still while they touch, roll about heel and toe, and "
        "move as before in between; the hips move so that the legs reach"
    )

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

    def steps(self, context: bpy.types.Context, ob: bpy.types.Object) -> Generator[float, None, Planted]:
        """Plant the feet; yields progress (0 to 1)."""
        options = plant.Options(
            blend=self.blend,
            hips=self.hips,
            cap=self.cap,
            smooth=self.smooth,
            on=self.named(context, self.on),
            ground=self.named(context, self.ground),
            slope=self.slope,
        )
        return plant.plant_feet(context, ob, self.chosen(context), self.frames(context), options)

    def finish(self, result: Planted) -> set[str]:
        """Report the outcome."""
        return self.tell(result)
