"""Snap targets and poles to a pose, on the current frame or on a range of frames, so that solving moves nothing."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace

import numpy as np
from bpy.types import Context, Object, PoseBone

from ..bake.scene import over_frames, time_scale
from ..chains import removal
from ..chains.current_pose import read_poses, shifts
from ..chains.new_chain import waiting_end
from ..chains.profile import exceeded
from ..core import channels, fk_store, keyframes
from ..core.names import chain_name
from ..core.report import percent
from ..core.settings import chain_of, object_of
from ..core.steps import part
from ..core.transforms import continuous
from ..core.translation.sentences import quoted, say
from ..live import reports, solving
from ..rig.plan.chain import chain_bones, posed_bones
from ..rig.plan.limits import is_free
from ..solve.problem import Floats
from .autokey import auto_key, left_out, reverting
from .movable import channels_of, key_goals, target_of
from .snapped import Poles, Snap, batches

AWAY = 0.02
"""A joint that is farther than this from the record, in lengths of its chain, is reported."""

_beyond: set[tuple[int, str]] = set()
"""Chains that `goes_beyond_limits` names: `session_uid` of the armature object, and tip bone."""


def is_solved(tip: PoseBone) -> bool:
    """Whether the shown pose of a chain is its solved pose, determined by its target."""
    chain, ob = chain_of(tip), tip.id_data
    if not chain.enabled or chain.influence == 0.0:
        return False
    if object_of(ob).live:
        return True
    own = {ob.pose.bones.find(bone.name) for bone in posed_bones(tip)}
    return not own.isdisjoint(fk_store.stored_bones(ob))


def snap_here(
    context: Context, tips: Sequence[PoseBone], *, shown: bool = False, poles: Poles = Poles.MATCH, keyed: bool = True
) -> list[str]:
    """Move targets and poles to match the pose of the current frame, so that solving changes nothing.

    Args:
        context: gives the scene and the view layer.
        tips: the tip bones of the chains, one or more of one armature.
        shown: match the pose shown instead of the FK pose.
        poles: how poles are placed.
        keyed: key the goals if auto keying is on, and report those that return to their keys on the next frame change.

    Returns:
        Sentences about goals that missed their place, and about chains that solving moves anyway.

    Raises:
        UserError: the goals can't be snapped; nothing has changed.
    """
    view_layer, ob = context.view_layer, tips[0].id_data
    snap = Snap.of(view_layer, ob, tips, shown, poles)
    moved: dict[str, float] = {}
    poses = read_poses(ob, view_layer.depsgraph)
    with ExitStack() as undo:
        for goal in snap.goals:
            undo.callback(goal.set_row, goal.row())
        with in_fk(context, ob, [] if shown else tips):
            sampled = snap.sampler.here(view_layer.depsgraph)
            rows, wanted = snap.rows(sampled, snap.distances(sampled))
            for goal, row in zip(snap.goals, rows[0], strict=True):
                goal.set_row(row)
            view_layer.update()
            held = snap.held(snap.sampler.here(view_layer.depsgraph), wanted)
            if not shown:
                moved = _moved_by_solving(context, ob, tips)
        undo.pop_all()
    view_layer.update()
    if shown and object_of(ob).live:
        moved = shifts(ob, tips, poses, read_poses(ob, view_layer.depsgraph))
    remarks = remarks_on(held)
    moves = (
        "Solving moves the chain on '{tip}' by {distance} of its length anyway, because of its pole, "
        "softness, limits or another chain"
    )
    remarks += [
        say(moves, tip=chain_name(ob.pose.bones[tip]), distance=percent(distance))
        for tip, distance in moved.items()
        if distance > reports.NEAR and not held
    ]
    if not keyed:
        return sorted(set(remarks))
    for goal in snap.goals:
        auto_key(context, goal.holder, goal.fields)
    remarks += left_out(context, [goal.holder for goal in snap.goals])
    remarks += reverting(context, [(goal.holder, goal.fields) for goal in snap.goals])
    return sorted(set(remarks))


def key_range(
    context: Context, tips: Sequence[PoseBone], frames: Sequence[int], shown: bool = False, poles: Poles = Poles.MATCH
) -> Generator[float, None, list[str]]:
    """Key targets and poles to match the pose on a range of frames; yields progress (0 to 1).

    The first time, an animated hand or foot starts to take the orientation of its target. Closing the generator undoes
    everything.

    Args:
        context: gives the scene and the view layer.
        tips: the tip bones of the chains, one or more of one armature.
        frames: ascending; keys from the first to the last are replaced.
        shown: match the pose shown instead of the FK pose.
        poles: how poles are placed.

    Returns:
        Sentences about goals that missed their place, and about live chains that differ from the pose nevertheless.

    Raises:
        UserError: the goals can't be keyed; nothing has changed.
    """
    view_layer, scene, ob = context.view_layer, context.scene, tips[0].id_data
    scale = time_scale(scene)
    with over_frames(view_layer, ob) as (undo, before):
        for tip in tips:
            target = target_of(tip)
            if target is not None and not target.is_keyed and waiting_end(tip) is not None:
                undo.callback(setattr, chain_of(tip), "use_end_rotation", False)
                chain_of(tip).use_end_rotation = True
        snap = Snap.of(view_layer, ob, tips, shown, poles)
        for goal in snap.goals:
            keyframes.check(goal.ob, channels_of(goal, goal.row()[None]))
        with snap.sampler.alone:
            distances = snap.distances(snap.sampler.here(view_layer.depsgraph))
            with in_fk(context, ob, tips) if snap.sampler.is_solved and not shown else nullcontext():
                sampled = yield from part(snap.sampler.sample(view_layer, frames), 0.0, 0.7)
            parts = []
            for some in batches(len(frames)):
                parts.append(snap.rows(sampled.frames(some), distances))
                yield 0.7 + 0.2 * some.stop / len(frames)
            rows, wanted = (np.concatenate(own) for own in zip(*parts, strict=True))
            modes = [goal.holder.rotation_mode for goal in snap.goals]
            key_goals(snap.goals, continuous(rows, modes), scale * np.array(frames, dtype=np.float64), undo)
            yield 0.95
            held = set()
            for i, found in snap.sampler.proof(view_layer, frames):
                held |= snap.held(found, wanted[i : i + 1])
        away: dict[str, Floats] = {}
        if object_of(ob).live:
            found = yield from part(replace(snap.sampler, shown=True).sample(view_layer, frames), 0.96, 1.0)
            away = {tip: own for tip, own in snap.distances_from(sampled, found).items() if own.max() > AWAY}
        before.restore()
        for goal in snap.goals:
            goal.show_keys(scale * scene.frame_current_final)
    _beyond.difference_update(map(_key_of, tips))
    _beyond.update(_key_of(tip) for tip in tips if tip.name in away and exceeded(tip))
    if not (shown or object_of(ob).live):
        removal.restore_pose(ob, view_layer, list(tips))
    view_layer.update()
    off = (
        "On frame {frame}, the chain on '{tip}' is {distance} of its length away from the record, because of its "
        "limits, softness or pole"
    )
    return remarks_on(held) or [
        say(off, frame=frames[int(by.argmax())], tip=chain_name(ob.pose.bones[tip]), distance=percent(float(by.max())))
        for tip, by in away.items()
    ]


def goes_beyond_limits(tip: PoseBone) -> bool:
    """Whether snapping a range found a chain away from its record, which its limits forbid."""
    return _key_of(tip) in _beyond and chain_of(tip).use_limits and not all(map(is_free, chain_bones(tip)))


def _key_of(tip: PoseBone) -> tuple[int, str]:
    return tip.id_data.session_uid, tip.name


def remarks_on(held: set[str]) -> list[str]:
    """Return a sentence about the goals, by name, that are not at the places they were moved to; none if all are."""
    if not held:
        return []
    return [say("A constraint, driver or lock held these back from their places: {names}", names=quoted(sorted(held)))]


@contextmanager
def in_fk(context: Context, ob: Object, tips: Sequence[PoseBone]) -> Iterator[None]:
    """Disable chains temporarily to show their FK pose, while other chains are solved as usual."""
    enabled = {tip.name: chain_of(tip).enabled for tip in tips}
    if tips and not object_of(ob).live:
        removal.restore_pose(ob, context.view_layer, list(tips))
    try:
        for name in enabled:
            chain_of(ob.pose.bones[name]).enabled = False
        context.view_layer.update()
        yield
    finally:
        for name, on in enabled.items():
            if chain_of(ob.pose.bones[name]).enabled != on:
                chain_of(ob.pose.bones[name]).enabled = on


def _moved_by_solving(context: Context, ob: Object, tips: Sequence[PoseBone]) -> dict[str, float]:
    """Return the farthest that solving moves a joint of each disabled chain, in chain lengths, by tip bone."""
    view_layer = context.view_layer
    before = read_poses(ob, view_layer.depsgraph)
    everything = np.arange(len(ob.pose.bones))
    rows = channels.read(ob, everything)
    is_live = object_of(ob).live
    if is_live:
        for tip in tips:
            chain_of(tip).enabled = True
    else:
        solving.solve_now(ob, view_layer.depsgraph, [tip.name for tip in tips])
    view_layer.update()
    after = read_poses(ob, view_layer.depsgraph)
    if not is_live:  # live chains stay as they are, for Blender to evaluate them no more than once
        removal.restore_pose(ob, view_layer, list(tips))
        channels.write(ob, everything, rows)  # animated bones may have been posed without a key
        view_layer.update()
    return shifts(ob, tips, before, after)
