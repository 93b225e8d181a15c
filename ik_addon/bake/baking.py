"""Bake chains to keyframes: solve the frames, key them, and compare how the keys play.

A bake that is cancelled or fails changes nothing: until the last step is done, everything can be undone.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ..core import channels, fk_store, keyframes
from ..core.settings import chain_of, object_of
from ..core.steps import finished, part
from ..core.translation.sentences import UserError
from ..live import registry, switches
from ..rig.plan.plan import Plan
from . import bake_report
from .bake_report import BakeReport
from .reducing import Floor, KeyReducer
from .restore import SceneSnapshot
from .sampling import Frames, proofs
from .selection import baked_tips, changes_order, check_armature, check_order, other_plans, time_scale
from .solved import Solved, rotations_of


def bake(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tips: Collection[str],
    frames: Sequence[int],
    *,
    new_action: bool = False,
    smooth: bool = False,
    reduce: float = 0.0,
) -> BakeReport:
    """Run all of `bake_stepwise` at once."""
    return finished(bake_stepwise(context, ob, tips, frames, new_action=new_action, smooth=smooth, reduce=reduce))


def bake_stepwise(
    context: bpy.types.Context,
    ob: bpy.types.Object,
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
            sequence = Frames(
                view_layer,
                ob,
                plan,
                only,
                stored,
                list(frames),
                changes_order(plan, others),
                baked if smooth else (),  # other chains keep playing as live solves them
            )
            if smooth and sequence.is_watched:
                raise UserError(
                    "Animated settings change the chains of '{object}' between frames. Bake without Smooth",
                    object=ob.name,
                )
            work = _Bake(sequence, baked, new_action, before, reduce, floor)
            # Only solving shows which bones are pushed or stretched, but this finds most obstacles in advance.
            keyframes.check(ob, rotations_of(plan, work.baked), new_action=new_action)
        undo.callback(before.restore)  # not earlier: going back to the frame drops unkeyed edits of other armatures
        report = (yield from work.do(undo, foretold=True)) if sequence.are_foretold else None
        report = report or (yield from work.do(undo, foretold=False))
        assert report is not None, "frames that were stepped through need no proof"
        before.show_frame()
        before.pose.put_back_channels([bone for bone in range(len(ob.pose.bones)) if bone not in plan.rows])
        bake_report.remember(ob, report)
        undo.pop_all()
    return report


@dataclass(frozen=True)
class _Bake:
    """The settings of a bake, and its steps."""

    frames: Frames
    baked: list[str]
    """Tip bones of the chains that are keyed."""
    new_action: bool
    before: SceneSnapshot
    reduce: float
    """Maximum distance of joints from where the full bake has them; 0: keep all keys."""
    floor: Floor | None
    """The ground that hands and feet must not pass through when keys are reduced."""

    def do(self, done: ExitStack, *, foretold: bool) -> Generator[float, None, BakeReport | None]:
        """Solve, key and compare; yields progress (0 to 1), and adds to `done` what undoes the bake.

        If frames that were foretold turn out to be different ones, nothing is changed and the result is None.
        """
        frames = self.frames
        solved = Solved(frames.plan, self.baked, len(frames.numbers), proofs(len(frames.numbers)))
        whole = 0.4 if self.reduce else 1.0
        sampled, written = 0.8 * whole, 0.9 * whole
        with registry.paused(frames.ob):
            yield from part(frames.solve(solved, foretold=foretold), 0.0, sampled)
        self._check_solved(solved)
        self.before.pose.put_back_channels()
        with ExitStack() as undo:
            undo.callback(self.before.restore)
            times = np.array(frames.numbers, dtype=np.float64) * time_scale(frames.scene)
            keyed = solved.channels()
            todo = keyframes.writing(frames.ob, keyed, times, new_action=self.new_action)
            with registry.paused(frames.ob):  # else live takes these keys for a user's, which are to hold FK
                undo.callback((yield from part(todo, sampled, written)))
            self._disable_chains()
            found = yield from part(frames.differences(solved, foretold=foretold), written, whole)
            if found is None:
                return None
            report = solved.report(frames.numbers, frames.ob.animation_data.action.name, *found)
            if self.reduce and len(frames.numbers) > 1:
                reducer = KeyReducer(frames.view_layer, frames.ob, keyed, frames.numbers)
                reduced = yield from part(reducer.reduce(self.reduce, self.floor), whole, 1.0)
                report = replace(report, keys=reduced)
            done.callback(undo.pop_all().close)
        return report

    def _check_solved(self, solved: Solved) -> None:
        """Raise `UserError` if a chain could not be solved on any frame."""
        for tip, fault in self.frames.plan.faults.items():
            if solved.is_never_solved(tip):
                raise UserError("The chain on '{tip}' can't be baked. {fault}", tip=tip, fault=fault)

    def _disable_chains(self) -> None:
        """Disable the baked chains and leave their bones to the keys."""
        ob, plan = self.frames.ob, self.frames.plan
        with registry.paused(ob):
            for tip in self.baked:
                chain_of(ob.pose.bones[tip]).enabled = False
        own = {bone for tip in self.baked for bone in plan.paths[tip]}
        bones = sorted(own.intersection(fk_store.stored_bones(ob)))
        # Not the current FK store: bones may have been moved since Solve IK.
        rows = [plan.rows[bone] for bone in bones]
        channels.write(ob, np.array(bones, dtype=np.int64), self.frames.stored[rows])
        fk_store.forget(ob, bones)
        rig = registry.registry.of(ob).rig
        if rig is not None:
            rig.is_still = False
        switches.settings_changed(ob)
