"""What carries the parts of a body: hips, chest and head, and the bone that carries a limb; and its feet and hands."""

from __future__ import annotations

from collections.abc import Collection

from .end_bones import end_below
from .figure import Figure
from .limbs import limb_of
from .members import Member, Region, find_members
from .parts import is_helper, side_of


def parent_bone_of(figure: Figure, row: list[int], solved: Collection[int] = ()) -> int | None:
    """Return the bone that carries a chain, root first: the hips for a leg, the chest for an arm; None if no bone does.

    Shoulders and hip joints move with their limb, so they do not count. Neither do mechanism bones, which may follow
    the limb, nor bones that are `solved` together with the chain.
    """
    limb = limb_of(figure, row[-1])
    out = {*limb, *solved}
    above = [b for b in figure.up(figure.parents[row[0]]) if b not in out and not is_helper(figure.labels[b])]
    trunk = [bone for bone in above if not (limb and side_of(figure.labels[bone]))]
    return next(iter(trunk or above), None)


def chest_of(figure: Figure) -> int | None:
    """Return the bone at the upper end of the spine; None if there is no spine."""
    return _last(figure, Region.SPINE)


def head_of(figure: Figure) -> int | None:
    """Return the bone at the upper end of the neck; None if there is no neck."""
    return _last(figure, Region.HEAD)


def root_of(figure: Figure, grabbed: int) -> int:
    """Return the bone that moves and turns freely when a bone is dragged: the topmost one that is part of the body.

    A bone above the hips with a single branch, not counting helpers, moves the whole character and stays.
    """
    above = list(figure.up(grabbed))
    carrying = {parent_bone_of(figure, list(leg.row)) for leg in _limbs(figure, Region.LEG)}
    for bone in above[:0:-1]:
        branches = [b for b in figure.children[bone] if not is_helper(figure.labels[b])]
        if bone in carrying or len(branches) != 1 or not figure.children[branches[0]]:
            return bone
    return grabbed


def feet_of(figure: Figure) -> list[int]:
    """Return the feet, or the last bones of legs without feet."""
    return _ends(figure, Region.LEG)


def hands_of(figure: Figure) -> list[int]:
    """Return the hands, or the last bones of arms without hands."""
    return _ends(figure, Region.ARM)


def _last(figure: Figure, region: Region) -> int | None:
    return next((member.row[-1] for member in find_members(figure) if member.region is region), None)


def _ends(figure: Figure, region: Region) -> list[int]:
    found = []
    for limb in _limbs(figure, region):
        end = end_below(figure, list(limb.row))
        found.append(limb.row[-1] if end is None else end)
    return found


def _limbs(figure: Figure, region: Region) -> list[Member]:
    return [member for member in find_members(figure) if member.region is region]
