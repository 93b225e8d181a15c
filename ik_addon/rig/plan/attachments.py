"""What targets, poles and armatures are attached to: bones that take them along, as parents or by constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import bpy

from ...pose.constraints import is_on
from ...pose.data_paths import BONE_PATH

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
"""Other constraints by which a bone decides where an object is."""


class ParentBone(NamedTuple):
    """A bone of an armature object."""

    armature: int
    """`session_uid` of the object."""
    bone: str


def uid_of(ob: bpy.types.ID) -> int:
    """The `session_uid` of a data-block; evaluated copies have none of their own."""
    return ob.original.session_uid


class Attachment(NamedTuple):
    """What something is attached to."""

    parent: ParentBone
    turns: bool
    """It turns with its parent, and does not only move with it."""


def attachments_of(ob: bpy.types.Object | None, bone: str = "") -> tuple[Attachment, ...]:
    """The bones that take an object along, or one of its bones, nearest first.

    By itself or through its parents, as a child or by a constraint; and what takes along the armatures of these bones.
    Of an evaluated object, those that take it along in that evaluation.
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
    """What of a bone a constraint takes along with something else than its parent."""

    place: bool = False
    rotation: bool = False
    adds: bool = False
    """It moves the bone from where the parent takes it, as Child Of does."""

    @classmethod
    def of(cls, bone: bpy.types.PoseBone) -> Hold | None:
        """The hold on a bone; None: there is none. Nothing takes a connected bone off its parent."""
        found = next(filter(_takes_along, bone.constraints), None)
        if found is None:
            return None
        if isinstance(found, bpy.types.ChildOfConstraint):
            return cls(adds=True)
        return cls(not bone.bone.use_connect, not isinstance(found, bpy.types.CopyLocationConstraint))


def _takes_along(constraint: Any) -> bool:
    """Whether a constraint makes its object or bone follow another one."""
    return isinstance(constraint, PARENTING) and is_on(constraint) and constraint.target is not None


def _is_bone(entry: Any) -> bool:
    """Whether the target of a constraint, or of one of several that it has, is a bone."""
    return entry.target is not None and entry.target.type == "ARMATURE" and bool(entry.subtarget)


def all_parent_bones_of(ob: bpy.types.Object | None, bone: str = "") -> Iterator[ParentBone]:
    """All bones that an object, or one of its bones, follows, even partly."""
    yield from (attachment.parent for attachment in attachments_of(ob, bone))
    while ob is not None:
        for constraint in ob.constraints:
            if isinstance(constraint, PULLING) and is_on(constraint):
                entries: Iterable[Any] = getattr(constraint, "targets", (constraint,))
                yield from (ParentBone(uid_of(entry.target), entry.subtarget) for entry in entries if _is_bone(entry))
        ob = ob.parent


def related(ob: bpy.types.Object, bone: str = "") -> list[bpy.types.Object]:
    """An object, and all those whose settings may decide what takes it along: parents and targets of constraints.

    Also by constraints that are switched off now: what switches them may be animated.
    """
    return list({uid_of(own): own for own, _name in _reached([(ob, bone)], _takers)}.values())


def leaders(ob: bpy.types.Object) -> frozenset[int]:
    """Armatures, by `session_uid`, whose bones decide how another one stands before its chains are solved.

    In whatever way: as parents, by constraints on its bones or through drivers.
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
"""An object, or a bone of it."""


def _reached(start: Iterable[Part], beyond: Callable[[bpy.types.Object, str], list[Part]]) -> Iterator[Part]:
    """Everything that some parts lead to, step by step, each once, with these parts."""
    seen: set[tuple[int, str]] = set()
    waiting = list(start)
    while waiting:
        own, name = waiting.pop()
        if own is not None and (uid_of(own), name) not in seen:
            seen.add((uid_of(own), name))
            yield own, name
            waiting += beyond(own, name)


def _takers(ob: bpy.types.Object, name: str) -> list[Part]:
    """The parent of an object, and the targets of constraints on it, on one of its bones and on those above that."""
    bone = ob.pose.bones.get(name) if name and ob.pose is not None else None
    parts: tuple[Any, ...] = (ob,) if bone is None else (ob, bone, *bone.parent_recursive)
    found = [target for part in parts for target in _targets(part)]
    return [*found, (ob.parent, ob.parent_bone if ob.parent_type == "BONE" else "")]


def _targets(owner: bpy.types.Object | bpy.types.PoseBone) -> list[Part]:
    """The targets of the constraints on an object or a bone."""
    found: list[Part] = []
    for constraint in owner.constraints:
        entries: Iterable[Any] = getattr(constraint, "targets", (constraint,))
        found += [
            (entry.target, getattr(entry, "subtarget", "")) for entry in entries if getattr(entry, "target", None)
        ]
    return found


def _sources(ob: bpy.types.Object) -> list[Part]:
    """What the drivers of an object and of its data read."""
    blocks: tuple[Any, ...] = (ob, ob.data)
    drivers = [driver for block in blocks if block and block.animation_data for driver in block.animation_data.drivers]
    every = [target for driver in drivers for variable in driver.driver.variables for target in variable.targets]
    found: list[Part] = []
    for target in every:
        if isinstance(target.id, bpy.types.Object):
            named = BONE_PATH.match(target.data_path)
            found.append((target.id, bpy.utils.unescape_identifier(named["name"]) if named else target.bone_target))
    return found
