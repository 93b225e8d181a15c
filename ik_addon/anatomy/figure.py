"""A skeleton at rest as plain data: names, hierarchy and positions of its bones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..solve.problem import Floats
from .parts import LIMBS, part_in

if TYPE_CHECKING:
    from bpy.types import Object


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
    def of(cls, ob: Object, steered: Mapping[str, Sequence[str]] = MappingProxyType({})) -> Figure:
        """Read an armature object; `steered` maps the names of steered bones to those of the bones that they follow."""
        armature = ob.data
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

    def are_together(self, a: int, b: int, share: float) -> bool:
        """Whether both ends of two bones are closer than this share of the length of the second."""
        gaps = self.heads[a] - self.heads[b], self.tails[a] - self.tails[b]
        return bool(np.linalg.norm(gaps, axis=1).max() < share * self.length(b))

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


# ---- what the bones of a human figure would be called, judged by its shape alone, where their names say nothing
#
# Two pairs of limbs of equal build leave the trunk, legs nearer the root than arms. Two bones of each are by far the
# longest. Only lengths of bones count, so that it does not matter how the figure is posed.

SAME = 0.01
"""Bones whose lengths differ by less than this, in lengths of the figure, are of equal build."""
LONGER = 1.2
"""The two bones of a limb are longer than all others in line by at least this factor."""
LEAST = 0.2
"""Shortest limb, in lengths of the figure."""


class _Limb(NamedTuple):
    way: list[int]
    """The bones from the trunk to the tip of a finger or toe."""
    upper: int
    """Where in `way` the upper arm or thigh is; the other half and the hand or foot follow."""


def labels_of(figure: Figure) -> tuple[str, ...]:
    """Return the names of bones; of a human figure whose limbs have no informative names, what they would be called."""
    if any(part_in(name) in LIMBS for name in figure.names) or not figure.names:
        return figure.names
    pairs = []
    for parent, children in enumerate(figure.children):
        limbs_below = [limb for child in children if len(children) > 1 and (limb := _limb(figure, child))]
        pairs += [(parent, both) for both in combinations(limbs_below, 2) if _are_alike(figure, *both)]
    pairs.sort(key=lambda pair: figure.depth(pair[0]))
    if len(pairs) != 2 or pairs[0][0] == pairs[1][0] or pairs[0][0] not in figure.up(pairs[1][0]):
        return figure.names
    (hips, legs), (chest, arms) = pairs
    found = dict(enumerate(figure.names))
    left = _left(figure, legs)
    for limbs, words in ((legs, "pelvis thigh shin foot toe"), (arms, "shoulder upper_arm forearm hand finger")):
        starts = [figure.heads[limb.way[limb.upper]].dot(left) for limb in limbs]
        for limb, side in zip(limbs, "LR" if starts[0] > starts[1] else "RL", strict=True):
            girdle, *halves, end, last = (f"{word}.{side}" for word in words.split())
            found.update(dict.fromkeys(limb.way[: limb.upper], girdle))
            foot = limb.way[limb.upper + 2]
            found.update(dict.fromkeys(figure.below(foot), last))
            found.update(zip(limb.way[limb.upper :], (*halves, end), strict=False))
    found.update(dict.fromkeys((bone for bone in figure.up(chest) if hips in list(figure.up(bone))[1:]), "spine"))
    necks = [bone for bone in figure.children[chest] if bone not in (arms[0].way[0], arms[1].way[0])]
    neck = figure.down(max(necks, key=lambda bone: float(figure.reaches[bone]))) if necks else []
    found.update(zip(neck, ("neck", "head") if len(neck) > 1 else ("head",), strict=False))
    return tuple(found[bone] for bone in range(len(figure.names)))


def _limb(figure: Figure, top: int) -> _Limb | None:
    way = figure.down(top)
    sizes = np.linalg.norm(np.diff(figure.heads[way], axis=0), axis=1)
    if len(sizes) < 2:
        return None
    upper = int((sizes[:-1] + sizes[1:]).argmax())
    pair, others = sizes[upper : upper + 2], np.delete(sizes, (upper, upper + 1))
    is_limb = pair.min() > LONGER * others.max(initial=0.0) and pair.sum() > LEAST * figure.reaches.max()
    return _Limb(way, upper) if is_limb else None


def _are_alike(figure: Figure, *limbs: _Limb) -> bool:
    """Return whether the bones of two limbs and all below them have the same lengths."""
    below = (
        [(figure.gap(b, figure.parents[b]), len(figure.children[b])) for b in figure.below(way[0])] for way, _ in limbs
    )
    own, others = (np.array(sorted(lengths)) for lengths in below)
    return len(own) == len(others) and bool(np.abs(own - others).max() < SAME * figure.reaches.max())


def _left(figure: Figure, legs: tuple[_Limb, _Limb]) -> Floats:
    """Return the direction (3,) to the left of a figure: across its legs and feet, or else along X."""
    up, front = np.zeros(3), np.zeros(3)
    for way, upper in legs:
        foot = way[upper + 2]
        up += figure.heads[way[upper]] - figure.heads[foot]
        front += (figure.heads[way[upper + 3]] if len(way) > upper + 3 else figure.tails[foot]) - figure.heads[foot]
    left = np.cross(up, front)
    clear = SAME * float(np.linalg.norm(up)) ** 2
    return left if np.linalg.norm(left) > clear else np.array((1.0, 0.0, 0.0))
