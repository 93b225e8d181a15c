"""Which bone is under the mouse, and which of its ends is nearer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from bpy.types import Context, Object, PoseBone
from mathutils import Vector

from ..core.settings import chain_of, goal_of, is_tip
from ..core.skeleton import matrix_array
from ..rig.plan.chain import end_of, tips
from ..solve.problem import Floats

NEAR = 10.0
"""Maximum distance of the mouse from a bone's line, in pixels at a resolution scale of 1."""
FAT = 0.1
"""The same as a fraction of the bone's length: octahedral bones are this thick."""


class Picked(NamedTuple):
    """A bone in the region of a viewport."""

    bone: PoseBone
    use_tail: bool
    """Whether its tail is nearer to the mouse than its head."""
    ends: Floats
    """(2, 2) head and tail in the region, in pixels."""

    @classmethod
    def nearest(cls, context: Context, bone: PoseBone, place: Vector) -> Picked:
        """Return a bone with whichever of its ends is nearer to a place.

        At the end of a chain, where its target is, that is the joint which follows the target: the head of the hand.
        """
        ends = on_screen(context, [bone])[0, :, :2]
        far = np.hypot(*(ends - np.array(place)).T)
        if far[1] < min(far[0], max(near_of(context), FAT * np.hypot(*(ends[1] - ends[0])))) and is_tip(bone):
            return cls.of(context, *joint_of(bone))
        return cls(bone, bool(far[1] < far[0]), ends)

    @classmethod
    def of(cls, context: Context, bone: PoseBone, use_tail: bool) -> Picked:
        """Return a bone with one of its ends."""
        return cls(bone, use_tail, on_screen(context, [bone])[0, :, :2])


def joint_of(tip: PoseBone) -> tuple[PoseBone, bool]:
    """Return the joint that follows the target of a chain: the head of the hand or foot, or else the tip's tail."""
    end = end_of(tip)
    return (tip, True) if end is None else (end, False)


def near_of(context: Context) -> float:
    """Return how many pixels from the mouse a bone may be."""
    scale: float = context.preferences.system.ui_scale
    return NEAR * scale


def picked(context: Context, place: Vector) -> Picked | None:
    """Return the bone nearest to a place in the region, of all armatures in Pose Mode; if several, the frontmost.

    Targets are left out: the joint that follows one is under it, and takes it along.
    """
    visible = context.visible_pose_bones or ()
    targets = target_bones({bone.id_data for bone in visible})
    bones = [bone for bone in visible if not bone.bone.hide_select and bone not in targets]
    if not bones:
        return None
    index = nearest(on_screen(context, bones), np.array(place), near_of(context))
    return None if index is None else Picked.nearest(context, bones[index], place)


def target_bones(obs: Iterable[Object]) -> dict[PoseBone, PoseBone]:
    """Return the target bones of the chains of some armatures, with the tip of each chain."""
    found = {}
    for tip in (tip for ob in obs for tip in tips(ob)):
        target, name = goal_of(chain_of(tip), "target")
        if name and target is not None and target.type == "ARMATURE" and name in target.pose.bones:
            found[target.pose.bones[name]] = tip
    return found


def on_screen(context: Context, bones: Sequence[PoseBone]) -> Floats:
    """Return heads and tails (n, 2, 3) of bones in the region: pixels, and depth; NaN behind the viewer."""
    region, view = context.region, context.region_data
    worlds = {bone.id_data: matrix_array(bone.id_data.matrix_world) for bone in bones}
    points = np.array([(bone.head[:], bone.tail[:]) for bone in bones])
    to_clip = matrix_array(view.perspective_matrix)
    clips = np.array([to_clip.dot(worlds[bone.id_data]) for bone in bones])
    found = np.einsum("nij,nkj->nki", clips[:, :, :3], points) + clips[:, None, :, 3]
    with np.errstate(all="ignore"):
        found = np.where(found[..., 3:] > 0.0, found / found[..., 3:], np.nan)
    size = np.array([region.width, region.height])
    return np.concatenate([(found[..., :2] + 1.0) / 2.0 * size, found[..., 2:3]], axis=-1)


def nearest(ends: Floats, place: Floats, near: float) -> int | None:
    """Return which of the lines (n, 2, 3) is at a place (2,), to within `near` pixels; None: none of them.

    Bones that meet are equally near there: the last one is taken, which is the child.
    """
    line = ends[:, 1, :2] - ends[:, 0, :2]
    squares = (line * line).sum(axis=1)
    with np.errstate(all="ignore"):
        share = ((place - ends[:, 0, :2]) * line).sum(axis=1) / squares
        share = np.where(squares > 0.0, share.clip(0.0, 1.0), 0.0)[:, None]
        there = ends[:, 0] + share * (ends[:, 1] - ends[:, 0])
        away = np.hypot(*(there[:, :2] - place).T)
        under = np.flatnonzero(away <= np.maximum(near, FAT * np.sqrt(squares)))
    if not len(under):
        return None
    order = np.lexsort((-under, there[under, 2].round(4), away[under].round()))
    return int(under[order[0]])
