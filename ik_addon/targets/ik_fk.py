"""Switch chains between IK and FK on the current frame without a jump, and make the solved pose the FK pose.

The influence is keyed as a step. A switch to FK keys the bones in the pose shown; a switch to IK keys the target and
pole where that pose needs them, and the bones where their keys would undo it. All these keys are steps as well, so no
frame before the switch changes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
from bpy.types import Context, Object, PoseBone

from .. import bake
from ..bake import BakeReport
from ..bake.scene import Edits, time_scale
from ..core import channels, compat, fk_keys, keyframes
from ..core.channels import FIELDS, Row
from ..core.keyframes import key_step
from ..core.names import chain_name
from ..core.settings import chain_of, object_of
from ..core.translation.sentences import UserError, say
from ..live import reports, solving
from ..live.registry import live_armatures
from ..rig.plan.chain import check, posed_bones
from ..rig.plan.chain import tips as tips_of
from .autokey import auto_key, differs, reverting
from .movable import channels_of, goals_of
from .snap import in_fk, is_solved, snap_here

EVEN = 0.5
"""A chain with at least this influence counts as being in IK."""
SETTING = "ik_addon.influence"


def is_ik(tip: PoseBone) -> bool:
    """Whether a chain is in IK."""
    chain = chain_of(tip)
    return chain.enabled and chain.influence >= EVEN


def switch(context: Context, ob: Object, tips: Sequence[PoseBone], *, to_ik: bool) -> list[str]:
    """Switch chains to IK or to FK on the current frame.

    Returns:
        Sentences about anything that moves in spite of the switch.

    Raises:
        UserError: the switch can't be made; nothing has changed.
    """
    scale = time_scale(context.scene)
    now = context.scene.frame_current_final * scale
    with ExitStack() as undo:
        undo.callback(context.view_layer.update)
        were = [chain_of(tip).influence if chain_of(tip).enabled else 0.0 for tip in tips]
        steps = [
            keyframes.Channel(tip.name, SETTING, 0, np.array([before, float(to_ik)]))
            for tip, before in zip(tips, were, strict=True)
        ]
        keyframes.check(ob, steps)
        frames, remarks = (now - scale, now), []
        if to_ik:
            remarks = _to_ik(context, ob, tips, frames, undo)
        else:  # the pose shown becomes the FK pose, and nothing moves
            applied = apply_here(context, ob, tips)
            undo.callback(channels.write, ob, np.array(applied.bones), applied.before)
            key_step(ob, list(_posed(ob, applied)), frames, undo, held=False)
        key_step(ob, steps, frames, undo, held=True)
        for tip in tips:
            _set(tip, "influence", float(to_ik), undo)
            _set(tip, "enabled", True, undo)  # leave IK or FK to the influence, which can be keyed
        undo.pop_all()
    _evaluate_keys(context, ob)
    return remarks


def _to_ik(
    context: Context, ob: Object, tips: Sequence[PoseBone], frames: tuple[float, float], undo: ExitStack
) -> list[str]:
    """Snap targets and poles to the pose, and key them on these frames; return sentences about what moves."""
    before = {goal: goal.row() for tip in tips for goal in goals_of(tip)}
    for goal, row in before.items():
        keyframes.check(goal.ob, channels_of(goal, row[None]))
        undo.callback(goal.set_row, row)
    shown = [tip for tip in tips if is_solved(tip)]
    hidden = [tip for tip in tips if tip not in shown]
    remarks = snap_here(context, shown, shown=True, keyed=False) if shown else []
    key_step(ob, list(_edited(ob, hidden, frames[1])), frames, undo, held=False)
    _evaluate_keys(context, ob)  # or the next update would reset what is set below
    for tip in hidden:
        _set(tip, "influence", 1.0, undo)
    remarks += snap_here(context, hidden, keyed=False) if hidden else []
    for goal, row in before.items():
        key_step(goal.ob, channels_of(goal, np.array([row, goal.row()])), frames, undo, held=False)
    return remarks


def _set(tip: PoseBone, setting: str, value: float, undo: ExitStack) -> None:
    """Set a setting of a chain; `undo` puts it back."""
    chain, before = chain_of(tip), getattr(chain_of(tip), setting)
    if before != value:
        undo.callback(setattr, chain, setting, before)
        setattr(chain, setting, value)


def _posed(ob: Object, applied: Applied) -> Iterator[keyframes.Channel]:
    """Yield the channels of bones to key: rotation, and anything else that the solution changes."""
    for k, index in enumerate(applied.bones):
        bone = ob.pose.bones[index]
        for field in {channels.rotation_field(bone.rotation_mode): None, **dict.fromkeys(applied.fields(k))}:
            rows: Row = np.array([applied.before[k], applied.now[k]])[:, FIELDS[field]]
            for i, values in enumerate(rows.T.astype(np.float64)):
                yield keyframes.Channel(bone.name, field, i, values)


def _evaluate_keys(context: Context, ob: Object) -> None:
    """Evaluate keys that were written, and put back edits of everything else that have no keys."""
    edits = Edits(context.scene, [ob, *live_armatures(context.scene)])
    solved = {bone for tip in tips_of(ob) for bone in posed_bones(tip)}
    others = np.array([i for i, bone in enumerate(ob.pose.bones) if bone not in solved], dtype=np.int64)
    rows = channels.read(ob, others)
    context.view_layer.update()
    edits.put_back()
    channels.write(ob, others, rows)
    context.view_layer.update()


def _edited(ob: Object, tips: Sequence[PoseBone], time: float) -> Iterator[keyframes.Channel]:
    """Yield the channels of bones that differ from their F-curves, because a pose was not keyed."""
    own = {bone.name for tip in tips for bone in posed_bones(tip)}
    for curve in compat.curves_of(ob):
        name, field = channels.channel_of(curve.data_path) or ("", "")
        data = ob.animation_data
        if name not in own or data is None or compat.is_muted(data, curve, curve.group):
            continue
        value = getattr(ob.pose.bones[name], field)[curve.array_index]
        if differs(value, curve, time):
            yield keyframes.Channel(name, field, curve.array_index, np.array([value, value]))


class Applied(NamedTuple):
    """The channels of bones before and after the solved pose became their FK pose."""

    bones: Sequence[int]
    before: Row
    """(k, 17) the FK pose."""
    now: Row
    """(k, 17) the solved pose."""

    def fields(self, k: int) -> list[str]:
        """Return the properties that changed on the bone at index k of `bones`."""
        changed = self.before[k] != self.now[k]
        return [field for field, columns in FIELDS.items() if changed[columns].any()]


def apply_here(context: Context, ob: Object, tips: Sequence[PoseBone]) -> Applied:
    """Make the solved pose of chains on the current frame their FK pose, without keying it.

    Raises:
        UserError: a chain can't be solved; nothing has changed.
    """
    names = [tip.name for tip in tips]
    indices = np.array(sorted({ob.pose.bones.find(bone.name) for tip in tips for bone in posed_bones(tip)}))
    for tip in tips:
        try:
            check(ob, tip, context.view_layer)
        except UserError as error:
            raise UserError("The chain on '{tip}' can't be solved. {error}", tip=chain_name(tip), error=error) from None
    if not object_of(ob).live:
        solving.solve_now(ob, context.evaluated_depsgraph_get(), names)
        context.view_layer.update()
    for name in names:
        report = reports.get(ob, name)
        if report is None or report.failed:
            own, why = chain_name(ob.pose.bones[name]), report.message if report else ""
            raise UserError(say("The chain on '{name}' was not solved. {why}", name=own, why=why).strip())
    solved = channels.read(ob, indices)
    fk_keys.forget(ob)  # from here on, keys with the solution are meant
    with in_fk(context, ob, tips):
        before = channels.read(ob, indices)
        channels.write(ob, indices, solved)
        context.view_layer.update()
    context.view_layer.update()
    return Applied(indices.tolist(), before, solved)


def apply_pose(context: Context, ob: Object, tips: Sequence[PoseBone]) -> list[str]:
    """Make the solved pose of chains on the current frame their FK pose; key it if auto keying is on.

    Returns:
        Sentences about animated bones whose keys will undo the change on the next frame change.

    Raises:
        UserError: a chain can't be solved; nothing has changed.
    """
    applied = apply_here(context, ob, tips)
    written = [(ob.pose.bones[index], applied.fields(k)) for k, index in enumerate(applied.bones)]
    for bone, fields in written:
        auto_key(context, bone, fields)
    return reverting(context, written)


def apply_range(
    context: Context, ob: Object, tips: Sequence[PoseBone], frames: Sequence[int]
) -> Generator[float, None, BakeReport]:
    """Key the solved poses of chains on frames as their FK pose, and keep the chains enabled; yields progress (0 to 1).

    Closing the generator undoes everything.

    Raises:
        UserError: the poses can't be keyed; nothing has changed.
    """
    names = [tip.name for tip in tips]
    report = yield from bake.bake_stepwise(context, ob, names, frames)
    for name in names:
        chain_of(ob.pose.bones[name]).enabled = True
    context.view_layer.update()
    return report
