"""A new target for a chain that has none, or whose target can't be used."""

from __future__ import annotations

import bpy
from mathutils import Matrix, Quaternion

from ..controls import made
from ..controls.bones import Control
from ..controls.made import Controls
from ..data.settings import chain_of
from ..rig.plan.chain import end_of, reach_of, turning_end
from ..rig.read.orientation import target_rotation
from .new_chain import check_world


def make_target(context: bpy.types.Context, tip: bpy.types.PoseBone) -> None:
    """Give the chain on `tip` an empty as its target, where the tip is now and oriented so that no bone turns.

    Raises:
        ChainError: if the target can't be made; nothing is changed then.
    """
    ob, chain = tip.id_data, chain_of(tip)
    seen = ob.evaluated_get(context.evaluated_depsgraph_get())
    world = seen.matrix_world.copy()
    check_world(ob, world)
    made.check(context, ob, Controls.EMPTIES)
    pose = seen.pose.bones
    last = turning_end(tip)
    turned = tip if last is None else last
    offset = Quaternion() if last is None else chain.end_offset.normalized()
    place = world @ pose[tip.name].matrix @ reach_of(tip)
    end = end_of(tip)
    if end is not None:
        place = world @ pose[end.name].head
    turn = target_rotation(world, pose[turned.name].matrix, offset)
    size = (world @ pose[tip.name].tail - world @ pose[tip.name].head).length
    wanted = Control(f"IK Target {tip.name}", Matrix.LocRotScale(place, turn, None), "CUBE", 0.15 * size)
    ((target, bone),) = made.make(context, ob, Controls.EMPTIES, [wanted])
    chain.target, chain.target_bone = target, bone
