"""What a figure does by default when it is dragged: which bone moves freely, what its feet are, and how joints fold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..anatomy.body import parent_bone_of
from ..anatomy.end_bones import end_below
from ..anatomy.figure import Figure
from ..anatomy.limbs import elbow
from ..anatomy.members import LIMBS, Member, Region, find_members
from ..anatomy.parts import is_helper
from ..anatomy.sides import side_of_row
from ..solve.problem import Floats

BENT = np.sin(np.radians(5.0))
"""A joint bent at rest by more than this, as the sine of the angle, shows how it folds."""


def root_of(figure: Figure, grabbed: int) -> int:
    """Return the bone that moves and turns freely when a bone is dragged: the topmost one that is part of the body.

    A bone above the hips with a single branch, not counting helpers, moves the whole character and stays.
    """
    above = list(figure.up(grabbed))
    carrying = {parent_bone_of(figure, list(leg.row)) for leg in _limbs(figure, Region.LEG)}
    for bone in above[:0:-1]:
        branches = [b for b in figure.children[bone] if not is_helper(figure.names[b])]
        if bone in carrying or len(branches) != 1 or not figure.children[branches[0]]:
            return bone
    return grabbed


def feet_of(figure: Figure) -> list[int]:
    """Return the feet, or the last bones of legs without feet."""
    return _ends(figure, Region.LEG)


def hands_of(figure: Figure) -> list[int]:
    """Return the hands, or the last bones of arms without hands."""
    return _ends(figure, Region.ARM)


class Fold(NamedTuple):
    """How an elbow, knee or hock folds, or a joint of a spine or neck."""

    axis: Floats
    """(3,) the unit axis, at rest, about which it folds."""
    twists: bool
    """Whether the bone can twist too, as forearms and spines do."""
    hardens: bool = False
    """Whether it gets stiffer the farther it bends, so that the whole spine bends."""


def folds_of(figure: Figure) -> dict[int, Fold]:
    """Return how joints fold: elbows, knees and hocks by the bone below, spine and neck bones forward and back.

    Joints whose fold is unknown are left out.
    """
    found = {}
    for limb in find_members(figure):
        row = list(limb.row)
        if limb.region not in LIMBS:
            side = side_of_row(figure, row)
            if side is not None:
                axis = np.cross(side, figure.tails[row[-1]] - figure.heads[row[0]])
                found.update(dict.fromkeys(row, Fold(axis / np.linalg.norm(axis), twists=True, hardens=True)))
            continue
        end = end_below(figure, row)
        points = np.array([*figure.heads[row], figure.tails[row[-1]] if end is None else figure.heads[end]])
        segments = np.diff(points, axis=0)
        side, lower = side_of_row(figure, row), elbow(figure, row)
        across = np.zeros(3) if side is None else np.cross(side, points[-1] - points[0])
        for bone, before, after in zip(row[1:], segments, segments[1:], strict=False):
            axis = np.cross(before, after)
            if np.linalg.norm(axis) <= BENT * np.linalg.norm(before) * np.linalg.norm(after):
                axis = across if lower is not None and bone == row[lower] else np.zeros(3)  # a split bone does not fold
            if axis.any():
                found[bone] = Fold(axis / np.linalg.norm(axis), limb.region is Region.ARM)
    return found


def _ends(figure: Figure, region: Region) -> list[int]:
    found = []
    for limb in _limbs(figure, region):
        end = end_below(figure, list(limb.row))
        found.append(limb.row[-1] if end is None else end)
    return found


def _limbs(figure: Figure, region: Region) -> list[Member]:
    return [member for member in find_members(figure) if member.region is region]
