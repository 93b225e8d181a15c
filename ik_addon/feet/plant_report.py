"""What planting feet achieved, measured on the saved keys as Blender plays them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ..anatomy.figure import Figure
from ..bake.bake_report import count_of_frames
from ..bake.sampling import played, same_frame
from ..bake.selection import time_scale
from ..core import contact_keys
from ..core.settings import chain_of
from ..core.skeleton import inverse, moved, size_of
from ..core.steps import part
from ..core.translation.sentences import count, say
from ..live.reports import percent
from ..rig.plan.chain import chain_bones, end_of
from ..solve.problem import Floats
from . import pivots
from .floor import Floor
from .foot_track import slide_of
from .ground_object import still, unscaled


@dataclass(frozen=True)
class Planted:
    """The result of planting. Distances are fractions of the length of the limb."""

    frames: int
    contacts: int
    has_ground: bool
    slide: tuple[float, float]
    """The largest slide of a point in contact: before, and now."""
    depth: tuple[float, float]
    """The largest depth of a point in the ground: before, and now."""
    hips: float
    """The largest movement of the hips."""
    knees: tuple[float, float]
    """The largest turn of a knee from frame to frame, in degrees: before, and now."""
    short: float
    """The largest distance by which a limb misses its target, in contact or not."""
    short_frames: int
    """The number of frames on which a limb misses its target; a bake of these frames reports as many."""
    remarks: list[str]
    """Sentences about what was left alone."""

    @property
    def message(self) -> str:
        """A summary of slide and depth before and after, and of what the hips did."""
        slide, depth = ([percent(part) for part in pair] for pair in (self.slide, self.depth))
        said = [
            say(
                "{contacts} on {frames}: slide {before} before, {after} now",
                contacts=count(self.contacts, "Locked 1 contact", "Locked {count} contacts"),
                frames=count_of_frames(self.frames),
                before=slide[0],
                after=slide[1],
            )
        ]
        if self.has_ground:
            said.append(say("Depth in the ground {before} before, {after} now", before=depth[0], after=depth[1]))
        if self.hips:
            said.append(say("The hips moved by up to {distance} of the leg's length", distance=percent(self.hips)))
        if self.knees[1]:
            before, now = (f"{turn:.0f}" for turn in self.knees)
            said.append(say("Knees turn by up to {now}° a frame, {before}° before", now=now, before=before))
        if self.short_frames:
            said.append(
                say(
                    "A limb misses its target by up to {distance} of its length on {frames}: check its limits, or "
                    "raise Hips Limit",
                    distance=percent(self.short),
                    frames=count_of_frames(self.short_frames),
                )
            )
        return ". ".join([*said, *self.remarks])


def as_saved(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tips: Sequence[bpy.types.PoseBone],
    frames: Sequence[int],
    planted: Planted,
    *,
    on: bpy.types.Object | None,
    floor: Floor | None,
) -> Generator[float, None, Planted]:
    """Play all frames and measure the planted feet as Blender shows them; yields progress (0 to 1).

    Args:
        context: gives the scene and the view layer.
        ob: the armature object.
        tips: the tip bones of the planted chains.
        frames: the frames on which they were planted.
        planted: the result that planting returned.
        on: what they stand on; None if that doesn't move.
        floor: the ground that they were kept out of.
    """
    scene, view_layer = context.scene, context.view_layer
    at = time_scale(scene) * np.array(frames, dtype=np.float64)
    with same_frame(scene):
        points, lengths, support = yield from part(_points(view_layer, ob, tips, frames, on), 0.0, 0.8)
        seen = inverse(support)
        slides = [
            slide_of(moved(seen, points[:, t, p]), touching) / lengths[t]
            for t, tip in enumerate(tips)
            for p, touching in enumerate(contact_keys.read(tip, at))
        ]
        depth = 0.0
        if floor is not None:
            flat = points.reshape(len(frames), -1, 3)
            looking = floor.read_heights(frames, flat, max(lengths))
            heights = (yield from part(looking, 0.8, 1.0))(flat).reshape(points.shape[:3])
            depth = float(np.nanmax(np.append(-heights / np.array(lengths)[:, None], 0.0)))
    return replace(planted, slide=(planted.slide[0], max(slides)), depth=(planted.depth[0], depth))


def _points(
    view_layer: bpy.types.ViewLayer,
    ob: bpy.types.Object,
    tips: Sequence[bpy.types.PoseBone],
    frames: Sequence[int],
    on: bpy.types.Object | None,
) -> Generator[float, None, tuple[Floats, list[float], Floats]]:
    """Return world positions (F, C, 2, 3) of heels and toes, lengths of limbs, and what they stand on (F, 4, 4)."""
    figure, names = Figure.of(ob), ob.pose.bones.keys()
    own = np.empty((len(tips), 2, 3))
    ends = []
    for t, tip in enumerate(tips):
        end = end_of(tip)
        ends.append(names.index((end or tip).name))
        # A foot that doesn't turn with its target is held at its joint.
        is_held = end is not None and chain_of(tip).use_end_rotation
        own[t] = pivots.of(figure, tip) if is_held else (0.0, 0.0 if end else tip.bone.length, 0.0)
    poses, worlds = yield from played(view_layer, ob, np.array(ends), frames, (ob,) if on is None else (ob, on))
    points = moved(poses[..., None, :, :], own)
    support = still(len(frames)) if on is None else unscaled(worlds[:, 1])
    scale = float(size_of(worlds[0, 0]))
    return points, [scale * sum(bone.bone.length for bone in chain_bones(tip)) for tip in tips], support
