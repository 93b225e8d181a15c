"""Options shared by operators on a clip: chains, frames, and the object that the feet stand on."""

from __future__ import annotations

import bpy
from bpy.props import EnumProperty, StringProperty

from ....anatomy.figure import Figure
from ....core.translation.sentences import UserError
from ....feet.pivots import is_of_leg
from ....rig.plan.chain import tips
from ..active import armature
from ..goals.snap import FramesOperator
from ..solve import CHAINS
from .frame_range import FRAME_RANGES

CLIP_CHAINS = (("LEGS", "Legs", "The chains on legs, or all chains if there are none"), *CHAINS)


class ClipOperator(FramesOperator):
    """Base of operators on chains over a range of frames."""

    chains: EnumProperty(name="Chains", description="The chains to work on", items=CLIP_CHAINS, default="LEGS")
    frame_range: EnumProperty(name="Frames", description="The frames to work on", items=FRAME_RANGES, default="SCENE")
    on: StringProperty(
        name="On",
        description="The object that the feet stand on, if it moves, such as a lift or a horse",
    )

    def chosen(self, context: bpy.types.Context) -> list[bpy.types.PoseBone]:
        """Return the tips of the chosen chains; raise `UserError` if there is none."""
        ob = armature(context)
        found: list[bpy.types.PoseBone] = super().chosen(context)
        if self.chains == "LEGS":
            figure = Figure.of(ob)
            found = [tip for tip in tips(ob) if is_of_leg(figure, tip)] or tips(ob)
        return found

    def support(self, context: bpy.types.Context) -> bpy.types.Object | None:
        """Return the moving object that the feet stand on; None: they stand on something that doesn't move.

        Raises:
            UserError: there is no such object, or nothing can stand on it.
        """
        return self.named(context, self.on)

    def named(self, context: bpy.types.Context, name: str) -> bpy.types.Object | None:
        """Return the object with the name set in an option; None: the option is empty.

        Raises:
            UserError: there is no such object, or it is the armature itself.
        """
        if not name:
            return None
        found: bpy.types.Object | None = context.view_layer.objects.get(name)
        if found is None:
            raise UserError("There is no object '{name}' in this view layer", name=name)
        if found == armature(context):
            raise UserError("An armature can't stand on itself. Pick another object")
        return found
