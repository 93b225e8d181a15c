"""Bake chains to keyframes: solve the frames, key them, and compare how the keys play.

A bake that is cancelled or fails changes nothing: until the last step is done, everything can be undone.
"""

from collections.abc import Collection, Generator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
from bpy.types import Context, Object

from ..core import channels, fk_store, keyframes
from ..core.names import chain_name, names_by_tip
from ..core.settings import chain_of, object_of
from ..core.steps import finished, part
from ..core.translation.sentences import UserError
from ..core.untyped import Value
from ..live import handlers, registry
from ..rig.plan.plan import Plan
from .bake_report import BakeReport, remember
from .reducing import Floor, KeyReducer
from .sampling import Frames, proofs
from .scene import SceneSnapshot, baked_tips, check_armature, check_order, other_plans, time_scale
from .solved import Solved, rotations_of


def bake(context: Context, ob: Object, tips: Collection[str], frames: Sequence[int], **options: Value) -> BakeReport:
    """Run all of `bake_stepwise` at once, with its options."""
    return finished(bake_stepwise(context, ob, tips, frames, **options))


def bake_stepwise(
    context: Context,
    ob: Object,
    tips: Collection[str],
    frames: Sequence[int],
    *,
    new_action: bool = False,
    smooth: bool = False,
    reduce: float = 0.0,
    floor: Floor | None = None,
) -> Generator[float, None, BakeReport]:
    """Bake chains in small steps; yields progress (0 to 1). Closing the generator cancels the bake.

    Args:
        context: its scene and view layer are used.
        ob: the armature object.
        tips: tip bones of the chains to key. With Live on, all enabled chains are solved, as one may depend on another.
        frames: ascending; keys from the first to the last are replaced.
        new_action: key into a copy of the armature's action.
        smooth: choose the solutions in which joints turn least from frame to frame.
        reduce: keep as few keys as hold every joint within this distance, in Blender units, of the full bake; 0: keep
            all keys.
        floor: the ground that hands and feet must not pass through when keys are reduced.

    Raises:
        UserError: the chains can't be baked; nothing was changed.
    """
    view_layer = context.view_layer
    view_layer.update()  # only then is a target that was just added in the view layer
    check_armature(ob, view_layer)
    if not frames:
        raise UserError("There are no frames to bake")
    with ExitStack() as undo:
        before = SceneSnapshot(view_layer, ob)
        with registry.paused(ob):
            only = None if object_of(ob).live else list(tips)
            plan = Plan.of(ob, view_layer.depsgraph, only)
            others = other_plans(view_layer, ob)
            check_order(ob, plan, tips, others)
            stored = fk_store.held(ob, plan.live)
            baked = baked_tips(ob, plan, tips)
            smoothed = baked if smooth else ()  # other chains keep playing as live solves them
            # Whether it follows armatures whose animated settings may make them follow it in turn.
            may_turn = not others.keys().isdisjoint(plan.leaders) and any(other.watch for other in others.values())
            sequence = Frames(view_layer, ob, plan, only, stored, list(frames), may_turn, smoothed)
            if smooth and sequence.is_watched:
                changing = "Animated settings change the chains of '{object}' between frames. Bake without Smooth"
                raise UserError(changing, object=ob.name)
            # Only solving shows which bones are pushed or stretched, but this finds most obstacles in advance.
            keyframes.check(ob, rotations_of(plan, baked), new_action=new_action)
        undo.callback(before.restore)  # not earlier: going back to the frame drops unkeyed edits of other armatures
        whole, foretold, found = 0.4 if reduce else 1.0, sequence.are_foretold, None
        while found is None:
            solved = Solved(plan, baked, len(frames), proofs(len(frames)))
            with registry.paused(ob):
                yield from part(sequence.solve(solved, foretold=foretold), 0.0, 0.8 * whole)
            for tip, fault in plan.faults.items():
                if solved.is_never_solved(tip):
                    name = chain_name(ob.pose.bones[tip])
                    raise UserError("The chain on '{tip}' can't be baked. {fault}", tip=name, fault=fault)
            before.pose.put_back_channels()
            with ExitStack() as keys:
                keys.callback(before.restore)
                keyed = solved.channels()
                times = np.array(frames, dtype=np.float64) * time_scale(context.scene)
                writing = keyframes.writing(ob, keyed, times, new_action=new_action)
                with registry.paused(ob):  # else live takes these keys for a user's, which are to hold FK
                    keys.callback((yield from part(writing, 0.8 * whole, 0.9 * whole)))
                _disable_chains(ob, plan, baked, stored)
                found = yield from part(sequence.differences(solved, foretold=foretold), 0.9 * whole, whole)
                if found is not None:
                    undo.callback(keys.pop_all().close)
            foretold = False  # frames that are stepped through need no proof
        report = solved.report(sequence.numbers, ob.animation_data.action.name, found, names_by_tip(ob))
        if reduce and len(frames) > 1:
            reducer = KeyReducer(view_layer, ob, keyed, frames)
            report = replace(report, keys=(yield from part(reducer.reduce(reduce, floor), whole, 1.0)))
        before.show_frame()
        before.pose.put_back_channels([bone for bone in range(len(ob.pose.bones)) if bone not in plan.rows])
        remember(ob, report)
        undo.pop_all()
    return report


def _disable_chains(ob: Object, plan: Plan, tips: Collection[str], stored: channels.Row) -> None:
    """Disable baked chains and leave their bones to the keys; `stored` is the FK pose (k, 17) of `Plan.live`."""
    with registry.paused(ob):
        for tip in tips:
            chain_of(ob.pose.bones[tip]).enabled = False
    bones = sorted({bone for tip in tips for bone in plan.paths[tip]}.intersection(fk_store.stored_bones(ob)))
    # Not the current FK store: bones may have been moved since Solve IK.
    channels.write(ob, np.array(bones, dtype=np.int64), stored[[plan.rows[bone] for bone in bones]])
    fk_store.forget(ob, bones)
    rig = registry.registry.of(ob).rig
    if rig is not None:
        rig.is_still = False
    handlers.settings_changed(ob)
