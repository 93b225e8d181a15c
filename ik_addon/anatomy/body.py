"""The parts of a whole figure: arms, legs, spine and head, each with the bones of the chain that Add Chain would make.

Limbs are found by name, the trunk by the limbs attached to it: the spine runs up to the chest, the topmost bone that
limbs are attached to, and the head is at the end of what continues from there. Also what carries these parts, and the
points where feet and hands touch.
"""

import math
from collections.abc import Collection, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from ..solve.problem import Floats
from .chain_ends import end_below, find, joints_of, on_trunk, trunk_above
from .figure import Figure
from .limbs import TWIN, limb_of, part_of, tops
from .parts import ARM, Part, is_animal, is_helper, side_of, words
from .sides import front_of, is_leg, points_down, toes_of, up_of

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
    trunk = [Member(Region.SPINE, tuple(spine)), Member(Region.HEAD, tuple(head))]
    return [*(part for part in trunk if len(part.row) >= least and figure.is_free(part.row)), *limbs]


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
        row = find(figure, top)
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
    return max(on_trunk(figure, parents) if len(parents) > 1 else arms, key=figure.depth, default=None)


def _spine(figure: Figure, limbs: Sequence[Member], chest: int | None) -> list[int]:
    """Return the bones from above the hips to the chest."""
    if chest is None and figure.steered:
        return []  # only limbs show which bones of a control rig are its spine
    seeds = [b for b in range(len(figure.names)) if part_of(figure, b) is Part.SPINE] if chest is None else [chest]
    rows = [find(figure, seed) for seed in seeds]
    of_limbs = {bone for member in limbs for bone in member.row}
    return max((row for row in rows if of_limbs.isdisjoint(row)), key=len, default=[])


def _head(figure: Figure, limbs: Sequence[Member], chest: int | None) -> list[int]:
    """Return the bones from above the chest to the head."""
    if chest is None:
        return []
    of_limbs = {below for member in limbs for bone in member.row for below in figure.below(bone)}
    free = [bone for bone in figure.below(chest) if bone != chest and bone not in of_limbs]
    trunk = [bone for part in (Part.NECK, Part.SPINE) for bone in free if part_of(figure, bone) is part]
    if not trunk:
        return []
    above = list(figure.up(find(figure, trunk[0])[-1]))
    # Twist bones between chest and head belong to its neck.
    return above[: above.index(chest)][::-1] if chest in above else []


# ---- what carries the parts, and their ends


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


def _members_in(figure: Figure, region: Region) -> list[Member]:
    return [member for member in find_members(figure) if member.region is region]


def chest_of(figure: Figure) -> int | None:
    """Return the bone at the upper end of the spine; None if there is no spine."""
    return next((member.row[-1] for member in _members_in(figure, Region.SPINE)), None)


def head_of(figure: Figure) -> int | None:
    """Return the bone at the upper end of the neck; None if there is no neck."""
    return next((member.row[-1] for member in _members_in(figure, Region.HEAD)), None)


def root_of(figure: Figure, grabbed: int) -> int:
    """Return the bone that moves and turns freely when a bone is dragged: the topmost one that is part of the body.

    A bone above the hips with a single branch, not counting helpers, moves the whole character and stays.
    """
    above = list(figure.up(grabbed))
    carrying = {parent_bone_of(figure, list(leg.row)) for leg in _members_in(figure, Region.LEG)}
    for bone in above[:0:-1]:
        branches = [b for b in figure.children[bone] if not is_helper(figure.labels[b])]
        if bone in carrying or len(branches) != 1 or not figure.children[branches[0]]:
            return bone
    return grabbed


def ends_of(figure: Figure, region: Region) -> list[int]:
    """Return the feet or hands, or the last bones of legs or arms without them."""
    rows = [list(limb.row) for limb in _members_in(figure, region)]
    return [row[-1] if (end := end_below(figure, row)) is None else end for row in rows]


# ---- where feet and hands touch: heel and ball of a foot, root and fingers of a hand

LONGEST = 0.35
"""Tails of the bones of a foot that are farther from its ankle than this, in lengths of the leg, are made up."""
USUAL = 0.14
"""Such a tail is taken to be as far away as the ball of a human foot is."""
BEHIND = 0.25
"""Distance of a heel without a bone behind the ankle, as a fraction of the distance from ankle to ball."""
FORWARD = 0.3
"""A joint farther ahead of the ankle than this, in lengths of the foot, is the ball."""


def pivots_of(figure: Figure, row: list[int], end: int) -> tuple[Floats, Floats]:
    """Return the points (3,) and (3,) at which the heel and the toe of a limb touch, with its hand or foot at rest.

    Args:
        figure: the skeleton.
        row: the bones of the limb, root first.
        end: its hand or foot.
    """
    ankle, tip = figure.heads[end], figure.tails[end]
    up = up_of(figure)
    if up is None or not is_leg(figure, row):
        return ankle, tip
    below = [bone for bone in figure.below(end) if bone != end]
    # Importers make up the tails of bones without children, some as long as a shin, and all tails in some files.
    leg = float(np.linalg.norm(np.diff(joints_of(figure, row), axis=0), axis=1).sum())
    tails = [end, *below] if points_down(figure, row) or not below else []
    ways = figure.tails[tails] - ankle
    far = np.linalg.norm(ways, axis=1)
    ways *= np.where(far > LONGEST * leg, USUAL * leg / np.maximum(far, 1e-300), 1.0)[:, None]
    points = ankle + np.concatenate([ways, figure.heads[below] - ankle])
    tip = points[0]
    towards = toes_of(figure, row)
    towards = front_of(figure) if towards is None else towards
    towards = tip - ankle if towards is None else towards
    towards = towards - towards.dot(up) * up
    front = towards / max(float(np.linalg.norm(towards)), 1e-300)
    sole = float((points - ankle).dot(up).min())
    length = float((points - ankle).dot(front).max())
    joints = [figure.heads[bone] for bone in figure.children[end]]
    balls = [joint for joint in joints if (joint - ankle).dot(front) > FORWARD * length]
    ball = min(balls, key=lambda joint: float((joint - ankle).dot(front)), default=tip)
    heels = (0.5 * (figure.heads[bone] + figure.tails[bone]) for bone in below if "heel" in words(figure.labels[bone]))
    heel = next(heels, ankle - BEHIND * float((ball - ankle).dot(front)) * front)
    heel, ball = (point + (sole - float((point - ankle).dot(up))) * up for point in (heel, ball))
    return heel, ball
