"""Bake chains to keyframes: sample frames, solve them in batches, key them, and see whether they play alike.

Until the last step is done everything can be taken back: a bake that is cancelled or fails changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

import bpy
import numpy as np

from .. import compat
from ..data import fk_store
from ..data.settings import chain_of, object_of
from ..live import handlers
from ..live.lookup import Steady
from ..live.state import View
from ..pose import channels, keyframes
from ..pose.channels import Row
from ..rig.plan import chain
from ..rig.plan.plan import Plan, between
from ..rig.plan.presence import Presence
from ..rig.plan.watch import BONE_PATH, animated_paths
from ..rig.read import fcurves
from ..rig.read.sample import Sample, sample, stack
from ..rig.write.waves import pose
from . import bake_report
from .bake_report import BakeReport
from .solved import Solved, rotations_of
from .stage import Edits, is_bound, simulates, stage

BATCH = 1000
"""How many chains, each on a frame, are solved at once: enough for speed, few enough for the caches and to cancel."""
LOOKED_UP = 10_000
"""The same where they need not be solved, but only looked up."""
BONES = 250_000
"""How many bones, each on a frame, are sampled before they are solved: they are in memory at once."""
STEPPED = 100
"""How many frames at most, where Blender evaluates them one by one."""
PROOFS = (0.0, 0.29, 0.62, 1.0)
"""Which frames, as parts of the range, are evaluated in the scene itself as well where that is not done with all."""
ALIKE = 1e-5
"""How much, in chain lengths, keys may play differently before what was not sampled in the scene is not trusted."""
KEPT = 4_000_000
"""On how many frames, times bones, the solution is kept to see how the keys play."""


class Way(Enum):
    """How frames are sampled, the fastest way first: the next one is taken where one cannot be, or proves wrong."""

    BY_CURVES = "F-curves tell all of them"
    IN_COPY = "Blender evaluates each, in a copy of the scene that holds what the chains need"
    IN_SCENE = "Blender evaluates each, in the scene itself"


class BakeError(Exception):
    """Nothing can be baked; the message says what is wrong, where, and what to do."""


def chosen_tips(ob: bpy.types.Object, which: str, active: bpy.types.PoseBone | None = None) -> list[str]:
    """Tip bones of the chains to bake: the ACTIVE one, those of the SELECTED bones, or ALL that are enabled.

    Args:
        ob: the armature object.
        which: one of the above.
        active: tip of the active chain.

    Raises:
        BakeError: there are none.
    """
    tips = chain.tips(ob)
    if which == "ACTIVE":
        if active is None:
            raise BakeError(f"The active bone of '{ob.name}' belongs to no IK chain; make a bone of a chain active")
        tips = [active]
    elif which == "SELECTED":
        tips = [tip for tip in tips if any(compat.is_selected(bone) for bone in chain.chain_bones(tip))]
        if not tips:
            raise BakeError(f"No selected bone of '{ob.name}' belongs to an IK chain; select a bone of a chain")
    enabled = [tip.name for tip in tips if chain_of(tip).enabled]
    if not enabled and tips:
        raise BakeError(f"The chain on '{tips[0].name}' is switched off; enable it to bake it")
    if not enabled:
        raise BakeError(f"'{ob.name}' has no IK chain; add one first")
    return enabled


def frame_range(scene: bpy.types.Scene, ob: bpy.types.Object, which: str) -> tuple[int, int]:
    """First and last frame of the SCENE, its PREVIEW range, or the ACTION of an armature object.

    Raises:
        BakeError: there is no such range.
    """
    if which == "PREVIEW":
        if not scene.use_preview_range:
            raise BakeError("The scene has no preview range; set one or bake another frame range")
        return scene.frame_preview_start, scene.frame_preview_end
    if which == "ACTION":
        owner = compat.curve_owner(ob)
        if owner is None or not len(owner.fcurves):
            raise BakeError(f"'{ob.name}' has no keys in an action; bake another frame range")
        span = np.array(ob.animation_data.action.frame_range) / pace(scene)
        return math.floor(span[0]), math.ceil(span[1])
    return scene.frame_start, scene.frame_end


def frames_between(first: int, last: int, step: int = 1) -> list[int]:
    """Every `step`-th frame, and always the last one: it replaces what was there up to the end of the range.

    Raises:
        BakeError: there are none.
    """
    if step < 1:
        raise BakeError(f"The step is {step}; it must be 1 frame or more")
    if last < first:
        raise BakeError(f"The frame range is empty: it starts at {first} and ends at {last}")
    frames = list(range(first, last + 1, step))
    return frames if frames[-1] == last else [*frames, last]


def pace(scene: bpy.types.Scene) -> float:
    """How many frames of an action pass in one frame of a scene whose time is remapped."""
    return scene.render.frame_map_old / scene.render.frame_map_new


def bake(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tips: Collection[str],
    frames: Sequence[int],
    *,
    new_action: bool = False,
) -> BakeReport:
    """Do all of `steps` at once."""
    todo = steps(context, ob, tips, frames, new_action=new_action)
    while True:
        try:
            next(todo)
        except StopIteration as done:
            return done.value


def steps(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    tips: Collection[str],
    frames: Sequence[int],
    *,
    new_action: bool = False,
) -> Generator[float, None, BakeReport]:
    """Bake chains in small steps. Each yields the share that is done, 0 to 1; closing the generator cancels the bake.

    Args:
        context: its scene and view layer are used.
        ob: the armature object.
        tips: tip bones of the chains to key. With Live on, all enabled chains are solved, as one may hang on another.
        frames: ascending; keys from the first to the last are replaced.
        new_action: key into a copy of the armature's action.

    Raises:
        BakeError, KeysError: the chains cannot be baked; nothing was changed.
    """
    scene, view_layer = context.scene, context.view_layer
    view_layer.update()  # a target that was just added is not in the view layer before
    _check(ob, view_layer)
    if not frames:
        raise BakeError("There are no frames to bake")
    with ExitStack() as undo:
        before = _Before(scene, view_layer, ob)
        with handlers.paused(ob):
            plan = Plan.of(ob, view_layer.depsgraph, None if object_of(ob).live else tips)
            _check_order(scene, view_layer, ob, plan, tips)
            held = fk_store.held(ob, plan.live)
            only = None if object_of(ob).live else list(tips)
            work = _Bake(view_layer, ob, plan, only, _baked(ob, plan, tips), held, list(frames), new_action, before)
            # What may be pushed or stretched is known later only, but most that stands in the way is found out here.
            keyframes.check(ob, rotations_of(plan, work.baked), new_action=new_action)
        undo.callback(before.restore)  # not before: going back to the frame drops what is not keyed on other armatures
        report = None
        for way in Way:
            report = report or (yield from work.do(undo, way))
        assert report is not None, "what is sampled in the scene itself needs no proof"
        before.show_frame()
        before.posed.put_back_channels([bone for bone in range(len(ob.pose.bones)) if bone not in plan.rows])
        bake_report.remember(ob, report)
        undo.pop_all()
    return report


def at_frame(view_layer: bpy.types.ViewLayer, frame: int) -> bpy.types.Depsgraph:
    """Go to a frame; the depsgraph of a view layer, evaluated there."""
    scene: Any = view_layer.id_data
    scene.frame_set(frame)
    return view_layer.depsgraph


@dataclass(frozen=True)
class _Bake:
    """What is baked."""

    view_layer: bpy.types.ViewLayer
    """Where the keys will play."""
    ob: bpy.types.Object
    plan: Plan
    """Of the current frame; others differ in what is watched."""
    only: list[str] | None
    """Tip bones of the chains that are planned; None: of all enabled ones."""
    baked: list[str]
    """Tip bones of those chains of the plan that are keyed."""
    held: Row
    """(k, 17) what the channels of `Plan.live` hold in the FK pose where they are not animated."""
    frames: list[int]
    new_action: bool
    before: _Before

    @property
    def scene(self) -> bpy.types.Scene:
        """Where the keys will play."""
        found: Any = self.view_layer.id_data
        return found

    def do(self, done: ExitStack, way: Way) -> Generator[float, None, BakeReport | None]:
        """Sample, solve, key and compare; yields the share that is done, and leaves to `done` what takes it back.

        What is not sampled in the scene itself is compared with it on some frames, before the keys are written and
        after. Where that fails, or frames cannot be sampled this way, nothing is changed and the result is None.
        """
        if self.plan.watch and way is not Way.IN_SCENE:
            return None  # what the chains are may be another thing on another frame, and only the scene tells
        solved = Solved(self.plan, self.baked, len(self.frames), self._played(way))
        sampled = 0.8 if way is Way.BY_CURVES else 0.5
        with handlers.paused(self.ob):
            if not (yield from _part(self._solve(solved, way), 0.0, sampled)):
                return None
        self._check_solved(solved)
        self.before.posed.put_back_channels()
        written = sampled + 0.1
        with ExitStack() as undo:
            undo.callback(self.before.restore)
            times = np.array(self.frames, dtype=np.float64) * pace(self.scene)
            todo = keyframes.writing(self.ob, solved.channels(), times, new_action=self.new_action)
            undo.callback((yield from _part(todo, sampled, written)))
            self._switch_off()
            position, angle = yield from _part(self._differences(solved, way), written, 1.0)
            if way is not Way.IN_SCENE and (position > ALIKE + solved.noise or angle > 10.0 * ALIKE):
                return None
            report = solved.report(self.frames, self.ob.animation_data.action.name, position, angle)
            done.callback(undo.pop_all().close)
        return report

    def _proofs(self) -> set[int]:
        """The indices of the frames that are evaluated as a proof."""
        return {round(part * (len(self.frames) - 1)) for part in PROOFS}

    def _played(self, way: Way) -> list[int]:
        """The indices of the frames that Blender plays, in the end, to compare."""
        if way is Way.BY_CURVES:
            return sorted(self._proofs())
        every = math.ceil(len(self.frames) * len(self.plan.live) / KEPT)
        return sorted({*range(0, len(self.frames), every), *self._proofs()})

    def _sample(self, view_layer: bpy.types.ViewLayer, frame: int) -> Sample:
        """The FK pose and the goals on a frame, as Blender evaluates them."""
        channels.write(self.ob, self.plan.live, self.held)
        return sample(self.ob, self.plan, at_frame(view_layer, frame))

    def _solve(self, solved: Solved, way: Way) -> Generator[float, None, bool]:
        """Solve all frames; return whether they can be sampled this way, and are as in the scene itself."""
        with self._staged(way) as (stepped, proven):
            if stepped is None or proven is None:
                return False
            if way is not Way.BY_CURVES:
                return (yield from self._solve_stepped(stepped, proven, solved))
            if is_bound(self.scene) or not fcurves.may_tell(self.scene):
                return False
            return (yield from self._solve_told(proven, solved))

    @contextmanager
    def _staged(self, way: Way) -> Iterator[tuple[bpy.types.ViewLayer | None, bpy.types.ViewLayer | None]]:
        """Where frames are stepped through, and where some of them are evaluated as a proof; None: nowhere.

        Proofs are made in the scene itself. Only where they would disturb a simulation, a copy that depends on nothing
        else must do.
        """
        is_disturbed = way is not Way.IN_SCENE and simulates(self.scene)
        if way is Way.IN_COPY or is_disturbed:
            with stage(self.view_layer, self.ob) as copy:
                yield copy, copy if is_disturbed else self.view_layer
        else:
            yield self.view_layer, self.view_layer

    def _solve_told(self, proven: bpy.types.ViewLayer, solved: Solved) -> Generator[float, None, bool]:
        """Solve all frames as F-curves tell them; return whether they do, and Blender evaluates the same on some."""
        count, some = len(self.frames), _frames_at_once(self.plan)
        for first in range(0, count, some):
            frames = self.frames[first : first + some]
            try:
                fk = fcurves.told(self.ob, self.plan, self.held, frames)
            except fcurves.Untold:
                return False
            proofs = [i - first for i in solved.played.tolist() if first <= i < first + some]
            stepped = []
            for i in proofs:
                stepped.append(self._sample(proven, frames[i]))
                yield first / count
            if proofs and not fcurves.is_same(fk.frames(np.array(proofs)), stack(stepped)):
                return False
            steady = Steady(self.ob, self.plan, fk.frames(slice(0, 1)), fk.goals)
            steady = steady if steady.works and steady.fits(fk) else None
            size = max(1, (LOOKED_UP if steady else BATCH) // len(self.plan.chains))
            for start in range(0, len(frames), size):
                own = fk.frames(slice(start, start + size))
                posed = steady.solve(self.ob, own) if steady else pose(self.ob, self.plan, own)
                solved.put(first + start, own.channels, posed, self.plan)
                yield min(1.0, (first + start + size) / count)
        return True

    def _solve_stepped(
        self, stepped: bpy.types.ViewLayer, proven: bpy.types.ViewLayer, solved: Solved
    ) -> Generator[float, None, bool]:
        """Solve all frames as Blender evaluates them one by one; return whether that is proven on some."""
        if self.plan.watch:
            return (yield from self._solve_one_by_one(stepped, solved))
        size = min(STEPPED, _frames_at_once(self.plan))
        proofs = self._proofs() if proven != stepped else ()
        for start in range(0, len(self.frames), size):
            samples = []
            for i, frame in enumerate(self.frames[start : start + size], start=start):
                samples.append(self._sample(stepped, frame))
                if i in proofs and not fcurves.is_same(samples[-1], self._sample(proven, frame)):
                    return False
                yield (i + 1) / len(self.frames)
            fk = stack(samples)
            solved.put(start, fk.channels, pose(self.ob, self.plan, fk), self.plan)
        return True

    def _solve_one_by_one(self, stepped: bpy.types.ViewLayer, solved: Solved) -> Generator[float, None, bool]:
        """Solve each frame by itself, with the plan that its animated settings make."""
        view = View(self.plan)
        view.take(self.plan)
        for i, frame in enumerate(self.frames):
            channels.write(self.ob, self.plan.live, self.held)
            depsgraph = at_frame(stepped, frame)
            view.take(view.find(depsgraph) or Plan.of(self.ob, depsgraph, self.only))
            fk = sample(self.ob, view.plan, depsgraph)
            posed = pose(self.ob.evaluated_get(depsgraph), view.plan, fk)
            solved.put(i, fk.channels, posed, view.plan)
            yield (i + 1) / len(self.frames)
        return True

    def _check_solved(self, solved: Solved) -> None:
        """Raise `BakeError` where a chain could be solved on no frame."""
        for tip, fault in self.plan.faults.items():
            if solved.is_never_solved(tip):
                raise BakeError(f"The chain on '{tip}' can't be baked. {fault}")

    def _switch_off(self) -> None:
        """Switch the baked chains off; their bones are left to the keys."""
        with handlers.paused(self.ob):
            for tip in self.baked:
                chain_of(self.ob.pose.bones[tip]).enabled = False
        own = {bone for tip in self.baked for bone in self.plan.paths[tip]}
        bones = sorted(own.intersection(fk_store.stored_bones(self.ob)))
        # Not the base as it is stored: bones may have been moved since Solve IK.
        channels.write(self.ob, np.array(bones, dtype=np.int64), self.held[[self.plan.rows[bone] for bone in bones]])
        fk_store.forget(self.ob, bones)
        handlers.settings_changed(self.ob)

    def _differences(self, solved: Solved, way: Way) -> Generator[float, None, tuple[float, float]]:
        """The largest distance and angle between the solution and how the keys play."""
        position = angle = 0.0
        proofs = self._proofs()
        with self._staged(way) as (stepped, proven):
            for i, index in enumerate(solved.played.tolist()):
                view_layer = (proven if index in proofs else stepped) or self.view_layer
                depsgraph = at_frame(view_layer, self.frames[index])
                played = channels.read_pose(self.ob.evaluated_get(depsgraph), self.plan.live)
                gap, turn = solved.difference(i, played)
                position, angle = max(position, gap), max(angle, turn)
                yield (i + 1) / len(solved.played)
        return position, angle


def _frames_at_once(plan: Plan) -> int:
    """How many sampled frames are in memory at once."""
    return max(1, BONES // len(plan.live))


Result = TypeVar("Result")


def _part(steps: Generator[float, None, Result], first: float, last: float) -> Generator[float, None, Result]:
    """Steps that yield what is done of a part, as those of the whole, of which it is from one share to another."""
    with closing(steps):
        while True:
            try:
                share = next(steps)
            except StopIteration as done:
                return done.value
            yield first + (last - first) * share


class _Posed:
    """How an armature is posed, and what live solving knows of it."""

    def __init__(self, ob: bpy.types.Object) -> None:
        self._ob = ob
        self._everything = np.arange(len(ob.pose.bones))
        self._rows = channels.read(ob, self._everything)
        self._bases = fk_store.snapshot(ob)
        self._known = handlers.snapshot(ob)

    @property
    def is_the_same(self) -> bool:
        """Whether it is still posed like that."""
        return np.array_equal(channels.read(self._ob, self._everything), self._rows)

    def put_back(self) -> None:
        """Put everything back."""
        self.put_back_channels()
        fk_store.put_back(self._ob, self._bases)
        # It was solved on the frames that were compared. A copy, as what is put back goes on to change.
        handlers.put_back(self._ob, None if self._known is None else self._known.copy())

    def put_back_channels(self, bones: Sequence[int] | None = None) -> None:
        """Put back the channels of bones, or of all; animated ones may hold an edit that is not keyed."""
        indices = self._everything if bones is None else np.array(bones, dtype=np.int64)
        channels.write(self._ob, indices, self._rows[indices])


class _Before:
    """All that a bake touches besides the keys, to put it back: frame, pose, switches, and edits of anything else."""

    def __init__(self, scene: bpy.types.Scene, view_layer: bpy.types.ViewLayer, ob: bpy.types.Object) -> None:
        others = [other for other in handlers.live_armatures(scene) if other != ob]
        self._scene = scene
        self._view_layer = view_layer
        self._ob = ob
        self._frame = scene.frame_current, scene.frame_subframe
        self._edits = Edits(scene, [ob, *others])
        self._enabled = {tip.name: chain_of(tip).enabled for tip in chain.tips(ob)}
        self.posed = _Posed(ob)
        self._others = [_Posed(other) for other in others]

    def restore(self) -> None:
        """Put everything back."""
        with handlers.paused(self._ob):
            for tip, enabled in self._enabled.items():
                settings = chain_of(self._ob.pose.bones[tip])
                if settings.enabled != enabled:
                    settings.enabled = enabled
            self.show_frame()
            self.posed.put_back()

    def show_frame(self) -> None:
        """Go back to the frame, and evaluate what changed."""
        frame, subframe = self._frame
        stands = (self._scene.frame_current, self._scene.frame_subframe) == self._frame
        if stands and not handlers.live_armatures(self._scene):
            self._view_layer.update()  # without going through all that the time alone changes
        else:
            self._scene.frame_set(frame, subframe=subframe)
        self._edits.put_back()
        for other in self._others:
            with suppress(ReferenceError):  # another add-on deleted it
                if not other.is_the_same:
                    other.put_back()


def _check(ob: bpy.types.Object, view_layer: bpy.types.ViewLayer) -> None:
    if ob.mode == "EDIT":
        raise BakeError(f"'{ob.name}' is in Edit Mode; leave it to bake")
    if not Presence(view_layer).evaluates(ob):
        raise BakeError(f"'{ob.name}' is excluded from this view layer or disabled in viewports; enable it to bake")
    if ob.data.pose_position == "REST":
        raise BakeError(f"'{ob.name}' is shown in its rest position; switch it to Pose Position")


def _check_order(
    scene: bpy.types.Scene, view_layer: bpy.types.ViewLayer, ob: bpy.types.Object, plan: Plan, tips: Collection[str]
) -> None:
    """Raise `BakeError` where other armatures would have to follow this one while its frames are sampled."""
    if all(carrier.armature == ob.session_uid for carrier in plan.carriers):
        return
    others = {other.session_uid: other for other in handlers.live_armatures(scene) if other != ob}
    plans = {uid: Plan.of(other, view_layer.depsgraph) for uid, other in others.items()}
    for uid, tip in between({ob.session_uid: plan, **plans}, ob.session_uid, tips):
        first = f"the chain on '{tip}' of '{others[uid].name}'"
        raise BakeError(f"'{ob.name}' follows {first}, which follows another chain of it in turn; bake {first} first")


def _baked(ob: bpy.types.Object, plan: Plan, tips: Collection[str]) -> list[str]:
    """The chains that are keyed, in the order of the plan; of what is animated, another frame may solve them."""
    for tip in tips:
        if tip in plan.faults and not plan.watch:
            raise BakeError(f"The chain on '{tip}' can't be baked. {plan.faults[tip]}")
    baked = [tip for tip in plan.paths if tip in tips]
    names = {plan.skeleton.names[bone] for tip in baked for bone in plan.paths[tip]}
    for path in animated_paths(ob):
        match = BONE_PATH.fullmatch(path)
        if match and match["rest"] == "rotation_mode" and bpy.utils.unescape_identifier(match["name"]) in names:
            # Since 4.4 Blender applies the values of F-curves in any order, and setting the mode converts rotations.
            name = bpy.utils.unescape_identifier(match["name"])
            raise BakeError(
                f"The rotation mode of bone '{name}' is animated, and Blender does not play rotation keys reliably "
                "beside that; delete the animation of the mode to bake"
            )
    missing = set(tips).difference(baked)
    if missing or not baked:
        raise BakeError(f"There is no enabled IK chain on '{min(missing, default='')}'; add or enable one")
    return baked
