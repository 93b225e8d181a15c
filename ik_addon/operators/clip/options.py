"""What operators on a clip have in common: which chains, which frames, and what the feet stand on."""

from __future__ import annotations

import bpy
from bpy.props import EnumProperty, StringProperty

from ...anatomy.figure import Figure
from ...goals.snapped import SnapError
from ...planting.pivots import is_of_leg
from ...rig.plan.chain import tips
from ..active import NONE_ACTIVE, armature
from ..goals.snap import FramesOperator
from ..solve import CHAINS
from .frame_range import FRAME_RANGES

CLIP_CHAINS = (("LEGS", "Legs", "The chains on legs, or all chains if there are none"), *CHAINS)

OBJECTS = {"on", "ground"}
"""Options that name an object."""


class ClipOperator(FramesOperator):
    """An operator on chains over a range of frames."""

    chains: EnumProperty(name="Chains", description="The chains to work on", items=CLIP_CHAINS, default="LEGS")
    frame_range: EnumProperty(name="Frames", description="The frames to work on", items=FRAME_RANGES, default="SCENE")
    on: StringProperty(
        name="On",
        description="The object that the feet stand on, if it moves, such as a lift or a horse",
    )

    own: tuple[str, ...] = ()
    """The options that only this operator has."""

    def chosen(self, context: bpy.types.Context) -> list[bpy.types.PoseBone]:
        """The tips of the chosen chains.

        Raises:
            SnapError: none is active.
        """
        ob = armature(context)
        found: list[bpy.types.PoseBone] = super().chosen(context)
        if self.chains == "LEGS":
            figure = Figure.of(ob)
            found = [tip for tip in tips(ob) if is_of_leg(figure, tip)] or tips(ob)
        if not found:
            raise SnapError(NONE_ACTIVE)
        return found

    def active_only(self, context: bpy.types.Context) -> list[bpy.types.PoseBone] | None:
        """The tip of the active chain where that one is asked for."""
        return super().active_only(context) if self.chains == "ACTIVE" else None

    def support(self, context: bpy.types.Context) -> bpy.types.Object | None:
        """What the feet stand on; None: on what doesn't move.

        Raises:
            SnapError: there is no such object.
        """
        return self.named(context, self.on)

    def named(self, context: bpy.types.Context, name: str) -> bpy.types.Object | None:
        """The object of a name that something on the clip refers to; None: no name.

        Raises:
            SnapError: there is no such object, or it can't be stood on.
        """
        if not name:
            return None
        found: bpy.types.Object | None = context.view_layer.objects.get(name)
        if found is None:
            raise SnapError("There is no object '{name}' in this view layer", name=name)
        if found == armature(context):
            raise SnapError("An armature can't stand on itself. Pick another object")
        return found

    def draw(self, context: bpy.types.Context) -> None:
        """The options."""
        super().draw(context)
        for name in ("on", *self.own):
            if name in OBJECTS:
                self.layout.prop_search(self, name, context.view_layer, "objects")
            else:
                self.layout.prop(self, name)
