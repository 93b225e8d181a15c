"""The solved pose made the FK pose, on the current frame or on a range of frames."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from .. import bake
from ..bake import BakeReport
from ..data.settings import chain_of, object_of
from ..live import reports, solving
from ..pose import channels
from ..pose.channels import FIELDS, Row
from ..rig.plan.chain import ChainError, check, posed_bones
from ..translation.sentences import say
from .autokey import auto_key, goes_back
from .snap import in_fk
from .snapped import SnapError


@dataclass(frozen=True)
class Applied:
    """What bones held before the solved pose became their FK pose, and what they hold now."""

    bones: Sequence[int]
    before: Row
    """(k, 17) the FK pose."""
    now: Row
    """(k, 17) the solved pose."""

    def fields(self, k: int) -> list[str]:
        """The properties of a bone that are different."""
        changed = self.before[k] != self.now[k]
        return [field for field, columns in FIELDS.items() if changed[columns].any()]


def apply_here(context: bpy.types.Context, ob: bpy.types.Object, tips: Sequence[bpy.types.PoseBone]) -> Applied:
    """Make the solved pose of the current frame the FK pose of chains, without a key.

    Raises:
        SnapError: a chain cannot be solved; nothing was changed.
    """
    names = [tip.name for tip in tips]
    indices = np.array(sorted({ob.pose.bones.find(bone.name) for tip in tips for bone in posed_bones(tip)}))
    for tip in tips:
        try:
            check(ob, tip, context.view_layer)
        except ChainError as error:
            raise SnapError("The chain on '{tip}' can't be solved. {error}", tip=tip.name, error=error) from None
    if not object_of(ob).live:
        solving.solve_now(ob, context.evaluated_depsgraph_get(), names)
        context.view_layer.update()
    for name in names:
        report = reports.get(ob, name)
        if report is None or report.failed:
            raise SnapError(
                say(
                    "The chain on '{name}' was not solved. {why}", name=name, why=report.message if report else ""
                ).strip()
            )
    solved = channels.read(ob, indices)
    with in_fk(context, ob, tips):
        before = channels.read(ob, indices)
        channels.write(ob, indices, solved)
        context.view_layer.update()
    context.view_layer.update()
    return Applied(indices.tolist(), before, solved)


def apply_pose(context: bpy.types.Context, ob: bpy.types.Object, tips: Sequence[bpy.types.PoseBone]) -> list[str]:
    """Make the solved pose of the current frame the FK pose of chains; return sentences about what will not stay.

    It is keyed if auto keying is on.

    Raises:
        SnapError: a chain cannot be solved; nothing was changed.
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
    """Make the solved poses of frames the keyed FK pose of chains, which stay enabled.

    Each step yields the share that is done, 0 to 1; closing the generator takes everything back.

    Raises:
        BakeError, KeysError: it cannot be done; nothing was changed.
    """
    names = [tip.name for tip in tips]
    report = yield from bake.steps(context, ob, names, frames)
    for name in names:
        chain_of(ob.pose.bones[name]).enabled = True
    context.view_layer.update()
    return report
