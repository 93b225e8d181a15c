"""Where a chain begins and ends when a user points at one of its bones: a limb, a finger, a spine, a tail.

Names are read as the common rigs have them (Rigify, Mixamo, Unreal, Biped, Daz, motion capture). Where they say
nothing the chain is the part of the skeleton that does not branch, and of that the limb where two bones are by far the
longest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum, auto
from itertools import takewhile
from typing import NamedTuple

import bpy

LONGER = 1.5
"""The two bones of a limb without telling names are longer than all others in line by this factor at least."""
MOST_OF_A_LIMB = 6
"""A longer line of bones is a tail, whatever the lengths."""


class Ends(NamedTuple):
    """The chain that a user means."""

    tip: bpy.types.Bone
    length: int
    """How many bones, counted from the tip up."""


class Part(Enum):
    """What the name of a bone says it is."""

    UNKNOWN = auto()
    HELPER = auto()
    """Hangs on a bone without being part of the limb, such as a twist bone."""
    GIRDLE = auto()
    """Carries limbs, moves with the body: a shoulder, the hips."""
    UPPER_ARM = auto()
    FOREARM = auto()
    HAND = auto()
    FINGER = auto()
    THIGH = auto()
    SHIN = auto()
    FOOT = auto()
    SPINE = auto()
    NECK = auto()


LIMBS = {
    Part.UPPER_ARM: (Part.UPPER_ARM, Part.FOREARM),
    Part.FOREARM: (Part.UPPER_ARM, Part.FOREARM),
    Part.THIGH: (Part.THIGH, Part.SHIN),
    Part.SHIN: (Part.THIGH, Part.SHIN),
}
"""Upper and lower part of the limb that a bone belongs to."""
LIMB_ABOVE = {Part.HAND: Part.FOREARM, Part.FOOT: Part.SHIN}

SIDES = frozenset({"l", "r", "left", "right", "lft", "rgt"})
# The first that is found counts; words are lower case, without sides and numbers.
NAMES: tuple[tuple[Part, re.Pattern[str]], ...] = tuple(
    (part, re.compile(rf"\b(?:{words})\b"))
    for part, words in (
        (Part.SPINE, r"spine\w*|chest|torso|abdomen\w*|lower ?back|waist|stomach|belly"),
        (Part.NECK, r"neck\w*|head"),
        (Part.HAND, r"palm|\w*carpal"),
        (Part.FINGER, r"thumb\w*|index|middle|ring|pinky|pinkie|little|finger\w*"),
        (Part.FOREARM, r"fore ?arm|lower ?arm|elbow|radius"),
        (Part.UPPER_ARM, r"up(?:per)? ?arm|shldr|bicep|humerus|arm"),
        (Part.SHIN, r"shin|calf|low(?:er)? ?leg|knee|tibia"),
        (Part.THIGH, r"thigh|up(?:per)? ?leg|femur|leg"),
        (Part.HAND, r"hand|wrist"),
        (Part.FOOT, r"foot|ankle|toes?|toe ?base|ball|heel"),
        (Part.GIRDLE, r"shoulder|clavicle|collar|scapula|hips?|hip ?joint|pelvis|root|body|cog|master"),
    )
)
HELPERS = re.compile(r"\b(?:\w*twist|roll|helper|corrective|end|nub|leaf|socket|ik|fk|ctrl|control|pole|target)\b")


def find(bone: bpy.types.Bone) -> Ends:
    """The chain that is meant by any of its bones, or by the hand, foot or shoulder at its ends."""
    row = _limb(bone) or _row(bone)
    return Ends(row[-1], len(row))


def find_above(tip: bpy.types.Bone) -> Ends:
    """The chain that ends with this very bone."""
    limb = _limb(tip)
    row = limb if tip in limb else _row(tip)
    return Ends(tip, row.index(tip) + 1 if tip in row else 1)


def limb_in(tip: bpy.types.Bone) -> tuple[bpy.types.Bone, bpy.types.Bone] | None:
    """The first bones of the upper and the lower half of the limb that a bone belongs to or hangs on, by names."""
    limb = _limb(tip)
    lower = [bone for bone in limb if part_of(bone) in LIMB_ABOVE.values()]
    return (limb[0], lower[0]) if lower else None


# ---- names


def words(name: str) -> list[str]:
    """The words of a bone's name in lower case, without sides, numbers and what rigs put before their names."""
    name = re.sub(r"^(?:.*:|DEF-|ORG-|MCH-|J_(?:Bip|Sec|Adj)_|CC_Base_|ValveBiped\.|Bip\d+)", "", name)
    found = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+", name)]
    return [word for word in found if word not in SIDES]


def part_of(bone: bpy.types.Bone) -> Part:
    """What a bone is by its name, and by its neighbours where rigs use the same name for different bones."""
    text = " ".join(words(bone.name))
    if not bone.children and HELPERS.search(text):
        return Part.HELPER
    part = next((part for part, pattern in NAMES if pattern.search(text)), Part.UNKNOWN)
    above = None if bone.parent is None else " ".join(words(bone.parent.name))
    if part in (Part.UPPER_ARM, Part.THIGH) and above is not None and text in ("arm", "leg"):
        # Mixamo's "Leg" hangs on an "UpLeg"; other rigs have "Leg" and "Knee".
        of_parent = next((p for p, pattern in NAMES if pattern.search(above)), Part.UNKNOWN)
        return LIMBS[part][1] if of_parent is part else part
    if part is Part.GIRDLE:
        # Joints are named where others name bones: shoulder, elbow, wrist.
        below = {part_of(child) for child in bone.children}
        joints = ((Part.FOREARM, Part.UPPER_ARM), (Part.SHIN, Part.THIGH))
        return next((upper for lower, upper in joints if lower in below), part)
    return part


def _stem(bone: bpy.types.Bone) -> str:
    return " ".join(words(bone.name))


# ---- limbs


def _limb(bone: bpy.types.Bone) -> list[bpy.types.Bone]:
    """The bones of the arm or leg that a bone belongs to, carries or hangs on, by names; none where it is another."""
    part = part_of(bone)
    if part in LIMB_ABOVE:
        above = list(takewhile(lambda b: part_of(b) in (part, LIMB_ABOVE[part]), [bone, *bone.parent_recursive]))
        bone = next((b for b in above if part_of(b) is LIMB_ABOVE[part]), bone)
    elif part is Part.GIRDLE:
        below = [child for child in bone.children if part_of(child) in (*LIMBS, Part.SPINE)]
        bone = below[0] if len(below) == 1 and part_of(below[0]) in LIMBS else bone
    elif part is Part.HELPER and bone.parent is not None and part_of(bone.parent) in LIMBS:
        bone = bone.parent
    if part_of(bone) not in LIMBS:
        return []
    upper, lower = LIMBS[part_of(bone)]
    limb = _spread(bone, lambda b: part_of(b) in (upper, lower))
    return limb if {upper, lower} == {part_of(b) for b in limb} else []


def _spread(bone: bpy.types.Bone, belongs: Callable[[bpy.types.Bone], bool]) -> list[bpy.types.Bone]:
    """The parents and the only children that belong to the same part as a bone, from the top, with itself."""
    row = [bone, *takewhile(belongs, bone.parent_recursive)][::-1]
    while len(below := [child for child in row[-1].children if belongs(child)]) == 1:
        row.append(below[0])
    return row


# ---- all others


def _row(bone: bpy.types.Bone) -> list[bpy.types.Bone]:
    """The finger, neck, spine, tail, or limb without telling names, that a bone belongs to, from the top."""
    part = part_of(bone)
    if part is Part.FINGER:
        finger = _spread(bone, lambda b: part_of(b) is Part.FINGER and _stem(b) == _stem(bone))
        # Mixamo's fourth is where the finger ends.
        is_end = len(finger) == 4 and re.search(r"Hand\w+4$", finger[-1].name) and not finger[-1].children
        return finger[:-1] if is_end else finger
    if part is Part.NECK:
        return _spread(bone, lambda b: part_of(b) is Part.NECK)
    if part is Part.SPINE or (part is Part.GIRDLE and _has_legs(bone)):
        spine = _spine(bone)
        if spine:
            return spine
    line = _line(bone)
    same = _part_with(line, bone, lambda b: _stem(b) == _stem(bone))
    if len(same) > 1:
        line = same
    return _longest_two(line) or line


def _spine(bone: bpy.types.Bone) -> list[bpy.types.Bone]:
    """The bones between hips and chest, or above the chest; the hips carry the legs and stay."""
    if _has_legs(bone):
        above = [child for child in bone.children if part_of(child) is Part.SPINE]
        if len(above) != 1:
            return []
        bone = above[0]
    line = [bone]
    while (parent := line[0].parent) is not None and part_of(parent) is Part.SPINE:
        if _has_legs(parent) or _has_arms(parent):
            break
        line.insert(0, parent)
    while not _has_arms(line[-1]):
        above = [child for child in line[-1].children if part_of(child) is Part.SPINE]
        if len(above) != 1:
            break
        line.append(above[0])
    return line


def _has_legs(bone: bpy.types.Bone) -> bool:
    return any(part_of(child) is Part.THIGH for child in _hung_on(bone))


def _has_arms(bone: bpy.types.Bone) -> bool:
    return any(part_of(child) is Part.UPPER_ARM for child in _hung_on(bone))


def _hung_on(bone: bpy.types.Bone) -> Iterator[bpy.types.Bone]:
    """What begins at a bone of the spine, at once or after a shoulder or a hip."""
    for child in bone.children:
        yield child
        if part_of(child) is not Part.SPINE:
            yield from child.children


def _line(bone: bpy.types.Bone) -> list[bpy.types.Bone]:
    """The bones above and below between which nothing branches, from the top."""
    line = [bone]
    while (parent := line[0].parent) is not None and _next(parent) == line[0] and _go_together(parent, line[0]):
        line.insert(0, parent)
    while (child := _next(line[-1])) is not None and _go_together(line[-1], child):
        line.append(child)
    return line


def _next(bone: bpy.types.Bone) -> bpy.types.Bone | None:
    """The child in which a bone goes on; None where it ends or branches."""
    children = [child for child in bone.children if part_of(child) is not Part.HELPER]
    if len(children) > 1:
        children = [child for child in children if _stem(child) == _stem(bone)]
    return children[0] if len(children) == 1 else None


def _go_together(parent: bpy.types.Bone, child: bpy.types.Bone) -> bool:
    """Whether nothing in the names keeps two bones apart: a tail does not begin with the hips that it hangs on."""
    return part_of(parent) is part_of(child) or _stem(parent) == _stem(child)


def _part_with(
    line: list[bpy.types.Bone], bone: bpy.types.Bone, belongs: Callable[[bpy.types.Bone], bool]
) -> list[bpy.types.Bone]:
    """The unbroken part of a line around a bone that belongs to it."""
    at = line.index(bone)
    before = list(takewhile(belongs, line[:at][::-1]))[::-1]
    return [*before, *takewhile(belongs, line[at:])]


def _longest_two(line: list[bpy.types.Bone]) -> list[bpy.types.Bone]:
    """The two neighbours that are by far the longest of a short line; none where no two are."""
    if not 2 < len(line) <= MOST_OF_A_LIMB:
        return []
    for i in range(len(line) - 1):
        others = [bone.length for bone in (*line[:i], *line[i + 2 :])]
        if min(line[i].length, line[i + 1].length) > LONGER * max(others):
            return line[i : i + 2]
    return []
