"""Keying targets and hips so that feet stand still while they touch."""

import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
from bpy.types import Context, Object, PoseBone, ViewLayer

from ..anatomy.body import root_of
from ..anatomy.figure import Figure
from ..bake.reducing import HELD, Floor
from ..bake.sampling import played
from ..bake.scene import over_frames, time_scale
from ..core import contact_keys, keyframes
from ..core.report import Remark, Report, count_of_frames, percent
from ..core.settings import chain_of
from ..core.skeleton import inverse, moved, size_of, unscaled
from ..core.steps import part
from ..core.transforms import continuous
from ..core.translation.sentences import UserError, count, say
from ..live.reports import NEAR
from ..rig.plan.chain import chain_bones, end_of
from ..solve.maths.products import applied, back_applied, lengths_of, times
from ..solve.maths.rotations import inverse as opposite
from ..solve.maths.rotations import matrices, multiply
from ..solve.maths.runs import runs
from ..solve.problem import Floats
from ..targets.movable import channels_of, goals_of, key_goals, target_of
from ..targets.snap import Chain, remarks_on, rows_of
from . import ground_object, hips, original_keys
from .filling import bridged, eased, smoothed
from .ground_object import UP, still
from .hips import recorded
from .sampled_feet import Feet, follow, is_of_leg, pivots_of, sample
from .standing import Foot, Ground, plant, slide_of

MARGIN = 1.25 * HELD
"""Height of feet above a ground, in lengths of the leg, so that neither rounding nor fewer keys take them below it."""
SUDDEN = 0.8
"""A foot that would rise faster than this, in lengths of the limb per second, waits before the edge."""
PULL = {True: 0.5, False: 0.15}
"""Distance from which feet (True) and hands (False) are brought down to a ground, in lengths of the limb. From farther
away, they touch something else."""


@dataclass(frozen=True)
class Options:
    """Settings of planting."""

    blend: float = 0.2
    """Seconds over which a foot is eased into and out of contact."""
    hips: bool = True
    """Whether the hips move so that legs reach."""
    cap: float = 0.1
    """The largest movement of the hips, as a fraction of the longest leg."""
    smooth: float = 0.2
    """Seconds over which a movement of the hips begins and ends."""
    on: Object | None = None
    """What the feet stand on, if that moves."""
    ground: Object | None = None
    """What hands and feet must not go through."""
    slope: float = np.radians(40.0)
    """The largest angle, in radians, by which feet turn to follow the ground."""

    @property
    def support(self) -> Object | None:
        """What the feet stand on; None if that doesn't move."""
        return self.on or (None if self.ground is None or ground_object.is_still(self.ground) else self.ground)


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
        contacts = count(self.contacts, "Locked 1 contact", "Locked {count} contacts")
        before, now = percent(self.slide_before), percent(self.slide)
        slides = "{contacts} on {frames}: slide {before} before, {after} now"
        yield say(slides, contacts=contacts, frames=count_of_frames(self.frames), before=before, after=now)
        if self.has_ground:
            before, now = percent(self.depth_before), percent(self.depth)
            yield say("Depth in the ground {before} before, {after} now", before=before, after=now)
        if self.hips:
            yield say("The hips moved by up to {distance} of the leg's length", distance=percent(self.hips))
        if self.knees:
            before, now = f"{self.knees_before:.0f}", f"{self.knees:.0f}"
            yield say("Knees turn by up to {now}° a frame, {before}° before", now=now, before=before)
        if self.short_frames:
            missed = (
                "A limb misses its target by up to {distance} of its length on {frames}: check its limits, or "
                "raise Hips Limit"
            )
            yield Remark(say(missed, distance=percent(self.short), frames=count_of_frames(self.short_frames)))
        yield from map(Remark, self.remarks)


def plant_feet(
    context: Context, ob: Object, tips: Sequence[PoseBone], frames: Sequence[int], options: Options
) -> Generator[float, None, Planted]:
    """Plant feet by keying targets and hips; yields progress (0 to 1). Closing the generator undoes everything.

    Args:
        context: gives the scene and the view layer.
        ob: the armature object.
        tips: the tip bones of the chains; chains without contacts on these frames are only kept out of the ground.
        frames: ascending frames; keys from the first to the last are replaced.
        options: how to plant.

    Raises:
        UserError: the feet can't be planted; nothing was changed.
    """
    view_layer, scene = context.view_layer, context.scene
    scale, rate = time_scale(scene), scene.render.fps / scene.render.fps_base
    at = scale * np.array(frames, dtype=np.float64)
    with over_frames(view_layer, ob) as (undo, before):
        touching, carried = _chosen(tips, at, options)
        if not touching:
            raise UserError("No chain has a contact on these frames. Find contacts first")
        sampling = sample(context, touching, frames, options.support, options.ground, undo)
        feet = yield from part(sampling, 0.0, 0.5)
        goals, chains = feet.snap.goals, feet.snap.chains
        for goal in goals:
            if not goal.is_keyed:
                raise UserError("Target '{name}' has no keys. Press Targets to Pose on a range first", name=goal.name)
            keyframes.check(goal.ob, channels_of(goal, goal.row()[None]))
        grounds = yield from part(_grounds(feet, options, rate), 0.5, 0.55)
        records = yield from part(recorded(feet), 0.55, 0.65)
        source = [_marked(feet, chain, feet.foot(chain)) for chain in chains]
        planted, along = _planted(feet, source, grounds, options, rate)
        yield 0.65
        old = [original_keys.before(goal, at) for goal in goals]
        wanted = _key(feet, source, planted, undo)
        ground_object.remember(ob, options.ground, undo)
        for chain in chains:  # a bake with fewer keys holds these points, too
            feet.keep_pivots(chain, undo)
        blend, hands, carried_by = round(options.blend * rate), _hands(feet), along

        def carry(moved: Floats) -> None:
            nonlocal planted, wanted, carried_by
            if hands and not np.array_equal(moved, carried_by):
                carried_by = moved
                planted = _along(feet, source, planted, grounds, moved, blend)
                wanted = _key(feet, source, planted, undo, hands)

        may_move, cap = along if options.hips else None, options.cap * feet.longest
        moving = hips.move_hips(feet, planted, wanted, records, may_move, cap, options.smooth, rate, carry, undo)
        moved_hips, reached, keyed, remarks = yield from part(moving, 0.7, 0.95)
        for goal, keys in zip(goals, old, strict=True):
            original_keys.keep(goal, keys, at, undo)
        keyed += yield from part(follow(feet, moved_hips, blend, undo), 0.98, 1.0)
        held = set()
        with feet.snap.sampler.alone:
            for i, found in feet.snap.sampler.proof(view_layer, frames):
                gaps = np.linalg.norm(found.goals[0, : len(goals), :3, 3] - wanted[i], axis=1)
                held |= {goal.name for g, goal in enumerate(goals) if gaps[g] > NEAR * feet.longest}
        remarks += [
            say("'{end}' doesn't turn with its target, so only its joint is held. Set Follow Rotation", end=end.name)
            for chain in chains
            if not goals[chain.target].turns and (end := end_of(feet.tip(chain))) is not None
        ]
        attached = "Target '{name}' is attached to the hips, so it was not kept out of the ground"
        remarks += [say(attached, name=goals_of(tip)[0].name) for tip in carried if end_of(tip) is not None]
        remarks += remarks_on(held)
        before.restore()
        for goal in (*goals, *keyed):
            goal.show_keys(scale * scene.frame_current_final)
    lengths = [feet.length(chain) for chain in chains]
    missed = np.nan_to_num(reached.errors)
    shown = [_marked(feet, chain, foot) for chain, foot in zip(chains, reached.feet(feet), strict=True)]
    return Planted(
        chains=tuple(chain.tip for chain in chains),
        frames=len(frames),
        contacts=sum(len(runs(foot.touches)) for foot in source),
        has_ground=bool(grounds),
        slide_before=_largest(source, lengths),
        slide=_largest(shown, lengths),
        depth_before=_deepest(grounds, source, lengths),
        depth=_deepest(grounds, shown, lengths),
        hips=float(lengths_of(moved_hips).max()) / max(lengths),
        knees_before=_fastest_knee(feet, [record.poses for record in records]),
        knees=_fastest_knee(feet, reached.bones),
        short=float(missed.max()),
        short_frames=int((missed > NEAR).any(axis=1).sum()),
        remarks=tuple(remarks),
    )


def _chosen(tips: Sequence[PoseBone], at: Floats, options: Options) -> tuple[list[PoseBone], list[PoseBone]]:
    """Return the chains to plant at times (F,) of the action, and those that are left out: the hips carry them."""
    touching = [tip for tip in tips if contact_keys.read(tip, at).any()]
    if not options.ground:
        return touching, []
    others = [tip for tip in tips if tip not in touching and (target := target_of(tip)) and target.is_keyed]
    # Planted limbs need the hips, which can't move if they carry a target.
    carried = [tip for tip in others if _goes_along(tip)] if touching else []
    return [tip for tip in tips if tip in touching or (tip in others and tip not in carried)], carried


def _goes_along(tip: PoseBone) -> bool:
    """Return whether the target of a chain is carried by the body, as that of a spine is."""
    figure = Figure.of(tip.id_data)
    body = root_of(figure, figure.names.index(chain_bones(tip)[0].name))
    return hips.is_carried(goals_of(tip)[0], tip.id_data.pose.bones[figure.names[body]])


def _fastest_knee(feet: Feet, poses: Sequence[Floats]) -> float:
    """Return the largest turn, in degrees, of a joint of a leg from frame to frame; 0 if no chain is a leg."""
    turns = [
        np.nan_to_num(hips.turns_of(own)[:, own.shape[1] :]).max(initial=0.0)
        for chain, own in zip(feet.snap.chains, poses, strict=True)
        if is_of_leg(feet.figure, feet.tip(chain))
    ]
    return math.degrees(max(turns, default=0.0))


def _largest(feet: Sequence[Foot], lengths: Sequence[float]) -> float:
    """Return the largest slide of points in contact, in lengths of the limbs."""
    return max(foot.slide() / length for foot, length in zip(feet, lengths, strict=True))


def _deepest(grounds: Sequence[Ground], feet: Sequence[Foot], lengths: Sequence[float]) -> float:
    """Return the largest depth of points in the ground, in lengths of the limbs."""
    if not grounds:
        return 0.0
    return max(own.depth_of(foot) / length for own, foot, length in zip(grounds, feet, lengths, strict=True))


def _marked(feet: Feet, chain: Chain, foot: Foot) -> Foot:
    """Return a foot with its keyed contacts."""
    turns = feet.snap.goals[chain.target].turns
    pivots = foot.pivots if turns else np.zeros((2, 3))  # without End Rotation, only the joint is held
    return replace(foot, contacts=feet.contacts(chain), pivots=pivots)


def _grounds(feet: Feet, options: Options, rate: float) -> Generator[float, None, list[Ground]]:
    """Return the ground of each chain; empty if there is no ground. Yields progress (0 to 1)."""
    surface = yield from feet.look_at(feet.snap.chains)
    if surface is None:
        return []
    sizes = [(feet.length(chain), PULL[is_of_leg(feet.figure, feet.tip(chain))]) for chain in feet.snap.chains]
    slope, sudden = options.slope, SUDDEN / rate
    return [Ground(surface, surface.up, slope, pull * size, MARGIN * size, sudden * size) for size, pull in sizes]


def _hands(feet: Feet) -> list[int]:
    """Return the indices of the chains that are not legs; empty if no chain is a leg."""
    hands = [i for i, chain in enumerate(feet.snap.chains) if not is_of_leg(feet.figure, feet.tip(chain))]
    return hands if len(hands) < len(feet.snap.chains) else []


def _planted(
    feet: Feet, source: Sequence[Foot], grounds: Sequence[Ground], options: Options, rate: float
) -> tuple[list[Foot], Floats]:
    """Return the planted feet, and how (F, 3) the ground moves the hips, in world space."""
    blend, hands = round(options.blend * rate), _hands(feet)
    along = np.zeros((len(feet.support), 3))
    planted = list(source)
    heights = []
    for i, foot in enumerate(source):
        if i not in hands:
            planted[i] = plant(foot, blend, grounds[i] if grounds else None)
            if grounds and foot.touches.any():
                risen = ((planted[i].places - foot.places) * grounds[i].up).sum(axis=1)
                heights.append(bridged(risen[:, None], foot.touches)[:, 0])
    if heights and options.hips and feet.standing is None and not hips.why_fixed(feet):
        along = smoothed(np.min(heights, axis=0), 2 * round(options.smooth * rate))[:, None] * UP
    return _along(feet, source, planted, grounds, along, blend), along


def _along(
    feet: Feet, source: Sequence[Foot], planted: Sequence[Foot], grounds: Sequence[Ground], moved: Floats, blend: int
) -> list[Foot]:
    """Return the feet, with hands that move with the hips by `moved` (F, 3), in world space, while they don't touch."""
    found = list(planted)
    for i in _hands(feet):
        own = back_applied(feet.support[:, :3, :3], moved)
        own = own - eased(own, source[i].touches, blend)
        found[i] = plant(replace(source[i], places=source[i].places + own), blend, grounds[i] if grounds else None)
    return found


def _key(
    feet: Feet, source: Sequence[Foot], planted: Sequence[Foot], undo: ExitStack, only: Sequence[int] = ()
) -> Floats:
    """Key the targets of all planted feet, or of chains `only`; return the wanted world positions (F, g, 3) of all."""
    goals, support = feet.snap.goals, feet.support[:, :3, :3]
    wanted, turns = feet.sampled.goals[:, :, :3, 3].copy(), {}
    for chain, old, new in zip(feet.snap.chains, source, planted, strict=True):
        wanted[:, chain.target] = applied(support, new.places) + feet.support[:, :3, 3]
        turn = np.moveaxis(matrices(multiply(new.turns, opposite(old.turns))), -1, 0)
        linear = feet.sampled.goals[:, chain.target, :3, :3]
        own = linear / np.maximum(np.linalg.norm(linear, axis=1, keepdims=True), 1e-300)
        turns[chain.target] = times(times(support, turn), times(np.swapaxes(support, -1, -2), own))
    rows = continuous(rows_of(goals, feet.sampled, wanted, turns), [goal.holder.rotation_mode for goal in goals])
    some = [feet.snap.chains[i].target for i in only] or list(range(len(goals)))
    key_goals([goals[g] for g in some], rows[:, some], feet.times, undo)
    return wanted


# ---- what planting achieved, measured on the saved keys as Blender plays them


def as_saved(
    context: Context,
    tips: Sequence[PoseBone],
    frames: Sequence[int],
    planted: Planted,
    on: Object | None,
    floor: Floor | None,
) -> Generator[float, None, Planted]:
    """Play all frames and measure the planted feet as Blender shows them; yields progress (0 to 1).

    Args:
        context: gives the scene and the view layer.
        tips: the tip bones of the planted chains, one or more of one armature.
        frames: the frames on which they were planted.
        planted: the result that planting returned.
        on: what they stand on; None if that doesn't move.
        floor: the ground that they were kept out of.
    """
    scene, view_layer, ob = context.scene, context.view_layer, tips[0].id_data
    at = time_scale(scene) * np.array(frames, dtype=np.float64)
    with over_frames(view_layer, ob) as (_undo, before):
        points, lengths, support = yield from part(_points(view_layer, tips, frames, on), 0.0, 0.8)
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
    view_layer: ViewLayer, tips: Sequence[PoseBone], frames: Sequence[int], on: Object | None
) -> Generator[float, None, tuple[Floats, list[float], Floats]]:
    """Return world positions (F, C, 2, 3) of heels and toes, lengths of limbs, and what they stand on (F, 4, 4)."""
    ob = tips[0].id_data
    figure, names = Figure.of(ob), ob.pose.bones.keys()
    own = np.empty((len(tips), 2, 3))
    ends = []
    for t, tip in enumerate(tips):
        end = end_of(tip)
        ends.append(names.index((end or tip).name))
        # A foot that doesn't turn with its target is held at its joint.
        is_held = end is not None and chain_of(tip).use_end_rotation
        own[t] = pivots_of(figure, tip) if is_held else (0.0, 0.0 if end else tip.bone.length, 0.0)
    poses, worlds = yield from played(view_layer, ob, np.array(ends), frames, (ob,) if on is None else (ob, on))
    points = moved(poses[..., None, :, :], own)
    support = still(len(frames)) if on is None else unscaled(worlds[:, 1])
    scale = float(size_of(worlds[0, 0]))
    return points, [scale * sum(bone.bone.length for bone in chain_bones(tip)) for tip in tips], support
