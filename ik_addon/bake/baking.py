"""Bake chains to keyframes: solve their frames, key them, and compare how the keys play.

Until the last step is done everything can be taken back: a bake that is cancelled or fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ..data import fk_store
from ..data.settings import chain_of, object_of
from ..live import registry, switches
from ..pose import channels, keyframes
from ..pose.steps import finished, part
from ..rig.plan.plan import Plan
from . import bake_report
from .bake_report import BakeReport, KeyReport
from .reducing import Floor, KeyReducer
from .restore import SceneSnapshot
from .sampling import Frames, Method, scenes
from .selection import BakeError, baked_tips, changes_order, check_armature, check_order, other_plans, time_scale
from .solved import Solved, rotations_of

ALIKE = 1e-5
"""How much, in chain lengths, keys may play differently before what was not sampled in the scene is not trusted."""


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
    """Do all of `steps` at once."""
    return finished(steps(context, ob, tips, frames, new_action=new_action, smooth=smooth, reduce=reduce))


def steps(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tips: Collection[str],
    frames: Sequence[int],
    *,
    new_action: bool = False,
    smooth: bool = False,
    reduce: float = 0.0,
    floor: Floor | None = None,
    solving: Callable[..., Frames] = Frames,
) -> Generator[float, None, BakeReport]:
    """Bake chains in small steps. Each yields the share that is done, 0 to 1; closing the generator cancels the bake.

    Args:
        context: its scene and view layer are used.
        ob: the armature object.
        tips: tip bones of the chains to key. With Live on, all enabled chains are solved, as one may depend on another.
        frames: ascending; keys from the first to the last are replaced.
        new_action: key into a copy of the armature's action.
        smooth: of all solutions take those with which joints turn least from frame to frame.
        reduce: keep as few keys as leave every joint within this distance, in Blender units, of where all keys have
            it; 0: keep all keys.
        floor: what hands and feet don't go through when keys are reduced.
        solving: makes what solves the frames.

    Raises:
        BakeError, KeysError: the chains cannot be baked; nothing was changed.
    """
    view_layer = context.view_layer
    view_layer.update()  # a target that was just added is not in the view layer before
    check_armature(ob, view_layer)
    if not frames:
        raise BakeError("There are no frames to bake")
    with ExitStack() as undo:
        before = SceneSnapshot(view_layer, ob)
        with registry.paused(ob):
            only = None if object_of(ob).live else list(tips)
            plan = Plan.of(ob, view_layer.depsgraph, only)
            others = other_plans(view_layer, ob)
            check_order(ob, plan, tips, others)
            stored = fk_store.held(ob, plan.live)
            baked = baked_tips(ob, plan, tips)
            sequence = solving(
                view_layer,
                ob,
                plan,
                only,
                stored,
                list(frames),
                changes_order(plan, others),
                baked if smooth else (),  # other chains go on playing as live solves them
            )
            if smooth and sequence.is_watched:
                raise BakeError(
                    "Animated settings change the chains of '{object}' between frames. Bake without Smooth",
                    object=ob.name,
                )
            work = _Bake(sequence, baked, new_action, before, reduce, floor)
            # Which bones are pushed or stretched is only known later, but most obstacles are found here.
            keyframes.check(ob, rotations_of(plan, work.baked), new_action=new_action)
        undo.callback(before.restore)  # not before: going back to the frame drops what is not keyed on other armatures
        report = None
        for method in Method:
            report = report or (yield from work.do(undo, method))
        assert report is not None, "what is sampled in the scene itself needs no proof"
        before.show_frame()
        before.pose.put_back_channels([bone for bone in range(len(ob.pose.bones)) if bone not in plan.rows])
        bake_report.remember(ob, report)
        undo.pop_all()
    return report


@dataclass(frozen=True)
class _Bake:
    """What is baked."""

    frames: Frames
    baked: list[str]
    """Tip bones of those chains of the plan that are keyed."""
    new_action: bool
    before: SceneSnapshot
    reduce: float
    """How far joints may get from where all keys have them; 0: all keys are kept."""
    floor: Floor | None
    """What hands and feet don't go through then."""

    def do(self, done: ExitStack, method: Method) -> Generator[float, None, BakeReport | None]:
        """Solve, key and compare; yields the share that is done, and leaves to `done` what takes it back.

        What is not sampled in the scene itself is compared with it on some frames, before the keys are written and
        after. If that fails, or frames cannot be sampled this way, nothing is changed and the result is None.
        """
        frames = self.frames
        if frames.is_watched and method is not Method.SCENE:
            return None  # the structure of the chains may change from frame to frame, and only the scene knows
        solved = Solved(frames.plan, self.baked, len(frames.numbers), frames.played(method))
        whole = 0.4 if self.reduce else 1.0
        sampled = whole * (0.8 if method is Method.FCURVES else 0.5)
        with registry.paused(frames.ob):
            if not (yield from part(frames.solve(solved, method), 0.0, sampled)):
                return None
        self._check_solved(solved)
        self.before.pose.put_back_channels()
        written = sampled + 0.1 * whole
        with ExitStack() as undo:
            undo.callback(self.before.restore)
            times = np.array(frames.numbers, dtype=np.float64) * time_scale(frames.scene)
            keyed = solved.channels()
            todo = keyframes.writing(frames.ob, keyed, times, new_action=self.new_action)
            undo.callback((yield from part(todo, sampled, written)))
            self._disable_chains()
            position, angle = yield from part(frames.differences(solved, method), written, whole)
            if method is not Method.SCENE and (position > ALIKE + solved.noise or angle > 10.0 * ALIKE):
                return None
            report = solved.report(frames.numbers, frames.ob.animation_data.action.name, position, angle)
            if self.reduce and len(frames.numbers) > 1:
                reduced = yield from part(self._reduced(keyed, method), whole, 1.0)
                report = replace(report, keys=reduced)
            done.callback(undo.pop_all().close)
        return report

    def _reduced(self, keyed: Sequence[keyframes.Channel], method: Method) -> Generator[float, None, KeyReport]:
        """Reduce the keys that were written."""
        frames = self.frames
        with scenes(frames.view_layer, frames.ob, method) as (stepped, _proven):
            reducer = KeyReducer(stepped or frames.view_layer, frames.ob, keyed, frames.numbers)
            return (yield from reducer.steps(self.reduce, self.floor))

    def _check_solved(self, solved: Solved) -> None:
        """Raise `BakeError` where a chain could be solved on no frame."""
        for tip, fault in self.frames.plan.faults.items():
            if solved.is_never_solved(tip):
                raise BakeError("The chain on '{tip}' can't be baked. {fault}", tip=tip, fault=fault)

    def _disable_chains(self) -> None:
        """Disable the baked chains; their bones are left to the keys."""
        ob, plan = self.frames.ob, self.frames.plan
        with registry.paused(ob):
            for tip in self.baked:
                chain_of(ob.pose.bones[tip]).enabled = False
        own = {bone for tip in self.baked for bone in plan.paths[tip]}
        bones = sorted(own.intersection(fk_store.stored_bones(ob)))
        # Not what the FK store has now: bones may have been moved since Solve IK.
        rows = [plan.rows[bone] for bone in bones]
        channels.write(ob, np.array(bones, dtype=np.int64), self.frames.stored[rows])
        fk_store.forget(ob, bones)
        switches.settings_changed(ob)
