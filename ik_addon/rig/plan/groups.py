"""Chains that share bones form trees; trees and chains of one shape that do not depend on each other form waves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...pose.skeleton import Skeleton
from ...solve import OutOfReach, Solver
from ...solve.problem import Bools, Ints
from .attachments import in_order


class Shape(NamedTuple):
    """What groups must have in common to be solved as one batch; see `Problem` for what is named as there."""

    solver: Solver
    out_of_reach: OutOfReach
    iterations: int
    parents: tuple[int, ...]
    """(n,) the bone, within the group, that each bone hangs on, -1 for the root."""
    segments: tuple[int, ...]
    """(E,) the bone of each effector."""
    weights: tuple[float, ...]
    """(E,)"""
    poles: tuple[bool, ...]
    """(E,) chains that bend towards a pole."""
    turns: tuple[bool, ...]
    """(E,) chains whose tip takes the target's rotation."""
    inherits: tuple[bool, ...]
    stretch_weights: tuple[float, ...]
    limits: tuple[tuple[float, ...], ...] | None
    """(n, 6) least and greatest angle about X, Z and Y."""
    stiffness: tuple[tuple[float, ...], ...] | None
    """(n, 3) about X, Y and Z."""
    bend_lead: float
    planar: bool
    """A free chain that stays in the plane of its rest pose."""
    plain: bool
    """The bones have no special inheritance flags, see `Skeleton.plain`."""

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


@dataclass(frozen=True)
class Group:
    """A chain, or the chains that share bones with each other."""

    chains: tuple[int, ...]
    """Indices of the chains, in the order of their effectors."""
    bones: tuple[int, ...]
    """Indices in `pose.bones`, parents before children."""


@dataclass(frozen=True)
class Wave:
    """G groups of one shape that do not hang on each other: n bones and E chains each."""

    shape: Shape
    chains: Ints
    """(G, E) indices into `Plan.chains`."""
    bones: Ints
    """(G, n) indices in `pose.bones`, parents before children."""
    rows: Ints
    """(G, n) positions in `Plan.live`."""
    modes: NDArray[np.str_]
    """(G, n) rotation modes."""

    def some(self, chosen: Bools) -> Wave:
        """The chosen groups (G,) alone."""
        return Wave(self.shape, self.chains[chosen], self.bones[chosen], self.rows[chosen], self.modes[chosen])


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


def in_waves(
    groups: Sequence[Group],
    shapes: Sequence[Shape],
    needs: Mapping[int, set[int]],
    rows: Mapping[int, int],
    modes: Sequence[str],
) -> tuple[Wave, ...]:
    """All groups, in the order in which they are solved.

    Args:
        groups: without circles among them.
        shapes: of the groups.
        needs: groups, by index, that move what a group hangs on or follows.
        rows: position of each bone in `Plan.live`.
        modes: rotation modes of `Plan.live`.
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
            )
        )
    return tuple(waves)
