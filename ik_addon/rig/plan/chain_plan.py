"""One chain of a plan: checked, and with the bones that move its goals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from bpy.types import Object, PoseBone

from ...core.chain_settings import IKAddonChain
from ...core.settings import chain_of, folds_of
from ...core.skeleton import Skeleton
from ...core.translation.sentences import say
from .chain import check_seen, end_axes, reach_of
from .limits import check_numbers, is_free
from .presence import Presence
from .sources import Carrier, Part


@dataclass(frozen=True)
class ChainPlan:
    """A chain that can be solved."""

    tip: str
    """Name of the tip bone."""
    bones: tuple[int, ...]
    """Indices in `pose.bones`, root first."""
    end: int | None
    """Index of the end bone, if it takes the target's orientation."""
    end_axes: tuple[tuple[float, float, float], ...]
    """(3, 3) see `chain.end_axes`."""
    reach: tuple[float, float, float]
    """The end effector in the rest axes of the tip: the tail of the tip, or the head of the end bone."""
    is_loose: bool
    """Whether an end bone takes the target's orientation without being a connected child of the tip."""
    remarks: tuple[str, ...]
    """Remarks on settings that can't be followed."""
    carriers: frozenset[Carrier]
    """The bones that move the target or the pole, of this armature or others, in any way."""
    root_carriers: frozenset[Carrier]
    """The bones that move the root in any way."""
    has_pole: bool
    turns: bool
    """Whether the tip takes the target's orientation."""
    bend_side: tuple[float, float, float]
    """The side to bend to, in the rest axes of the root bone; zero if it has none."""
    bends_both_ways: bool
    """Whether it keeps the bend of the FK pose, and bends to its side only where that is straight."""
    folds: tuple[tuple[float, float, float], ...]
    """How much each bone folds, in the rest axes of the bone above; empty for an even bend. See `Problem.folds`."""

    @classmethod
    def of(
        cls,
        ob: Object,
        tip: PoseBone,
        path: tuple[int, ...],
        end: int | None,
        presence: Presence,
        skeleton: Skeleton,
    ) -> Self:
        """Plan the chain on a tip bone; raise `UserError` if it can't be solved."""
        remarks = check_seen(ob, tip, presence)
        settings, posed = chain_of(tip), presence.posed(ob).pose.bones
        bones = [posed[bone] for bone in path]
        last = None if end is None else posed[end]
        for bone in (*bones, *([] if last is None else [last])):
            check_numbers(bone, limits=settings.use_limits)
        if settings.planar and not has_plane(bones):
            remarks.append(say("Stay in Plane has no effect with limits or rotation. Lock axes instead"))
        use_pole = settings.pole is not None and chain_of(bones[-1]).use_pole  # Use Pole may be animated or driven
        above = bones[0].parent
        goals = [Part(settings.target, settings.target_bone)]
        if use_pole:
            goals.append(Part(settings.pole, settings.pole_bone))
        return cls(
            tip=tip.name,
            bones=path,
            end=end,
            end_axes=tuple((x, y, z) for x, y, z in end_axes(tip).tolist()),
            reach=reach_of(tip).to_tuple(),
            is_loose=last is not None and not (last.bone.use_connect and last.parent == bones[-1]),
            remarks=tuple(remarks),
            carriers=presence.sources.carriers(goals),
            root_carriers=presence.sources.carriers([Part(ob, "" if above is None else above.name)]),
            has_pole=use_pole,
            turns=settings.use_rotation,
            bend_side=tuple(settings.bend_side),
            bends_both_ways=settings.bends_both_ways,
            folds=_folds(settings, path, skeleton),
        )

    @property
    def posed(self) -> tuple[int, ...]:
        """Indices of the bones that the chain poses, root first, its end bone last."""
        return self.bones if self.end is None else (*self.bones, self.end)

    @property
    def takes_rotation(self) -> bool:
        """Whether the tip or the end bone takes the target's orientation."""
        return self.turns or self.end is not None


def _folds(settings: IKAddonChain, path: tuple[int, ...], skeleton: Skeleton) -> tuple[tuple[float, float, float], ...]:
    """Return the folds of a chain, from the root on; empty if it has none."""
    shares = folds_of(settings, len(path))
    if not (any(shares) and any(settings.bend_side)):
        return ()
    axes = skeleton.bend_axes(path, np.array(settings.bend_side))
    size = np.linalg.norm(axes[0])
    if not size > 0.0:
        return ()
    vectors = axes / size * np.array(shares)[:, None]
    return tuple((x, y, z) for x, y, z in vectors.tolist())


def has_plane(bones: Sequence[PoseBone]) -> bool:
    """Whether Planar has an effect on a chain, root first; with limits or orientation, bones leave the plane."""
    settings = chain_of(bones[-1])
    return not (settings.use_rotation or is_limited(bones))


def is_limited(bones: Sequence[PoseBone]) -> bool:
    """Whether the bones of a chain, root first, are solved within limits."""
    return chain_of(bones[-1]).use_limits and not all(map(is_free, bones))
