"""One chain of a plan: checked, and with the bones that its goals are attached to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import bpy

from ...data.settings import chain_of
from ...data.versions import stiffness_is_shared
from .attachments import Attachment, attachments_of
from .chain import check_seen
from .limits import check_numbers, is_free, stiffness_of
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
    bend_side: tuple[float, float, float]
    """In the rest axes of the root bone; zero: none."""

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
        bend_side=tuple(settings.bend_side),
    )


def has_plane(bones: Sequence[bpy.types.PoseBone]) -> bool:
    """Whether Planar has an effect on a chain, root first: limits and rotation lead out of the plane."""
    settings = chain_of(bones[-1])
    return not (settings.use_rotation or is_limited(bones))


def is_limited(bones: Sequence[bpy.types.PoseBone]) -> bool:
    """Whether the bones of a chain, root first, are solved within limits, or by stiffness as if there were some."""
    settings = chain_of(bones[-1])
    if not settings.use_limits:
        return False
    return not all(map(is_free, bones)) or has_old_stiffness(bones)


def has_old_stiffness(bones: Sequence[bpy.types.PoseBone]) -> bool:
    """Whether stiffness acts on a chain without limits, root first, as it did in 0.1.0."""
    settings = chain_of(bones[-1])
    if not settings.use_limits or stiffness_is_shared(settings):
        return False
    return any(any(stiffness_of(bone)) for bone in bones) and all(map(is_free, bones))
