"""The bones of a skeleton for other programs, and their hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import bpy
import numpy as np

from ..anatomy.body import feet_of, root_of
from ..anatomy.figure import Figure
from ..core.translation.sentences import UserError
from ..solve.problem import Ints

SAME_PLACE = 1e-3
"""Bones whose ends at rest are closer than this, in bone lengths, stand in for each other."""


@dataclass(frozen=True)
class Bones:
    """The bones taken from an armature, parents before their children."""

    figure: Figure
    """The armature at rest."""
    taken: tuple[int, ...]
    """Indices of these bones in the figure."""
    parents: tuple[int, ...]
    """For each, the index of its parent among the taken bones; -1 if it has none."""

    @classmethod
    def of(cls, ob: bpy.types.Object, only_deform: bool) -> Bones:
        """Take the deform bones of an armature object, or all of its bones.

        Raises:
            UserError: it has no deform bones.
        """
        figure = Figure.of(ob)
        taken = [b for b, name in enumerate(figure.names) if not only_deform or ob.data.bones[name].use_deform]
        if not taken:
            raise UserError(
                "'{object}' has no deform bone. Turn on Deform for the bones that deform its meshes", object=ob.name
            )
        found: dict[int, int] = {}
        for bone in taken:
            found[bone] = _parent_of(figure, taken, found, bone)
        ordered: list[int] = []
        while len(ordered) < len(taken):
            ordered += [bone for bone in taken if bone not in ordered and found[bone] in (-1, *ordered)]
        return cls(figure, tuple(ordered), tuple(ordered.index(found[b]) if found[b] >= 0 else -1 for b in ordered))

    @property
    def names(self) -> list[str]:
        """Names of the taken bones."""
        return [self.figure.names[bone] for bone in self.taken]

    @cached_property
    def hips(self) -> int:
        """The bone of the armature that carries the body, whether it is taken or not."""
        feet = feet_of(self.figure)
        return root_of(self.figure, feet[0]) if feet else self.taken[0]

    @property
    def read(self) -> Ints:
        """The bones whose poses are needed: the taken bones, then the hips."""
        return np.array([*self.taken, self.hips], dtype=np.int64)


def _parent_of(figure: Figure, taken: Sequence[int], found: Mapping[int, int], bone: int) -> int:
    """Return the nearest taken bone above, or a taken bone in the place of one above; -1 if there is none.

    In control rigs, the parents of deform bones are often other bones, which deform bones elsewhere follow.
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
    """Return a bone, its parent and so on, as far as parents are known."""
    line = [bone]
    while found.get(line[-1], -1) >= 0:
        line.append(found[line[-1]])
    return line


def _is_in_place_of(figure: Figure, bone: int, other: int) -> bool:
    size = SAME_PLACE * float(np.linalg.norm(figure.tails[other] - figure.heads[other]))
    ends = ((figure.heads[bone], figure.heads[other]), (figure.tails[bone], figure.tails[other]))
    return all(float(np.linalg.norm(a - b)) <= size for a, b in ends)
