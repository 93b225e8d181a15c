"""What is saved of planted feet: how far they slide and how deep they are in the ground, as Blender plays their keys."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

import bpy
import numpy as np

from ..anatomy.figure import Figure
from ..bake.baking import part
from ..bake.sampling import at_frame
from ..bake.selection import time_scale
from ..clip.foot import slide_of
from ..data.settings import chain_of
from ..pose import channels
from ..pose.skeleton import inverse, matrix_array, orthonormal
from ..rig.plan.chain import chain_bones, end_of
from ..solve.maths.products import applied, determinants, times
from ..solve.problem import Floats
from . import contact_keys, pivots
from .floor import Floor
from .plant import Options, Planted


def steps(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tips: Sequence[bpy.types.PoseBone],
    frames: Sequence[int],
    options: Options,
    planted: Planted,
) -> Generator[float, None, Planted]:
    """Play all frames, and tell of planted feet what is to be seen there; yields the share that is done.

    Args:
        context: for the scene and the view layer.
        ob: the armature object.
        tips: of the chains that were planted.
        frames: on which they were.
        options: as they were planted.
        planted: what was told of them then.
    """
    scene, view_layer = context.scene, context.view_layer
    here = scene.frame_current, scene.frame_subframe
    at = time_scale(scene) * np.array(frames, dtype=np.float64)
    points, lengths, support = yield from part(_played(view_layer, ob, tips, frames, options.support), 0.0, 0.8)
    seen = inverse(support)
    slides = [
        slide_of(applied(seen[:, :3, :3], points[:, t, p]) + seen[:, :3, 3], touching) / lengths[t]
        for t, tip in enumerate(tips)
        for p, touching in enumerate(contact_keys.read(tip, at))
    ]
    depth = 0.0
    if options.ground is not None:
        flat = points.reshape(len(frames), -1, 3)
        looking = Floor(view_layer, options.ground).steps(frames, flat, max(lengths))
        heights = (yield from part(looking, 0.8, 1.0))(flat).reshape(points.shape[:3])
        depth = float(np.nanmax(np.append(-heights / np.array(lengths)[:, None], 0.0)))
    scene.frame_set(here[0], subframe=here[1])
    return replace(planted, slide=(planted.slide[0], max(slides)), depth=(planted.depth[0], depth))


def _played(
    view_layer: bpy.types.ViewLayer,
    ob: bpy.types.Object,
    tips: Sequence[bpy.types.PoseBone],
    frames: Sequence[int],
    on: bpy.types.Object | None,
) -> Generator[float, None, tuple[Floats, list[float], Floats]]:
    """Where (F, C, 2, 3) heels and toes are in world space, how long limbs are, and (F, 4, 4) what feet stand on."""
    figure, names = Figure.of(ob), ob.pose.bones.keys()
    own = np.empty((len(tips), 2, 3))
    ends = []
    for t, tip in enumerate(tips):
        end = end_of(tip)
        ends.append(names.index((end or tip).name))
        # A foot that doesn't turn with its target is held at its joint.
        is_held = end is not None and chain_of(tip).use_end_rotation
        own[t] = pivots.of(figure, tip) if is_held else (0.0, 0.0 if end else tip.bone.length, 0.0)
    points, support = np.empty((len(frames), len(tips), 2, 3)), np.repeat(np.eye(4)[None], len(frames), axis=0)
    scale = 1.0
    for i, frame in enumerate(frames):
        depsgraph = at_frame(view_layer, frame)
        seen = ob.evaluated_get(depsgraph)
        world = matrix_array(seen.matrix_world)
        poses = times(np.repeat(world[None], len(tips), axis=0), channels.read_pose(seen, np.array(ends)))
        points[i] = applied(poses[:, None, :3, :3], own) + poses[:, None, :3, 3]
        if on is not None:
            there = matrix_array(on.evaluated_get(depsgraph).matrix_world)
            support[i, :3, 3], support[i, :3, :3] = there[:3, 3], orthonormal(there[None, :3, :3])[0]
        if not i:
            scale = float(np.cbrt(np.abs(determinants(world[None, :3, :3])))[0])
        yield (i + 1) / len(frames)
    return points, [scale * sum(bone.bone.length for bone in chain_bones(tip)) for tip in tips], support
