"""Arms and legs: which bones they have, where their halves meet, and in which hand or foot they end.

A limb is the way from the topmost bone of an arm or leg down to its hand or foot. What hangs beside that way (twist
bones, correctives, props) is no part of it, what lies on it (a thigh of two bones, a mechanism bone) is. The long foot
of an animal that stands on its toes is one more segment of its leg.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, pairwise

import numpy as np

from ..solve.problem import Floats
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
    is_animal,
    is_end,
    is_helper,
    likeness_of,
    part_in,
    side_of,
)
from .pieces import bent_most, limb_in_pieces

NO_SEGMENT = 0.02
"""A bone shorter than this, in lengths of its limb, between the limb and its hand or foot is no segment."""
TWIN = 0.03
"""Limbs whose joints are nearer to each other than this, in their lengths, are the same limb of a control rig."""
APART = 0.1
"""Limbs of a control rig that begin nearer to each other than this, in their lengths, are the same limb."""
ON_TOES = 45.0
"""Degrees: a foot that leans away from the line of its leg by more stands on its sole."""
LONG_FOOT = (0.35, 0.6)
"""From which length on, in lengths of the shin, a foot on its toes is a segment: an animal's, and any of a bent leg."""
ZIGZAG = 20.0
"""Degrees by which knee and hock of such a leg are bent, each to its own side."""


def limb_of(figure: Figure, bone: int) -> list[int]:
    """The bones of the arm or leg of which a bone is part, parent or child, root first; none where it is another."""
    part = part_of(figure, bone)
    if part is Part.GIRDLE:
        carried = _carried(figure, bone)
        if not carried:
            carried = next((own for other in _girdles_like(figure, bone) if (own := _carried(figure, other))), [])
        is_one = bool(carried) and all(_is_twin(figure, carried[0], other) for other in carried[1:])
        return way_down(figure, carried[0]) if is_one else []
    if part is Part.UNKNOWN:
        return _limb_through(figure, bone) or limb_in_pieces(figure, bone)
    if part in (Part.FINGER, Part.SPINE, Part.NECK):
        return []
    top = top_of(figure, bone)
    if top is None:
        return _named_alike(figure, bone) if part is Part.HELPER else []
    return way_down(figure, top)


def _limb_through(figure: Figure, bone: int) -> list[int]:
    """The bones of the limb in which a bone without a telling name is a segment; none where it is in none."""
    parent = figure.parents[bone]
    top = None if parent < 0 else top_of(figure, parent)
    row = [] if top is None else way_down(figure, top)
    return row if bone in row else []


def way_down(figure: Figure, top: int) -> list[int]:
    """The bones from the first one of a limb to the one before its hand or foot, or before the toes it stands on."""
    row, end = _way_to_end(figure, top)
    # Below a mechanism bone, as in control rigs, a foot is no segment: a chain has all bones between its ends.
    is_next = end is not None and figure.parents[end] == row[-1]
    return [*row, end] if end is not None and is_next and _stands_on_toes(figure, row, end) else row


def _way_to_end(figure: Figure, top: int) -> tuple[list[int], int | None]:
    """The bones from the first one of a limb to the one before its hand or foot, and that one."""
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
        while len(row) > 1 and figure.gap(row[-1], end) < NO_SEGMENT * size:
            if len(row) == 2 and part_of(figure, row[-1]) is not Part.HELPER:
                break
            row.pop()
    return row, end


def tops(figure: Figure) -> Iterator[int]:
    """The first bones of all limbs."""
    for bone in range(len(figure.names)):
        if part_of(figure, bone) in LIMBS and top_of(figure, bone) == bone:
            yield bone


def elbow(figure: Figure, row: list[int]) -> int | None:
    """Where in a row of bones, root first, the lower half of a limb begins; None where there is no whole limb in it."""
    limb = limb_of(figure, row[-1])
    if len(limb) < 2 or not set(limb) <= set(row):
        return None
    named = [bone for bone in limb if part_of(figure, bone) in LOWER]
    # Where all bones have the same name only the shape shows it.
    is_known = named and not all(is_ambiguous(figure.names[bone]) for bone in limb)
    return row.index(named[0] if is_known else limb[bent_most(np.array(_joints(figure, limb)))])


def extremity_of(figure: Figure, row: list[int]) -> int | None:
    """The hand or foot below the last bone of a limb; None where there is none."""
    wanted = _extremities(figure, row[-1])
    return next((bone for bone in figure.below(row[-1]) if bone != row[-1] and part_of(figure, bone) in wanted), None)


def _is_twin(figure: Figure, top: int, other: int) -> bool:
    """Whether two limbs, by their first bones, have their joints in the same places, as those of a control rig have."""
    joints = _halves(figure, top)
    size = float(np.linalg.norm(np.diff(joints, axis=0), axis=1).sum())
    return bool(np.linalg.norm(_halves(figure, other) - joints, axis=1).max() < TWIN * size)


def _carried(figure: Figure, girdle: int) -> list[int]:
    """The first bones of the limbs that a shoulder or hip bone carries; none where it carries a spine as well."""
    children = figure.children[girdle]
    if any(part_of(figure, child) in (Part.SPINE, Part.NECK) for child in children):
        return []
    own = [child for child in children if top_of(figure, child) == child]
    inner = [child for child in children if part_of(figure, child) is Part.GIRDLE]
    return own or (_carried(figure, inner[0]) if len(inner) == 1 else [])


def _girdles_like(figure: Figure, bone: int) -> Iterator[int]:
    """Other shoulders in the place of one, as control rigs have them."""
    ends = np.array([figure.heads[bone], figure.tails[bone]])
    for other in range(len(figure.names)):
        if other != bone and part_in(figure.names[other]) is Part.GIRDLE:
            gaps = np.linalg.norm(np.array([figure.heads[other], figure.tails[other]]) - ends, axis=1)
            if gaps.max() < TWIN * figure.length(bone):
                yield other


def free_twin(figure: Figure, limb: list[int]) -> list[int]:
    """A limb that can be posed in the place of one that a control rig moves: with its joints in the same places.

    Where none is free, the one of which the fewest bones are moved by something else.
    """
    others = (way_down(figure, top) for top in tops(figure) if top != limb[0] and _is_twin(figure, limb[0], top))
    found = limb
    for twin in chain([limb], others):
        if figure.is_free(twin):
            return twin
        found = min(found, twin, key=lambda row: sum(not figure.is_free([bone]) for bone in row))
    return found


def _halves(figure: Figure, top: int) -> Floats:
    """Where (3, 3) a limb begins, its lower half does, and its hand or foot does, be that a segment or not."""
    limb, (row, _end) = way_down(figure, top), _way_to_end(figure, top)
    return np.array([figure.heads[top], figure.heads[limb[elbow(figure, limb) or 0]], figure.tails[row[-1]]])


# ---- feet that are segments of a leg


def _stands_on_toes(figure: Figure, row: list[int], foot: int) -> bool:
    """Whether what is below the bones of a leg is one more segment of it, as the cannon of a horse is, not its foot."""
    toe = next((b for b in figure.below(foot) if b != foot and part_of(figure, b) is Part.FOOT), None)
    if toe is None or len(row) < 2:
        return False
    lower = next((bone for bone in row if part_of(figure, bone) in LOWER), row[-1])
    joints = np.array([figure.heads[bone] for bone in (row[0], lower, foot, toe)])
    steps, line = np.diff(joints, axis=0), joints[3] - joints[0]
    sizes = np.linalg.norm(steps, axis=1)
    if steps[2].dot(line) < np.cos(np.radians(ON_TOES)) * sizes[2] * float(np.linalg.norm(line)):
        return False
    knee, hock = (np.cross(a, b) / (float(np.linalg.norm(a) * np.linalg.norm(b)) or 1.0) for a, b in pairwise(steps))
    is_zigzag = min(np.linalg.norm(knee), np.linalg.norm(hock)) > np.sin(np.radians(ZIGZAG)) and knee.dot(hock) < 0.0
    long = LONG_FOOT[0] if _is_of_animal(figure) else LONG_FOOT[1] if is_zigzag else np.inf
    return bool(sizes[2] > long * sizes[1])


def _is_of_animal(figure: Figure) -> bool:
    """Whether more than two limbs of a figure end in feet, or the names of their bones are those of an animal's."""
    ways = [(row, end) for row, end in map(partial(_way_to_end, figure), tops(figure)) if end is not None]
    if any(is_animal(figure.names[bone]) for row, end in ways for bone in (*row, *figure.below(end))):
        return True
    hips: list[Floats] = []
    for row, end in ways:
        hip, size = figure.heads[row[0]], figure.gap(row[0], end)
        is_new = all(float(np.linalg.norm(hip - other)) > APART * size for other in hips)
        if is_new and part_of(figure, end) is Part.FOOT:
            hips.append(hip)
    return len(hips) > 2


# ---- parts


def part_of(figure: Figure, bone: int) -> Part:
    """What a bone is by its name, and by its neighbours where rigs use the same name for different bones."""
    name = figure.names[bone]
    part = part_in(name)
    if is_helper(name) or (is_end(name) and not figure.children[bone]):
        carries_head = part is Part.NECK and any(part_in(figure.names[b]) is part for b in figure.children[bone])
        return part if carries_head else Part.HELPER
    parent = figure.parents[bone]
    if part in UPPER and parent >= 0 and is_ambiguous(name):
        # Mixamo's "Leg" is a child of an "UpLeg"; other rigs have "Leg" and "Knee".
        alike = [above for above in list(figure.up(parent))[:2] if part_in(figure.names[above]) is part]
        if len(alike) == 2 and is_animal(name):
            return Part.HAND  # the third bone of a wing has the primaries
        return LOWER[UPPER.index(part)] if parent in alike else part
    if part is Part.GIRDLE:
        # Joints are named where others name bones: shoulder, elbow, wrist.
        below = {_first_named(figure, child) for child in figure.children[bone]}
        return next((upper for upper, lower in zip(UPPER, LOWER, strict=True) if lower in below), part)
    return part


def top_of(figure: Figure, bone: int) -> int | None:
    """The first bone of the limb that a bone belongs to."""
    top, kind = None, None
    for above in figure.up(bone):
        part = part_of(figure, above)
        if part in (*ARM, *LEG):
            if kind is not None and _kind(part) is not kind and not (top is None and part in (*LOWER, *EXTREMITIES)):
                break
            kind = _kind(part)
            top = above if part in LIMBS else top
        elif part is not Part.HELPER and (part is not Part.UNKNOWN or top is not None or above == bone):
            break
    return top


def _first_named(figure: Figure, bone: int) -> Part:
    """The part of a bone by its name, or of what a bone without one goes on in."""
    while is_helper(figure.names[bone]) and len(figure.children[bone]) == 1:
        bone = figure.children[bone][0]
    # A helper that carries nothing, such as the pole of a knee, says nothing about its parent.
    is_last = is_helper(figure.names[bone]) and not figure.children[bone]
    return Part.HELPER if is_last else part_in(figure.names[bone])


def _kind(part: Part) -> tuple[Part, ...]:
    return ARM if part in ARM else LEG


def _extremities(figure: Figure, bone: int) -> tuple[Part, ...]:
    """What a limb may end in: the arms of animals end in feet."""
    return EXTREMITIES if part_of(figure, bone) in ARM else (Part.FOOT,)


# ---- on the way down


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


def _named_alike(figure: Figure, bone: int) -> list[int]:
    """The limb that a control or mechanism bone beside it is named like; of several a free one, then the nearest."""
    name, part = figure.names[bone], part_in(figure.names[bone])
    if part not in (*ARM, *LEG) or not side_of(name):
        return []

    def likeness(limb: list[int]) -> float:
        named = (other for other in figure.below(limb[0]) if _kind(part_in(figure.names[other])) is _kind(part))
        return max((likeness_of(name, figure.names[other]) for other in named if other != bone), default=0.0)

    limbs = [way_down(figure, top) for top in tops(figure) if side_of(figure.names[top]) == side_of(name)]
    return min(
        (limb for limb in limbs if _kind(part_of(figure, limb[0])) is _kind(part) or likeness(limb) > 0.0),
        key=lambda limb: (
            not figure.is_free(limb),
            -likeness(limb),
            min(float(np.linalg.norm(figure.heads[bone] - joint)) for joint in _joints(figure, limb)),
        ),
        default=[],
    )


def _joints(figure: Figure, row: list[int]) -> list[np.ndarray]:
    return [*(figure.heads[bone] for bone in row), figure.tails[row[-1]]]
