"""The parts of a whole figure: arms, legs, spine and head, each with the bones of the chain that Add Chain would make.

Limbs are found by name, the trunk by the limbs attached to it: the spine runs up to the chest, the topmost bone that
limbs are attached to, and the head is at the end of what continues from there.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from .chain_ends import find, on_trunk, trunk_above
from .end_bones import joints_of
from .figure import Figure
from .limbs import TWIN, part_of, tops
from .parts import ARM, Part, is_animal, side_of
from .sides import is_leg, up_of

UPRIGHT = math.cos(math.radians(50.0))
"""Cosine of the largest angle between the trunk of a human and the direction from its feet to its hips."""


class Region(Enum):
    """The part of a figure that a chain is for, in words for the user."""

    ARM = "arm"
    LEG = "leg"
    SPINE = "spine"
    HEAD = "head"


LIMBS = (Region.ARM, Region.LEG)


class Member(NamedTuple):
    """A limb, the spine, or the neck with the head."""

    region: Region
    row: tuple[int, ...]
    """The bones of the chain, root first."""
    side: int = 0
    """1 on the left, -1 on the right, 0 in the middle or where names do not say."""
    is_fore: bool = False
    """Whether it is a front leg."""

    @property
    def words(self) -> str:
        """Name of the part, for the user."""
        side = {1: "left ", -1: "right "}.get(self.side, "")
        return f"{side}{'front ' * self.is_fore}{self.region.value}"

    @property
    def label(self) -> str:
        """Name of what its chain moves, as a title for the user: a limb, or the end of the trunk."""
        return "Chest" if self.region is Region.SPINE else self.words.title()


def find_members(figure: Figure) -> list[Member]:
    """Find the parts of a figure, trunk first. Of several limbs in one place, as in control rigs, take the first."""
    limbs = _limbs(figure)
    chest = _chest(figure, limbs)
    spine = _spine(figure, limbs, chest)
    head = _head(figure, limbs, spine[-1] if chest is None and spine else chest)
    # Between bones that constraints move, a single free bone is just what a control rig leaves of a spine.
    least = 2 if figure.steered else 1
    trunk = [
        Member(region, tuple(row))
        for region, row in ((Region.SPINE, spine), (Region.HEAD, head))
        if len(row) >= least and figure.is_free(row)
    ]
    return [*trunk, *limbs]


def missing(found: Sequence[Member], regions: Collection[Region]) -> list[str]:
    """Name the parts of these regions that were not found; animals with front legs need no arms."""
    lacks = []
    for region in (region for region in Region if region in regions):
        own = [member for member in found if member.region is region]
        if not own and not (region is Region.ARM and any(member.is_fore for member in found)):
            lacks.append(region.value + "s" * (region in LIMBS))
        for is_fore in (False, True):
            sides = {member.side for member in own if member.is_fore is is_fore}
            if len(sides) == 1 and (side := sides.pop()):
                lacks.append(Member(region, (), -side, is_fore).words)
    return lacks


def is_human(figure: Figure, found: Sequence[Member]) -> bool:
    """Return whether a figure is built like a human: two arms, two legs, and an upright trunk between them."""
    arms, legs = ([m.row for m in found if m.region is region] for region in LIMBS)
    if len(arms) != 2 or len(legs) != 2:
        return False
    limbs = {bone for row in (*arms, *legs) for bone in figure.below(row[0])}
    if any(is_animal(figure.labels[bone]) for bone in limbs):
        return False
    up = up_of(figure)
    shoulders, hips = (np.mean([figure.heads[row[0]] for row in rows], axis=0) for rows in (arms, legs))
    trunk = shoulders - hips
    return up is not None and float(trunk.dot(up)) > UPRIGHT * float(np.linalg.norm(trunk))


def are_twins(figure: Figure, row: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether two rows of bones, root first, begin and end in the same places."""
    own, others = (joints_of(figure, list(bones))[[0, -1]] for bones in (row, other))
    size = float(np.linalg.norm(own[1] - own[0]))
    return bool(np.linalg.norm(own - others, axis=1).max() < TWIN * size)


# ---- limbs


def _limbs(figure: Figure) -> list[Member]:
    rows: list[list[int]] = []
    for top in tops(figure):
        row = figure.row(*find(figure, top))
        is_known = any(not set(row).isdisjoint(known) or are_twins(figure, row, known) for known in rows)
        if len(row) > 1 and figure.is_free(row) and not is_known:
            rows.append(row)
    depths = [figure.depth(trunk_above(figure, row[0])) for row in rows]
    found = []
    for row, depth in zip(rows, depths, strict=True):
        is_arm = part_of(figure, row[0]) in ARM and not is_leg(figure, row)
        is_fore = not is_arm and depth > min(depths)
        found.append(Member(Region.ARM if is_arm else Region.LEG, tuple(row), side_of(figure.labels[row[0]]), is_fore))
    return found


# ---- trunk


def _chest(figure: Figure, limbs: Sequence[Member]) -> int | None:
    """Return the bone that arms or front legs are attached to; None where it can't be told from the hips."""
    parents = {trunk_above(figure, member.row[0]) for member in limbs} - {-1}
    arms = {trunk_above(figure, member.row[0]) for member in limbs if member.region is Region.ARM} - {-1}
    found = on_trunk(figure, parents) if len(parents) > 1 else arms
    return max(found, key=figure.depth, default=None)


def _spine(figure: Figure, limbs: Sequence[Member], chest: int | None) -> list[int]:
    """Return the bones from above the hips to the chest."""
    if chest is None and figure.steered:
        return []  # only limbs show which bones of a control rig are its spine
    seeds = [b for b in range(len(figure.names)) if part_of(figure, b) is Part.SPINE] if chest is None else [chest]
    rows = [figure.row(*find(figure, seed)) for seed in seeds]
    of_limbs = {bone for member in limbs for bone in member.row}
    return max((row for row in rows if of_limbs.isdisjoint(row)), key=len, default=[])


def _head(figure: Figure, limbs: Sequence[Member], chest: int | None) -> list[int]:
    """Return the bones from above the chest to the head."""
    if chest is None:
        return []
    of_limbs = {below for member in limbs for bone in member.row for below in figure.below(bone)}
    trunk = [
        bone
        for bone in figure.below(chest)
        if bone != chest and bone not in of_limbs and part_of(figure, bone) in (Part.SPINE, Part.NECK)
    ]
    named = [bone for bone in trunk if part_of(figure, bone) is Part.NECK]
    if not trunk:
        return []
    row = figure.row(*find(figure, (named or trunk)[0]))
    above = list(figure.up(row[-1]))
    # Twist bones between chest and head belong to its neck.
    return above[: above.index(chest)][::-1] if chest in above else []
