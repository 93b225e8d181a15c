"""Chains that share bones form trees; trees and chains of one shape that do not depend on each other form waves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import bpy
import numpy as np
from numpy.typing import NDArray

from ...pose.skeleton import Skeleton
from ...solve import OutOfReach, Solver
from ...solve.problem import Bools, Floats, Ints
from ...translation.sentences import marked, say
from .chain_plan import ChainPlan
from .order import in_order

LOOP = marked("Dependency loop with {others}. Give one of the chains a different target")
LOOP_OF_ARMATURES = marked("Dependency loop between {names}. Give a chain of one of them a different target")
"""The faults of chains that need each other's solution."""


class Shape(NamedTuple):
    """What groups must have in common to be solved as one batch; see `Problem` for what is named as there."""

    parents: tuple[int, ...]
    """(n,) the parent of each bone within the group, -1 for the root."""
    segments: tuple[int, ...]
    """(E,) the bone of each effector."""
    poles: tuple[bool, ...]
    """(E,) chains that bend towards a pole."""
    turns: tuple[bool, ...]
    """(E,) chains whose tip takes the target's rotation."""
    inherits: tuple[bool, ...]
    stretch_weights: tuple[float, ...]
    limits: tuple[tuple[float, ...], ...] | None
    """(n, 6) minimum and maximum angle about X, Z and Y."""
    plain: bool
    """The bones have no special inheritance flags, see `Skeleton.plain`."""
    solver: Solver = Solver.AUTO
    out_of_reach: OutOfReach = OutOfReach.EXTEND
    iterations: int = 0
    weights: tuple[float, ...] = (1.0,)
    """(E,)"""
    stiffness: tuple[tuple[float, ...], ...] | None = None
    """(n, 3) about X, Y and Z."""
    bend_lead: float = 0.0
    planar: bool = False
    """A free chain that stays in the plane of its rest pose."""
    is_end: bool = False
    """Each group is the end bone of a chain, which takes the target's rotation."""

    @property
    def is_chain(self) -> bool:
        """Whether the bones are a single chain, and not a tree."""
        return len(self.segments) == 1


@lru_cache(maxsize=1024)
def paths(parents: tuple[int, ...], segments: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Points from the root to each effector: bones by their index, effectors counted on from the last bone."""
    found = []
    for e, segment in enumerate(segments):
        path, bone = [len(parents) + e], segment
        while bone >= 0:
            path.append(bone)
            bone = parents[bone]
        found.append(tuple(path[::-1]))
    return tuple(found)


@lru_cache(maxsize=1024)
def above(parents: tuple[int, ...]) -> tuple[slice | list[int], slice | list[int]]:
    """The bones of a group that have a parent in it, and these, as indices; slices where each follows its parent."""
    if parents == tuple(range(-1, len(parents) - 1)):
        return slice(1, None), slice(-1)
    below = [bone for bone, parent in enumerate(parents) if parent >= 0]
    return below, [parents[bone] for bone in below]


@dataclass(frozen=True)
class Group:
    """A chain, or the chains that share bones with each other."""

    chains: tuple[int, ...]
    """Indices of the chains, in the order of their effectors."""
    bones: tuple[int, ...]
    """Indices in `pose.bones`, parents before children."""
    is_end: bool = False
    """It is the end bone of the one chain."""


@dataclass(frozen=True)
class Wave:
    """G groups of one shape that do not depend on each other: n bones and E chains each."""

    shape: Shape
    chains: Ints
    """(G, E) indices into `Plan.chains`."""
    bones: Ints
    """(G, n) indices in `pose.bones`, parents before children."""
    rows: Ints
    """(G, n) positions in `Plan.live`."""
    modes: NDArray[np.str_]
    """(G, n) rotation modes."""
    reaches: Floats
    """(G, E, 3) what each chain brings to its target, in the rest axes of its tip."""
    loose: Bools
    """(G, E) chains whose end bone, which takes a rotation, is not connected: its location moves what is brought."""

    def some(self, chosen: Bools) -> Wave:
        """The chosen groups (G,) alone."""
        return Wave(self.shape, *(array[chosen] for name, array in vars(self).items() if name != "shape"))

    def as_members(self, array: Any) -> Any:
        """An array (F, G, ...) of the groups as that of the members of a batch (G F, ...), group by group."""
        if len(array) == 1:
            return np.ascontiguousarray(array[0])
        return np.ascontiguousarray(array.swapaxes(0, 1)).reshape(-1, *array.shape[2:])

    def as_frames(self, members: Any) -> Any:
        """The inverse of `as_members`: (F, G, ...)."""
        if len(members) == len(self.rows):
            return members[None]
        return members.reshape(len(self.rows), -1, *members.shape[1:]).swapaxes(0, 1)


def groups_of(chains: Sequence[Iterable[int]], skeleton: Skeleton) -> list[Group]:
    """Chains, given by their bones, that share bones with each other, directly or through others."""
    found: list[tuple[list[int], set[int]]] = []
    for i, bones in enumerate(chains):
        members, all_bones = [i], set(bones)
        apart = []
        for other in found:
            if all_bones.isdisjoint(other[1]):
                apart.append(other)
            else:
                members, all_bones = other[0] + members, other[1] | all_bones
        found = [*apart, (members, all_bones)]
    return [
        Group(tuple(sorted(members)), tuple(sorted(bones, key=lambda bone: (skeleton.depths[bone], bone))))
        for members, bones in sorted(found)
    ]


def without_shared_ends(skeleton: Skeleton, planned: list[ChainPlan], faults: dict[str, str]) -> None:
    """Take chains out of `planned`, with a fault, whose end bone another one poses: by going through it, or first."""
    owners = {bone: chain for chain in reversed(planned) for bone in chain.posed}
    owners |= {bone: chain for chain in reversed(planned) for bone in chain.bones}
    for chain in planned.copy():
        if chain.end is not None and owners[chain.end] is not chain:
            faults[chain.tip] = say(
                "The chain on '{tip}' also poses the end bone '{name}'. Turn off End Rotation for one chain, or "
                "shorten the other",
                tip=owners[chain.end].tip,
                name=skeleton.names[chain.end],
            )
            planned.remove(chain)


def without_loops(
    ob: bpy.types.Object,
    skeleton: Skeleton,
    index: dict[str, int],
    planned: list[ChainPlan],
    faults: dict[str, str],
) -> tuple[list[Group], dict[int, set[int]]]:
    """Groups of chains and what each needs; chains that follow each other are taken out of `planned`, with a fault."""
    while True:
        groups = groups_of([chain.bones for chain in planned], skeleton)
        groups += [Group((i,), (c.end,), is_end=True) for i, c in enumerate(planned) if c.end is not None]
        owner = {bone: g for g, group in enumerate(groups) for bone in group.bones}
        needs: dict[int, set[int]] = {g: set() for g in range(len(groups))}
        for g, group in enumerate(groups):
            needs[g].update(owner[bone] for bone in skeleton.ancestors(group.bones[0]) if bone in owner)
            for i in group.chains:
                followed = _moving(ob, skeleton, index, planned[i])
                needs[g].update(owner[bone] for bone in followed if bone in owner)
        _, loop = in_order(range(len(groups)), needs)
        mutual = {i for g in loop for i in groups[g].chains}
        if not mutual:
            return groups, needs
        for i in mutual:
            others = " and ".join(f"'{planned[j].tip}'" for j in sorted(mutual - {i}))
            faults[planned[i].tip] = say(LOOP, others=others)
        planned[:] = [chain for i, chain in enumerate(planned) if i not in mutual]


def _moving(ob: bpy.types.Object, skeleton: Skeleton, index: dict[str, int], chain: ChainPlan) -> list[int]:
    """The bones of this armature that move the goals of a chain."""
    found = []
    for parent, _turns in chain.goal_attachments:
        if parent.armature == ob.session_uid and parent.bone in index:
            bone = index[parent.bone]
            found += [bone, *skeleton.ancestors(bone)]
    return found


def in_waves(
    groups: Sequence[Group],
    shapes: Sequence[Shape],
    needs: Mapping[int, set[int]],
    rows: Mapping[int, int],
    modes: Sequence[str],
    planned: Sequence[ChainPlan],
) -> tuple[Wave, ...]:
    """All groups, in the order in which they are solved.

    Args:
        groups: without dependency loops among them.
        shapes: of the groups.
        needs: groups, by index, that move the root or a goal of a group.
        rows: position of each bone in `Plan.live`.
        modes: rotation modes of `Plan.live`.
        planned: the chains.
    """
    level: dict[int, int] = {}
    batches: dict[tuple[int, Shape], list[Group]] = {}
    for i in in_order(range(len(groups)), needs)[0]:
        level[i] = 1 + max((level[j] for j in needs[i]), default=-1)
        batches.setdefault((level[i], shapes[i]), []).append(groups[i])
    waves = []
    for (_, shape), batch in sorted(batches.items(), key=lambda item: item[0][0]):
        own = np.array([[rows[bone] for bone in group.bones] for group in batch], dtype=np.int64)
        waves.append(
            Wave(
                shape,
                chains=np.array([group.chains for group in batch], dtype=np.int64),
                bones=np.array([group.bones for group in batch], dtype=np.int64),
                rows=own,
                modes=np.array(modes)[own],
                reaches=np.array([[planned[i].reach for i in group.chains] for group in batch]),
                loose=np.array([[planned[i].is_loose and not group.is_end for i in group.chains] for group in batch]),
            )
        )
    return tuple(waves)
