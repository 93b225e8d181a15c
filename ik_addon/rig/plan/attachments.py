"""The bones that targets, poles and armatures are attached to, and why a chain can't follow a target or pole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import bpy

from ...pose.constraints import is_on, targets_of
from ...pose.data_paths import BONE_PATH
from ...translation.sentences import say

if TYPE_CHECKING:
    from .presence import Presence

PARENTING = (
    bpy.types.ChildOfConstraint,
    bpy.types.CopyLocationConstraint,
    bpy.types.CopyTransformsConstraint,
)
"""Constraints that attach an object to another one, or to a bone."""
PULLING = (
    bpy.types.ArmatureConstraint,
    bpy.types.FloorConstraint,
    bpy.types.LimitDistanceConstraint,
    bpy.types.PivotConstraint,
    bpy.types.TransformConstraint,
)
"""Other constraints through which a bone affects where an object is."""


class ParentBone(NamedTuple):
    """A bone of an armature object."""

    armature: int
    """`session_uid` of the object."""
    bone: str


def uid_of(ob: bpy.types.ID) -> int:
    """Return the `session_uid` of a data-block's original; evaluated copies have none of their own."""
    return ob.original.session_uid


class Attachment(NamedTuple):
    """A bone that something is attached to."""

    parent: ParentBone
    turns: bool
    """Whether it also turns with its parent, instead of only moving with it."""


def attachments_of(ob: bpy.types.Object | None, bone: str = "") -> tuple[Attachment, ...]:
    """Return the bones that an object, or one of its bones, is attached to, nearest first.

    Counts attachment as a child or by a constraint, directly or through parents, and includes the bones that the
    armatures of these bones are attached to. For an evaluated object, the attachments are those of its evaluation.
    """
    found = []
    seen: set[tuple[int, str]] = set()
    turns = True
    while ob is not None and (uid_of(ob), bone) not in seen:
        seen.add((uid_of(ob), bone))
        path: tuple[Any, ...] = (ob,)
        if bone and ob.type == "ARMATURE":
            found.append(Attachment(ParentBone(uid_of(ob), bone), turns))
            own: Any = ob.pose.bones.get(bone)
            path = (ob,) if own is None else (own, *own.parent_recursive, ob)
        constraint: Any = next((c for part in path for c in part.constraints if _takes_along(c)), None)
        if constraint is None:
            ob, bone = ob.parent, ob.parent_bone if ob.parent_type == "BONE" else ""
        else:
            turns &= not isinstance(constraint, bpy.types.CopyLocationConstraint)
            ob, bone = constraint.target, constraint.subtarget
    return tuple(found)


class Hold(NamedTuple):
    """What a constraint attaches to something other than the bone's parent."""

    place: bool = False
    rotation: bool = False
    adds: bool = False
    """Whether it adds to the motion of the bone's parent, as Child Of does."""

    @classmethod
    def of(cls, bone: bpy.types.PoseBone) -> Hold | None:
        """Return the hold on a bone, or None. Nothing moves a connected bone away from its parent."""
        found = next(filter(_takes_along, bone.constraints), None)
        if found is None:
            return None
        if isinstance(found, bpy.types.ChildOfConstraint):
            return cls(adds=True)
        return cls(not bone.bone.use_connect, not isinstance(found, bpy.types.CopyLocationConstraint))


def _takes_along(constraint: Any) -> bool:
    """Whether a constraint attaches its object or bone to another one."""
    return isinstance(constraint, PARENTING) and is_on(constraint) and constraint.target is not None


def all_parent_bones_of(ob: bpy.types.Object | None, bone: str = "") -> Iterator[ParentBone]:
    """Yield all bones that an object, or one of its bones, follows, even partly."""
    yield from (attachment.parent for attachment in attachments_of(ob, bone))
    while ob is not None:
        for constraint in ob.constraints:
            if isinstance(constraint, PULLING) and is_on(constraint):
                found = targets_of(constraint)
                yield from (ParentBone(uid_of(own), name) for own, name in found if name and own.type == "ARMATURE")
        ob = ob.parent


def related(ob: bpy.types.Object, bone: str = "") -> list[bpy.types.Object]:
    """Return an object and all objects whose settings may decide what it is attached to: parents, constraint targets.

    Constraints that are off now count, too: what switches them may be animated.
    """
    return list({uid_of(own): own for own, _name in _reached([(ob, bone)], _takers)}.values())


def leaders(ob: bpy.types.Object) -> frozenset[int]:
    """Return the armatures, by `session_uid`, whose bones affect this one before its chains are solved.

    Counts parents, constraints on bones and drivers.
    """
    start = [*_takers(ob, ""), *_sources(ob)]
    for bone in ob.pose.bones:
        if bone.constraints:
            start += _targets(bone)
    asked = {uid_of(ob)}

    def beyond(own: bpy.types.Object, name: str) -> list[Part]:
        found = _takers(own, name)
        if uid_of(own) not in asked:  # for each of its bones its drivers read the same
            asked.add(uid_of(own))
            found += _sources(own)
        return found

    reached = _reached(start, beyond)
    return frozenset(uid_of(own) for own, name in reached if name and own.type == "ARMATURE") - {uid_of(ob)}


Part = tuple[bpy.types.Object, str]
"""An object, or a bone of it: (object, bone name or "")."""


def _reached(start: Iterable[Part], beyond: Callable[[bpy.types.Object, str], list[Part]]) -> Iterator[Part]:
    """Yield the given parts and all parts that they lead to, each once."""
    seen: set[tuple[int, str]] = set()
    waiting = list(start)
    while waiting:
        own, name = waiting.pop()
        if own is not None and (uid_of(own), name) not in seen:
            seen.add((uid_of(own), name))
            yield own, name
            waiting += beyond(own, name)


def _takers(ob: bpy.types.Object, name: str) -> list[Part]:
    """Return an object's parent and constraint targets, and those of one of its bones and its ancestors."""
    bone = ob.pose.bones.get(name) if name and ob.pose is not None else None
    parts: tuple[Any, ...] = (ob,) if bone is None else (ob, bone, *bone.parent_recursive)
    found = [target for part in parts for target in _targets(part)]
    return [*found, (ob.parent, ob.parent_bone if ob.parent_type == "BONE" else "")]


def _targets(owner: bpy.types.Object | bpy.types.PoseBone) -> list[Part]:
    """Return the targets of the constraints on an object or a bone."""
    return [target for constraint in owner.constraints for target in targets_of(constraint)]


def _sources(ob: bpy.types.Object) -> list[Part]:
    """Return what the drivers of an object and of its data read."""
    blocks: tuple[Any, ...] = (ob, ob.data)
    drivers = [driver for block in blocks if block and block.animation_data for driver in block.animation_data.drivers]
    every = [target for driver in drivers for variable in driver.driver.variables for target in variable.targets]
    found: list[Part] = []
    for target in every:
        if isinstance(target.id, bpy.types.Object):
            named = BONE_PATH.match(target.data_path)
            found.append((target.id, bpy.utils.unescape_identifier(named["name"]) if named else target.bone_target))
    return found


# ---- goals that can't be followed


def why_absent(goal: bpy.types.Object, role: str, presence: Presence) -> str:
    """Return why a target or pole is not in the view layer, and what to do; empty if it is.

    A chain still holds an object that was deleted.
    """
    if uid_of(goal) in presence.present:
        return ""
    if goal.library is not None and not goal.users_scene:  # linked only because the chain points to it
        return say(
            {
                "target": "The target '{goal}' was not linked with the character. "
                "In '{library}', move its collection into the character's, or choose another target",
                "pole": "The pole '{goal}' was not linked with the character. "
                "In '{library}', move its collection into the character's, or choose another pole",
            }[role],
            goal=goal.name,
            library=goal.library.name,
        )
    return say(
        {
            "target": "The target '{goal}' was deleted or is excluded from this view layer. Choose another target",
            "pole": "The pole '{goal}' was deleted or is excluded from this view layer. Choose another pole",
        }[role],
        goal=goal.name,
    )


def why_unfit(
    ob: bpy.types.Object,
    bones: Sequence[bpy.types.PoseBone],
    goal: bpy.types.Object,
    goal_bone: str,
    role: str,
    presence: Presence,
) -> str:
    """Return why the bones of a chain can't follow a target or pole, and what to do; empty if they can."""
    if absent := why_absent(goal, role, presence):
        return absent
    if not presence.evaluates(goal):
        return say(
            {
                "target": "The target '{goal}' or its collection is disabled in viewports. "
                "Enable it, and hide it with the eye icon if needed",
                "pole": "The pole '{goal}' or its collection is disabled in viewports. "
                "Enable it, and hide it with the eye icon if needed",
            }[role],
            goal=goal.name,
        )
    if goal_bone and goal.type == "ARMATURE" and goal_bone not in goal.pose.bones:
        return say(
            {
                "target": "The target armature '{goal}' has no bone '{goal_bone}'. Choose another bone",
                "pole": "The pole armature '{goal}' has no bone '{goal_bone}'. Choose another bone",
            }[role],
            goal=goal.name,
            goal_bone=goal_bone,
        )
    moved = {bone.name for bone in bones}
    holders = (
        ob.pose.bones[parent.bone]
        for parent in all_parent_bones_of(presence.seen(goal), goal_bone)
        if parent.armature == uid_of(ob) and parent.bone in ob.pose.bones
    )
    path = (bone.name for holder in holders for bone in (holder, *holder.parent_recursive))
    own = next((name for name in path if name in moved), None)
    if own is None:
        return ""
    return say(
        {
            "target": "The target '{goal}' is attached to '{own}', part of this chain. Attach it to something else",
            "pole": "The pole '{goal}' is attached to '{own}', part of this chain. Attach it to something else",
        }[role],
        goal=goal.name,
        own=own,
    )
