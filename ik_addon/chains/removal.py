"""Remove chains from bones, with the targets made for them, and restore the FK pose."""

from collections.abc import Collection, Sequence

import numpy as np
from bpy.types import Context, Object, PoseBone, ViewLayer

from ..core import channels, fk_store
from ..core.settings import chain_of, object_of, reset
from ..live import registry, reports
from ..rig.plan.chain import posed_bones, tips
from ..rig.plan.facts import is_animated
from ..rig.plan.followers import goals_of
from ..rig.read import fcurves
from . import make_controls


def remove_chains(context: Context, own: Sequence[PoseBone], remove_goals: bool) -> list[str]:
    """Remove chains of an armature and put their bones back into their FK pose.

    Targets and poles are deleted if Add Chain made them and nothing else needs them: no other chains, constraints,
    children or keyframes.

    Args:
        context: for the view layer.
        own: the tip bones of the chains.
        remove_goals: also delete targets and poles.

    Returns:
        The names of empties and control bones that Add Chain made but that are kept because they are in use.
    """
    ob = own[0].id_data
    goals = dict.fromkeys(goal for tip in own for goal in goals_of(tip) if goal.is_made)
    solved = fk_store.stored_bones(ob)
    for tip in own:
        chain_of(tip).is_chain = False
        reset(chain_of(tip))
    reports.clear(ob, [tip.name for tip in own])
    # Live releases the bones now, so that everything is one undo step.
    context.view_layer.update()
    if not object_of(ob).live:
        evaluate_animation(ob, set(solved).difference(fk_store.stored_bones(ob)), context.view_layer)
    if not tips(ob):
        make_controls.undress(ob)
    if not remove_goals:
        return []
    while unused := [goal for goal in goals if not make_controls.is_needed(goal)]:  # then what carried these is, too
        make_controls.delete(context, unused)
        goals = dict.fromkeys(goal for goal in goals if goal not in unused)
    return sorted(goal.name for goal in goals)


def restore_pose(ob: Object, view_layer: ViewLayer, only: list[PoseBone] | None) -> int:
    """Put the bones of chains back into their FK pose and turn Live off; return the number of bones.

    Args:
        ob: the armature object.
        view_layer: in which the object is evaluated.
        only: the tips of the chains; None: all chains. Where Live is on, the bones of all chains are put back.
    """
    bones = fk_store.stored_bones(ob)
    if object_of(ob).live:
        object_of(ob).live = False  # restores the FK pose of this frame, including edits that are not keyed
    else:
        if only is not None:
            names = {bone.name for tip in only for bone in posed_bones(tip)}
            bones = [bone for bone in bones if ob.pose.bones[bone].name in names]
        fk_store.release(ob, bones)
        reports.clear(ob, None if only is None else [tip.name for tip in only])
        evaluate_animation(ob, bones, view_layer)
    return len(bones)


def evaluate_animation(ob: Object, bones: Collection[int], view_layer: ViewLayer) -> None:
    """Set the animated channels of these bones to their values on the current frame; leave all other bones alone."""
    if not bones or not is_animated(ob):
        return
    own = np.array(sorted(bones), dtype=np.int64)
    others = np.setdiff1d(np.arange(len(ob.pose.bones)), own)
    rows = channels.read(ob, others)
    with registry.paused():
        try:
            frame = view_layer.id_data.frame_current_final
            channels.write(ob, own, fcurves.at_frames(ob, own, channels.read(ob, own), [frame])[0])
        except fcurves.NotDetermined:
            ob.update_tag(refresh={"OBJECT", "DATA", "TIME"})
            view_layer.update()
            channels.write(ob, others, rows)
    view_layer.update()
