"""What a figure does in the hand without being told: which bone moves freely, and which are its feet and hands."""

from __future__ import annotations

from ..anatomy.body import parent_bone_of
from ..anatomy.end_bones import end_below
from ..anatomy.figure import Figure
from ..anatomy.members import Member, Region, find_members
from ..anatomy.parts import is_helper


def root_of(figure: Figure, grabbed: int) -> int:
    """The bone that moves and turns freely when a bone is dragged: the uppermost one that is part of the body.

    A bone above the hips from which nothing else descends, but helpers, is for the whole character and stays.
    """
    above = list(figure.up(grabbed))
    carrying = {parent_bone_of(figure, list(leg.row)) for leg in _limbs(figure, Region.LEG)}
    for bone in above[:0:-1]:
        branches = [b for b in figure.children[bone] if not is_helper(figure.names[b])]
        if bone in carrying or len(branches) != 1 or not figure.children[branches[0]]:
            return bone
    return grabbed


def feet_of(figure: Figure) -> list[int]:
    """The feet, or the last bones of legs that have none."""
    return _ends(figure, Region.LEG)


def hands_of(figure: Figure) -> list[int]:
    """The hands, or the last bones of arms that have none."""
    return _ends(figure, Region.ARM)


def _ends(figure: Figure, region: Region) -> list[int]:
    found = []
    for limb in _limbs(figure, region):
        end = end_below(figure, list(limb.row))
        found.append(limb.row[-1] if end is None else end)
    return found


def _limbs(figure: Figure, region: Region) -> list[Member]:
    return [member for member in find_members(figure) if member.region is region]
