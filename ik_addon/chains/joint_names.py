"""Names for the user: of the rotations of a joint, by what they do to its limb, and of the limbs of a figure."""

from collections import Counter

import numpy as np
from bpy.types import Object, PoseBone

from ..anatomy.body import Region, chest_of, find_members, head_of, parent_bone_of
from ..anatomy.figure import Figure
from ..core.constraints import steered_bones
from ..core.settings import chain_of
from ..core.skeleton import matrix_array, orthonormal
from ..core.translation.sentences import marked, say
from ..rig.plan.chain import chain_bones, chain_with
from ..solve.maths.rotations import cross
from ..solve.problem import Floats
from .profile import CENTERED, SLANTED, axes_of_chain

DIRECTIONS = {"UP": ("x", 1.0), "DOWN": ("x", -1.0), "LEFT": ("z", 1.0), "RIGHT": ("z", -1.0)}
"""Axis and sign of the rotations that change where a bone points, by the names that scripts use."""
TWISTS = {"TWIST_MAX": marked("Twist"), "TWIST_MIN": marked("Twist Back")}
WAYS = (
    (marked("Left"), marked("Right")),
    (marked("Back"), marked("Forward")),
    (marked("Up"), marked("Down")),
)
"""Directions along and against each axis of an armature, for a character that faces Blender's front view."""
OUTWARD = (marked("Outward"), marked("Inward"))
BEND = (marked("Bend"), marked("Straighten"))


def names_of(bone: PoseBone) -> dict[str, str]:
    """Return the user's names for the directions of a joint's limits, by the names that scripts use.

    The hinge of a limb bends and extends. Other directions are named after where the bone moves from its rest pose.
    """
    frame = orthonormal(matrix_array(bone.bone.matrix_local)[:3, :3])
    moved = {name: sign * _moved(frame, axis) for name, (axis, sign) in DIRECTIONS.items()}
    names = {**_hinge(bone), **TWISTS}
    left = [name for name in ("UP", "LEFT") if name not in names]
    # The two rotations get different words: the clearer one chooses first.
    taken: list[int] = []
    for name in sorted(left, key=lambda own: -float(np.abs(moved[own]).max())):
        sizes = np.abs(moved[name])
        sizes[taken] = -1.0
        way = int(sizes.argmax())
        taken.append(way)
        words = _sideways(bone) if way == 0 else WAYS[way]
        opposite = {"UP": "DOWN", "LEFT": "RIGHT"}[name]
        names[name], names[opposite] = words if moved[name][way] > 0.0 else words[::-1]
    return {name: say(word) for name, word in names.items()}


def _moved(frame: Floats, axis: str) -> Floats:
    """Return where (3,) in armature space a tail moves when a bone's rest frame (3, 3) turns about one of its axes."""
    return np.asarray(cross(frame[:, "xyz".index(axis)], frame[:, 1]))


def _sideways(bone: PoseBone) -> tuple[str, str]:
    """Return the words for along and against the X axis of the armature, for a bone on one side of the body."""
    middle = (bone.bone.head_local.x + bone.bone.tail_local.x) / 2.0
    if abs(middle) <= CENTERED * bone.bone.length:
        return WAYS[0]
    return OUTWARD if middle > 0.0 else OUTWARD[::-1]


def _hinge(bone: PoseBone) -> dict[str, str]:
    """Name the directions of an elbow, a knee or a joint of a finger, which bends about one of its axes."""
    tip = chain_with(bone)
    bones = [] if tip is None else chain_bones(tip)
    if tip is None or bone not in bones[1:] or not any(chain_of(tip).bend_side):
        return {}
    axes = axes_of_chain(bones, [], np.array(chain_of(tip).bend_side))[bones.index(bone)]
    if max(axes.slant, axes.aside) > SLANTED:
        return {}
    plus, minus = ("UP", "DOWN") if axes.letters[0] == "x" else ("LEFT", "RIGHT")
    words = BEND if axes.signs[0] > 0.0 else BEND[::-1]
    return dict(zip((plus, minus), words, strict=True))


# ---- limbs


def trunk_names(ob: Object) -> dict[str, str]:
    """Return the names of hips, chest and head by their bones."""
    figure = Figure.of(ob, steered_bones(ob))
    legs = [list(member.row) for member in find_members(figure) if member.region is Region.LEG and not member.is_fore]
    parts = {parent_bone_of(figure, leg): say("Hips") for leg in legs}
    parts |= {chest_of(figure): say("Chest"), head_of(figure): say("Head")}
    return {figure.names[bone]: name for bone, name in parts.items() if bone is not None}


def names_by_tip(ob: Object) -> dict[str, str]:
    """Return the names of limbs, chest and head by the tip bone that their chains have, without those of several."""
    figure = Figure.of(ob, steered_bones(ob))
    found = {figure.names[member.row[-1]]: say(member.label) for member in find_members(figure)}
    often = Counter(found.values())
    return {tip: name for tip, name in found.items() if often[name] == 1}


def chain_name(tip: PoseBone) -> str:
    """Return what the list and messages call a chain, given its tip bone: its limb if it has a name, or this bone."""
    return names_by_tip(tip.id_data).get(tip.name, tip.name)
