"""A skeleton at rest as plain data: names, hierarchy and positions of its bones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..solve.problem import Floats
from .shapes import labels_of

if TYPE_CHECKING:
    import bpy


@dataclass(frozen=True)
class Figure:
    """The m bones of an armature in object space. A bone is an index; parents come before their children."""

    names: tuple[str, ...]
    parents: tuple[int, ...]
    """-1 for a bone without a parent."""
    heads: Floats
    """(m, 3)"""
    tails: Floats
    """(m, 3)"""
    steered: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Bones that constraints or drivers move, each with the bones that it follows. They can't be part of a chain."""

    @classmethod
    def of(cls, ob: bpy.types.Object, steered: Mapping[str, Sequence[str]] = MappingProxyType({})) -> Figure:
        """Read an armature object; `steered` maps the names of steered bones to those of the bones that they follow."""
        armature: Any = ob.data
        bones = list(armature.bones)
        names = tuple(bone.name for bone in bones)
        index = {name: i for i, name in enumerate(names)}
        heads, tails = (np.zeros((len(bones), 3), dtype=np.float32) for _ in range(2))
        armature.bones.foreach_get("head_local", heads.ravel())
        armature.bones.foreach_get("tail_local", tails.ravel())
        return cls(
            names=names,
            parents=tuple(-1 if bone.parent is None else index[bone.parent.name] for bone in bones),
            heads=heads.astype(np.float64),
            tails=tails.astype(np.float64),
            steered={index[name]: tuple(index[other] for other in copied) for name, copied in steered.items()},
        )

    def is_free(self, bones: Iterable[int]) -> bool:
        """Return whether only animation moves these bones, so that a chain of them can be solved."""
        return not any(bone in self.steered for bone in bones)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What the bones are called; see `labels_of` where their names say nothing."""
        return labels_of(self)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each bone."""
        found: list[list[int]] = [[] for _ in self.names]
        for bone, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(bone)
        return tuple(map(tuple, found))

    @cached_property
    def reaches(self) -> Floats:
        """(m,) length of the longest path from the head of each bone through its children."""
        found = np.linalg.norm(self.tails - self.heads, axis=1)
        for bone in reversed(range(len(self.names))):
            parent = self.parents[bone]
            if parent >= 0:
                found[parent] = max(found[parent], self.gap(bone, parent) + found[bone])
        return np.asarray(found)

    def length(self, bone: int) -> float:
        """Rest length of a bone."""
        return float(np.linalg.norm(self.tails[bone] - self.heads[bone]))

    def gap(self, a: int, b: int) -> float:
        """Distance between the heads of two bones."""
        return float(np.linalg.norm(self.heads[a] - self.heads[b]))

    def up(self, bone: int) -> Iterator[int]:
        """Yield a bone, its parent, and so on to the top."""
        while bone >= 0:
            yield bone
            bone = self.parents[bone]

    def down(self, bone: int) -> list[int]:
        """Return a bone and, below it, the child that reaches farthest at each step."""
        way = [bone]
        while children := self.children[way[-1]]:
            way.append(max(children, key=lambda child: float(self.reaches[child])))
        return way

    def depth(self, bone: int) -> int:
        """Number of bones from a bone to the top, itself included."""
        return sum(1 for _ in self.up(bone))

    def below(self, bone: int) -> Iterator[int]:
        """Yield a bone and all its descendants, nearest first."""
        level = [bone]
        while level:
            yield from level
            level = [child for parent in level for child in self.children[parent]]

    def row(self, tip: int, length: int) -> list[int]:
        """Return the bones of a chain, root first."""
        above = list(self.up(tip))
        return above[: length or None][::-1]
