"""The hand or foot at the end of a chain: which bone it is, and its rotation relative to the target."""

from collections.abc import Sequence

import numpy as np
from bpy.types import Context, Depsgraph, Object, PoseBone
from mathutils import Matrix

from ..anatomy.chain_ends import end_below
from ..anatomy.figure import Figure
from ..core.channels import rotation_field, turned
from ..core.constraints import steered_bones
from ..core.goals import Goal
from ..core.settings import chain_of
from ..core.skeleton import rest_of
from ..core.translation.sentences import UserError
from ..rig.plan import chain as chains
from ..rig.plan.chain import chain_bones, end_of
from ..rig.read import fcurves
from ..rig.read.orientation import axes_between


def find(ob: Object, bones: Sequence[PoseBone]) -> PoseBone | None:
    """Return the hand or foot of a limb, given its bones, root first; None if a chain on them can't turn it."""
    figure = Figure.of(ob, steered_bones(ob))
    found = end_below(figure, [figure.names.index(bone.name) for bone in bones])
    if found is None:
        return None
    end = ob.pose.bones[figure.names[found]]
    try:
        chains.check_bones(ob, [end])
        chains.check_between(ob, bones[-1], end)
    except UserError:
        return None
    is_taken = any(end in chains.posed_bones(tip) for tip in chains.tips(ob) if tip != bones[-1])
    return None if is_taken else end


def pose_of(bone: PoseBone) -> Matrix:
    """Return the pose of an evaluated bone; of one that is scaled to zero, to hide it, as it would be without scale."""
    if all(bone.scale[:]):
        return bone.matrix
    mode = bone.rotation_mode
    turn = Matrix(rest_of(bone).tolist()) @ turned(getattr(bone, rotation_field(mode)), mode)
    return Matrix.Translation(bone.head) @ turn.to_4x4()


def fit(tip: PoseBone, depsgraph: Depsgraph) -> bool:
    """Set the end offset of a chain to the current rotation from its target to its end bone, which then stays as it is.

    Return False, and change nothing, if the end bone or the target has no orientation, below something scaled to zero.
    """
    ob, chain, end = tip.id_data, chain_of(tip), end_of(tip)
    seen = ob.evaluated_get(depsgraph)
    target = Goal(chain.target, chain.target_bone).world(depsgraph)
    axes = axes_between(seen.matrix_world, target, pose_of(seen.pose.bones[end.name]))
    is_fit = bool(np.isfinite(axes).all())
    if is_fit:
        chains.set_end_axes(tip, axes)
    return is_fit


def turn(context: Context, tip: PoseBone) -> PoseBone:
    """Make the end bone of a chain turn with the target from their current orientations; return the end bone.

    Raises:
        UserError: there is no end bone, or it can't be turned; the caller puts settings of the chain back.
    """
    ob, chain = tip.id_data, chain_of(tip)
    end = end_of(tip) or find(ob, chain_bones(tip))
    if end is None:
        raise UserError("There is no hand or foot below '{tip}'. Choose an End Bone", tip=tip.name)
    chain.end_bone = end.name
    if not fit(tip, context.evaluated_depsgraph_get()):
        raise UserError("'{end}' or its target is scaled to zero. Reset the scale", end=end.name)
    chain.use_end_rotation = True
    context.view_layer.update()
    return end


def is_animated(*bones: PoseBone) -> bool:
    """Return whether bones are animated; a static target would override that animation."""
    ob = bones[0].id_data
    return bool(fcurves.animated(ob, np.array([ob.pose.bones.find(bone.name) for bone in bones])).any())


def waiting(tip: PoseBone) -> PoseBone | None:
    """Return the end bone of a chain if it does not take the target's orientation yet because it is animated."""
    end = end_of(tip)
    return end if end is not None and chains.turning_end(tip) is None and is_animated(end) else None
