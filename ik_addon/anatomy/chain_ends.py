"""Where a chain begins and ends when a user points at one of its bones: a limb, a finger, a spine, a tail.

A limb is the way from the topmost bone of an arm or leg down to its hand or foot. What hangs beside that way (twist
bones, correctives, props) is no part of it, what lies on it (a thigh of two bones, a mechanism bone) is. A spine is
the way between the bones that carry the limbs. Names say which is which; where they say nothing the chain is the part
of the skeleton that does not branch, and of that the limb where two bones are by far the longest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from .figure import Figure
from .parts import (
    ARM,
    EXTREMITIES,
    LEG,
    LIMBS,
    LOWER,
    UPPER,
    Part,
    is_ambiguous,
    is_end,
    is_helper,
    part_in,
    side_of,
    stem,
)

LONGER = 1.5
"""The two bones of a limb without telling names are longer than all others in line by this factor at least."""
MOST_OF_A_LIMB = 6
"""A longer line of bones is a tail, whatever the lengths."""
DWARFED = 3.0
"""A bone goes on in the child that reaches farther than the others by this factor."""
NO_SEGMENT = 0.02
"""A bone shorter than this, in lengths of its limb, between the limb and its hand or foot is no segment."""
TWIN = 0.03
"""Limbs whose joints are nearer to each other than this, in their lengths, are the same limb of a control rig."""
TURN = 3.0
"""Degrees: joints that bend less at rest do not show where the halves of a limb meet."""


class Ends(NamedTuple):
    """The chain that a user means."""

    tip: int
    length: int
    """How many bones, counted from the tip up."""


def find(figure: Figure, bone: int) -> Ends:
    """The chain that is meant by any of its bones, or by the hand, foot or shoulder at its ends."""
    row = limb_of(figure, bone)
    row = _free_twin(figure, row) if row else _free_part(figure, _row(figure, bone), bone)
    return Ends(row[-1], len(row))


def find_above(figure: Figure, tip: int) -> Ends:
    """The chain that ends with this very bone."""
    limb = limb_of(figure, tip)
    row = limb if tip in limb else _row(figure, tip)
    return Ends(tip, row.index(tip) + 1 if tip in row else 1)


def elbow(figure: Figure, row: list[int]) -> int | None:
    """Where in a row of bones, root first, the lower half of a limb begins; None where there is no whole limb in it."""
    limb = limb_of(figure, row[-1])
    if len(limb) < 2 or not set(limb) <= set(row):
        return None
    named = [bone for bone in limb if part_of(figure, bone) in LOWER]
    # Where all bones have the same name only the shape shows it.
    is_told = named and not all(is_ambiguous(figure.names[bone]) for bone in limb)
    return row.index(named[0] if is_told else limb[_bent_most(figure, limb)])


def extremity_of(figure: Figure, row: list[int]) -> int | None:
    """The hand or foot below the last bone of a limb; None where there is none."""
    wanted = _extremities(figure, row[-1])
    return next((bone for bone in figure.below(row[-1]) if bone != row[-1] and part_of(figure, bone) in wanted), None)


# ---- parts


def part_of(figure: Figure, bone: int) -> Part:
    """What a bone is by its name, and by its neighbours where rigs use the same name for different bones."""
    name = figure.names[bone]
    if is_helper(name) or (is_end(name) and not figure.children[bone]):
        return Part.HELPER
    part = part_in(name)
    parent = figure.parents[bone]
    if part in UPPER and parent >= 0 and is_ambiguous(name):
        # Mixamo's "Leg" hangs on an "UpLeg"; other rigs have "Leg" and "Knee".
        return LOWER[UPPER.index(part)] if part_in(figure.names[parent]) is part else part
    if part is Part.GIRDLE:
        # Joints are named where others name bones: shoulder, elbow, wrist.
        below = {_first_named(figure, child) for child in figure.children[bone]}
        return next((upper for upper, lower in zip(UPPER, LOWER, strict=True) if lower in below), part)
    return part


def _first_named(figure: Figure, bone: int) -> Part:
    """The part of a bone by its name, or of what a bone without one goes on in."""
    while is_helper(figure.names[bone]) and len(figure.children[bone]) == 1:
        bone = figure.children[bone][0]
    return part_in(figure.names[bone])


def _kind(part: Part) -> tuple[Part, ...]:
    return ARM if part in ARM else LEG


def _extremities(figure: Figure, bone: int) -> tuple[Part, ...]:
    """What a limb may end in: the arms of animals end in feet."""
    return EXTREMITIES if part_of(figure, bone) in ARM else (Part.FOOT,)


# ---- limbs


def limb_of(figure: Figure, bone: int) -> list[int]:
    """The bones of the arm or leg that a bone belongs to, carries or hangs on, root first; none where it is another."""
    part = part_of(figure, bone)
    if part is Part.GIRDLE:
        tops = [child for child in figure.children[bone] if _top(figure, child) == child]
        beside = any(part_of(figure, child) in (Part.SPINE, Part.NECK) for child in figure.children[bone])
        carried = tops or [child for child in figure.children[bone] if part_of(figure, child) is Part.GIRDLE]
        return limb_of(figure, carried[0]) if len(carried) == 1 and not beside else []
    if part in (Part.UNKNOWN, Part.FINGER, Part.SPINE, Part.NECK):
        return []
    top = _top(figure, bone)
    if top is None:
        return _named_alike(figure, bone) if part is Part.HELPER else []
    return _way_down(figure, top)


def _top(figure: Figure, bone: int) -> int | None:
    """The first bone of the limb that a bone belongs to."""
    top, kind = None, None
    for above in figure.up(bone):
        part = part_of(figure, above)
        if part in (*ARM, *LEG):
            if kind is not None and _kind(part) is not kind and not (top is None and part in LOWER):
                break
            kind = _kind(part)
            top = above if part in LIMBS else top
        elif part is not Part.HELPER and (part is not Part.UNKNOWN or top is not None or above == bone):
            break
    return top


def _way_down(figure: Figure, top: int) -> list[int]:
    """The bones from the first one of a limb to the one before its hand or foot."""
    kind, ending = _kind(part_of(figure, top)), _extremities(figure, top)
    row, end = [top], None
    while end is None:
        ways = [child for child in figure.children[row[-1]] if _leads(figure, child, (*kind, *ending))]
        if not ways:
            break
        best = max(ways, key=lambda child: _worth(figure, child, kind, ending))
        if part_of(figure, best) in ending or is_end(figure.names[best]):
            end = best
        elif part_of(figure, best) is Part.HELPER and not _leads(figure, best, (*kind, *ending), helpers=False):
            break
        else:
            row.append(best)
    if end is not None:
        size = float(np.linalg.norm(figure.heads[end] - figure.heads[top]))
        while (
            len(row) > 1 and part_of(figure, row[-1]) is Part.HELPER and _gap(figure, row[-1], end) < NO_SEGMENT * size
        ):
            row.pop()
    return row


def _leads(figure: Figure, bone: int, parts: tuple[Part, ...], helpers: bool = True) -> bool:
    """Whether a bone or what descends from it is one of these parts; or, `helpers`, itself a helper."""
    if helpers and part_of(figure, bone) is Part.HELPER:
        return True
    return any(part_of(figure, below) in parts for below in figure.below(bone))


def _worth(
    figure: Figure, bone: int, kind: tuple[Part, ...], ending: tuple[Part, ...]
) -> tuple[bool, bool, bool, float]:
    """How likely a limb goes on in a bone: best where it leads to the hand or foot."""
    part = part_of(figure, bone)
    return (
        _leads(figure, bone, ending, helpers=False),
        part in ending or _leads(figure, bone, kind[1:2], helpers=False),
        part in kind,
        float(figure.reaches[bone]),
    )


def _gap(figure: Figure, a: int, b: int) -> float:
    return float(np.linalg.norm(figure.heads[a] - figure.heads[b]))


def _tops(figure: Figure) -> Iterator[int]:
    """The first bones of all limbs."""
    for bone in range(len(figure.names)):
        if part_of(figure, bone) in LIMBS and _top(figure, bone) == bone:
            yield bone


def _named_alike(figure: Figure, bone: int) -> list[int]:
    """The limb of which a control or mechanism bone that is no part of it has the name; the nearest that is free."""
    part, side = part_in(figure.names[bone]), side_of(figure.names[bone])
    if part not in (*ARM, *LEG) or not side:
        return []
    tops = [top for top in _tops(figure) if side_of(figure.names[top]) == side]
    limbs = [_way_down(figure, top) for top in tops if _kind(part_of(figure, top)) is _kind(part)]
    return min(
        limbs,
        key=lambda limb: (
            not figure.steered.isdisjoint(limb),
            min(float(np.linalg.norm(figure.heads[bone] - joint)) for joint in _joints(figure, limb)),
        ),
        default=[],
    )


def _joints(figure: Figure, row: list[int]) -> list[np.ndarray]:
    return [*(figure.heads[bone] for bone in row), figure.tails[row[-1]]]


def _bent_most(figure: Figure, limb: list[int]) -> int:
    """Which bone of a limb the lower half begins with, by the shape."""
    steps = np.diff(np.array(_joints(figure, limb)), axis=0)
    sizes = np.linalg.norm(steps, axis=1)
    units = steps / np.maximum(sizes, 1e-30)[:, None]
    turns = np.arccos(np.clip((units[1:] * units[:-1]).sum(axis=1), -1.0, 1.0))
    if turns.max() > np.radians(TURN):
        return int(turns.argmax()) + 1
    along = np.cumsum(sizes)
    return int(np.abs(along[:-1] - 0.5 * along[-1]).argmin()) + 1


def _free_twin(figure: Figure, limb: list[int]) -> list[int]:
    """A limb that can be posed in the place of one that a control rig moves: with its joints in the same places."""
    if figure.steered.isdisjoint(limb):
        return limb
    found = [limb]
    at = elbow(figure, limb) or 0
    joints = np.array([figure.heads[limb[0]], figure.heads[limb[at]], figure.tails[limb[-1]]])
    size = float(np.linalg.norm(np.diff(joints, axis=0), axis=1).sum())
    for top in _tops(figure):
        twin = _way_down(figure, top)
        if top == limb[0] or not figure.steered.isdisjoint(twin):
            continue
        at = elbow(figure, twin) or 0
        others = np.array([figure.heads[top], figure.heads[twin[at]], figure.tails[twin[-1]]])
        if np.linalg.norm(others - joints, axis=1).max() < TWIN * size:
            found.append(twin)
    return found[min(1, len(found) - 1)]


def _free_part(figure: Figure, row: list[int], bone: int) -> list[int]:
    """The part of a row about a bone between mechanism bones, where something else moves any of the row."""
    if figure.steered.isdisjoint(row) or bone in figure.steered:
        return row
    if bone not in row:
        return [bone]
    return _part_with(row, bone, lambda b: b == bone or part_of(figure, b) is not Part.HELPER)


# ---- spines and necks


def _carriers(figure: Figure) -> list[int]:
    """The bones of the trunk on which limbs hang, from the root of the skeleton on."""
    found = set()
    for top in _tops(figure):
        above = (
            b for b in figure.up(figure.parents[top]) if not side_of(figure.names[b]) and not is_helper(figure.names[b])
        )
        found.add(next(above, -1))
    return sorted(found - {-1}, key=lambda b: sum(1 for _ in figure.up(b)))


def _trunk(figure: Figure, bone: int) -> list[int] | None:
    """The spine or neck that a bone of the trunk belongs to, empty where it hangs beside; None: no limbs show it."""
    carriers = _carriers(figure)
    if len(carriers) < 2:
        return None
    hips, chest = set(figure.up(carriers[0])), carriers[-1]
    above = list(figure.up(chest))
    spine = [*takewhile(lambda b: b not in hips, above)][::-1]
    if bone in above or bone in hips:
        return spine
    if chest in figure.up(bone):
        neck = _spread(figure, bone, lambda b: b not in above and part_of(figure, b) in (Part.SPINE, Part.NECK))
        return neck if len(neck) > 1 or part_of(figure, bone) is Part.NECK else []
    return []


def _spine(figure: Figure, bone: int) -> list[int]:
    """The bones of a spine without limbs above or below it; the hips carry the legs and stay."""

    def carries(b: int) -> bool:
        return any(_top(figure, child) == child for child in figure.children[b])

    if part_of(figure, bone) is not Part.SPINE or carries(bone):
        above = [child for child in figure.children[bone] if part_of(figure, child) is Part.SPINE]
        if len(above) != 1:
            return []
        bone = above[0]
    return _spread(figure, bone, lambda b: part_of(figure, b) is Part.SPINE and not carries(b))


# ---- all others


def _row(figure: Figure, bone: int) -> list[int]:
    """The finger, neck, spine, tail, or limb without telling names, that a bone belongs to, from the top."""
    part = part_of(figure, bone)
    name = stem(figure.names[bone])
    if part is Part.FINGER:
        finger = _spread(figure, bone, lambda b: part_of(figure, b) is Part.FINGER and stem(figure.names[b]) == name)
        last = finger[-1]
        # Mixamo's fourth is where the finger ends.
        is_last = len(finger) == 4 and re.search(r"Hand\w+4$", figure.names[last]) and not figure.children[last]
        return finger[:-1] if is_last else finger
    if part in (Part.SPINE, Part.NECK, Part.GIRDLE):
        trunk = _trunk(figure, bone)
        if trunk is None and part is not Part.NECK:
            trunk = _spine(figure, bone)
        if trunk:
            return trunk
    if part is Part.NECK:
        return _spread(figure, bone, lambda b: part_of(figure, b) is Part.NECK)
    line = _line(figure, bone)
    same = _part_with(line, bone, lambda b: stem(figure.names[b]) == name)
    if len(same) > 1:
        line = same
    return _longest_two(figure, line) or line


def _spread(figure: Figure, bone: int, belongs: Callable[[int], bool]) -> list[int]:
    """The parents and the farthest reaching children that belong to the same part as a bone, from the top."""
    row = [*takewhile(lambda b: b == bone or belongs(b), figure.up(bone))][::-1]
    while below := [child for child in figure.children[row[-1]] if belongs(child)]:
        row.append(max(below, key=lambda child: float(figure.reaches[child])))
    return row


def _line(figure: Figure, bone: int) -> list[int]:
    """The bones above and below between which nothing branches, from the top."""
    line = [bone]
    while (
        (parent := figure.parents[line[0]]) >= 0
        and _next(figure, parent) == line[0]
        and _go_together(figure, parent, line[0])
    ):
        line.insert(0, parent)
    while (child := _next(figure, line[-1])) is not None and _go_together(figure, line[-1], child):
        line.append(child)
    return line


def _next(figure: Figure, bone: int) -> int | None:
    """The child in which a bone goes on; None where it ends or branches."""
    children = [child for child in figure.children[bone] if part_of(figure, child) is not Part.HELPER]
    if len(children) > 1:
        same = [child for child in children if stem(figure.names[child]) == stem(figure.names[bone])]
        far = sorted(children, key=lambda child: float(figure.reaches[child]))[-2:]
        dwarfs = figure.reaches[far[1]] > DWARFED * figure.reaches[far[0]]
        children = same if len(same) == 1 or not dwarfs else far[1:]
    return children[0] if len(children) == 1 else None


def _go_together(figure: Figure, parent: int, child: int) -> bool:
    """Whether nothing in the names keeps two bones apart: a tail does not begin with the hips that it hangs on."""
    if part_of(figure, parent) is part_of(figure, child):
        return True
    return stem(figure.names[parent]) == stem(figure.names[child])


def _part_with(line: list[int], bone: int, belongs: Callable[[int], bool]) -> list[int]:
    """The unbroken part of a line around a bone that belongs to it."""
    at = line.index(bone)
    before = list(takewhile(belongs, line[:at][::-1]))[::-1]
    return [*before, *takewhile(belongs, line[at:])]


def _longest_two(figure: Figure, line: list[int]) -> list[int]:
    """The two neighbours that are by far the longest of a short line; none where no two are."""
    if not 2 < len(line) <= MOST_OF_A_LIMB:
        return []
    sizes = [figure.length(bone) for bone in line]
    for i in range(len(line) - 1):
        if min(sizes[i : i + 2]) > LONGER * max((*sizes[:i], *sizes[i + 2 :])):
            return line[i : i + 2]
    return []
