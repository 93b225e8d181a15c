"""Sampling how feet and hips of an armature move as Blender plays them, for plots."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from ..anatomy.figure import Figure
from ..bake.sampling import played, same_frame
from ..bake.selection import time_scale
from ..planting import contact_keys, pivots
from ..posing.figure import root_of
from ..rig.plan.chain import chain_bones, end_of
from ..solve.maths.products import applied
from ..solve.problem import Bools, Floats


@dataclass(frozen=True)
class Tracks:
    """C legs and the hips on F frames."""

    frames: list[int]
    legs: list[str]
    """Names of the tip bones."""
    foot_speed: Floats
    """(C, F) speed in scene units per second, of the heel or the toe: whichever is slower."""
    contacts: Bools
    """(C, 2, F) whether heel and toe touch."""
    hips: Floats
    """(F,) height in scene units."""


def sample(
    context: bpy.types.Context, ob: bpy.types.Object, legs: Sequence[bpy.types.PoseBone], frames: Sequence[int]
) -> Generator[float, None, Tracks]:
    """Play frames and sample legs and hips; yields progress (0 to 1)."""
    scene = context.scene
    figure, names = Figure.of(ob), ob.pose.bones.keys()
    feet = [end_of(tip) or tip for tip in legs]
    hips = root_of(figure, figure.names.index(chain_bones(legs[0])[0].name))
    rows = np.array([names.index(name) for name in (*(foot.name for foot in feet), figure.names[hips])], dtype=np.int64)
    with same_frame(scene):
        poses, _ = yield from played(context.view_layer, ob, rows, frames)
    rate = scene.render.fps / scene.render.fps_base
    seconds = np.gradient(np.array(frames, dtype=np.float64)) / rate if len(frames) > 1 else np.ones(len(frames))
    found = []
    for leg, tip in enumerate(legs):
        touching = pivots.of(figure, tip) if end_of(tip) is not None else np.zeros((2, 3))
        both = [_speed_of(poses[:, leg], point, seconds) for point in touching]
        found.append(np.minimum(*both))
    at = time_scale(scene) * np.array(frames, dtype=np.float64)
    return Tracks(
        frames=list(frames),
        legs=[tip.name for tip in legs],
        foot_speed=np.array(found),
        contacts=np.array([contact_keys.read(tip, at) for tip in legs]),
        hips=poses[:, -1, 2, 3],
    )


def _speed_of(poses: Floats, point: Floats, seconds: Floats) -> Floats:
    """Return the speed (F,) of a point fixed to a bone with poses (F, 4, 4)."""
    places = applied(poses[:, :3, :3], np.repeat(point[None], len(poses), axis=0)) + poses[:, :3, 3]
    moved = np.gradient(places, axis=0) if len(places) > 1 else np.zeros_like(places)
    return np.asarray(np.linalg.norm(moved, axis=1) / seconds)
