"""What planting feet achieved, measured on the saved keys as Blender plays them."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from bpy.types import Context, Object, PoseBone, ViewLayer

from ..anatomy.figure import Figure
from ..bake.reducing import Floor
from ..bake.restore import over_frames
from ..bake.sampling import played
from ..bake.selection import time_scale
from ..core import contact_keys
from ..core.report import Remark, Report, count_of_frames, percent
from ..core.settings import chain_of
from ..core.skeleton import inverse, moved, size_of, unscaled
from ..core.steps import part
from ..core.translation.sentences import count, say
from ..rig.plan.chain import chain_bones, end_of
from ..solve.problem import Floats
from . import pivots
from .foot_track import slide_of
from .ground_object import still


@dataclass(frozen=True)
class Planted(Report):
    """The result of planting. Distances are fractions of the length of the limb."""

    chains: tuple[str, ...]
    """Tip bones of the hands and feet."""
    found: tuple[str, ...] = ()
    """Those whose contacts were found before planting; the others had some."""
    snapped: tuple[str, ...] = ()
    """Tip bones of all chains whose targets had no keys and were snapped to the pose before planting."""
    frames: int = 0
    contacts: int = 0
    """If there are none, nothing was planted."""
    has_ground: bool = False
    slide_before: float = 0.0
    slide: float = 0.0
    """The largest slide of a point in contact."""
    depth_before: float = 0.0
    depth: float = 0.0
    """The largest depth of a point in the ground."""
    hips: float = 0.0
    """The largest movement of the hips."""
    knees_before: float = 0.0
    knees: float = 0.0
    """The largest turn of a knee from frame to frame, in degrees."""
    short: float = 0.0
    """The largest distance by which a limb misses its target, in contact or not."""
    short_frames: int = 0
    """The number of frames on which a limb misses its target; a bake of these frames reports as many."""
    remarks: tuple[str, ...] = ()
    """Sentences about what was left alone."""

    def sentences(self) -> Iterator[str]:
        """Yield slide and depth before and after, what the hips did, and what needs attention."""
        if not self.contacts:
            yield Remark(say("No contacts found, so nothing was planted"))
            return
        yield say(
            "{contacts} on {frames}: slide {before} before, {after} now",
            contacts=count(self.contacts, "Locked 1 contact", "Locked {count} contacts"),
            frames=count_of_frames(self.frames),
            before=percent(self.slide_before),
            after=percent(self.slide),
        )
        if self.has_ground:
            before, now = percent(self.depth_before), percent(self.depth)
            yield say("Depth in the ground {before} before, {after} now", before=before, after=now)
        if self.hips:
            yield say("The hips moved by up to {distance} of the leg's length", distance=percent(self.hips))
        if self.knees:
            before, now = f"{self.knees_before:.0f}", f"{self.knees:.0f}"
            yield say("Knees turn by up to {now}° a frame, {before}° before", now=now, before=before)
        if self.short_frames:
            missed = say(
                "A limb misses its target by up to {distance} of its length on {frames}: check its limits, or "
                "raise Hips Limit",
                distance=percent(self.short),
                frames=count_of_frames(self.short_frames),
            )
            yield Remark(missed)
        yield from map(Remark, self.remarks)


def as_saved(
    context: Context,
    ob: Object,
    tips: Sequence[PoseBone],
    frames: Sequence[int],
    planted: Planted,
    *,
    on: Object | None,
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
    with over_frames(view_layer, ob) as (_undo, before):
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
            looking = floor(frames, flat, max(lengths))
            heights = (yield from part(looking, 0.8, 1.0))(flat).reshape(points.shape[:3])
            depth = float(np.nanmax(np.append(-heights / np.array(lengths)[:, None], 0.0)))
        before.restore()
    return replace(planted, slide=max(slides), depth=depth)


def _points(
    view_layer: ViewLayer, ob: Object, tips: Sequence[PoseBone], frames: Sequence[int], on: Object | None
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
