"""Where a chain begins and ends when a user points at one of its bones: a limb, a finger, a spine, a tail.

`limbs` finds limbs by name. A spine runs between the bones that carry the limbs. Where names say nothing, the chain is
the part of the skeleton that does not branch, or the limb within that part if two of its bones are by far the longest.
"""

import re
from collections.abc import Callable, Iterator
from itertools import takewhile

import numpy as np

from ..solve.problem import Floats
from .figure import Figure
from .limbs import NO_SEGMENT, TWIN, extremities, free_twin, limb_of, part_of, top_of, tops
from .parts import EXTREMITIES, Part, is_end, is_helper, side_of, stem

LONGER = 1.5
"""The two bones of a limb without informative names are longer than all others in line by at least this factor."""
MOST_OF_A_LIMB = 6
"""A line of more bones than this is a tail, unless its two long bones are of similar length, see `ALIKE`."""
ALIKE = 0.7
"""Smallest ratio of the two long bones. A tail whose bones taper faster than this has no such pair."""
DWARFED = (3.0, 2.0)
"""A child that reaches this many times farther than its siblings continues a bone; second: one at the bone's tail."""


def find(figure: Figure, bone: int) -> list[int]:
    """Find the chain, root first, that is meant by one of its bones, or by the hand, foot or shoulder at its ends."""
    limb = limb_of(figure, bone)
    row = free_twin(figure, limb) if limb else _free_part(figure, _row(figure, bone), bone)
    other = None if figure.is_free(row) else _posed_instead(figure, bone, bool(limb))
    return row if other is None else find(figure, other)


def find_above(figure: Figure, tip: int) -> list[int]:
    """Find the chain, root first, that ends with exactly this bone."""
    limb = limb_of(figure, tip)
    row = limb if tip in limb else _row(figure, tip)
    return row[: row.index(tip) + 1] if tip in row else [tip]


def _free_part(figure: Figure, row: list[int], bone: int) -> list[int]:
    """Return the part of a row around a bone without helpers and bones that follow others; all of it if it is free."""
    if figure.is_free(row) or bone in figure.steered:
        return row
    if bone not in row or is_helper(figure.labels[bone]):
        return [bone]
    return _part_with(row, bone, lambda b: not (figure.steered.get(b) or is_helper(figure.labels[b])))


def _posed_instead(figure: Figure, bone: int, is_limb: bool) -> int | None:
    """Return the free bone to pose instead of one that others move: the bone that it follows, or one of the same name.

    A bone in the same place is preferred. For a limb only such a bone counts: with Blender's IK a limb may follow bones
    elsewhere, and a chain on those would not pose the limb.
    """
    if figure.is_free([bone]):
        return None
    known = [bone]
    for own in known:
        known += [other for other in figure.steered.get(own, ()) if other not in known]
    found = [other for other in known if figure.is_free([other])]
    near = np.linalg.norm(figure.heads - figure.heads[bone], axis=1) < TWIN * figure.length(bone)
    if not is_limb:
        named = (other for other in np.flatnonzero(near).tolist() if part_of(figure, other) is not Part.HELPER)
        found += [o for o in named if figure.is_free([o]) and stem(figure.labels[o]) == stem(figure.labels[bone])]
    return next((other for other in found if near[other]), None if is_limb else next(iter(found), None))


# ---- spines and necks


def trunk_above(figure: Figure, top: int) -> int:
    """Return the trunk bone that a limb is attached to, given the limb's first bone; -1 if there is none.

    A neck that carries the collarbones, as in 3ds Max, is no part of the spine.
    """
    names = ((b, figure.labels[b]) for b in figure.up(figure.parents[top]))
    trunk = [b for b, name in names if not side_of(name) and not is_helper(name)]
    return next((b for b in trunk if part_of(figure, b) is not Part.NECK), -1)


def on_trunk(figure: Figure, carrying: set[int]) -> set[int]:
    """Of bones that carry limbs, keep those that lead up to a neck if there are several; this leaves out wings."""
    necks = [b for b in range(len(figure.names)) if part_of(figure, b) is Part.NECK]
    trunk = {above for neck in necks for above in figure.up(neck)}
    return carrying & trunk if len(carrying & trunk) > 1 else carrying


def _trunk(figure: Figure, bone: int) -> list[int] | None:
    """Return the spine or neck that a trunk bone is part of; empty if of none; None if no limbs mark the trunk."""
    carrying = {trunk_above(figure, top) for top in tops(figure)} - {-1}
    parents = sorted(on_trunk(figure, carrying), key=figure.depth)
    if len(parents) < 2:
        return None
    hips, chest = set(figure.up(parents[0])), parents[-1]
    above = list(figure.up(chest))
    spine = [*takewhile(lambda b: b not in hips, above)][::-1]
    if bone in above or bone in hips:
        return spine
    if chest in figure.up(bone):
        neck = _spread(figure, bone, lambda b: b not in above and part_of(figure, b) in (Part.SPINE, Part.NECK))
        return neck if len(neck) > 1 or part_of(figure, bone) is Part.NECK else []
    return []


def _spine(figure: Figure, bone: int) -> list[int]:
    """Return the bones of a spine that no limbs mark; the hips, which carry the legs, are left out."""

    def carries(b: int) -> bool:
        return any(top_of(figure, child) == child for child in figure.children[b])

    if part_of(figure, bone) is not Part.SPINE or carries(bone):
        above = [child for child in figure.children[bone] if part_of(figure, child) is Part.SPINE]
        if len(above) != 1:
            return []
        bone = above[0]
    return _spread(figure, bone, lambda b: part_of(figure, b) is Part.SPINE and not carries(b))


# ---- all others


def _row(figure: Figure, bone: int) -> list[int]:
    """Return the finger, neck, spine, tail or unnamed limb that a bone belongs to, root first."""
    part = part_of(figure, bone)
    name = stem(figure.labels[bone])
    if part is Part.FINGER:
        finger = _spread(figure, bone, lambda b: part_of(figure, b) is Part.FINGER and stem(figure.labels[b]) == name)
        last = finger[-1]
        # Mixamo's fourth bone only marks where the finger ends.
        is_last = len(finger) == 4 and re.search(r"Hand\w+4$", figure.labels[last]) and not figure.children[last]
        return finger[:-1] if is_last else finger
    if part in (Part.SPINE, Part.NECK, Part.GIRDLE):
        trunk = _trunk(figure, bone)
        if trunk is None and part is not Part.NECK:
            trunk = _spine(figure, bone)
        if trunk:
            return trunk
    if part is Part.NECK:
        return _spread(figure, bone, lambda b: part_of(figure, b) is Part.NECK)
    if part in EXTREMITIES and figure.parents[bone] >= 0:
        above = _longest_two(figure, _line(figure, figure.parents[bone]))
        if above and above[-1] == figure.parents[bone]:
            return above
    line = _line(figure, bone)
    same = _part_with(line, bone, lambda b: stem(figure.labels[b]) == name)
    line = same if len(same) > 1 else line
    return _longest_two(figure, line) or line


def _spread(figure: Figure, bone: int, belongs: Callable[[int], bool]) -> list[int]:
    """Return a bone, its parents and its farthest reaching children that belong to the same part, root first."""
    row = [*takewhile(lambda b: b == bone or belongs(b), figure.up(bone))][::-1]
    while below := [child for child in figure.children[row[-1]] if belongs(child)]:
        row.append(max(below, key=lambda child: float(figure.reaches[child])))
    return row


def _line(figure: Figure, bone: int) -> list[int]:
    """Return the line of bones above and below a bone that does not branch, root first."""
    line = [bone]
    while (parent := figure.parents[line[0]]) >= 0 and _next_alike(figure, parent) == line[0]:
        line.insert(0, parent)
    while (child := _next_alike(figure, line[-1])) is not None:
        line.append(child)
    return line


def next_of(figure: Figure, bone: int) -> int | None:
    """Return the child that continues a bone; None where the line ends or branches."""
    # In control rigs, deform bones are children of bones in the same place.
    apart = [child for child in figure.children[bone] if not figure.are_together(child, bone, TWIN)]
    children = [child for child in apart if part_of(figure, child) is not Part.HELPER]
    if len(children) > 1:
        same = [child for child in children if stem(figure.labels[child]) == stem(figure.labels[bone])]
        far = sorted(children, key=lambda child: float(figure.reaches[child]))[-2:]
        at_tail = float(np.linalg.norm(figure.heads[far[1]] - figure.tails[bone])) < TWIN * figure.length(bone)
        dwarfs = figure.reaches[far[1]] > DWARFED[at_tail] * figure.reaches[far[0]]
        children = same if len(same) == 1 or not dwarfs else far[1:]
    return children[0] if len(children) == 1 else None


def _next_alike(figure: Figure, bone: int) -> int | None:
    """Return `next_of` a bone if names allow both in one chain: a tail does not begin with the hips above it."""
    child = next_of(figure, bone)
    if child is None or part_of(figure, bone) is part_of(figure, child):
        return child
    return child if stem(figure.labels[bone]) == stem(figure.labels[child]) else None


def _part_with(line: list[int], bone: int, belongs: Callable[[int], bool]) -> list[int]:
    """Return the unbroken part of a line around a bone for which `belongs` holds."""
    at = line.index(bone)
    before = list(takewhile(belongs, line[:at][::-1]))[::-1]
    return [*before, *takewhile(belongs, line[at:])]


def _longest_two(figure: Figure, line: list[int]) -> list[int]:
    """Return the two adjacent bones of a line that are by far the longest, if they make a limb; otherwise empty."""
    if len(line) < 3:
        return []
    sizes = [figure.length(bone) for bone in line]
    for i in range(len(line) - 1):
        pair, others = sizes[i : i + 2], (*sizes[:i], *sizes[i + 2 :])
        is_limb = len(line) <= MOST_OF_A_LIMB or min(pair) > ALIKE * max(pair)
        if is_limb and min(pair) > LONGER * max(others):
            return line[i : i + 2]
    return []


# ---- the hand or foot at the end of a limb, which moves and turns with the limb's target

NUB = 0.02
"""A bone shorter than this, in lengths of its limb, only marks where the limb ends."""


def end_below(figure: Figure, row: list[int]) -> int | None:
    """Return the hand or foot below the last bone of a limb, root first; None if there is none.

    Names decide. Without informative names, it is the bone that continues two that are by far longer.
    """
    tip = row[-1]
    size = float(np.linalg.norm(figure.heads[tip] - figure.heads[row[0]])) + figure.length(tip)
    children = [bone for bone in _next(figure, tip, size) if bone not in figure.steered]
    limb = limb_of(figure, tip)
    if limb:
        if tip != limb[-1] or len(row) < 2:
            return None
        wanted = (Part.UNKNOWN,) if part_of(figure, limb[0]) is Part.UNKNOWN else extremities(figure, limb[0])
        is_last = len(children) == 1 and is_end(figure.labels[children[0]])
        named = [b for b in children if part_of(figure, b) in wanted or is_last]
        found = max(named, key=lambda b: float(figure.reaches[b]), default=None)
        return None if found is None or _is_nub(figure, row, found) else found
    end = next_of(figure, tip)
    is_plain = len(row) == 2 and all(part_of(figure, b) is Part.UNKNOWN for b in row)
    if not is_plain or end not in children or is_end(figure.labels[end]) or _is_nub(figure, row, end):
        return None
    joints = np.array([*(figure.heads[bone] for bone in row), figure.heads[end]])
    shortest = float(np.linalg.norm(np.diff(joints, axis=0), axis=1).min())
    return end if shortest > LONGER * figure.length(end) else None


def joints_of(figure: Figure, row: list[int]) -> Floats:
    """Return the joints (n+1, 3) of a chain, root first: the heads of its bones, then where it ends.

    That is the head of its hand or foot, as importers leave the tails of bones anywhere; without one, its tip's tail.
    """
    end = end_below(figure, row)
    return np.array([*figure.heads[row], figure.tails[row[-1]] if end is None else figure.heads[end]])


def _next(figure: Figure, bone: int, size: float) -> Iterator[int]:
    """Yield the children of the last bone of a limb; the children of mechanism bones in place of those bones.

    `size` is the length of the limb.
    """
    for child in figure.children[bone]:
        steps = figure.heads[list(figure.children[child])] - figure.heads[child]
        is_no_segment = len(steps) == 1 and float(np.linalg.norm(steps[0])) < NO_SEGMENT * size
        if is_no_segment or part_of(figure, child) is Part.HELPER:
            yield from _next(figure, child, size)
        else:
            yield child


def _is_nub(figure: Figure, row: list[int], bone: int) -> bool:
    """Return whether a bone below a limb, root first, has no children and is too short to show a direction."""
    return not figure.children[bone] and figure.length(bone) < NUB * figure.gap(bone, row[0])
