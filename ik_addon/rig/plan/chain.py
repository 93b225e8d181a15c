"""Which bones a chain has, and whether it can be solved."""

import re
from collections.abc import Iterable
from itertools import pairwise

import bpy
import numpy as np
from bpy.types import Object, PoseBone, ViewLayer
from mathutils import Matrix, Vector

from ...anatomy.parts import side_of
from ...core.chain_settings import IKAddonChain
from ...core.constraints import SCALING, Owned, driven_channels, drivers_on, fighting_constraints
from ...core.names import chain_name
from ...core.settings import LAYOUT, chain_of, goal_of, is_tip, object_of, text_of, unusable
from ...core.translation.sentences import UserError, marked, say
from ...solve.problem import Floats
from .followers import borrowed, goals_of
from .presence import Presence, why_closed, why_unfit
from .sources import driving, uid_of

NUMBER = re.compile(r"\.\d+$")
"""What Blender adds to a name that is taken."""

AT_REST = marked("'{object}' is in Rest Position. Switch it to Pose Position")
UNUSABLE = marked("'{label}' has a value that is not allowed. Reset this setting")
NO_TARGET = marked("No target. Pick an object for the tip to follow")
NOT_BELOW = marked("The end bone '{end_bone}' is not below '{tip}'. Choose another end bone")
NOT_TWO = marked(
    "Two-Bone needs exactly two bones with length, and this chain has {segments}. "
    "Change Chain Length, or use another solver"
)
FOUGHT = marked("The constraint '{constraint}' on bone '{owner}' also moves bones of this chain. Mute it")
DRIVEN = marked("The {path} of bone '{bone}' is driven, which overwrites the solution. Remove the driver")
HELD = marked(
    "The constraint '{constraint}' on bone '{owner}' keeps the end bone '{end}' from following the chain. "
    "Mute it, or choose another end bone"
)
UPRIGHT = marked(
    "Bone '{owner}' doesn't inherit rotation, which keeps the end bone '{end}' from following the chain. "
    "Turn on Inherit Rotation, or choose another end bone"
)
"""Why a chain can't be solved; `ui.operators.fixes` has a button for each."""
NO_RENDERS = marked(
    "'{goal}' or its collection is disabled in renders, so it doesn't move there. "
    "Enable it (empties are never rendered)"
)
TOO_LONG = marked("Chain Length is {chain_length}, but only {count} bones are available")
CONNECTED = marked("The root bone '{root}' is connected and can't be pushed. Disconnect it in Edit Mode")
ROOT_DRIVEN = marked("The root bone '{root}' can't be pushed because its location is driven. Mute the driver")
SCALE_DRIVEN = marked("The chain can't stretch because the scale of its bones is driven. Mute the drivers")
BORROWED = marked("The controls of this chain belong to '{other}', which they move too. Make own targets")
OF_OTHER_SIDE = marked("The target belongs to the other side. Mirror the chain on '{other}'")
"""Remarks on a chain that can be solved."""


def tips(ob: Object) -> list[PoseBone]:
    """Return the tip bones of all chains of an armature; none if Blender has not evaluated the object yet."""
    return [] if ob.pose is None else [bone for bone in ob.pose.bones if is_tip(bone)]


def chain_bones(tip: PoseBone) -> list[PoseBone]:
    """Return the bones of the chain on `tip`, root first; no more than there are up to the armature's root."""
    length = max(chain_of(tip).chain_length, 0) or None
    return [tip, *tip.parent_recursive][:length][::-1]


def bending_bones(tip: PoseBone) -> list[PoseBone]:
    """Return the bones of the chain on `tip` that bend to its side, root first; not a tip with orientation."""
    bones = chain_bones(tip)
    return bones[:-1] if chain_of(tip).use_rotation and len(bones) > 2 else bones


def bending_end(tip: PoseBone) -> PoseBone | None:
    """Return the bone at whose head `bending_bones` end: a tip with orientation, or the end bone; None: at a tail."""
    return end_of(tip) if tip in bending_bones(tip) else tip


def end_of(tip: PoseBone) -> PoseBone | None:
    """Return the end bone (the hand or foot) of the chain on `tip`, or None."""
    name = text_of(chain_of(tip), "end_bone")
    return (below(tip, name) or _renamed_end(tip, name)) if name else None


def _renamed_end(tip: PoseBone, name: str) -> PoseBone | None:
    """Return the bone below a tip that Symmetrize or Join made of an end bone: it copies settings as they are.

    That is its mirror image, or the only child of the tip that differs from it in nothing but the number.
    """
    children = [child for child in tip.children if NUMBER.sub("", child.name) == NUMBER.sub("", name)]
    return below(tip, bpy.utils.flip_name(name)) or (children[0] if len(children) == 1 else None)


def below(tip: PoseBone, name: str) -> PoseBone | None:
    """Return the descendant of a bone that has this name, or None."""
    found: PoseBone | None = tip.id_data.pose.bones.get(name)
    return found if found is not None and tip in found.parent_recursive else None


def between(tip: PoseBone, end: PoseBone) -> list[PoseBone]:
    """Return the bones between a tip and its end bone: mechanism bones, which move along with the tip."""
    above = end.parent_recursive
    return above[: above.index(tip)][::-1]


def turning_end(tip: PoseBone) -> PoseBone | None:
    """Return the end bone of the chain on `tip` if it takes the target's orientation, else None."""
    chain = chain_of(tip)
    return end_of(tip) if chain.use_end_rotation and not chain.use_rotation else None


def takes_orientation(tip: PoseBone) -> bool:
    """Whether the tip bone or end bone of the chain on `tip` takes the target's orientation."""
    return chain_of(tip).use_rotation or turning_end(tip) is not None


def end_axes(tip: PoseBone) -> Floats:
    """Return the axes (3, 3) of the bone that turns with the target of the chain on `tip`, in those of the target.

    This relation is the same wherever a target turns a bone, or a target is brought to a bone. The tip has the axes of
    the target.
    """
    offset = chain_of(tip).end_offset
    is_turned = turning_end(tip) is not None and offset.magnitude > 0.0  # a file made by hand may hold 0
    return np.array(offset.normalized().to_matrix() if is_turned else Matrix.Identity(3), dtype=np.float64)


def set_end_axes(tip: PoseBone, axes: Floats) -> None:
    """Set the end offset of the chain on `tip` so that these are the axes (3, 3) of its end bone, see `end_axes`."""
    chain_of(tip).end_offset = Matrix(axes.tolist()).to_quaternion()


def posed_bones(tip: PoseBone) -> list[PoseBone]:
    """Return the bones that the chain on `tip` poses, root first, with an end bone that takes an orientation last."""
    end = turning_end(tip)
    return [*chain_bones(tip), *([] if end is None else [end])]


def shares_bones(tip: PoseBone) -> bool:
    """Whether other enabled chains run through the bones of a chain."""
    own = set(chain_bones(tip))
    others = (other for other in tips(tip.id_data) if other != tip and chain_of(other).enabled)
    return any(not own.isdisjoint(chain_bones(other)) for other in others)


def reach_of(tip: PoseBone) -> Vector:
    """Return the end effector in the rest axes of the tip: the tail of the tip, or the head of the end bone."""
    end = end_of(tip)
    if end is None or (end.bone.use_connect and end.parent == tip):
        return Vector((0.0, tip.bone.length, 0.0))
    return tip.bone.matrix_local.inverted() @ end.bone.head_local


def mirrored_from(tip: PoseBone) -> PoseBone | None:
    """Return the tip on the other side if the chain on `tip` follows the target of that one, as after Symmetrize.

    A target whose name says no side, such as a sword, may be meant for both.
    """
    other: PoseBone | None = tip.id_data.pose.bones.get(bpy.utils.flip_name(tip.name))
    goal = goal_of(chain_of(tip), "target")
    if other is None or other == tip or not is_tip(other) or goal != goal_of(chain_of(other), "target"):
        return None
    of_goal = 0 if goal[0] is None else side_of(goal[1] or goal[0].name)
    return other if of_goal == side_of(other.name) == -side_of(tip.name) != 0 else None


def chain_with(bone: PoseBone) -> PoseBone | None:
    """Return the tip of the chain of `bone`: its own chain, else the first that runs through it or ends in it."""
    if is_tip(bone):
        return bone
    every = tips(bone.id_data)
    through = next((tip for tip in every if bone in chain_bones(tip)), None)
    return through or next((tip for tip in every if bone == end_of(tip)), None)


def check(ob: Object, tip: PoseBone, view_layer: ViewLayer) -> list[str]:
    """Raise `UserError` if the chain on `tip` can't be solved; return remarks on settings that will be ignored.

    Args:
        ob: the armature object.
        tip: its tip bone.
        view_layer: the one that must contain its goals.
    """
    return check_seen(ob, tip, Presence(view_layer))


def check_seen(ob: Object, tip: PoseBone, presence: Presence) -> list[str]:
    """Do the same as `check` with the evaluated copies that `presence` finds; `ob` and `tip` are originals."""
    if obstacle := why_closed(ob):
        raise UserError(obstacle)
    if presence.seen(ob).data.pose_position == "REST":
        raise UserError(AT_REST, object=ob.name)
    chain = chain_of(tip)
    for _, label in unusable(chain):
        raise UserError(UNUSABLE, label=say(label))
    seen = presence.posed(ob)
    bones, posed = ([seen.pose.bones[bone.name] for bone in own] for own in (chain_bones(tip), posed_bones(tip)))
    if chain.target is None:
        raise UserError(NO_TARGET)
    for goal in goals_of(tip):
        if obstacle := why_unfit(ob, posed, goal, presence):
            raise UserError(obstacle)
    path = f"{tip.path_from_id()}.ik_addon."
    read = presence.sources.carriers(driving(ob, lambda own: own.startswith(path)))
    for bone in reversed(posed):
        if (ob.session_uid, bone.name) in read:
            raise UserError(
                "A driver of this chain reads '{own}', part of the chain. Let it read something else", own=bone.name
            )
    if chain.end_bone and end_of(tip) is None:
        raise UserError(NOT_BELOW, end_bone=chain.end_bone, tip=tip.name)
    active = presence.active_constraints(ob)
    check_bones(active, posed)
    if len(posed) > len(bones):
        check_between(active, bones[-1], posed[-1])
    segments, movable = _segments(bones, reach_of(tip).length)
    if not segments + movable:
        raise UserError("All bones of the chain start at the same point, so it has no length to solve")
    if chain.solver == "TWO_BONE" and not segments <= 2 <= segments + movable:
        raise UserError(NOT_TWO, segments=segments)
    remarks = _remarks(ob, chain, bones, presence)
    remarks += [say(BORROWED, other=other.name) for other in dict.fromkeys(borrowed(tip).values())]
    if (other := mirrored_from(tip)) is not None:
        remarks.append(say(OF_OTHER_SIDE, other=chain_name(other)))
    if object_of(ob).layout > LAYOUT:
        newer = "'{object}' was saved with a newer version of this extension. Update it to keep all settings"
        remarks.insert(0, say(newer, object=ob.name))
    return remarks


def check_bones(active: Iterable[Owned], bones: list[PoseBone]) -> None:
    """Raise `UserError` if anything but the solver moves these bones; `active` see `active_constraints`."""
    for owner, constraint in fighting_constraints(active, bones):
        raise UserError(FOUGHT, constraint=constraint.name, owner=owner.name)
    for name, path in driven_channels(bones[0].id_data, bones):
        raise UserError(DRIVEN, path=path, bone=name)


def check_between(active: Iterable[Owned], tip: PoseBone, end: PoseBone) -> None:
    """Raise `UserError` if a bone between a tip and its end bone doesn't move along with the tip."""
    for owner, constraint in holding_constraints(active, tip, end):
        raise UserError(HELD, constraint=constraint.name, owner=owner.name, end=end.name)
    for bone in between(tip, end):
        if not bone.bone.use_inherit_rotation:
            raise UserError(UPRIGHT, owner=bone.name, end=end.name)


def holding_constraints(active: Iterable[Owned], tip: PoseBone, end: PoseBone) -> list[Owned]:
    """Return those of the active constraints that keep the bones between a tip and its end bone from moving along."""
    found = fighting_constraints(active, between(tip, end))
    return [(owner, constraint) for owner, constraint in found if constraint.type not in SCALING]


def is_connected(chain: IKAddonChain, root: PoseBone) -> bool:
    """Whether Out of Reach should push the root bone, but it is connected to its parent."""
    return chain.out_of_reach == "PUSH_ROOT" and root.bone.use_connect and root.parent is not None


def out_of_reach_paths(chain: IKAddonChain, bones: list[PoseBone]) -> list[str]:
    """Return the data paths of channels that a chain writes only when its target is out of reach."""
    fields = {"PUSH_ROOT": (bones[:1], "location"), "STRETCH": (bones, "scale")}
    written, field = fields.get(chain.out_of_reach, ([], ""))
    return [f"{bone.path_from_id()}.{field}" for bone in written]


def _remarks(ob: Object, chain: IKAddonChain, bones: list[PoseBone], presence: Presence) -> list[str]:
    remarks = [
        say(NO_RENDERS, goal=goal.name)
        for goal in (chain.target, chain.pole)
        if goal is not None and (presence.seen(goal).hide_render or uid_of(goal) not in presence.enabled("hide_render"))
    ]
    if chain.chain_length > len(bones):
        remarks.append(say(TOO_LONG, chain_length=chain.chain_length, count=len(bones)))
    if is_connected(chain, bones[0]):
        remarks.append(say(CONNECTED, root=bones[0].name))
    if drivers_on(ob, out_of_reach_paths(chain, bones)):
        driven = ROOT_DRIVEN if chain.out_of_reach == "PUSH_ROOT" else SCALE_DRIVEN
        remarks.append(say(driven, root=bones[0].name))
    return remarks


def _segments(bones: list[PoseBone], last: float) -> tuple[int, int]:
    """Return how many segments of a chain have length at rest, and how many others could get one if a bone is moved.

    The last segment, from the head of the tip to the end effector, has the length `last`.
    """
    segments, movable = int(last > 0.0), 0
    for bone, child in pairwise(bones):
        if (child.bone.head_local - bone.bone.head_local).length > 0.0:
            segments += 1
        elif not child.bone.use_connect:
            movable += 1
    return segments, movable
