"""What is to be solved on an armature and in which order; built once, kept until the rig or a setting changes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import bpy
import numpy as np
from numpy.typing import NDArray

from ..settings import IKAddonChain, chain_of
from ..solve import OutOfReach, Solver
from ..solve.problem import Ints
from . import chain as chains
from .carrier import Carrier, carrier_of, in_order
from .chain import ChainError
from .skeleton import Skeleton


class Shape(NamedTuple):
    """What chains must have in common to be solved as one batch; see `Problem`."""

    solver: Solver
    out_of_reach: OutOfReach
    iterations: int
    inherits: tuple[bool, ...]
    stretch_weights: tuple[float, ...]
    """The bones' IK stretch."""
    has_pole: bool
    plain: bool
    """The bones have no special inheritance flags, see `Skeleton.plain`."""


@dataclass(frozen=True)
class Wave:
    """G chains of one shape that do not hang on each other, n bones each."""

    shape: Shape
    chains: tuple[int, ...]
    """Indices into `Plan.chains`."""
    bones: Ints
    """(G, n) indices in `pose.bones`, root first."""
    rows: Ints
    """(G, n) positions in `Plan.live`."""
    modes: NDArray[np.str_]
    """(G, n) rotation modes."""


@dataclass(frozen=True)
class ChainPlan:
    """One chain that can be solved."""

    tip: str
    """Name of the tip bone."""
    bones: tuple[int, ...]
    """Indices in `pose.bones`, root first."""
    shape: Shape
    remarks: tuple[str, ...]
    """Sentences about settings that cannot be followed."""
    target_carrier: Carrier | None
    """The bone that the target hangs on, of this armature or another."""
    pole_carrier: Carrier | None


@dataclass(frozen=True)
class Plan:
    """The chains of one armature, those that move a parent before those that hang on it."""

    skeleton: Skeleton
    chains: tuple[ChainPlan, ...]
    waves: tuple[Wave, ...]
    """All chains, in the order in which they are solved."""
    faults: dict[str, str]
    """Tip bone of each chain that cannot be solved: why, and what to do."""
    live: Ints
    """(k,) indices of all bones that the chains pose, ascending."""
    rows: dict[int, int]
    """Position of each bone in `live`."""
    modes: tuple[str, ...]
    """Rotation mode of each live bone."""
    sampled: Ints
    """(s,) indices of the other bones whose pose is needed: what the chains hang on."""
    inputs: frozenset[int]
    """`session_uid` of everything whose change asks for a new solve."""

    carriers: frozenset[Carrier]
    """Bones that goals hang on, of this armature and others."""
    followed: tuple[int, ...]
    """Indices of the bones whose solved pose goals need."""

    @classmethod
    def of(
        cls,
        ob: bpy.types.Object,
        view_layer: bpy.types.ViewLayer,
        only: Collection[str] | None = None,
        followed: Collection[str] = (),
    ) -> Plan:
        """Plan the enabled chains of an armature object.

        Args:
            ob: the armature object, the original one.
            view_layer: where targets must be present.
            only: tip bones to plan, enabled or not; None: all enabled chains.
            followed: bones of this armature that goals of other armatures hang on.
        """
        skeleton = Skeleton.of(ob)
        index = {name: i for i, name in enumerate(skeleton.names)}
        planned: list[ChainPlan] = []
        faults: dict[str, str] = {}
        owner: dict[int, str] = {}
        inputs = {ob.session_uid, ob.data.session_uid}
        wanted = [tip for tip in chains.tips(ob) if (chain_of(tip).enabled if only is None else tip.name in only)]
        for tip in wanted:
            settings = chain_of(tip)
            inputs.update(goal.session_uid for goal in (settings.target, settings.pole) if goal is not None)
            bones = chains.chain_bones(tip)
            try:
                remarks = chains.check(ob, tip, view_layer)
                shared = next((bone.name for bone in bones if index[bone.name] in owner), None)
                if shared is not None:
                    raise ChainError(
                        f"Bone '{shared}' already belongs to the chain on '{owner[index[shared]]}'; "
                        "shorten one of the two chains"
                    )
            except ChainError as error:
                faults[tip.name] = str(error)
                continue
            owner.update((index[bone.name], tip.name) for bone in bones)
            planned.append(
                ChainPlan(
                    tip=tip.name,
                    bones=tuple(index[bone.name] for bone in bones),
                    shape=_shape(settings, skeleton, bones, [index[bone.name] for bone in bones]),
                    remarks=tuple(remarks),
                    target_carrier=carrier_of(settings.target, settings.target_bone),
                    pole_carrier=carrier_of(settings.pole, settings.pole_bone),
                )
            )
        needs = _needs(ob, skeleton, index, planned, owner)
        planned, mutual = _in_order(planned, needs)
        for chain in mutual:
            others = " and ".join(f"'{other.tip}'" for other in mutual if other is not chain)
            faults[chain.tip] = f"This chain and {others} follow each other in a circle; give one another target"
            owner = {bone: tip for bone, tip in owner.items() if tip != chain.tip}
        live = np.array(sorted(owner), dtype=np.int64)
        rows = {int(bone): row for row, bone in enumerate(live)}
        modes = tuple(ob.pose.bones[int(bone)].rotation_mode for bone in live)
        carriers = frozenset(
            c for chain in planned for c in (chain.target_carrier, chain.pole_carrier) if c is not None
        )
        own = {carrier.bone for carrier in carriers if carrier.armature == ob.session_uid}
        wanted_poses = sorted({index[name] for name in own.union(followed) if name in index})
        return cls(
            skeleton=skeleton,
            chains=tuple(planned),
            waves=_waves(planned, needs, rows, modes),
            faults=faults,
            live=live,
            rows=rows,
            modes=modes,
            sampled=_sampled(skeleton, planned, owner, wanted_poses),
            inputs=frozenset(inputs | {carrier.armature for carrier in carriers}),
            carriers=carriers,
            followed=tuple(wanted_poses),
        )


def _shape(settings: IKAddonChain, skeleton: Skeleton, bones: list[bpy.types.PoseBone], indices: list[int]) -> Shape:
    root = bones[0]
    policy = OutOfReach(settings.out_of_reach)
    if policy is OutOfReach.PUSH_ROOT and root.parent is not None and root.bone.use_connect:
        policy = OutOfReach.EXTEND
    # A chain for the two-bone solver was checked; on a frame on which a bone is scaled to nothing another one must do.
    solver = Solver.FABRIK if settings.solver == Solver.FABRIK.value else Solver.AUTO
    return Shape(
        solver=solver,
        out_of_reach=policy,
        iterations=settings.iterations,
        inherits=tuple(bone.bone.use_inherit_rotation for bone in bones),
        stretch_weights=tuple(bone.ik_stretch for bone in bones),
        has_pole=settings.pole is not None,
        plain=bool(skeleton.plain[indices].all()),
    )


def _needs(
    ob: bpy.types.Object,
    skeleton: Skeleton,
    index: dict[str, int],
    planned: list[ChainPlan],
    owner: dict[int, str],
) -> dict[str, set[str]]:
    """Tips of the chains that move a chain's root or carry its goals, for the tip of each chain."""
    needs: dict[str, set[str]] = {}
    for chain in planned:
        above = skeleton.ancestors(chain.bones[0])
        for carrier in (chain.target_carrier, chain.pole_carrier):
            if carrier is not None and carrier.armature == ob.session_uid and carrier.bone in index:
                bone = index[carrier.bone]
                above += [bone, *skeleton.ancestors(bone)]
        needs[chain.tip] = {owner[bone] for bone in above if bone in owner}
    return needs


def _in_order(planned: list[ChainPlan], needs: dict[str, set[str]]) -> tuple[list[ChainPlan], list[ChainPlan]]:
    """Chains with those that they need before them; and those that form a circle."""
    by_tip = {chain.tip: chain for chain in planned}
    ordered, mutual = in_order(by_tip, needs)
    return [by_tip[tip] for tip in ordered], [by_tip[tip] for tip in mutual]


def _waves(
    ordered: list[ChainPlan], needs: dict[str, set[str]], rows: dict[int, int], modes: tuple[str, ...]
) -> tuple[Wave, ...]:
    level: dict[str, int] = {}
    groups: dict[tuple[int, Shape], list[int]] = {}
    for i, chain in enumerate(ordered):
        level[chain.tip] = 1 + max((level[tip] for tip in needs[chain.tip] if tip in level), default=-1)
        groups.setdefault((level[chain.tip], chain.shape), []).append(i)
    waves = []
    for (_, shape), chosen in sorted(groups.items(), key=lambda group: group[0][0]):
        own = np.array([[rows[bone] for bone in ordered[i].bones] for i in chosen], dtype=np.int64)
        bones = np.array([ordered[i].bones for i in chosen], dtype=np.int64)
        waves.append(Wave(shape, tuple(chosen), bones, own, np.array(modes)[own]))
    return tuple(waves)


def _sampled(skeleton: Skeleton, planned: list[ChainPlan], live: Collection[int], followed: list[int]) -> Ints:
    sampled = set(followed)
    for path in (
        *(skeleton.ancestors(chain.bones[0]) for chain in planned),
        *([bone, *skeleton.ancestors(bone)] for bone in followed),
    ):
        first_live = next((i for i, bone in enumerate(path) if bone in live), None)
        if first_live is None:
            sampled.update(path[:1])
        elif first_live:
            # The bones in between follow the live one as they stand to it now, so that one is needed as well.
            sampled.update(path[: first_live + 1])
    return np.array(sorted(sampled), dtype=np.int64)
