"""Make the solved pose the FK pose, on the current frame or on a range of frames."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from .. import bake
from ..bake import BakeReport
from ..data import fk_keys
from ..data.settings import chain_of, object_of
from ..live import reports, solving
from ..pose import channels
from ..pose.channels import FIELDS, Row
from ..rig.plan.chain import ChainError, check, posed_bones
from ..translation.sentences import UserError, say
from .autokey import auto_key, goes_back
from .snap import in_fk


@dataclass(frozen=True)
class Applied:
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


def apply_here(context: bpy.types.Context, ob: bpy.types.Object, tips: Sequence[bpy.types.PoseBone]) -> Applied:
    """Make the solved pose of chains on the current frame their FK pose, without keying it.

    Raises:
        UserError: a chain can't be solved; nothing has changed.
    """
    names = [tip.name for tip in tips]
    indices = np.array(sorted({ob.pose.bones.find(bone.name) for tip in tips for bone in posed_bones(tip)}))
    for tip in tips:
        try:
            check(ob, tip, context.view_layer)
        except ChainError as error:
            raise UserError("The chain on '{tip}' can't be solved. {error}", tip=tip.name, error=error) from None
    if not object_of(ob).live:
        solving.solve_now(ob, context.evaluated_depsgraph_get(), names)
        context.view_layer.update()
    for name in names:
        report = reports.get(ob, name)
        if report is None or report.failed:
            raise UserError(
                say(
                    "The chain on '{name}' was not solved. {why}", name=name, why=report.message if report else ""
                ).strip()
            )
    solved = channels.read(ob, indices)
    fk_keys.forget(ob)  # from here on, keys with the solution are meant
    with in_fk(context, ob, tips):
        before = channels.read(ob, indices)
        channels.write(ob, indices, solved)
        context.view_layer.update()
    context.view_layer.update()
    return Applied(indices.tolist(), before, solved)


def apply_pose(context: bpy.types.Context, ob: bpy.types.Object, tips: Sequence[bpy.types.PoseBone]) -> list[str]:
    """Make the solved pose of chains on the current frame their FK pose; key it if auto keying is on.

    Returns:
        Sentences about animated bones whose keys will undo the change on the next frame change.

    Raises:
        UserError: a chain can't be solved; nothing has changed.
    """
    applied = apply_here(context, ob, tips)
    remarks = []
    for k, index in enumerate(applied.bones):
        bone, fields = ob.pose.bones[index], applied.fields(k)
        auto_key(context, bone, fields)
        if goes_back(context, bone, fields):
            remarks.append(
                say(
                    "'{bone}' is animated and reverts on the next frame change. Key it, or apply a range of frames",
                    bone=bone.name,
                )
            )
    return remarks


def steps(
    context: bpy.types.Context, ob: bpy.types.Object, tips: Sequence[bpy.types.PoseBone], frames: Sequence[int]
) -> Generator[float, None, BakeReport]:
    """Key the solved poses of chains on frames as their FK pose, and keep the chains enabled; yields progress (0 to 1).

    Closing the generator undoes everything.

    Raises:
        UserError: the poses can't be keyed; nothing has changed.
    """
    names = [tip.name for tip in tips]
    report = yield from bake.steps(context, ob, names, frames)
    for name in names:
        chain_of(ob.pose.bones[name]).enabled = True
    context.view_layer.update()
    return report
