"""One chain of a plan: checked, and with the bones that its goals are attached to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import bpy

from ...data.settings import chain_of
from .attachments import Attachment, attachments_of
from .chain import check_seen
from .limits import check_numbers, is_restricted
from .presence import Presence


@dataclass(frozen=True)
class ChainPlan:
    """One chain that can be solved."""

    tip: str
    """Name of the tip bone."""
    bones: tuple[int, ...]
    """Indices in `pose.bones`, root first."""
    remarks: tuple[str, ...]
    """Sentences about settings that cannot be followed."""
    target_attachments: tuple[Attachment, ...]
    """The bones that the target is attached to, of this armature or others, nearest first."""
    pole_attachments: tuple[Attachment, ...]
    has_pole: bool
    turns: bool
    """The tip takes the target's rotation."""

    @property
    def goal_attachments(self) -> tuple[Attachment, ...]:
        """The bones that the target or the pole is attached to."""
        return *self.target_attachments, *self.pole_attachments


def checked(
    ob: bpy.types.Object,
    tip: bpy.types.PoseBone,
    bones: list[bpy.types.PoseBone],
    path: tuple[int, ...],
    constrained: list[bpy.types.PoseBone],
    presence: Presence,
) -> ChainPlan:
    """Plan the chain on a tip bone, whose bones are seen as evaluated; raise `ChainError` where it cannot be solved."""
    settings = chain_of(tip)
    remarks = check_seen(ob, tip, bones, constrained, presence)
    for bone in bones:
        check_numbers(bone, limits=settings.use_limits)
    if settings.planar and not has_plane(bones):
        remarks.append("Planar has no effect together with limits or rotation. Lock axes instead")
    pole = None if settings.pole is None else presence.seen(settings.pole)
    return ChainPlan(
        tip=tip.name,
        bones=path,
        remarks=tuple(remarks),
        target_attachments=attachments_of(presence.seen(settings.target), settings.target_bone),
        pole_attachments=attachments_of(pole, settings.pole_bone),
        has_pole=settings.pole is not None,
        turns=settings.use_rotation,
    )


def has_plane(bones: Sequence[bpy.types.PoseBone]) -> bool:
    """Whether Planar has an effect on a chain, root first: limits and rotation lead out of the plane."""
    settings = chain_of(bones[-1])
    return not (settings.use_rotation or (settings.use_limits and any(map(is_restricted, bones))))
