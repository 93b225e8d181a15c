"""The bones of the trunk that carry the others: hips, chest and head, and the bone that carries a limb."""

from __future__ import annotations

from collections.abc import Collection

from .figure import Figure
from .limbs import limb_of
from .members import Region, find_members
from .parts import is_helper, side_of


def parent_bone_of(figure: Figure, row: list[int], solved: Collection[int] = ()) -> int | None:
    """Return the bone that carries a chain, root first: the hips for a leg, the chest for an arm; None if no bone does.

    Shoulders and hip joints move with their limb, so they do not count. Neither do mechanism bones, which may follow
    the limb, nor bones that are `solved` together with the chain.
    """
    limb = limb_of(figure, row[-1])
    out = {*limb, *solved}
    above = [b for b in figure.up(figure.parents[row[0]]) if b not in out and not is_helper(figure.names[b])]
    trunk = [bone for bone in above if not (limb and side_of(figure.names[bone]))]
    return next(iter(trunk or above), None)


def chest_of(figure: Figure) -> int | None:
    """Return the bone at the upper end of the spine; None if there is no spine."""
    return _last(figure, Region.SPINE)


def head_of(figure: Figure) -> int | None:
    """Return the bone at the upper end of the neck; None if there is no neck."""
    return _last(figure, Region.HEAD)


def _last(figure: Figure, region: Region) -> int | None:
    return next((member.row[-1] for member in find_members(figure) if member.region is region), None)
