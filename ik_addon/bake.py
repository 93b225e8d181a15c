"""Bake chains to keyframes: sample frames, solve them in batches, key them, and see whether they play alike.

Until the last step is done everything can be taken back: a bake that is cancelled or fails changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from . import compat, live
from .rig import base, chain, channels, keys
from .rig.channels import FIELDS, Row
from .rig.plan import ChainPlan, Plan
from .rig.pose import Posed
from .rig.read import stack
from .rig.rig import Rig
from .settings import chain_of, object_of
from .solve import Status
from .solve.problem import Bools, Floats
from .stage import stage

USED = 1e-6
"""A pushed root or a lengthened bone is keyed from this change on, in chain lengths or as a factor."""


BATCH = 100
"""How many frames are solved at once: enough for speed, few enough to cancel a bake of many chains in between."""


class BakeError(Exception):
    """Nothing can be baked; the message says what is wrong, where, and what to do."""


@dataclass(frozen=True)
class BakeReport:
    """What became of a bake."""

    chains: tuple[str, ...]
    """Tip bones of the baked chains."""
    frames: int
    """How many frames were keyed."""
    action: str
    """Name of the action that holds the keys."""
    missed: int
    """On how many frames a chain did not reach its target."""
    error: float
    """Largest distance from a tip to its target, in chain lengths."""
    position: float
    """Largest distance between a bone as it plays and as it was solved, in chain lengths."""
    angle: float
    """Largest angle between them, in radians."""

    @property
    def plays_alike(self) -> bool:
        """Whether the keys play as they were solved, to what can be seen."""
        return self.position < 1e-4 and self.angle < 1e-3

    @property
    def message(self) -> str:
        """The report as a sentence."""
        chains = f"{len(self.chains)} chain{'s' * (len(self.chains) != 1)}"
        frames = f"{self.frames} frame{'s' * (self.frames != 1)}"
        reached = "all reached"
        if self.missed:
            reached = f"{self.missed} not reached, farthest by {100.0 * self.error:.3g} % of the chain's length"
        return (
            f"Baked {chains} on {frames} into '{self.action}' ({reached}); playing differs from the solution "
            f"by at most {100.0 * self.position:.1g} % of the chain's length and {math.degrees(self.angle):.1g}°"
        )


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
        span: Any = ob.animation_data.action.frame_range
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
        before = _Before(scene, ob)
        undo.callback(before.restore)
        with live.paused(ob):
            rig = Rig(ob, view_layer, None if object_of(ob).live else tips)
            rig.absorb_edits(ob)
            plan = rig.plan
            baked = _baked_chains(plan, tips)
            # What may be pushed or stretched is known later only, but most that stands in the way is found out here.
            unknown = np.zeros((1, len(plan.live), channels.WIDTH), dtype=np.float32)
            keys.check(ob, _channels(plan, baked, unknown), new_action=new_action)
            with stage(scene, ob) as own:
                solved = yield from _solved(own, ob, rig, frames)
        before.restore()
        todo = _channels(plan, baked, continuous(solved.rows, plan.modes), _used(plan, baked, solved.changes))
        undo.callback(keys.write_channels(ob, todo, np.array(frames, float), new_action=new_action))
        for chain_plan in baked:
            chain_of(ob.pose.bones[chain_plan.tip]).enabled = False
            base.release(ob, chain_plan.bones)
        comparison = _Comparison(plan, baked)
        with stage(scene, ob) as own:
            for i, frame in enumerate(frames):
                depsgraph = at_frame(own, frame)
                comparison.add(channels.read_pose(ob.evaluated_get(depsgraph), plan.live), solved.poses[i])
                yield 0.5 + 0.5 * (i + 1) / len(frames)
        undo.pop_all()
        before.restore_frame()
        before.restore_bones([bone for bone in range(len(ob.pose.bones)) if bone not in plan.rows])
    chosen = [i for i, chain_plan in enumerate(plan.chains) if chain_plan.tip in tips]
    return BakeReport(
        chains=tuple(chain_plan.tip for chain_plan in baked),
        frames=len(frames),
        action=ob.animation_data.action.name,
        missed=int((solved.status[:, chosen] != Status.REACHED).any(axis=1).sum()),
        error=float(np.nanmax(solved.error[:, chosen], initial=0.0)),
        position=comparison.position,
        angle=comparison.angle,
    )


def at_frame(scene: bpy.types.Scene, frame: int) -> bpy.types.Depsgraph:
    """Go to a frame; the depsgraph of the first view layer of the scene, evaluated there."""
    scene.frame_set(frame)
    return scene.view_layers[0].depsgraph


class _Solved:
    """The solved frames of a bake, in no more precision than Blender keeps: long bakes of many bones are large."""

    def __init__(self, plan: Plan, frames: int) -> None:
        bones, chains = len(plan.live), len(plan.chains)
        self.rows = np.empty((frames, bones, channels.WIDTH), dtype=np.float32)
        """(F, k, 17) channels of `Plan.live`."""
        self.poses = np.empty((frames, bones, 3, 4), dtype=np.float32)
        """(F, k, 3, 4) their pose matrices without the last row."""
        self.status = np.empty((frames, chains), dtype=np.int8)
        """(F, C) of `Plan.chains`, as the next one."""
        self.error = np.empty((frames, chains))
        self.changes = np.zeros((bones, channels.WIDTH), dtype=np.float32)
        """(k, 17) the largest difference of a channel from the FK pose."""

    def put(self, start: int, fk: Row, posed: Posed) -> None:
        """Keep a batch of frames (b, ...), the first being that with the index `start`."""
        batch = slice(start, start + len(fk))
        self.rows[batch] = posed.channels
        self.poses[batch] = posed.poses[:, :, :3]
        self.status[batch], self.error[batch] = posed.outcomes.status, posed.outcomes.error
        self.changes = np.maximum(self.changes, np.abs(posed.channels - fk).max(axis=0))


def _solved(
    scene: bpy.types.Scene, ob: bpy.types.Object, rig: Rig, frames: Sequence[int]
) -> Generator[float, None, _Solved]:
    """Sample and solve the frames in batches; yields the first half of the progress."""
    solved = _Solved(rig.plan, len(frames))
    for start in range(0, len(frames), BATCH):
        samples = []
        for i, frame in enumerate(frames[start : start + BATCH], start=start):
            rig.restore_base(ob)
            samples.append(rig.read_fk(ob, at_frame(scene, frame)))
            yield 0.5 * (i + 1) / len(frames)
        fk = stack(samples)
        solved.put(start, fk.channels, rig.solve(ob, fk))
    return solved


class _Before:
    """All that a bake touches besides the keys, to put it back: the frame, the pose, the base, the switches."""

    def __init__(self, scene: bpy.types.Scene, ob: bpy.types.Object) -> None:
        self._scene = scene
        self._ob = ob
        self._frame = scene.frame_current, scene.frame_subframe
        self._rows = channels.read(ob, np.arange(len(ob.pose.bones)))
        self._enabled = {tip.name: chain_of(tip).enabled for tip in chain.tips(ob)}
        self._bases = [_base_content(bone) for bone in ob.pose.bones]

    def restore(self) -> None:
        """Put everything back."""
        with live.paused(self._ob):
            for tip, enabled in self._enabled.items():
                settings = chain_of(self._ob.pose.bones[tip])
                if settings.enabled != enabled:
                    settings.enabled = enabled
            self.restore_frame()
            self.restore_bones(list(range(len(self._rows))))
            for bone, content in zip(self._ob.pose.bones, self._bases, strict=True):
                if _base_content(bone) != content:
                    for name, value in content.items():
                        setattr(chain_of(bone).base, name, value)

    def restore_frame(self) -> None:
        """Go back to the frame."""
        frame, subframe = self._frame
        self._scene.frame_set(frame, subframe=subframe)

    def restore_bones(self, bones: list[int]) -> None:
        """Put back the channels of bones; animated ones may hold an edit that is not keyed."""
        indices = np.array(bones, dtype=np.int64)
        channels.write(self._ob, indices, self._rows[indices])


def _base_content(bone: bpy.types.PoseBone) -> dict[str, Any]:
    content = chain_of(bone).base
    return {
        "stored": content.stored,
        "noted": content.noted,
        "rotation_mode": content.rotation_mode,
        "channels": content.channels[:],
        "written": content.written[:],
    }


def _check(ob: bpy.types.Object, view_layer: bpy.types.ViewLayer) -> None:
    if ob.mode == "EDIT":
        raise BakeError(f"'{ob.name}' is in Edit Mode; leave it to bake")
    if view_layer.objects.get(ob.name) != ob or ob.hide_viewport:
        raise BakeError(f"'{ob.name}' is excluded from this view layer or disabled in viewports; enable it to bake")
    if ob.data.pose_position == "REST":
        raise BakeError(f"'{ob.name}' is shown in its rest position; switch it to Pose Position")


def _baked_chains(plan: Plan, tips: Collection[str]) -> list[ChainPlan]:
    for tip in tips:
        if tip in plan.faults:
            raise BakeError(f"The chain on '{tip}' can't be baked. {plan.faults[tip]}")
    baked = [chain_plan for chain_plan in plan.chains if chain_plan.tip in tips]
    missing = set(tips).difference(chain_plan.tip for chain_plan in baked)
    if missing or not baked:
        raise BakeError(f"There is no enabled IK chain on '{min(missing, default='')}'; add or enable one")
    return baked


def _channels(
    plan: Plan, baked: Sequence[ChainPlan], rows: Row, used: dict[str, Bools] | None = None
) -> list[keys.Channel]:
    """Channels to key from rows (F, k, 17): rotation in each bone's own mode, and the fields `used` by a bone (k,)."""
    found = []
    for chain_plan in baked:
        for bone in chain_plan.bones:
            row = plan.rows[bone]
            fields = [channels.rotation_field(plan.modes[row])]
            fields += [field for field, where in (used or {}).items() if where[row]]
            for field in fields:
                columns = rows[:, row, FIELDS[field]].T.astype(np.float64)
                found += [keys.Channel(plan.skeleton.names[bone], field, i, column) for i, column in enumerate(columns)]
    return found


def _used(plan: Plan, baked: Sequence[ChainPlan], changes: Row) -> dict[str, Bools]:
    """Where (k,) on any frame a root was pushed or a bone lengthened: location and scale are keyed there only."""
    changed = {field: changes[:, FIELDS[field]].max(axis=1) for field in ("location", "scale")}
    for chain_plan in baked:
        own = [plan.rows[bone] for bone in chain_plan.bones]
        changed["location"][own] /= _length(plan, chain_plan)
    return {field: amount > USED for field, amount in changed.items()}


def _length(plan: Plan, chain_plan: ChainPlan) -> float:
    return float(plan.skeleton.lengths[list(chain_plan.bones)].sum())


class _Comparison:
    """The largest difference between poses as they play (k, 4, 4) and as they were solved (k, 3, 4)."""

    def __init__(self, plan: Plan, baked: Sequence[ChainPlan]) -> None:
        bones = [bone for chain_plan in baked for bone in chain_plan.bones]
        self._own = [plan.rows[bone] for bone in bones]
        self._bone_lengths = plan.skeleton.lengths[bones, None]
        self._chain_lengths = np.repeat([_length(plan, c) for c in baked], [len(c.bones) for c in baked])
        self.position = 0.0
        """Between the heads and the tails, in chain lengths."""
        self.angle = 0.0
        """In radians."""

    def add(self, played: Floats, solved: Floats) -> None:
        """Compare the poses of one frame."""
        a, b = played[self._own], solved[self._own]
        heads = a[:, :3, 3] - b[:, :3, 3]
        tails = heads + (a[:, :3, 1] - b[:, :3, 1]) * self._bone_lengths
        gaps = np.maximum(np.linalg.norm(heads, axis=1), np.linalg.norm(tails, axis=1)) / self._chain_lengths
        chord = np.linalg.norm(_directions(a) - _directions(b), axis=(1, 2)).max() / math.sqrt(8.0)
        self.position = max(self.position, float(gaps.max()))
        self.angle = max(self.angle, 2.0 * math.asin(min(float(chord), 1.0)))


def _directions(matrices: Floats) -> Floats:
    """The axes (..., 3, 3) of matrices (..., 4, 4), without their scale."""
    axes = matrices[..., :3, :3]
    return axes / np.maximum(np.linalg.norm(axes, axis=-2, keepdims=True), 1e-30)


def continuous(rows: Row, modes: Sequence[str]) -> Row:
    """Rows (F, k, 17) with the same rotations, each written nearest to that of the frame before."""
    out = rows.copy()
    for k, mode in enumerate(modes):
        columns = FIELDS[channels.rotation_field(mode)]
        values = rows[:, k, columns].astype(np.float64)
        if mode == "QUATERNION":
            out[:, k, columns] = _continuous_quaternions(values)
        elif mode == "AXIS_ANGLE":
            out[:, k, columns] = _continuous_axis_angles(values)
        else:
            out[:, k, columns] = _continuous_eulers(values, middle="XYZ".index(mode[1]))
    return out


def _continuous_quaternions(values: Floats) -> Floats:
    flips = np.where((values[1:] * values[:-1]).sum(axis=1) < 0.0, -1.0, 1.0)
    return values * np.cumprod([1.0, *flips])[:, None]


def _continuous_eulers(values: Floats, middle: int) -> Floats:
    """Euler angles (F, 3): each rotation has two triples, and every angle any number of full turns."""
    twins = values + math.pi
    twins[:, middle] = math.pi - values[:, middle]
    out = values.copy()
    for t in range(1, len(values)):
        near = _unwound(np.stack([values[t], twins[t]]), out[t - 1])
        out[t] = near[np.argmin(np.abs(near - out[t - 1]).sum(axis=1))]
    return out


def _continuous_axis_angles(values: Floats) -> Floats:
    """Angles and axes (F, 4): the axis may be turned round, and has no direction where there is no rotation."""
    out = values.copy()
    for t in range(1, len(values)):
        if abs(math.sin(0.5 * values[t, 0])) < 1e-7:
            out[t, 1:] = out[t - 1, 1:]
        elif out[t, 1:] @ out[t - 1, 1:] < 0.0:
            out[t] = -values[t]
        out[t, 0] = _unwound(out[t, 0], out[t - 1, 0])
    return out


def _unwound(angles: Any, near: Any) -> Any:
    """Angles with full turns added that bring them nearest to `near`."""
    return angles + 2.0 * math.pi * np.round((near - angles) / (2.0 * math.pi))
