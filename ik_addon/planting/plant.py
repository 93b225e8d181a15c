"""Targets and hips keyed so that feet stand still while they touch."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ..bake.baking import part
from ..bake.restore import SceneSnapshot
from ..bake.sampling import at_frame, proofs
from ..bake.selection import check_armature, time_scale
from ..clip.filling import runs
from ..clip.hips import Help, Leg, help_reach
from ..clip.plant import Foot, plant
from ..data.settings import chain_of
from ..goals.movable import MovableGoal, channels_of, key_goals, parents_of
from ..goals.snapped import PLACED, Chain, SnapError, rows_of
from ..pose import keyframes
from ..pose.channels import Row
from ..pose.continuity import continuous
from ..pose.skeleton import inverse
from ..rig.plan.chain import end_of, posed_bones
from ..rig.plan.chain import tips as tips_of
from ..solve.maths.products import applied, times
from ..solve.maths.rotations import inverse as opposite
from ..solve.maths.rotations import matrices, multiply
from ..solve.problem import Floats
from ..translation.sentences import say
from . import contact_keys, proof
from .feet import Feet, sample

BENT = 1e-4
"""A leg is held this fraction of its length from straight, where a target's rounding would move the knee."""


@dataclass(frozen=True)
class Options:
    """How feet are planted."""

    blend: float = 0.2
    """Seconds over which a foot is eased into and out of contact."""
    hips: bool = True
    """The hips move so that legs reach."""
    cap: float = 0.1
    """By at most this fraction of the longest leg."""
    smooth: float = 0.2
    """Seconds over which a movement of the hips begins and ends."""
    on: bpy.types.Object | None = None
    """What the feet stand on."""


@dataclass(frozen=True)
class Planted:
    """What became of it. Distances are fractions of the length of the limb."""

    frames: int
    contacts: int
    slide: tuple[float, float]
    """The largest distance that a point in contact moves: before, and at most now."""
    hips: float
    """The largest distance that the hips were moved."""
    short: float
    """By how much the limb that is farthest from a contact doesn't reach it."""
    short_frames: int
    """On how many frames one doesn't."""
    remarks: list[str]
    """Sentences about what was left alone."""


def steps(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tips: Sequence[bpy.types.PoseBone],
    frames: Sequence[int],
    options: Options,
) -> Generator[float, None, Planted]:
    """Key the targets of chains, and the hips, so that contacts hold; closing the generator takes everything back.

    Args:
        context: for the scene and the view layer.
        ob: the armature object.
        tips: of the chains; those without contacts on these frames are left alone.
        frames: ascending; keys from the first to the last are replaced.
        options: how.

    Raises:
        SnapError, KeysError, BakeError: it can't be done; nothing was changed.
    """
    view_layer, scene = context.view_layer, context.scene
    view_layer.update()
    check_armature(ob, view_layer)
    scale, rate = time_scale(scene), scene.render.fps / scene.render.fps_base
    at = scale * np.array(frames, dtype=np.float64)
    touching = [tip for tip in tips if contact_keys.read(tip, at).any()]
    if not touching:
        raise SnapError("No chain has a contact on these frames. Find contacts first")
    with ExitStack() as undo:
        undo.callback(view_layer.update)
        before = SceneSnapshot(view_layer, ob)
        undo.callback(before.restore)
        feet = yield from part(sample(context, ob, touching, frames, options.on), 0.0, 0.6)
        goals, chains = feet.snap.goals, feet.snap.chains
        for goal in goals:
            if not goal.is_keyed:
                raise SnapError("Target '{name}' has no keys. Snap a range to the pose first", name=goal.name)
            keyframes.check(goal.ob, channels_of(goal, goal.row()[None]))
        source = [_source(feet, chain, at) for chain in chains]
        planted = [plant(foot, round(options.blend * rate)) for foot in source]
        yield 0.65
        wanted, turns = _placed(feet, source, planted)
        help_, remarks = _helped(feet, planted, wanted, options, rate)
        yield 0.7
        for goal in goals:
            undo.callback(goal.set_row, goal.row())
        rows = rows_of(goals, feet.sampled, wanted, turns)
        key_goals(goals, continuous(rows, [goal.holder.rotation_mode for goal in goals]), at, undo)
        hips = _key_hips(feet, help_, at, undo)
        missed = yield from part(proof.errors(view_layer, ob, [chain.tip for chain in chains], frames), 0.75, 0.95)
        held = set()
        for i in sorted(proofs(len(frames))):
            found = feet.snap.sampler.here(at_frame(view_layer, frames[i]))
            gaps = np.linalg.norm(found.goals[0, : len(goals), :3, 3] - wanted[i], axis=1)
            held |= {goal.name for g, goal in enumerate(goals) if gaps[g] > PLACED * _longest(feet)}
        remarks += [
            say("'{end}' doesn't turn with its target, so only its joint is held. Turn on End Rotation", end=end.name)
            for chain in chains
            if not goals[chain.target].turns and (end := end_of(feet.tip(chain))) is not None
        ]
        remarks += [
            say("'{name}' is held by a constraint, driver or lock, so it didn't reach its place", name=name)
            for name in sorted(held)
        ]
        before.restore()
        for goal in (*goals, *hips):
            goal.show_keys(scale * scene.frame_current_final)
        undo.pop_all()
    view_layer.update()
    lengths = [feet.length(chain) for chain in chains]
    touches = np.stack([foot.touches for foot in planted], axis=1)
    missed = np.where(touches & np.isfinite(missed), missed, 0.0)
    slides = [[foot.slide() / size for foot, size in zip(own, lengths, strict=True)] for own in (source, planted)]
    return Planted(
        frames=len(frames),
        contacts=sum(len(runs(foot.touches)) for foot in source),
        slide=(max(slides[0]), max(np.array(slides[1]) + missed.max(axis=0))),
        hips=float(np.linalg.norm(help_.offsets, axis=1).max()) / max(lengths),
        short=float(missed.max()),
        short_frames=int((missed > PLACED).any(axis=1).sum()),
        remarks=remarks,
    )


def _source(feet: Feet, chain: Chain, at: Floats) -> Foot:
    """A foot as its target has it, and where it touches at times (F,) of the action."""
    foot = replace(feet.foot(chain), contacts=contact_keys.read(feet.tip(chain), at))
    if feet.snap.goals[chain.target].turns:
        return foot
    return replace(foot, pivots=np.zeros((2, 3)))  # how it rolls is not for the target to say


def _longest(feet: Feet) -> float:
    return max(feet.length(chain) for chain in feet.snap.chains)


def _placed(feet: Feet, source: Sequence[Foot], planted: Sequence[Foot]) -> tuple[Floats, dict[int, Floats]]:
    """Where (F, g, 3) targets are, and how (F, 3, 3) those that turn are turned, in world space."""
    wanted = feet.sampled.goals[:, :, :3, 3].copy()
    turns = {}
    for chain, old, new in zip(feet.snap.chains, source, planted, strict=True):
        ground = feet.ground[:, :3, :3]
        wanted[:, chain.target] = applied(ground, new.places) + feet.ground[:, :3, 3]
        turn = np.moveaxis(matrices(multiply(new.turns, opposite(old.turns))), -1, 0)
        linear = feet.sampled.goals[:, chain.target, :3, :3]
        own = linear / np.maximum(np.linalg.norm(linear, axis=1, keepdims=True), 1e-300)
        turns[chain.target] = times(times(ground, turn), times(np.swapaxes(ground, -1, -2), own))
    return wanted, turns


def _helped(
    feet: Feet, planted: Sequence[Foot], wanted: Floats, options: Options, rate: float
) -> tuple[Help, list[str]]:
    """How the hips move so that legs reach, and why they don't where they can't."""
    legs = []
    for chain, foot in zip(feet.snap.chains, planted, strict=True):
        settings, length = chain_of(feet.tip(chain)), feet.length(chain)
        reach = (1.0 - max(settings.softness, BENT)) * length
        legs.append(Leg(feet.roots(chain), wanted[:, chain.target], reach, foot.touches))
    reason = _why_fixed(feet) if options.hips else ""
    if reason or not options.hips:
        still = np.zeros((len(feet.ground), 3))
        help_ = Help(still, np.max([leg.short(still) for leg in legs], axis=0))
        return help_, [reason] if reason and help_.short.any() else []
    return help_reach(legs, options.cap * _longest(feet), options.smooth * rate), []


def _why_fixed(feet: Feet) -> str:
    """Why the hips can't be moved; empty where they can."""
    if feet.hips is None:
        return say("No bone carries all of these limbs, so the hips were left alone")
    ob = feet.snap.ob
    hips = ob.pose.bones[feet.hips]
    if hips.bone.use_connect and hips.parent is not None:
        return say("'{bone}' is connected to its parent, so the hips were left alone", bone=hips.name)
    if any(hips in posed_bones(tip) for tip in tips_of(ob) if chain_of(tip).enabled):
        return say("A chain poses '{bone}', so the hips were left alone", bone=hips.name)
    below = {hips.name, *(bone.name for bone in hips.children_recursive)}
    for goal in feet.snap.goals:
        if any(above == ob and bone in below for above, bone in parents_of(goal.ob, goal.bone)):
            return say("Target '{name}' is attached to the hips, so the hips were left alone", name=goal.name)
    return ""


def _key_hips(feet: Feet, help_: Help, at: Floats, undo: ExitStack) -> list[MovableGoal]:
    """Key the hips where they move; return what was keyed."""
    if feet.hips is None or not help_.offsets.any():
        return []
    ob, sampler, skeleton = feet.snap.ob, feet.snap.sampler, feet.snap.skeleton
    goal = MovableGoal(ob, ob.pose.bones[feet.hips].name)
    keyframes.check(ob, channels_of(goal, goal.row()[None]))
    poses = feet.sampled.poses[:, sampler.rows([feet.hips])[0]].copy()
    poses[:, :3, 3] += applied(inverse(feet.sampled.world)[:, :3, :3], help_.offsets)
    parent = skeleton.parents[feet.hips]
    above = None if parent < 0 else feet.sampled.poses[:, sampler.rows([parent])[0]]
    rows: Row = goal.rows(skeleton.to_basis(ob, feet.hips, poses, above))
    undo.callback(goal.set_row, goal.row())
    key_goals([goal], rows[:, None], at, undo)
    return [goal]
