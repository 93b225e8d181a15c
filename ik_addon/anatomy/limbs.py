"""Arms and legs: their bones, where their halves meet, and the hand or foot at their end.

A limb runs from the topmost bone of an arm or leg down to its hand or foot. Bones beside that path (twist bones,
correctives, props) are not part of it; bones on it (the second bone of a thigh, a mechanism bone) are. The long foot of
an animal that stands on its toes is one more segment of its leg.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, pairwise

import numpy as np

from ..solve.problem import Floats
from . import parts
from .figure import Figure
from .parts import ARM, EXTREMITIES, LEG, LIMBS, LOWER, UPPER, Part, is_helper, part_in

NO_SEGMENT = 0.02
"""A bone shorter than this, in lengths of its limb, between the limb and its hand or foot is not a segment."""
TWIN = 0.03
"""Limbs whose joints are closer together than this, in their lengths, are the same limb of a control rig."""
APART = 0.1
"""Limbs of a control rig that begin closer together than this, in their lengths, are the same limb."""
ON_TOES = 45.0
"""Degrees: a foot that leans further than this from the line of its leg stands on its sole."""
LONG_FOOT = (0.35, 0.6)
"""Length, in lengths of the shin, above which a foot on its toes is a segment: of an animal, and of any zigzag leg."""
ZIGZAG = 20.0
"""Degrees: knee and hock of a zigzag leg are bent by more than this, to opposite sides."""


def limb_of(figure: Figure, bone: int) -> list[int]:
    """Return the bones, root first, of the arm or leg that a bone is part, parent or child of; empty if of none."""
    part = part_of(figure, bone)
    if part is Part.GIRDLE:
        # In control rigs, another shoulder in the same place may carry the limb.
        girdles = (other for other, name in enumerate(figure.labels) if part_in(name) is Part.GIRDLE)
        alike = (other for other in girdles if figure.are_together(other, bone, TWIN))
        carried = next(filter(None, (_carried(figure, own) for own in chain([bone], alike))), [])
        is_one = bool(carried) and all(_is_twin(figure, carried[0], other) for other in carried[1:])
        return way_down(figure, carried[0]) if is_one else []
    if part in (Part.FINGER, Part.SPINE, Part.NECK):
        return []
    top = top_of(figure, figure.parents[bone] if part is Part.UNKNOWN else bone)
    row = [] if top is None else way_down(figure, top)
    if part is Part.UNKNOWN:
        return row if bone in row else _limb_in_pieces(figure, bone)
    return _named_alike(figure, bone) if top is None and part is Part.HELPER else row


def way_down(figure: Figure, top: int) -> list[int]:
    """Return the bones of a limb from its first one to the one before its hand or foot, or before its toes."""
    row, end = _way_to_end(figure, top)
    # A chain has all bones between its ends, so a foot below a mechanism bone of a control rig can't be a segment.
    is_next = end is not None and figure.parents[end] == row[-1]
    return [*row, end] if end is not None and is_next and _stands_on_toes(figure, row, end) else row


def _way_to_end(figure: Figure, top: int) -> tuple[list[int], int | None]:
    """Return the bones from the first one of a limb to the one before its hand or foot, and that hand or foot."""
    kind, ending = _kind(part_of(figure, top)), extremities(figure, top)
    row, end = [top], None

    def leads(bone: int, wanted: Sequence[Part]) -> bool:
        """Return whether a bone or a descendant is one of the wanted parts."""
        return any(part_of(figure, below) in wanted for below in figure.below(bone))

    def worth(child: int) -> tuple[bool, bool, bool, float]:
        """Rank a child as the continuation of a limb; higher is better, highest where it leads to the hand or foot."""
        part = part_of(figure, child)
        is_next = part in ending or leads(child, kind[1:2])
        return leads(child, ending), is_next, part in kind, float(figure.reaches[child])

    while end is None:
        ways = [b for b in figure.children[row[-1]] if part_of(figure, b) is Part.HELPER or leads(b, (*kind, *ending))]
        best = max(ways, key=worth, default=None)
        if best is None:
            break
        if part_of(figure, best) in ending or parts.is_end(figure.labels[best]):
            end = best
        elif part_of(figure, best) is Part.HELPER and not leads(best, (*kind, *ending)):
            break
        else:
            row.append(best)
    if end is not None:
        while len(row) > 1 and figure.gap(row[-1], end) < NO_SEGMENT * figure.gap(end, top):
            if len(row) == 2 and part_of(figure, row[-1]) is not Part.HELPER:
                break
            row.pop()
    return row, end


def tops(figure: Figure) -> Iterator[int]:
    """Return the first bones of all limbs."""
    bones = range(len(figure.names))
    return (bone for bone in bones if part_of(figure, bone) in LIMBS and top_of(figure, bone) == bone)


def elbow(figure: Figure, row: list[int]) -> int | None:
    """Return the index in a row, root first, where the lower half of a limb begins; None without a whole limb in it."""
    limb = limb_of(figure, row[-1])
    if len(limb) < 2 or not set(limb) <= set(row):
        return None
    named = [bone for bone in limb if part_of(figure, bone) in LOWER]
    # Where all bones have the same name, only the shape shows the elbow.
    is_known = named and not all(parts.is_ambiguous(figure.labels[bone]) for bone in limb)
    return row.index(named[0] if is_known else limb[bent_most(_joints(figure, limb))])


def extremity_of(figure: Figure, row: list[int]) -> int | None:
    """Return the hand or foot below the last bone of a limb; None if there is none."""
    wanted = extremities(figure, row[-1])
    return next((bone for bone in figure.below(row[-1]) if bone != row[-1] and part_of(figure, bone) in wanted), None)


def _is_twin(figure: Figure, top: int, other: int) -> bool:
    """Return whether two limbs, given by their first bones, have joints in the same places, as in a control rig."""
    joints = _halves(figure, top)
    size = float(np.linalg.norm(np.diff(joints, axis=0), axis=1).sum())
    return bool(np.linalg.norm(_halves(figure, other) - joints, axis=1).max() < TWIN * size)


def _carried(figure: Figure, girdle: int) -> list[int]:
    """Return the first bones of the limbs that a shoulder or hip bone carries; empty if it carries a spine as well."""
    children = figure.children[girdle]
    if any(part_of(figure, child) in (Part.SPINE, Part.NECK) for child in children):
        return []
    own = [child for child in children if top_of(figure, child) == child]
    inner = [child for child in children if part_of(figure, child) is Part.GIRDLE]
    return own or (_carried(figure, inner[0]) if len(inner) == 1 else [])


def free_twin(figure: Figure, limb: list[int]) -> list[int]:
    """Return a free limb with joints in the same places as one that a control rig moves.

    If no such limb is free, return the one with the fewest bones that something else moves.
    """
    found = [limb]
    twins = (way_down(figure, top) for top in tops(figure) if top != limb[0] and _is_twin(figure, limb[0], top))
    while not figure.is_free(found[-1]) and (twin := next(twins, None)) is not None:
        found.append(twin)
    return min(found, key=lambda row: sum(bone in figure.steered for bone in row))


def _halves(figure: Figure, top: int) -> Floats:
    """Return where (3, 3) a limb, its lower half and its hand or foot begin, even where the foot is a segment."""
    limb, (row, _end) = way_down(figure, top), _way_to_end(figure, top)
    return np.array([figure.heads[top], figure.heads[limb[elbow(figure, limb) or 0]], _joints(figure, row)[-1]])


# ---- feet that are segments of a leg


def _stands_on_toes(figure: Figure, row: list[int], foot: int) -> bool:
    """Return whether the foot of a leg is one more segment of it, like the cannon of a horse."""
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
    """Return whether more than two limbs of a figure end in feet, or their bones are named like those of an animal."""
    ways = [(row, end) for row, end in map(partial(_way_to_end, figure), tops(figure)) if end is not None]
    if any(parts.is_animal(figure.labels[bone]) for row, end in ways for bone in (*row, *figure.below(end))):
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
    """Return what a bone is by its name, and by its neighbors where rigs use the same name for different bones."""
    name = figure.labels[bone]
    part = part_in(name)
    if is_helper(name) or (parts.is_end(name) and not figure.children[bone]):
        carries_head = part is Part.NECK and any(part_in(figure.labels[b]) is part for b in figure.children[bone])
        return part if carries_head else Part.HELPER
    parent = figure.parents[bone]
    if part is Part.UNKNOWN and parent >= 0 and figure.children[parent] == (bone,):
        # Whatever it is called, the only bone between a forearm and fingers is the hand.
        has_fingers = any(part_in(figure.labels[b]) is Part.FINGER for b in figure.children[bone])
        return Part.HAND if has_fingers and part_of(figure, parent) is Part.FOREARM else part
    if part in UPPER and parent >= 0 and parts.is_ambiguous(name):
        # Mixamo's "Leg" is a child of an "UpLeg"; other rigs have "Leg" and "Knee".
        alike = [above for above in list(figure.up(parent))[:2] if part_in(figure.labels[above]) is part]
        if len(alike) == 2 and parts.is_animal(name):
            return Part.HAND  # the third bone of a wing carries the primaries
        return LOWER[UPPER.index(part)] if parent in alike else part
    if part is Part.GIRDLE:
        # Some rigs name joints where others name bones: shoulder, elbow, wrist.
        below = {_first_named(figure, child) for child in figure.children[bone]}
        return next((upper for upper, lower in zip(UPPER, LOWER, strict=True) if lower in below), part)
    return part


def top_of(figure: Figure, bone: int) -> int | None:
    """Return the first bone of the limb that a bone belongs to; None if it belongs to none."""
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
    """Return the part that a bone is named after; for helpers in a line, the first other bone below them."""
    while is_helper(figure.labels[bone]) and len(figure.children[bone]) == 1:
        bone = figure.children[bone][0]
    # A helper without children, such as the pole of a knee, says nothing about its parent.
    is_last = is_helper(figure.labels[bone]) and not figure.children[bone]
    return Part.HELPER if is_last else part_in(figure.labels[bone])


def _kind(part: Part) -> tuple[Part, ...]:
    return ARM if part in ARM else LEG


def extremities(figure: Figure, bone: int) -> tuple[Part, ...]:
    """The parts that a limb may end in. The arms of animals end in feet."""
    return EXTREMITIES if part_of(figure, bone) in ARM else (Part.FOOT,)


def _named_alike(figure: Figure, bone: int) -> list[int]:
    """Return the limb named like a control or mechanism bone; prefer free limbs, then similar names, then near ones."""
    name, part = figure.labels[bone], part_in(figure.labels[bone])
    if part not in (*ARM, *LEG) or not parts.side_of(name):
        return []

    def likeness(limb: list[int]) -> float:
        named = (other for other in figure.below(limb[0]) if _kind(part_in(figure.labels[other])) is _kind(part))
        return max((parts.likeness_of(name, figure.labels[other]) for other in named if other != bone), default=0.0)

    limbs = [way_down(figure, top) for top in tops(figure) if parts.side_of(figure.labels[top]) == parts.side_of(name)]
    limbs = [limb for limb in limbs if _kind(part_of(figure, limb[0])) is _kind(part) or likeness(limb) > 0.0]

    def rank(limb: list[int]) -> tuple[bool, float, float]:
        away = np.linalg.norm(_joints(figure, limb) - figure.heads[bone], axis=1)
        return not figure.is_free(limb), -likeness(limb), float(away.min())

    return min(limbs, key=rank, default=[])


def _joints(figure: Figure, row: list[int]) -> Floats:
    """Return the joints (n+1, 3) of a limb: the last one is where its hand or foot begins."""
    end = _way_to_end(figure, row[0])[1]
    return np.array([*figure.heads[row], figure.tails[row[-1]] if end is None or end in row else figure.heads[end]])


# ---- limbs in pieces
#
# Limbs without informative names whose halves are several bones each, as in rigs with twist bones in line.
#
# Such a limb has two straight halves of about equal length. A hand or foot follows, which turns away from the line or
# branches into fingers. Unlike a spine, the limb has a mirror image.

TURN = 3.0
"""Degrees: joints that bend less than this at rest do not show where the halves of a limb meet."""
MOST = 6
"""A row of more bones than this is not a limb."""
HALVES = 0.75
"""Smallest ratio of the lengths of the halves."""
LONGER = 1.5
"""If two bones are longer than the third longest by this factor, each of them is a half by itself."""
AWAY = 45.0
"""Degrees: a foot turns away from the line of its leg by more than this."""
FOOT = 0.05
"""Minimum distance that a foot reaches from its leg, in lengths of the leg."""
FINGERS = 3
"""A bone with at least this many children is a hand."""
SAME = 0.01
"""Points closer together than this, in lengths of the limb, are the same."""


def _limb_in_pieces(figure: Figure, bone: int) -> list[int]:
    """Return the limb, root first, in which a bone is a segment, the hand or the foot; empty if there is none."""
    above = [*figure.up(bone)][: MOST + 1][::-1]
    way = [*above, *figure.down(bone)[1 : MOST + 1]]
    at = len(above) - 1
    found: list[int] = []
    for first in range(at + 1):
        for last in range(max(first + 2, at - 1), min(first + MOST, len(way) - 1)):
            row, end = way[first : last + 1], way[last + 1]
            if len(row) > len(found) and _is_limb(figure, row, end):
                found = row
    return found


def bent_most(joints: Floats) -> int:
    """Return the index of the segment with which the lower half of a limb with these joints (n+1, 3) begins."""
    turns = _turns(joints)
    if turns.max() > np.radians(TURN):
        return int(turns.argmax()) + 1
    along = np.cumsum(np.linalg.norm(np.diff(joints, axis=0), axis=1))
    return int(np.abs(along[:-1] - 0.5 * along[-1]).argmin()) + 1


def _is_limb(figure: Figure, row: list[int], end: int) -> bool:
    joints = figure.heads[[*row, end]]
    sizes = np.linalg.norm(np.diff(joints, axis=0), axis=1)
    _, second, third = sorted(sizes, reverse=True)[:3]
    if sizes.min() < SAME * sizes.sum() or second > LONGER * third or (_turns(joints) > np.radians(TURN)).sum() > 1:
        return False
    lower = bent_most(joints)
    halves = sizes[:lower].sum(), sizes[lower:].sum()
    return min(halves) > HALVES * max(halves) and _ends(figure, joints, end) and _has_mirror_image(figure, row, joints)


def _ends(figure: Figure, joints: Floats, end: int) -> bool:
    """Return whether a bone is the hand or foot of a limb with these joints (n+1, 3)."""
    if len(figure.children[end]) >= FINGERS:
        return True
    below = [bone for bone in figure.below(end) if bone != end]
    steps = np.concatenate([figure.heads[below], figure.tails[[end, *below]]]) - joints[-1]
    sizes, line = np.linalg.norm(steps, axis=1), joints[-1] - joints[-2]
    aside = steps.dot(line) < np.cos(np.radians(AWAY)) * sizes * float(np.linalg.norm(line))
    is_far = sizes > FOOT * float(np.linalg.norm(joints[-1] - joints[0]))
    return bool((aside & is_far).any())


def _has_mirror_image(figure: Figure, row: Sequence[int], joints: Floats) -> bool:
    """Return whether a row of other bones has these joints (n+1, 3), mirrored across a plane."""
    sizes = np.linalg.norm(np.diff(joints, axis=0), axis=1)
    near = SAME * float(sizes.sum())
    for bone in range(len(figure.names)):
        way = [bone]
        for size in sizes if bone not in row else ():
            gaps = ((child, abs(figure.gap(way[-1], child) - size)) for child in figure.children[way[-1]])
            way += [child for child, gap in gaps if gap < near][:1]
        if len(way) == len(joints) and _are_mirrored(joints, figure.heads[way], near):
            return True
    return False


def _are_mirrored(joints: Floats, others: Floats, near: float) -> bool:
    apart, middles = others - joints, 0.5 * (others + joints)
    size = float(np.linalg.norm(apart[0]))
    if size < near:
        return False
    normal = apart[0] / size
    aside = apart - np.outer(apart.dot(normal), normal)
    return bool(np.linalg.norm(aside, axis=1).max() < near and np.ptp(middles.dot(normal)) < near)


def _turns(joints: Floats) -> Floats:
    """Angles (n-1,) in radians by which the path along joints (n+1, 3) turns at its inner joints."""
    steps = np.diff(joints, axis=0)
    units = steps / np.maximum(np.linalg.norm(steps, axis=1), 1e-30)[:, None]
    return np.asarray(np.arccos(np.clip((units[1:] * units[:-1]).sum(axis=1), -1.0, 1.0)))
