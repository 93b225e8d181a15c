"""Operators on the bend side of a chain."""

from __future__ import annotations

import bpy
import numpy as np

from ...chains import bend_side, new_chain
from ...core.settings import chain_of, stored_folds
from ...core.translation.sentences import say
from ...rig.plan.chain import bending_bones, bending_end, chain_bones
from .active import ChainOperator


def find(context: bpy.types.Context, tip: bpy.types.PoseBone) -> bend_side.Found:
    """Find the bend side of a chain."""
    return bend_side.find(tip.id_data, bending_bones(tip), bending_end(tip), context.evaluated_depsgraph_get())


class IK_ADDON_OT_flip_bend(ChainOperator):
    """Flip the bend side of a chain."""

    bl_label = "Flip Bend"
    bl_description = "Make the active chain bend to the opposite side; a pole that Add Chain made moves there too"

    def perform_on_chain(self, context: bpy.types.Context, tip: bpy.types.PoseBone) -> set[str]:
        """Flip the bend side."""
        side = np.array(chain_of(tip).bend_side)
        if not side.any():
            found = find(context, tip)
            side, chain_of(tip).bends_both_ways = found.side, found.both_ways
        remarks = new_chain.set_bend_side(context, tip, -side)
        return self.done(say("Flipped the bend of the chain on '{tip}'", tip=tip.name), remarks)


class IK_ADDON_OT_find_bend_side(ChainOperator):
    """Find the bend side of a chain."""

    bl_label = "Find Bend Side"
    bl_description = (
        "Set the side that the active chain bends to from its poses, its animation, its limits and the "
        "character's anatomy"
    )

    def perform_on_chain(self, context: bpy.types.Context, tip: bpy.types.PoseBone) -> set[str]:
        """Find and store the bend side."""
        found = find(context, tip)
        chain_of(tip).bends_both_ways = found.both_ways
        # A tip that takes an orientation gets no fold.
        chain_of(tip).folds = stored_folds((*found.folds, *(0.0,) * (len(chain_bones(tip)) - len(found.folds))))
        evidence = say(found.evidence.value)
        message = say("Found the bend side of the chain on '{tip}' from {evidence}", tip=tip.name, evidence=evidence)
        return self.done(message, new_chain.set_bend_side(context, tip, found.side))
