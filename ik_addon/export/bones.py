"""Which bones a skeleton for other programs has, and how they hang together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import bpy
import numpy as np

from ..anatomy.figure import Figure
from ..bake.selection import BakeError
from ..posing.figure import feet_of, root_of
from ..solve.problem import Ints

SAME_PLACE = 1e-3
"""Bones at rest whose ends are nearer to each other than this, in their lengths, stand for one another."""


@dataclass(frozen=True)
class Bones:
    """The bones that are taken from an armature; parents come before their children."""

    figure: Figure
    """The armature at rest."""
    taken: tuple[int, ...]
    """Which bones of it."""
    parents: tuple[int, ...]
    """Which of those that are taken is the parent of each; -1: none is."""

    @classmethod
    def of(cls, ob: bpy.types.Object, only_deform: bool) -> Bones:
        """Take the deform bones of an armature object, or all.

        Raises:
            BakeError: it has none.
        """
        figure = Figure.of(ob)
        taken = [b for b, name in enumerate(figure.names) if not only_deform or ob.data.bones[name].use_deform]
        if not taken:
            raise BakeError("'{object}' has no deform bone. Turn on Deform for the bones that move it", object=ob.name)
        found: dict[int, int] = {}
        for bone in taken:
            found[bone] = _parent_of(figure, taken, found, bone)
        ordered: list[int] = []
        while len(ordered) < len(taken):
            ordered += [bone for bone in taken if bone not in ordered and found[bone] in (-1, *ordered)]
        return cls(figure, tuple(ordered), tuple(ordered.index(found[b]) if found[b] >= 0 else -1 for b in ordered))

    @property
    def names(self) -> list[str]:
        """Of the bones that are taken."""
        return [self.figure.names[bone] for bone in self.taken]

    @cached_property
    def hips(self) -> int:
        """The bone of the armature that carries the body, taken or not."""
        feet = feet_of(self.figure)
        return root_of(self.figure, feet[0]) if feet else self.taken[0]

    @property
    def read(self) -> Ints:
        """The bones whose poses are needed: those that are taken, then the hips."""
        return np.array([*self.taken, self.hips], dtype=np.int64)


def _parent_of(figure: Figure, taken: Sequence[int], found: Mapping[int, int], bone: int) -> int:
    """The nearest bone above that is taken, or that one in whose place is; -1: there is none.

    Deform bones of a control rig have other bones for parents, which deform bones elsewhere follow.
    """
    above = figure.parents[bone]
    while above >= 0:
        same = [above] if above in taken else [b for b in taken if _is_in_place_of(figure, b, above)]
        for other in same:
            if bone not in _line(found, other):
                return other
        above = figure.parents[above]
    return -1


def _line(found: Mapping[int, int], bone: int) -> list[int]:
    """A bone, its parent, and so on, as far as they are known."""
    line = [bone]
    while found.get(line[-1], -1) >= 0:
        line.append(found[line[-1]])
    return line


def _is_in_place_of(figure: Figure, bone: int, other: int) -> bool:
    size = SAME_PLACE * float(np.linalg.norm(figure.tails[other] - figure.heads[other]))
    ends = ((figure.heads[bone], figure.heads[other]), (figure.tails[bone], figure.tails[other]))
    return all(float(np.linalg.norm(a - b)) <= size for a, b in ends)
