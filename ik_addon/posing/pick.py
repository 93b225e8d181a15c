"""Which bone is under the mouse, and which of its joints is nearer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Vector

from ..pose.skeleton import matrix_array
from ..solve.problem import Floats

NEAR = 10.0
"""Pixels at a resolution scale of 1 from its line within which a bone is under the mouse."""
FAT = 0.1
"""The same, in lengths of the bone: octahedral ones are so thick."""


class Picked(NamedTuple):
    """A bone in the region of a viewport."""

    bone: bpy.types.PoseBone
    use_tail: bool
    """Its tail is nearer to the mouse than its head."""
    ends: Floats
    """(2, 2) where head and tail are in the region, in pixels."""

    @classmethod
    def nearest(cls, context: bpy.types.Context, bone: bpy.types.PoseBone, place: Vector) -> Picked:
        """A bone, by the joint that is nearer to a place."""
        ends = on_screen(context, [bone])[0, :, :2]
        far = np.hypot(*(ends - np.array(place)).T)
        return cls(bone, bool(far[1] < far[0]), ends)


def picked(context: bpy.types.Context, place: Vector) -> Picked | None:
    """The bone at a place in the region: the nearest of all armatures in Pose Mode, on the screen first."""
    bones = [bone for bone in context.visible_pose_bones or () if not bone.bone.hide_select]
    if not bones:
        return None
    ends = on_screen(context, bones)
    index = nearest(ends, np.array(place), NEAR * context.preferences.system.ui_scale)
    return None if index is None else Picked.nearest(context, bones[index], place)


def on_screen(context: bpy.types.Context, bones: Sequence[bpy.types.PoseBone]) -> Floats:
    """Where head and tail (n, 2, 3) of bones are in the region: pixels, and depth; not a number behind the viewer."""
    region, view = context.region, context.region_data
    worlds = {bone.id_data: matrix_array(bone.id_data.matrix_world) for bone in bones}
    points = np.array([(bone.head[:], bone.tail[:]) for bone in bones])
    to_clip: Any = matrix_array(view.perspective_matrix)
    clips = np.array([to_clip.dot(worlds[bone.id_data]) for bone in bones])
    found = np.einsum("nij,nkj->nki", clips[:, :, :3], points) + clips[:, None, :, 3]
    with np.errstate(all="ignore"):
        found = np.where(found[..., 3:] > 0.0, found / found[..., 3:], np.nan)
    size = np.array([region.width, region.height])
    return np.concatenate([(found[..., :2] + 1.0) / 2.0 * size, found[..., 2:3]], axis=-1)


def nearest(ends: Floats, place: Floats, near: float) -> int | None:
    """Which of lines (n, 2, 3) is at a place (2,), within so many pixels; None: none of them.

    Where bones meet they are equally near: the last of them is taken, which is the child.
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
